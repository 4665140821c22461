"""ListOffsets and OffsetForLeaderEpoch: where logs begin and end, by time and by epoch, in every version."""

from typing import Any

import pytest

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import list_offsets as lo
from interlog.faces.kafka.schema import offset_for_leader_epoch as le
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import Client, Play
from tests.transaction_rig import batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
BASE_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def topics(client: Client) -> None:
    assert a.create(client, "t", 2).error_code == 0


def put(client: Client, *times_ms: int) -> None:
    """Each in a batch of its own, of this time after the beginning."""
    for time_ms in times_ms:
        assert a.send(client, [Record(b"k", b"v", (), BASE_MS + time_ms)]).error_code == 0


def ask(client: Client, timestamp: int, version: int = 11, index: int = 0, topic: str = "t", **more: Any) -> Any:
    epoch = more.pop("epoch", -1)
    most = {"max_num_offsets": more.pop("most")} if version == 0 and "most" in more else {}
    partition = lo.ListOffsetsPartition(index, epoch, timestamp, **most)
    request = lo.ListOffsetsRequest(-1, topics=[lo.ListOffsetsTopic(topic, [partition])], **more)
    (answered,) = client.ask(request, version).topics
    (found,) = answered.partitions
    assert (answered.name, found.partition_index) == (topic, index)
    return found


def where(client: Client, timestamp: int, version: int = 11, **more: Any) -> tuple[int, int]:
    """Offset and time."""
    found = ask(client, timestamp, version, **more)
    assert found.error_code == 0
    return found.offset, found.timestamp


VERSIONS = [version for version in SERVED[2].versions if version]


@pytest.mark.parametrize("version", VERSIONS)
def test_ends_and_times_in_every_version(play: Play, client: Client, version: int) -> None:
    assert where(client, EARLIEST, version) == where(client, LATEST, version) == (0, -1)
    put(client, 10, 30, 20, 40)
    assert where(client, LATEST, version) == (4, -1)
    assert where(client, BASE_MS, version) == (0, BASE_MS + 10)
    assert where(client, BASE_MS + 11, version) == (1, BASE_MS + 30)
    assert where(client, BASE_MS + 40, version) == (3, BASE_MS + 40)
    assert where(client, BASE_MS + 41, version) == (-1, -1)
    play.core.topic("/", "t").delete_records(0, 2)
    play.turn()
    assert where(client, EARLIEST, version) == (2, -1)
    assert where(client, BASE_MS, version)[0] == 2
    epoch = ask(client, LATEST, version).leader_epoch
    assert epoch == (play.core.storage.epoch if version >= 4 else -1)


def test_version_0_tells_many(client: Client) -> None:
    put(client, 10, 20)
    assert ask(client, LATEST, 0, most=5).old_style_offsets == [2, 0]
    assert ask(client, LATEST, 0, most=1).old_style_offsets == [2]
    assert ask(client, EARLIEST, 0, most=5).old_style_offsets == [0]
    assert ask(client, BASE_MS + 15, 0, most=5).old_style_offsets == [1]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_came_with_later_versions(client: Client, version: int) -> None:
    put(client, 10, 30, 20)
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    for timestamp, since, expected in (
        (MAX_TIMESTAMP, 7, (1, BASE_MS + 30)),
        (EARLIEST_LOCAL, 8, (0, -1)),
        (LATEST_TIERED, 9, (-1, -1)),
        (PENDING_UPLOAD, 11, (-1, -1)),
        (-7, 99, (-1, -1)),
    ):
        found = ask(client, timestamp, version)
        if version < since:
            assert (found.error_code, found.offset) == (unsupported, -1)
        else:
            assert (found.error_code, found.offset, found.timestamp) == (0, *expected)


def test_the_newest_time_of_nothing(client: Client) -> None:
    assert where(client, MAX_TIMESTAMP) == (-1, -1)


@pytest.mark.parametrize("version", [2, 5, 11])
def test_the_end_of_what_is_stable(play: Play, client: Client, version: int) -> None:
    put(client, 10)
    answer = client.ask(InitProducerIdRequest("tx", 60_000), 5)
    producer = answer.producer_id, answer.producer_epoch
    topic, transactions = play.core.topic("/", "t"), play.core.transactions
    transactions.add_partitions("/", "tx", *producer, [topic.item.partitions[0]])
    topic.append_batch(0, batch([b"open"], producer, 0, transactional=True, time_ms=BASE_MS + 50))
    play.turn()
    put(client, 60)
    assert where(client, LATEST, version, isolation_level=1) == (1, -1)
    assert where(client, LATEST, version) == (3, -1)
    assert where(client, BASE_MS + 20, version, isolation_level=1) == (-1, -1)
    assert where(client, BASE_MS + 20, version) == (1, BASE_MS + 50)
    transactions.end("/", "tx", *producer, commit=True, bump=False)
    play.turn()
    assert where(client, LATEST, version, isolation_level=1) == (4, -1)


def test_partitions_that_cannot_be_told_of(client: Client) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for version in SERVED[2].versions:
        assert ask(client, LATEST, version, index=2).error_code == unknown
        assert ask(client, LATEST, version, index=-1).error_code == unknown
        assert ask(client, LATEST, version, topic="none").error_code == unknown


def test_the_same_partition_twice(client: Client) -> None:
    twice = [lo.ListOffsetsPartition(0, timestamp=LATEST)] * 2
    other = lo.ListOffsetsPartition(1, timestamp=LATEST)
    answer = client.ask(lo.ListOffsetsRequest(-1, topics=[lo.ListOffsetsTopic("t", [*twice, other])]), 5)
    invalid = ErrorCode.INVALID_REQUEST
    assert [one.error_code for one in answer.topics[0].partitions] == [invalid, invalid, 0]


@pytest.mark.parametrize("version", [4, 11])
def test_who_takes_another_epoch_for_the_current_one(play: Play, client: Client, version: int) -> None:
    now = play.core.storage.epoch
    assert ask(client, LATEST, version, epoch=now).error_code == 0
    assert ask(client, LATEST, version, epoch=now - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(client, LATEST, version, epoch=now + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_latest_does_not_go_back(play: Play, client: Client) -> None:
    put(client, 10, 20)
    play.core.topic("/", "t").delete_records(0, -1)
    play.turn()
    play.restart()
    client = play.connect()
    assert where(client, EARLIEST) == where(client, LATEST) == (2, -1)


# -- OffsetForLeaderEpoch


def end_of(client: Client, epoch: int, version: int = 4, index: int = 0, topic: str = "t", current: int = -1) -> Any:
    partition = le.OffsetForLeaderPartition(index, current, epoch)
    request = le.OffsetForLeaderEpochRequest(-1, [le.OffsetForLeaderTopic(topic, [partition])])
    (answered,) = client.ask(request, version).topics
    (found,) = answered.partitions
    return found


@pytest.mark.parametrize("version", SERVED[23].versions)
def test_where_an_epoch_ended(play: Play, client: Client, version: int) -> None:
    put(client, 10, 20)
    first = play.core.storage.epoch
    play.restart()
    play.restart()
    client = play.connect()
    put(client, 30)
    now = play.core.storage.epoch
    assert now == first + 2
    # In the epoch between nothing was written: it ended where the one before it did.
    for epoch, expected in ((first, (first, 2)), (first + 1, (first, 2)), (now, (now, 3)), (now + 1, (-1, -1))):
        found = end_of(client, epoch, version)
        assert found.error_code == 0
        assert (found.leader_epoch if version else expected[0], found.end_offset) == expected


@pytest.mark.parametrize("version", SERVED[23].versions)
def test_ends_that_cannot_be_told(play: Play, client: Client, version: int) -> None:
    assert end_of(client, 1, version, index=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(client, 1, version, topic="none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version >= 2:
        now = play.core.storage.epoch
        assert end_of(client, now, version, current=now - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert end_of(client, now, version, current=now + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert end_of(client, now, version, current=now).error_code == 0
