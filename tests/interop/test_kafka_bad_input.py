"""Kafka's port, and clients on real sockets that stop in the middle, never read, lie, or wait by the thousand.

Whatever they do, a client beside them goes on as if they were not there.
"""

import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interlog.faces.kafka.connection import FULL_BYTES
from interlog.testing import RunningBroker, running
from tests.interop.confluent import PATIENCE_SECONDS, create, produce, read
from tests.interop.unsent import unsent_bytes

QUIET_SECONDS = 0.3
METADATA = b"\x00\x03\x00\x01" + b"\x00\x00\x00\x07" + b"\x00\x01c" + b"\x00\x00\x00\x00"  # version 1: of all topics
API_VERSIONS = b"\x00\x12\x00\x00" + b"\x00\x00\x00\x08" + b"\x00\x01c"


def framed(request: bytes) -> bytes:
    return struct.pack(">i", len(request)) + request


def connect(broker: RunningBroker) -> socket.socket:
    host, port = broker.kafka_address.split(":")
    return socket.create_connection((host, int(port)), PATIENCE_SECONDS)


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        assert more, f"the connection ended after {len(data)} of {count} bytes"
        data += more
    return data


def answer(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", receive(connection, 4))
    return receive(connection, size)


def is_over(connection: socket.socket) -> bool:
    """The broker hangs up."""
    connection.settimeout(PATIENCE_SECONDS)
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def others_go_on(broker: RunningBroker, topic: str) -> None:
    produce(broker.kafka_address, topic, ({"value": b"%d" % n} for n in range(20)))
    assert [int(one.value() or b"") for one in read(broker.kafka_address, topic, 20)] == list(range(20))


def test_half_a_request_and_then_nothing(shared_broker: RunningBroker) -> None:
    """At every byte of it: the other half may come later, or never."""
    request = framed(METADATA)
    with ExitStack() as stack:
        halves = [(at, stack.enter_context(connect(shared_broker))) for at in range(1, len(request))]
        for at, connection in halves:
            connection.sendall(request[:at])
        others_go_on(shared_broker, "log")
        for at, connection in halves:
            connection.sendall(request[at:])
            assert answer(connection)[:4] == b"\x00\x00\x00\x07"


@pytest.mark.parametrize(
    "what",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 7) + bytes(7),
        struct.pack(">i", 0x7FFFFFFF) + METADATA,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(506),
        framed(b"\x7f\xff\x00\x00" + bytes(4) + b"\xff\xff"),
        framed(b"\x00\x03\x7f\xff" + bytes(4) + b"\xff\xff"),
        framed(METADATA[:-4] + b"\x7f\xff\xff\xff"),
        framed(METADATA[:-4] + b"\x00\x00\x00\x01\x7f\xff"),
        framed(b"\x00\x00\x00\x07" + bytes(4) + b"\xff\xff" + b"\xff\xff\xff\xff" + bytes(4) + b"\x7f\xff\xff\xff"),
        framed(METADATA + b"more than there is to say"),
    ],
    ids=[
        "a negative length",
        "no length",
        "less than a header",
        "two gigabytes are promised",
        "HTTP",
        "AMQP",
        "TLS",
        "an API nobody knows",
        "a version nobody knows",
        "a list of two billion",
        "a text that is longer than all",
        "topics by the billion",
        "more than is read",
    ],
)
def test_what_is_no_request_ends_its_connection_and_no_other(shared_broker: RunningBroker, what: bytes) -> None:
    with connect(shared_broker) as beside, connect(shared_broker) as connection:
        connection.sendall(what)
        connection.shutdown(socket.SHUT_WR)
        assert is_over(connection)
        beside.sendall(framed(METADATA))
        assert answer(beside)[:4] == b"\x00\x00\x00\x07"


def test_before_a_login_there_is_nothing_to_ask_for() -> None:
    with running(kafka_authentication="on") as broker:
        for request, size in ((METADATA, 0), (b"\x00\x13" + bytes(2) + bytes(4) + b"\xff\xff", 1 << 20)):
            with connect(broker) as connection:
                connection.sendall(framed(API_VERSIONS))
                assert answer(connection)[:4] == b"\x00\x00\x00\x08"
                try:
                    connection.sendall(framed(request + bytes(size)))
                except ConnectionError:
                    pass  # it was over before all was said
                assert is_over(connection)
        with connect(broker) as slow:
            slow.sendall(struct.pack(">i", 10 << 20) + API_VERSIONS)  # too much for who has not said who it is
            assert is_over(slow)


def test_who_never_reads_costs_its_share_and_no_more(broker: RunningBroker) -> None:
    """A hundred fetches of a megabyte, of which not one answer is taken; then all of them are."""
    topic, size, count = "log", 1 << 20, 100
    create(broker.kafka_address, topic, config={"max.message.bytes": str(2 << 20)})
    produce(broker.kafka_address, topic, [{"value": bytes(size)}], **{"message.max.bytes": 2 << 20})
    fetch = _fetch(topic, wait_ms=0)
    with connect(broker) as deaf:
        deaf.sendall(framed(fetch) * count)
        others_go_on(broker, "other")
        assert size < unsent_bytes(broker) <= 2 * (FULL_BYTES + size)
        for _ in range(count):
            assert len(answer(deaf)) > size


def _fetch(topic: str, wait_ms: int, offset: int = 0) -> bytes:
    """Version 4."""
    name = topic.encode()
    return (
        b"\x00\x01\x00\x04\x00\x00\x00\x09\x00\x01c"
        + struct.pack(">iiiib", -1, wait_ms, 1, 50 << 20, 0)
        + struct.pack(">ih", 1, len(name))
        + name
        + struct.pack(">iiqi", 1, 0, offset, 50 << 20)
    )


@pytest.fixture
def roomy() -> Iterator[RunningBroker]:
    """With room for many connections, in a process that may have them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 30_000)
    if wanted < 5_000:
        pytest.skip(f"this process may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        with running() as broker:
            yield broker
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_wait_for_nothing(roomy: RunningBroker) -> None:
    """Fetches that wait cost no time; when something comes each is answered; who hangs up is forgotten."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10_000, (soft - 1_000) // 2)
    create(roomy.kafka_address, "quiet")
    request = framed(_fetch("quiet", wait_ms=600_000))
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(roomy)) for _ in range(count)]
        for connection in waiting:
            connection.sendall(request)
        others_go_on(roomy, "other")
        began_ns = roomy.call(lambda core: time.thread_time_ns())
        time.sleep(QUIET_SECONDS)
        took_s = (roomy.call(lambda core: time.thread_time_ns()) - began_ns) / 1e9
        assert took_s < QUIET_SECONDS / 4, "waiting costs next to nothing"
        for connection in waiting[count // 2 :]:
            connection.close()
        produce(roomy.kafka_address, "quiet", [{"value": b"at last"}])
        for connection in waiting[: count // 2]:
            assert b"at last" in answer(connection)
