"""interlog.testing: brokers for tests, and what they leave behind: nothing."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pika
import pytest
from confluent_kafka import Consumer, Producer

import interlog
from interlog.testing import RunningBroker, running
from tests.served import PATIENCE_SECONDS, ROOT, clean_environment

pytest_plugins = ("pytester",)

READY_SECONDS = 0.2


def connect(broker: RunningBroker) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(broker.amqp_url))


@contextmanager
def left_open(broker: RunningBroker) -> Iterator[pika.BlockingConnection]:
    """A connection that nobody closes: the broker ends it, and pika lets go of it once it has seen that."""
    connection = connect(broker)
    try:
        yield connection
    finally:
        with suppress(pika.exceptions.AMQPError):
            while connection.is_open:
                connection.process_data_events(1)


def in_a_process_of_its_own(check: Callable[[], None], folder: Path) -> None:
    """No other broker is there, no other test's thread; temporary folders are made in `folder`; warnings are errors."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"from tests.unit.test_testing import {check.__name__} as c; c()"],
        env=clean_environment({"TMPDIR": str(folder)}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_a_broker_of_ones_own(broker: RunningBroker) -> None:
    assert broker.amqp_url == f"amqp://guest:guest@{broker.host}:{broker.port}/%2F"
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders", durable=True)
        channel.basic_publish("", "orders", b"one", pika.BasicProperties(delivery_mode=2), mandatory=True)
        assert channel.basic_get("orders", auto_ack=True)[2] == b"one"
    with urllib.request.urlopen(f"{broker.http_url}/health", timeout=10) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("time", [1, 2])
def test_tests_do_not_meet_in_the_shared_broker(shared_broker: RunningBroker, time: int) -> None:
    assert shared_broker.vhost.startswith("test-")
    with connect(shared_broker) as connection:
        channel = connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="NOT_FOUND"):
            channel.queue_declare("left-over", passive=True)
        connection.channel().queue_declare("left-over")


@pytest.mark.parametrize("time", [1, 2])
def test_nor_do_their_topics_and_groups(shared_broker: RunningBroker, time: int) -> None:
    assert shared_broker.kafka_address == shared_broker.kafka_address != shared_broker.addresses["kafka"]
    with Producer({"bootstrap.servers": shared_broker.kafka_address}) as producer:
        assert set(producer.list_topics(timeout=PATIENCE_SECONDS).topics) == set()
        producer.produce("left-over", b"%d" % time)
    reader = {"bootstrap.servers": shared_broker.kafka_address, "group.id": "g", "auto.offset.reset": "earliest"}
    with Consumer(reader) as consumer:
        consumer.subscribe(["left-over"])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None and message.value() == b"%d" % time and message.offset() == 0
        consumer.commit(message=message, asynchronous=False)
    with connect(shared_broker) as connection:
        connection.channel().queue_declare("left-over", passive=True)  # AMQP sees the same


def test_a_vhosts_kafka_port_goes_with_it(shared_broker: RunningBroker) -> None:
    vhost = shared_broker.add_vhost("short-lived")
    host, _, port = vhost.kafka_address.rpartition(":")
    with socket.create_connection((host, int(port))) as left_open:
        shared_broker.remove_vhost("short-lived")
        left_open.settimeout(PATIENCE_SECONDS)
        assert left_open.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)))
    other = shared_broker.in_vhost("/").kafka_address
    assert other == shared_broker.addresses["kafka"]


def test_the_shared_broker_outlives_what_a_test_forgot(shared_broker: RunningBroker) -> None:
    vhost = shared_broker.add_vhost("forgetful")
    with left_open(vhost) as connection:
        connection.channel().basic_consume(connection.channel().queue_declare("q").method.queue, lambda *_: None)
        shared_broker.remove_vhost("forgetful")
        with connect(shared_broker) as other:
            assert other.is_open
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="vhost 'forgetful' is deleted"):
            connection.process_data_events(PATIENCE_SECONDS)


def test_both_at_once_are_two_brokers(broker: RunningBroker, shared_broker: RunningBroker) -> None:
    assert broker.port != shared_broker.port


def leave_nothing() -> None:
    connect_and_forget()  # once before, for what Python itself keeps open from then on
    before = descriptors()
    connect_and_forget()
    assert threading.enumerate() == [threading.main_thread()]
    assert descriptors() == before
    assert not os.listdir(tempfile.gettempdir())


def descriptors() -> dict[str, str]:
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def connect_and_forget() -> None:
    with running() as broker:
        forgotten = connect(broker)  # a test that does not close what it opened
        assert os.listdir(tempfile.gettempdir())
        assert broker.call(lambda core: core.status())
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((broker.host, broker.port))
    with pytest.raises(pika.exceptions.AMQPError):
        forgotten.channel()


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    in_a_process_of_its_own(leave_nothing, tmp_path)


def test_it_is_ready_soon() -> None:
    best = 10.0
    for _ in range(5):
        began = time.perf_counter()
        with running() as broker:
            socket.create_connection((broker.host, broker.port)).close()
            best = min(best, time.perf_counter() - began)
    assert best < READY_SECONDS


def test_settings_are_those_of_the_broker() -> None:
    with running(http_port="off", kafka_port="off", max_message_bytes="1KiB") as broker:
        assert set(broker.addresses) == {"amqp"}
        with pytest.raises(RuntimeError, match="not to serve http"):
            _ = broker.http_url
    with pytest.raises(interlog.SettingError, match="Did you mean amqp_port"):
        running(ampq_port=1).__enter__()


def fail_to_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(interlog.InterlogError, match="in use"):
            running(amqp_port=taken.getsockname()[1]).__enter__()
    assert threading.enumerate() == [threading.main_thread()]
    assert not os.listdir(tempfile.gettempdir())


def test_a_start_that_fails_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    in_a_process_of_its_own(fail_to_start, tmp_path)


def guide_examples() -> list[str]:
    page = (ROOT / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("flags", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_examples_of_the_guide_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """In a project that knows nothing of this clone's settings, with every warning an error."""
    for number, example in enumerate(guide_examples()):
        assert len(example.splitlines()) <= 10
        shared = example.replace("broker", "shared_broker")
        pytester.makepyfile(**{f"test_own_{number}": example, f"test_shared_{number}": shared})
    folders = pytester.mkdir("temporary")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(folders))
    result = pytester.runpytest_subprocess("-p", "interlog.testing", "-W", "error", *flags)
    result.assert_outcomes(passed=4)
    assert not [path for path in Path(folders).iterdir() if path.name.startswith("interlog-")]
