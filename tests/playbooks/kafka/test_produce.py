"""Produce: what is stored in each version, when it is answered, and what is refused, each with Kafka's own error."""

import struct
from typing import Any

import pytest

from interlog.base.crc32c import crc32c
from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import produce
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec, compress
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import Client, Play

ALL, LEADER, NOBODY = -1, 1, 0
_NOW_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def topics(play: Play, client: Client) -> None:
    assert a.create(client, "t", 2, configs={"max.message.bytes": "5000"}).error_code == 0
    assert a.create(client, "stamped", configs={"message.timestamp.type": "LogAppendTime"}).error_code == 0
    assert a.create(client, "packed", configs={"compression.type": "lz4"}).error_code == 0
    assert a.create(client, "keys", configs={"cleanup.policy": "compact"}).error_code == 0
    play.core.declare_queue("/", "q")


def one(value: bytes | None = b"v", key: bytes | None = b"k", time_ms: int = _NOW_MS) -> Record:
    return Record(key, value, (), time_ms)


def packed(*records: Record, **more: Any) -> bytes:
    return batches.encode(list(records) or [one()], base_offset=0, leader_epoch=-1, **more)


def request(*parts: tuple[str, int, bytes | None], acks: int = ALL, name: str | None = None) -> produce.ProduceRequest:
    data = [
        produce.TopicProduceData(topic, partition_data=[produce.PartitionProduceData(index, batch)])
        for topic, index, batch in parts
    ]
    return produce.ProduceRequest(name, acks, 1_000, data)


def send(
    client: Client, records: bytes | None, topic: str = "t", index: int = 0, version: int = 12, **more: Any
) -> Any:
    answer = client.ask(request((topic, index, records), **more), version)
    (found,) = answer.responses
    assert found.name == topic
    (partition,) = found.partition_responses
    assert partition.index == index
    return partition


def code(client: Client, records: bytes | None, **more: Any) -> int:
    found = send(client, records, **more)
    assert (found.error_code == 0) == (found.base_offset >= 0)
    error: int = found.error_code
    return error


def sealed(batch: bytes) -> bytes:
    """With the CRC that it would have if it were sound."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def changed(batch: bytes, at: int, form: str, value: int) -> bytes:
    made = bytearray(batch)
    struct.pack_into(form, made, at, value)
    return sealed(bytes(made))


# -- what is stored


@pytest.mark.parametrize("version", [version for version in SERVED[0].versions if 3 <= version < 13])
def test_batches_are_stored_in_every_version(client: Client, version: int) -> None:
    first = send(client, packed(one(b"1"), one(b"2")), version=version)
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 0, -1)
    assert first.log_start_offset == (0 if version >= 5 else -1)
    assert first.record_errors == []
    assert first.error_message is None
    second = send(client, packed(one(b"3")), version=version)
    assert second.base_offset == 2
    assert [record.value for _, record in a.read(client)] == [b"1", b"2", b"3"]


def by_id(play: Play, *parts: tuple[str, int, bytes], name: str | None = None) -> Any:
    """What is answered for each partition in version 13, where topics have their ids in place of names."""
    ids = {
        topic: play.service.views.id_of(item) for topic, _, _ in parts if (item := play.core.catalog.find("/", topic))
    }
    asked = request(*parts, name=name)
    for data in asked.topic_data:
        data.topic_id, data.name = ids.get(data.name, b"no such topic id"), ""
    answer = play.connect().ask(asked, 13)
    assert [one.topic_id for one in answer.responses] == [data.topic_id for data in asked.topic_data]
    assert not any(one.name for one in answer.responses)
    return [partition for one in answer.responses for partition in one.partition_responses]


def test_topics_by_their_ids(play: Play, client: Client) -> None:
    good, bad = packed(one(b"good")), packed()[:-1]
    told = by_id(play, ("t", 1, good), ("none", 0, good), ("t", 0, bad), ("q", 0, good), ("stamped", 0, good))
    unknown, corrupt, queue = ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert [found.error_code for found in told] == [0, unknown, corrupt, queue, 0]
    assert [found.base_offset for found in told] == [0, -1, -1, -1, 0]
    ((_, stored),) = batches.decode(a.fetched(client, index=1).records)
    assert stored.value == b"good"


def test_an_id_is_no_other_topics_when_a_topic_is_made_anew(play: Play, client: Client) -> None:
    asked = request(("t", 0, packed()))
    asked.topic_data[0].topic_id = play.service.views.id_of(play.core.topic("/", "t").item)
    play.core.topics.delete("/", "t")
    play.core.create_topic("/", "t", 2)
    ((found,),) = [one.partition_responses for one in client.ask(asked, 13).responses]
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert not a.read(client)


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_many_partitions_in_one_request(client: Client, version: int) -> None:
    good, bad = packed(one(b"good")), packed()[:-1]
    answer = client.ask(request(("t", 0, good), ("t", 1, bad), ("none", 0, good), ("stamped", 0, good)), version)
    told = [(topic.name, one.error_code) for topic in answer.responses for one in topic.partition_responses]
    unknown, corrupt = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.CORRUPT_MESSAGE
    assert told == [("t", 0), ("t", corrupt), ("none", unknown), ("stamped", 0)]
    messages = [one.error_message for topic in answer.responses for one in topic.partition_responses]
    assert bool(messages[1]) == (version >= 8)


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_packed_stays_as_it_came(client: Client, codec: Codec) -> None:
    batch = packed(*[one(b"value %d" % number) for number in range(20)], codec=codec)
    assert code(client, batch, version=7) == 0
    stored = bytes(a.fetched(client).records)
    assert stored[17:] == batch[17:]
    assert len(a.read(client)) == 20


def test_zstd_is_for_version_7_and_later(client: Client) -> None:
    batch = packed(codec=Codec.ZSTD)
    for version in (3, 6):
        assert code(client, batch, version=version) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert code(client, batch, version=7) == 0


def test_the_brokers_time_where_it_counts(play: Play, client: Client) -> None:
    found = send(client, packed(one(time_ms=5)), topic="stamped")
    assert found.log_append_time_ms == play.clock.now_ms()
    ((_, record),) = a.read(client, topic="stamped")
    assert record.timestamp_ms == play.clock.now_ms()


def test_a_topic_that_packs_anew(client: Client) -> None:
    assert code(client, packed(one(b"x" * 100), codec=Codec.GZIP), topic="packed") == 0
    ((_, header),) = batches.batches(bytes(a.fetched(client, "packed").records))
    assert header.codec == Codec.LZ4
    assert a.read(client, topic="packed")[0][1].value == b"x" * 100


# -- when it is answered


def test_acks_all_waits_for_the_disk(play: Play, client: Client) -> None:
    client.send(request(("t", 0, packed())), 12)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert len(client.listen()) == 1


def test_acks_1_does_not(play: Play, client: Client) -> None:
    client.send(request(("t", 0, packed()), acks=LEADER), 12)
    play.turn(sync=False)
    (answer,) = client.listen(turn=False)
    assert answer.responses[0].partition_responses[0].base_offset == 0


def test_acks_0_is_not_answered_at_all(client: Client) -> None:
    client.send(request(("t", 0, packed()), acks=NOBODY), 12, answered=False)
    client.silence()
    assert a.offset(client, a.LATEST) == 1


def test_acks_0_that_fails_ends_the_connection(client: Client) -> None:
    client.send(request(("none", 0, packed()), acks=NOBODY), 12, answered=False)
    client.refused()


@pytest.mark.parametrize("acks", [2, -2, 77])
def test_acks_that_do_not_exist(client: Client, acks: int) -> None:
    assert code(client, packed(), acks=acks) == ErrorCode.INVALID_REQUIRED_ACKS
    assert a.offset(client, a.LATEST) == 0


@pytest.mark.parametrize("version", [9, 13])
def test_what_was_sent_behind_a_batch_that_is_held_back_does_not_come_before_it(
    play: Play, client: Client, version: int
) -> None:
    """A producer that nobody knows may begin anywhere, but for this."""
    full = [True]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(play.core), "accepts_messages", property(lambda core: not full[0]))
        id = client.ask(InitProducerIdRequest(None, 0), 4).producer_id

        def sent(sequence: int, epoch: int = 0) -> int:
            batch = packed(producer_id=id, producer_epoch=epoch, base_sequence=sequence)
            asked = request(("t", 0, batch))
            asked.topic_data[0].topic_id = play.service.views.id_of(play.core.topic("/", "t").item)
            (found,) = client.ask(asked, version).responses
            code: int = found.partition_responses[0].error_code
            return code

        assert [sent(5), sent(6)] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
        full[0] = False
        assert sent(6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [sent(5), sent(6), sent(7)] == [0] * 3
        full[0] = True
        assert sent(8) == ErrorCode.NOT_ENOUGH_REPLICAS
        full[0] = False
        assert [sent(9), sent(8)] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0]
        assert sent(0, epoch=1) == 0


def test_a_full_disk_is_told_so_that_clients_come_again(play: Play, client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(type(play.core), "accepts_messages", property(lambda core: False))
    monkeypatch.setattr(type(play.core), "refusal", property(lambda core: "The disk is full."))
    found = send(client, packed())
    assert (found.error_code, found.error_message) == (ErrorCode.NOT_ENOUGH_REPLICAS, "The disk is full.")


# -- what is refused


def test_topics_and_partitions_that_are_not_there(client: Client) -> None:
    for topic, index in (("none", 0), ("t", 2), ("t", -1), ("", 0)):
        assert code(client, packed(), topic=topic, index=index) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_queue_is_written_by_exchanges(client: Client) -> None:
    assert code(client, packed(), topic="q") == ErrorCode.INVALID_TOPIC_EXCEPTION


CORRUPT, RECORD, LARGE = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE
BATCH = packed(one(b"1"), one(b"2"))


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (None, RECORD),
        (b"", RECORD),
        (BATCH[:60], CORRUPT),
        (BATCH[:-1], CORRUPT),
        (BATCH + BATCH, RECORD),
        (BATCH[:30] + b"\xff" + BATCH[31:], CORRUPT),  # the CRC tells
        (BATCH[:16] + b"\x03" + BATCH[17:], CORRUPT),  # a magic of the future
        (BATCH[:16] + b"\x01" + BATCH[17:], RECORD),  # old messages are for old versions
        (changed(BATCH, 8, ">i", 1 << 30), LARGE),  # lengths that lie
        (changed(BATCH, 8, ">i", 1_000), CORRUPT),
        (changed(BATCH, 8, ">i", -1), CORRUPT),
        (changed(BATCH, 8, ">i", 0), CORRUPT),
        (changed(BATCH, 57, ">i", 1 << 30), RECORD),  # as do counts
        (changed(BATCH, 57, ">i", -1), RECORD),
        (changed(BATCH, 57, ">i", 0), RECORD),
        (changed(BATCH, 23, ">i", 77), RECORD),
        (changed(BATCH, 23, ">i", -1), RECORD),
        (changed(BATCH, 21, ">h", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (changed(BATCH, 21, ">h", batches.CONTROL), RECORD),
        (changed(BATCH, 21, ">h", batches.LOG_APPEND_TIME), RECORD),
        (packed(one(b"x" * 6_000)), LARGE),
        (packed(producer_id=5, producer_epoch=-1, base_sequence=0), RECORD),
        (packed(producer_id=5, producer_epoch=0, base_sequence=-1), RECORD),
        (packed(attributes=batches.TRANSACTIONAL), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_batches_that_are_none(client: Client, batch: bytes | None, error: ErrorCode) -> None:
    assert code(client, batch) == error
    assert a.offset(client, a.LATEST) == 0
    assert code(client, packed()) == 0


def test_a_compacted_topic_takes_keys_only(client: Client) -> None:
    assert code(client, packed(one(), one(key=None)), topic="keys") == RECORD
    assert code(client, packed(one(), one(b"w")), topic="keys") == 0


@pytest.mark.parametrize(
    ("topic", "codec"),
    [("keys", codec) for codec in Codec if codec] + [("packed", Codec.GZIP), ("packed", Codec.SNAPPY)],
)
def test_what_is_packed_too_well_takes_no_memory(client: Client, topic: str, codec: Codec) -> None:
    """A small batch that would be a large one, where it must be unpacked to be looked at."""
    bomb = compress(codec, bytes(160 << 20))
    head = packed(codec=codec)[: batches.HEADER_BYTES]
    batch = head[:8] + struct.pack(">i", len(head) - 12 + len(bomb)) + head[12:] + bomb
    assert len(batch) < 16 << 20
    assert code(client, sealed(batch), topic=topic) in (CORRUPT, LARGE)
    assert a.offset(client, a.LATEST, topic) == 0


# -- numbered batches


@pytest.fixture
def producer(client: Client) -> tuple[int, int]:
    answer = client.ask(InitProducerIdRequest(None, 0), 5)
    return answer.producer_id, answer.producer_epoch


def numbered(producer: tuple[int, int], sequence: int, count: int = 1) -> bytes:
    values = [one(b"%d" % (sequence + at)) for at in range(count)]
    return packed(*values, producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence)


@pytest.mark.parametrize("version", [3, 12])
def test_the_last_five_may_come_again(client: Client, producer: tuple[int, int], version: int) -> None:
    for sequence in range(7):
        assert send(client, numbered(producer, sequence), version=version).base_offset == sequence
    for sequence in range(2, 7):
        again = send(client, numbered(producer, sequence), version=version)
        assert (again.error_code, again.base_offset) == (0, sequence)
    assert code(client, numbered(producer, 1), version=version) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert a.offset(client, a.LATEST) == 7


def test_gaps_and_other_epochs(client: Client, producer: tuple[int, int]) -> None:
    id = producer[0]
    assert code(client, numbered(producer, 0, 3)) == 0
    assert code(client, numbered(producer, 4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code(client, numbered((id, 1), 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code(client, numbered((id, 1), 0)) == 0
    assert code(client, numbered((id, 0), 3)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code(client, numbered((id, 1), 1), index=1) == 0


def test_sequences_begin_again_after_the_last_one(client: Client, producer: tuple[int, int]) -> None:
    last = (1 << 31) - 2
    assert code(client, numbered(producer, last, 3)) == 0
    assert code(client, numbered(producer, 1)) == 0
    assert code(client, numbered(producer, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_comes_again_waits_for_the_disk_too(play: Play, client: Client, producer: tuple[int, int]) -> None:
    client.send(request(("t", 0, numbered(producer, 0))), 12)
    play.turn(sync=False)
    client.send(request(("t", 0, numbered(producer, 0))), 12)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    answers = client.listen()
    assert [answer.responses[0].partition_responses[0].base_offset for answer in answers] == [0, 0]


def test_numbers_outlive_the_broker(play: Play, client: Client, producer: tuple[int, int]) -> None:
    assert code(client, numbered(producer, 0, 2)) == 0
    play.restart()
    client = play.connect()
    assert send(client, numbered(producer, 0, 2)).base_offset == 0
    assert code(client, numbered(producer, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, numbered(producer, 2)).base_offset == 2
