"""Records as clients before Kafka 0.11 send them: taken in, written anew, and read by clients of today."""

from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import produce
from interlog.journal.codecs import Codec
from interlog.journal.record import Record
from tests.old_messages import message, packed
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import Client, Play

UNKNOWN_TIME_MS = -1


@pytest.fixture(autouse=True)
def topics(client: Client) -> None:
    assert a.create(client, "t", configs={"max.message.bytes": "2000"}).error_code == 0
    assert a.create(client, "keys", configs={"cleanup.policy": "compact"}).error_code == 0


def send(client: Client, records: bytes, version: int = 2, topic: str = "t") -> Any:
    data = produce.TopicProduceData(topic, partition_data=[produce.PartitionProduceData(0, records)])
    answer = client.ask(produce.ProduceRequest(None, -1, 1_000, [data]), version)
    return answer.responses[0].partition_responses[0]


def told(records: list[tuple[int, Record]]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(offset, one.key, one.value) for offset, one in records]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_become_records(play: Play, client: Client, version: int, magic: int) -> None:
    now_ms = play.clock.now_ms()
    old = b"".join(message(b"%d" % number, b"k", magic, time_ms=now_ms, offset=number) for number in range(3))
    answer = send(client, old + message(None, None, magic, time_ms=now_ms), version)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    found = a.read(client)
    assert told(found) == [(0, b"k", b"0"), (1, b"k", b"1"), (2, b"k", b"2"), (3, None, None)]
    assert {one.timestamp_ms for _, one in found} == {now_ms if magic else UNKNOWN_TIME_MS}
    play.restart()
    assert told(a.read(play.connect())) == told(found)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_packed_messages_are_unpacked(play: Play, client: Client, codec: Codec, magic: int) -> None:
    inner = b"".join(message(b"v%d" % n, None, magic, time_ms=play.clock.now_ms(), offset=n) for n in range(2))
    assert send(client, packed(inner, codec, magic)).error_code == 0
    assert told(a.read(client)) == [(0, None, b"v0"), (1, None, b"v1")]


def test_new_ones_come_after_them(play: Play, client: Client) -> None:
    assert send(client, message(b"old")).base_offset == 0
    assert a.send(client, [Record(None, b"new", (), play.clock.now_ms())]).base_offset == 1
    assert send(client, message(b"old")).base_offset == 2


@pytest.mark.parametrize(
    ("records", "version", "topic", "error"),
    [
        (message(b"x")[:-1] + b"y", 2, "t", ErrorCode.CORRUPT_MESSAGE),
        (message(b"x")[:-3], 2, "t", ErrorCode.CORRUPT_MESSAGE),
        (packed(b"nonsense", Codec.GZIP), 2, "t", ErrorCode.CORRUPT_MESSAGE),
        (message(bytes(2_000)), 2, "t", ErrorCode.MESSAGE_TOO_LARGE),
        (message(b"x"), 3, "t", ErrorCode.INVALID_RECORD),
        (message(b"x"), 2, "keys", ErrorCode.INVALID_RECORD),
    ],
    ids=["crc", "cut", "packed", "large", "new version", "no key"],
)
def test_what_is_refused(client: Client, records: bytes, version: int, topic: str, error: ErrorCode) -> None:
    assert send(client, records, version, topic).error_code == error
    assert a.offset(client, a.LATEST, topic) == 0
