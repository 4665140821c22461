"""Fetch: batches from an offset on, within bounds, at once or when there are enough; what clients are told besides."""

from typing import Any

import pytest

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import fetch as f
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest
from interlog.journal import batch as batches
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import Client, Play
from tests.transaction_rig import batch

MOST = (1 << 31) - 1
POLL_MS = 200
NAME = "t"


@pytest.fixture(autouse=True)
def topics(client: Client) -> None:
    assert a.create(client, NAME, 3).error_code == 0


def topic_id(play: Play, name: str = NAME) -> bytes:
    return play.service.topic_id(play.core.catalog.topic("/", name))


def ask_for(play: Play, version: int, *parts: Any, name: str = NAME, **more: Any) -> f.FetchRequest:
    """`parts`: partition and offset each, or a whole FetchPartition."""
    more.setdefault("max_bytes", MOST)
    partitions = [
        one
        if isinstance(one, f.FetchPartition)
        else f.FetchPartition(one[0], fetch_offset=one[1], partition_max_bytes=MOST)
        for one in parts
    ]
    named = {"topic_id": topic_id(play, name)} if version >= 13 else {"topic": name}
    return f.FetchRequest(topics=[f.FetchTopic(**named, partitions=partitions)], **more)


def fetch(play: Play, client: Client, *parts: Any, version: int = 12, **more: Any) -> Any:
    """What was answered of one topic: its partitions."""
    answer = client.ask(ask_for(play, version, *parts, **more), version)
    assert answer.error_code == 0
    (topic,) = answer.responses
    return topic.partitions


def put(client: Client, *values: bytes, index: int = 0) -> None:
    """Each in a batch of its own."""
    for value in values:
        assert a.send(client, [Record(b"k", value, (), 1_700_000_000_000)], index=index).error_code == 0


def values(partition: Any) -> list[bytes | None]:
    data = bytes(partition.records or b"")
    return [record.value for at, _ in batches.batches(data) for _, record in batches.decode(data, at)]


# -- versions


@pytest.mark.parametrize("version", SERVED[1].versions)
def test_every_version(play: Play, client: Client, version: int) -> None:
    put(client, b"1", b"2", b"3")
    answer = client.ask(ask_for(play, version, (0, 1), (1, 0)), version)
    (topic,) = answer.responses
    assert (topic.topic, topic.topic_id) == ((NAME, bytes(16)) if version < 13 else ("", topic_id(play)))
    full, empty = topic.partitions
    assert (full.partition_index, full.error_code, full.high_watermark, full.last_stable_offset) == (0, 0, 3, 3)
    assert values(full) == [b"2", b"3"]
    assert (empty.partition_index, empty.error_code, empty.high_watermark) == (1, 0, 0)
    assert values(empty) == []
    assert full.log_start_offset == (0 if version >= 5 else -1)
    assert full.aborted_transactions is None
    assert full.preferred_read_replica == -1
    assert answer.throttle_time_ms == answer.session_id == 0
    assert answer.node_endpoints == []


def test_names_before_13_ids_since(play: Play, client: Client) -> None:
    put(client, b"1")
    other = f.FetchTopic(topic_id=b"x" * 16, partitions=[f.FetchPartition(0, partition_max_bytes=MOST)])
    answer = client.ask(f.FetchRequest(topics=[other], max_wait_ms=10_000, min_bytes=1), 13)
    assert answer.responses[0].topic_id == b"x" * 16
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    other = f.FetchTopic("none", partitions=[f.FetchPartition(0, partition_max_bytes=MOST)])
    answer = client.ask(f.FetchRequest(topics=[other], max_wait_ms=10_000, min_bytes=1), 12)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_id_is_of_one_topic_and_not_of_the_next_with_its_name(play: Play, client: Client) -> None:
    put(client, b"1")
    before = topic_id(play)
    play.core.delete_topic("/", NAME)
    play.core.create_topic("/", NAME, 1)
    play.turn()
    assert topic_id(play) != before
    old = f.FetchTopic(topic_id=before, partitions=[f.FetchPartition(0, partition_max_bytes=MOST)])
    answer = client.ask(f.FetchRequest(topics=[old]), 17)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


# -- offsets


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_offsets_that_are_not_there(play: Play, client: Client, version: int) -> None:
    put(client, b"1", b"2", b"3")
    play.core.topic("/", NAME).delete_records(0, 1)
    play.turn()
    for offset in (0, 4, -1):
        (found,) = fetch(play, client, (0, offset), version=version, max_wait_ms=10_000, min_bytes=1)
        assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert values(found) == []
    (found,) = fetch(play, client, (7, 0), version=version)
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (found,) = fetch(play, client, (0, 1), version=version)
    assert (values(found), found.log_start_offset) == ([b"2", b"3"], 1 if version >= 5 else -1)


def test_an_offset_inside_a_batch_brings_the_whole_batch(play: Play, client: Client) -> None:
    records = [Record(b"k", b"%d" % number, (), 1_700_000_000_000) for number in range(5)]
    assert a.send(client, records).error_code == 0
    (found,) = fetch(play, client, (0, 3))
    assert values(found) == [b"0", b"1", b"2", b"3", b"4"]


# -- bounds


def size(client: Client, index: int = 0) -> int:
    return len(a.fetched(client, NAME, index).records)


def test_the_first_batch_comes_however_large_it_is(play: Play, client: Client) -> None:
    put(client, b"x" * 1_000, b"y" * 1_000)
    put(client, b"z", index=1)
    for limits in ({"max_bytes": 1}, {"max_bytes": 0}):
        one, other = fetch(play, client, (0, 0), (1, 0), **limits)
        assert values(one) == [b"x" * 1_000]
        assert values(other) == []
    small = f.FetchPartition(0, fetch_offset=0, partition_max_bytes=1)
    one, other = fetch(play, client, small, (1, 0))
    assert (values(one), values(other)) == ([b"x" * 1_000], [b"z"])
    # Only the first of all is let through.
    one, other = fetch(play, client, (1, 0), small)
    assert (values(one), values(other)) == ([b"z"], [])


def test_no_more_than_was_asked_for(play: Play, client: Client) -> None:
    put(client, *[b"%d" % number * 100 for number in range(8)])
    each = size(client) // 8
    (found,) = fetch(play, client, f.FetchPartition(0, fetch_offset=0, partition_max_bytes=3 * each))
    assert len(values(found)) == 3
    (found,) = fetch(play, client, f.FetchPartition(0, fetch_offset=0, partition_max_bytes=3 * each - 1))
    assert len(values(found)) == 2
    put(client, *[b"x" * 100] * 8, index=1)
    one, other = fetch(play, client, (0, 0), (1, 0), max_bytes=10 * each)
    assert len(values(one)) == 8
    assert len(values(other)) == 2


# -- waiting


def test_it_waits_until_there_is_enough(play: Play, client: Client) -> None:
    writer = play.connect()
    put(writer, b"1")
    enough = size(writer) * 3
    client.send(ask_for(play, 12, (0, 0), max_wait_ms=500, min_bytes=enough), 12)
    client.silence()
    put(writer, b"2")
    client.silence()
    put(writer, b"3")
    (answer,) = client.listen()
    assert values(answer.responses[0].partitions[0]) == [b"1", b"2", b"3"]


def test_it_waits_for_any_partition(play: Play, client: Client) -> None:
    client.send(ask_for(play, 12, (0, 0), (1, 0), (2, 0), max_wait_ms=500, min_bytes=1), 12)
    client.silence()
    put(play.connect(), b"1", index=2)
    (answer,) = client.listen()
    assert [values(one) for one in answer.responses[0].partitions] == [[], [], [b"1"]]


def test_it_waits_no_longer_than_it_was_told(play: Play, client: Client) -> None:
    put(client, b"1")
    client.send(ask_for(play, 12, (0, 0), max_wait_ms=500, min_bytes=10_000), 12)
    play.advance(499)
    client.silence()
    play.advance(1)
    (answer,) = client.listen()
    assert values(answer.responses[0].partitions[0]) == [b"1"]
    assert not len(play.core.deadlines)


@pytest.mark.parametrize("wait_ms", [0, -1])
def test_it_need_not_wait(play: Play, client: Client, wait_ms: int) -> None:
    (found,) = fetch(play, client, (0, 0), max_wait_ms=wait_ms, min_bytes=1)
    assert (found.error_code, values(found)) == (0, [])


def test_what_is_asked_next_waits_for_it(play: Play, client: Client) -> None:
    client.send(ask_for(play, 12, (0, 0), max_wait_ms=500, min_bytes=1), 12)
    client.send(ask_for(play, 12, (1, 0)), 12)
    client.silence()
    play.advance(500)
    assert len(client.listen()) == 2


def test_a_topic_that_goes_ends_the_wait(play: Play, client: Client) -> None:
    client.send(ask_for(play, 12, (0, 0), max_wait_ms=500_000, min_bytes=1), 12)
    client.send(ask_for(play, 13, (1, 0), max_wait_ms=500_000, min_bytes=1), 13)
    client.silence()
    play.core.delete_topic("/", NAME)
    by_name, by_id = client.listen()
    assert by_name.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert not len(play.core.deadlines)


def test_a_client_that_goes_while_it_waits_leaves_nothing(play: Play, client: Client) -> None:
    client.send(ask_for(play, 12, (0, 0), max_wait_ms=500_000, min_bytes=1), 12)
    client.silence()
    client.drop()
    assert not len(play.core.deadlines)
    put(play.connect(), b"1")


def test_records_are_seen_before_they_are_safe(play: Play, client: Client) -> None:
    writer = play.connect()
    client.send(ask_for(play, 12, (0, 0), max_wait_ms=500, min_bytes=1), 12)
    client.silence()
    play.core.topic("/", NAME).append(0, [Record(b"k", b"early", (), 1)])
    play.turn(sync=False)
    (answer,) = client.listen(turn=False)
    assert values(answer.responses[0].partitions[0]) == [b"early"]
    assert writer.listen() == []


# -- transactions


@pytest.fixture
def open_since_2(play: Play, client: Client) -> tuple[int, int]:
    """A transaction is open from offset 2 on, after one that was aborted; something plain is behind."""
    answer = client.ask(InitProducerIdRequest("tx", 60_000), 5)
    producer = answer.producer_id, answer.producer_epoch
    topic, transactions = play.core.topic("/", NAME), play.core.transactions
    transactions.add_partitions("/", "tx", *producer, [topic.item.partitions[0]])
    topic.append_batch(0, batch([b"aborted"], producer, 0, transactional=True))
    play.turn()
    transactions.end("/", "tx", *producer, commit=False, bump=False)
    transactions.add_partitions("/", "tx", *producer, [topic.item.partitions[0]])
    topic.append_batch(0, batch([b"open"], producer, 1, transactional=True))
    topic.append_batch(0, batch([b"plain"]))
    play.turn()
    return producer


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_who_reads_what_is_committed(play: Play, client: Client, open_since_2: tuple[int, int], version: int) -> None:
    (found,) = fetch(play, client, (0, 0), version=version, isolation_level=1)
    assert (found.high_watermark, found.last_stable_offset) == (4, 2)
    assert values(found)[0] == b"aborted"
    assert len(values(found)) == 2  # and the marker
    told = [(one.producer_id, one.first_offset) for one in found.aborted_transactions]
    assert told == [(open_since_2[0], 0)]
    (found,) = fetch(play, client, (0, 2), version=version, isolation_level=1)
    assert (found.error_code, values(found), found.aborted_transactions) == (0, [], [])


def test_who_reads_everything(play: Play, client: Client, open_since_2: tuple[int, int]) -> None:
    (found,) = fetch(play, client, (0, 0))
    assert (found.high_watermark, found.last_stable_offset, found.aborted_transactions) == (4, 2, None)
    assert values(found)[-2:] == [b"open", b"plain"]


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction_ends_the_wait(
    play: Play, client: Client, open_since_2: tuple[int, int], commit: bool
) -> None:
    client.send(ask_for(play, 12, (0, 2), max_wait_ms=500, min_bytes=1, isolation_level=1), 12)
    client.silence()
    play.core.transactions.end("/", "tx", *open_since_2, commit=commit, bump=False)
    (answer,) = client.listen()
    (found,) = answer.responses[0].partitions
    assert (found.high_watermark, found.last_stable_offset) == (5, 5)
    assert values(found)[:2] == [b"open", b"plain"]
    told = [one.first_offset for one in found.aborted_transactions]
    assert told == ([] if commit else [2])


# -- epochs


@pytest.mark.parametrize("version", [9, 11, 12, 18])
def test_who_takes_another_epoch_for_the_current_one(play: Play, client: Client, version: int) -> None:
    put(client, b"1")
    now = play.core.storage.epoch
    errors = {now - 1: ErrorCode.FENCED_LEADER_EPOCH, now + 1: ErrorCode.UNKNOWN_LEADER_EPOCH, now: 0, -1: 0}
    for epoch, error in errors.items():
        one = f.FetchPartition(0, epoch, 0, partition_max_bytes=MOST)
        (found,) = fetch(play, client, one, version=version)
        assert found.error_code == error


@pytest.mark.parametrize("version", [12, 18])
def test_who_has_read_what_is_not_here_is_told_where_it_parted(play: Play, client: Client, version: int) -> None:
    put(client, b"1", b"2")
    first = play.core.storage.epoch
    play.restart()
    client = play.connect()
    put(client, b"3")

    def found(offset: int, fetched_epoch: int) -> Any:
        one = f.FetchPartition(0, -1, offset, fetched_epoch, partition_max_bytes=MOST)
        (partition,) = fetch(play, client, one, version=version, max_wait_ms=10_000, min_bytes=1)
        return partition

    assert values(found(2, first)) == [b"3"]
    parted = found(3, first)
    assert (parted.error_code, values(parted)) == (0, [])
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (first, 2)
    assert found(2, 0).error_code in (0, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert found(3, play.core.storage.epoch + 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# -- queues, and what lies in files


def test_a_queue_is_read_as_it_is(play: Play, client: Client) -> None:
    play.core.declare_queue("/", "q")
    queue = play.core.queue("/", "q")
    for number in range(3):
        queue.append(Record(b"k", b"%d" % number, (), 1), 100, True)
    play.turn()
    (found,) = fetch(play, client, (0, 0), name="q")
    assert values(found) == [b"0", b"1", b"2"]


def test_what_lies_in_files_goes_out_as_files(play: Play, client: Client) -> None:
    """Batches that are large, and were found sound once, are not read again to be sent."""
    sent = [b"%d" % number * 100_000 for number in range(1, 9)] * 3
    for value in sent:
        put(client, value)
        play.advance(POLL_MS)
    some = f.FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 18)
    (first,) = fetch(play, client, some)
    (found,) = fetch(play, client, some)
    assert client.ranges > 0
    assert bytes(found.records) == bytes(first.records)
    assert values(found) == sent[: len(values(found))]
    assert len(values(found)) > 1
