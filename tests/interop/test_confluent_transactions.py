"""Transactions of confluent-kafka: all or nothing, zombies, and squares each written once, whoever is killed."""

import random
import select
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import OffsetSpec

from interlog.testing import running
from tests.interop.confluent import PATIENCE_SECONDS, admin_of, consumer_of, create, produce, read, take, told
from tests.interop.cutter import Cutter
from tests.served import Serve

SILENCE_SECONDS = 2.0  # of a worker that has work


def transactional(address: str, name: str, **more: Any) -> ck.Producer:
    producer = ck.Producer(told(address, {"transactional.id": name, **more}))
    producer.init_transactions(PATIENCE_SECONDS)
    return producer


def values(messages: list[ck.Message]) -> list[bytes | None]:
    return [message.value() for message in messages]


def code_of(caught: "pytest.ExceptionInfo[ck.KafkaException]") -> int:
    code: int = caught.value.args[0].code()
    return code


def test_all_or_nothing_in_several_topics(address: str) -> None:
    for topic in ("orders", "bills"):
        create(address, topic, 3)
    producer = transactional(address, "shop")
    for number in range(10):
        producer.begin_transaction()
        for topic in ("orders", "bills"):
            for partition in range(3):
                producer.produce(topic, b"%d" % number, partition=partition)
        producer.flush(PATIENCE_SECONDS)  # else what is aborted is never sent
        if number % 2:
            producer.abort_transaction(PATIENCE_SECONDS)
        else:
            producer.commit_transaction(PATIENCE_SECONDS)
    for topic in ("orders", "bills"):
        committed = read(address, topic, 15, partitions=range(3))
        assert Counter(values(committed)) == {b"%d" % number: 3 for number in range(0, 10, 2)}
        everything = read(address, topic, 30, partitions=range(3), isolation_level="read_uncommitted")
        assert Counter(values(everything)) == {b"%d" % number: 3 for number in range(10)}


def test_what_is_open_is_not_read_nor_what_comes_after_it(address: str) -> None:
    create(address, "log")
    producer = transactional(address, "slow")
    producer.begin_transaction()
    producer.produce("log", b"open")
    producer.flush(PATIENCE_SECONDS)
    produce(address, "log", [{"value": b"after"}])
    assert values(read(address, "log", 2, isolation_level="read_uncommitted")) == [b"open", b"after"]
    with consumer_of(address, "g", enable_partition_eof=True) as consumer:
        consumer.subscribe(["log"])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None and error.code() == ck.KafkaError._PARTITION_EOF
        producer.commit_transaction(PATIENCE_SECONDS)
        assert values(take(consumer, 2)) == [b"open", b"after"]


def test_a_zombie_is_fenced(address: str) -> None:
    create(address, "log")
    zombie = transactional(address, "only")
    zombie.begin_transaction()
    zombie.produce("log", b"of the zombie")
    zombie.flush(PATIENCE_SECONDS)
    successor = transactional(address, "only")
    with pytest.raises(ck.KafkaException) as caught:
        zombie.commit_transaction(PATIENCE_SECONDS)
    assert caught.value.args[0].fatal() and code_of(caught) == ck.KafkaError._FENCED
    successor.begin_transaction()
    successor.produce("log", b"of its successor")
    successor.commit_transaction(PATIENCE_SECONDS)
    assert values(read(address, "log", 1)) == [b"of its successor"]


def test_who_never_ends_is_aborted_in_time(address: str) -> None:
    create(address, "log")
    producer = transactional(address, "forgetful", **{"transaction.timeout.ms": 1_000})
    producer.begin_transaction()
    producer.produce("log", b"never to be seen")
    producer.flush(PATIENCE_SECONDS)
    produce(address, "log", [{"value": b"after"}])
    assert values(read(address, "log", 1)) == [b"after"]
    with pytest.raises(ck.KafkaException) as caught:
        producer.commit_transaction(PATIENCE_SECONDS)
    assert caught.value.args[0].fatal() or caught.value.args[0].txn_requires_abort()


def test_positions_are_part_of_the_transaction(address: str) -> None:
    produce(address, "source", ({"value": b"%d" % n} for n in range(6)))
    create(address, "target")
    producer = transactional(address, "copier")
    with consumer_of(address, "copiers", enable_auto_commit=False) as consumer:
        consumer.subscribe(["source"])

        def committed() -> int:
            (found,) = consumer.committed([ck.TopicPartition("source", 0)], PATIENCE_SECONDS)
            return found.offset

        for count, commits in ((2, True), (2, False)):
            producer.begin_transaction()
            for message in take(consumer, count):
                producer.produce("target", message.value())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), PATIENCE_SECONDS)
            if commits:
                producer.commit_transaction(PATIENCE_SECONDS)
            else:
                producer.abort_transaction(PATIENCE_SECONDS)
            assert committed() == 2
    assert values(read(address, "target", 2)) == [b"0", b"1"]


def test_positions_of_who_left_the_group_are_refused(address: str) -> None:
    produce(address, "source", [{"value": b"x"}])
    producer = transactional(address, "copier")
    with consumer_of(address, "copiers", enable_auto_commit=False) as consumer:
        consumer.subscribe(["source"])
        take(consumer, 1)
        positions, metadata = consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
    with consumer_of(address, "copiers", enable_auto_commit=False) as other:
        other.subscribe(["source"])
        take(other, 1)
        producer.begin_transaction()
        with pytest.raises(ck.KafkaException) as caught:
            producer.send_offsets_to_transaction(positions, metadata, PATIENCE_SECONDS)
        assert caught.value.args[0].txn_requires_abort()
        producer.abort_transaction(PATIENCE_SECONDS)


def test_a_new_owner_of_the_name_ends_what_hangs(address: str) -> None:
    create(address, "log")
    producer = transactional(address, "hangs")
    producer.begin_transaction()
    producer.produce("log", b"x")
    producer.flush(PATIENCE_SECONDS)
    admin = admin_of(address)

    def stable() -> int:
        asked = {ck.TopicPartition("log", 0): OffsetSpec.latest()}
        (future,) = admin.list_offsets(asked, isolation_level=ck.IsolationLevel.READ_COMMITTED).values()
        found: int = future.result(PATIENCE_SECONDS).offset
        return found

    assert stable() == 0
    transactional(address, "hangs")
    assert stable() == 2, "the record and the mark that it is aborted"


@contextmanager
def worker(address: str, name: str) -> Iterator["subprocess.Popen[str]"]:
    script = Path(__file__).with_name("exactly_once.py")
    words = [sys.executable, str(script), address, "numbers", "squares", name]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_every_square_is_written_once_whoever_is_killed(address: str) -> None:
    """Workers are killed in the middle of their transactions; the next of the same name goes on."""
    count, kills = 400, 4
    for topic in ("numbers", "squares"):
        create(address, topic, 2)
    rng = random.Random(4)
    with worker(address, "squarer") as first:
        assert first.stdout is not None
        producer = ck.Producer(told(address, {"linger.ms": 0}))
        for number in range(count):
            producer.produce("numbers", b"%d" % number, key=b"%d" % (number % 5))
        assert producer.flush(PATIENCE_SECONDS) == 0
        first.stdout.readline()
    for _ in range(kills - 1):
        with worker(address, "squarer") as process:
            assert process.stdout is not None
            for _ in range(rng.randrange(1, 8)):
                process.stdout.readline()
    with worker(address, "squarer"), consumer_of(address, "check", isolation_level="read_committed") as consumer:
        consumer.subscribe(["squares"])
        found = take(consumer, count)
        (rest,) = [consumer.consume(1, 0.3)]
    assert Counter(int(message.value() or b"") for message in found) == Counter(n**2 for n in range(count))
    assert rest == []
    by_key: dict[bytes | None, list[int]] = {}
    for message in found:
        by_key.setdefault(message.key(), []).append(int(message.value() or b""))
    assert all(numbers == sorted(numbers) for numbers in by_key.values()), "in order, too"


def test_every_square_is_written_once_though_the_broker_is_killed(serve: Serve, tmp_path: Path) -> None:
    """The broker is killed twice while one worker writes squares and a producer numbers; nobody starts anew.

    A worker that gives up, or says nothing for a while, is followed by another: librdkafka may lose its way to the
    coordinator when a broker comes back, and wait without asking again.
    """
    count, kills = 300, 2
    rng = random.Random(6)
    data = tmp_path / "data"
    broker = serve(data=data)
    address = broker.addresses()["kafka"]
    port = address.rpartition(":")[2]
    for topic in ("numbers", "squares"):
        create(address, topic, 2)
    refused: list[ck.KafkaError] = []
    producer = ck.Producer(told(address, {"enable.idempotence": True, "linger.ms": 0, "log_level": 0}))
    numbers = iter(range(count))
    over = threading.Event()

    def supervise() -> None:
        while not over.is_set():
            with worker(address, "squarer") as process:
                assert process.stdout is not None
                while select.select([process.stdout], [], [], SILENCE_SECONDS)[0] and not over.is_set():
                    if not process.stdout.readline():
                        break  # it gave up

    def delivered(error: ck.KafkaError | None, _: ck.Message) -> None:
        if error is not None:
            refused.append(error)

    def send(some: int) -> None:
        for number in islice(numbers, some):
            producer.produce("numbers", b"%d" % number, on_delivery=delivered)
            producer.poll(0)

    supervisor = threading.Thread(target=supervise)
    supervisor.start()
    try:
        for _ in range(kills):
            send(count // (kills + 1))
            producer.poll(0.2 + rng.random() * 0.4)
            broker.process.kill()
            broker.process.wait()
            broker = serve("--kafka-port", port, data=data)
            broker.addresses()
        send(count)
        assert producer.flush(PATIENCE_SECONDS) == 0 and not refused
        with consumer_of(address, "check", isolation_level="read_committed") as consumer:
            consumer.subscribe(["squares"])
            found = take(consumer, count)
            rest = consumer.consume(1, 0.3)
    finally:
        over.set()
        supervisor.join()
    assert Counter(int(message.value() or b"") for message in found) == Counter(n**2 for n in range(count))
    assert rest == []


def test_an_idempotent_producer_goes_on_where_its_connection_broke() -> None:
    """Connections are cut in the middle of its requests, again and again: each record is there once, in order."""
    count, cuts = 4_000, 20
    with Cutter() as cutter, running(kafka_advertised=cutter.address) as broker:
        host, port = broker.kafka_address.split(":")
        cutter.to = (host, int(port))
        create(cutter.address, "log")
        settings = {"enable.idempotence": True, "linger.ms": 1, "batch.num.messages": 50, "log_level": 0}
        producer = ck.Producer(told(cutter.address, settings))
        for number in range(count):
            producer.produce("log", b"%d" % number)
            if number % (count // cuts) == 0:
                producer.poll(0.03)
                cutter.cut()
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert cutter.cuts >= cuts // 4
        assert [int(message.value() or b"") for message in read(cutter.address, "log", count)] == list(range(count))
