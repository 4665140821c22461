"""Topics over the wire: made, deleted, grown and cut at their beginning, in every version; and what is refused."""

from typing import Any

import pytest

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import create_partitions as cp
from interlog.faces.kafka.schema import create_topics as ct
from interlog.faces.kafka.schema import delete_records as dr
from interlog.faces.kafka.schema import delete_topics as dt
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import NODE_ID, Client, Play

NO_ID = bytes(16)


def versions(key: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", SERVED[key].versions)


# -- CreateTopics


@versions(19)
def test_topics_are_made_in_every_version(play: Play, client: Client, version: int) -> None:
    result = a.create(client, "t", 3, version, {"retention.ms": "1000"})
    assert (result.error_code, result.error_message) == (0, "" if version == 0 else None)
    topic = play.core.topic("/", "t")
    assert len(topic) == 3
    assert topic.item.settings["retention_ms"] == 1_000
    assert result.topic_id == (play.service.topic_id(topic.item) if version >= 7 else NO_ID)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        (told,) = [one for one in result.configs if one.name == "retention.ms"]
        assert (told.value, told.read_only, told.is_sensitive) == ("1000", False, False)
    again = a.create(client, "t", 3, version)
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert again.error_message == ("" if version == 0 else "Topic 't' already exists.")


@pytest.mark.parametrize("version", [1, 4, 7])
def test_what_is_only_checked_is_not_made(play: Play, client: Client, version: int) -> None:
    assert a.create(client, "t", 3, version, validate_only=True).error_code == 0
    assert play.core.catalog.find("/", "t") is None
    assert a.create(client, "t", 0, version, validate_only=True).error_code == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("version", [4, 7])
def test_what_is_left_to_the_broker(play: Play, client: Client, version: int) -> None:
    assert a.create(client, "t", -1, version, replication_factor=-1).error_code == 0
    assert len(play.core.topic("/", "t")) == play.service.settings.default_partitions


def test_where_partitions_are_to_be(play: Play, client: Client) -> None:
    def make(name: str, *places: tuple[int, list[int]], **more: int) -> int:
        assigned = [ct.CreatableReplicaAssignment(*one) for one in places]
        more.setdefault("replication_factor", -1)
        error: int = a.create(client, name, more.pop("partitions", -1), assignments=assigned, **more).error_code
        return error

    assert make("t", (0, [NODE_ID]), (1, [NODE_ID])) == 0
    assert len(play.core.topic("/", "t")) == 2
    assert make("u", (0, [NODE_ID]), partitions=1) == ErrorCode.INVALID_REQUEST
    assert make("u", (0, [NODE_ID]), replication_factor=1) == ErrorCode.INVALID_REQUEST
    here = (0, [NODE_ID])
    refused: list[list[tuple[int, list[int]]]] = [[here, (2, [NODE_ID])], [here, here], [(0, [])], [(0, [2])]]
    for places in [*refused, [(0, [NODE_ID, NODE_ID])]]:
        assert make("u", *places) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert play.core.catalog.find("/", "u") is None


@pytest.mark.parametrize("version", [0, 4, 7])
@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("n" * 250, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("t", {"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ("t", {"partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ("t", {"partitions": 1 << 30}, ErrorCode.INVALID_PARTITIONS),
        ("t", {"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("t", {"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("t", {"configs": {"no.such": "1"}}, ErrorCode.INVALID_CONFIG),
        ("t", {"configs": {"retention.ms": "long"}}, ErrorCode.INVALID_CONFIG),
        ("t", {"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
        ("queue", {}, ErrorCode.TOPIC_ALREADY_EXISTS),
    ],
)
def test_topics_that_cannot_be(
    play: Play, client: Client, version: int, name: str, change: dict[str, Any], error: ErrorCode
) -> None:
    play.core.declare_queue("/", "queue")
    result = a.create(client, name, version=version, **{"partitions": 1, **change})
    assert result.error_code == error
    assert bool(result.error_message) == (version >= 1)
    assert play.core.catalog.find("/", "t") is None


def test_one_that_cannot_be_costs_the_others_nothing(play: Play, client: Client) -> None:
    asked = [ct.CreatableTopic(name, 1, 1) for name in ("good", "twice", "twice", "bad name")]
    results = client.ask(ct.CreateTopicsRequest(asked, 1_000), 7).topics
    told = {one.name: one.error_code for one in results}
    assert told == {"good": 0, "twice": ErrorCode.INVALID_REQUEST, "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert len(results) == 3
    assert [item.name for item in play.core.catalog.topics("/")] == ["good"]


def test_answers_wait_for_the_disk(play: Play, client: Client) -> None:
    play.core.create_topic("/", "t", 1)
    requests: list[tuple[Any, int]] = [
        (ct.CreateTopicsRequest([ct.CreatableTopic("new", 1, 1)]), 7),
        (cp.CreatePartitionsRequest([cp.CreatePartitionsTopic("t", 2, None)], 1_000), 3),
        (dr.DeleteRecordsRequest([dr.DeleteRecordsTopic("t", [dr.DeleteRecordsPartition(0, -1)])], 1_000), 2),
        (dt.DeleteTopicsRequest([dt.DeleteTopicState("t")]), 6),
    ]
    a.send(client, [Record(b"k", b"v", (), 1_700_000_000_000)])
    for request, version in requests:
        client.send(request, version)
        play.turn(sync=False)
        assert client.listen(turn=False) == []
        assert len(client.listen()) == 1


# -- DeleteTopics


def delete(client: Client, *states: tuple[str | None, bytes], version: int = 6) -> list[Any]:
    if version < 6:
        request = dt.DeleteTopicsRequest(topic_names=[name or "" for name, _ in states], timeout_ms=1_000)
    else:
        request = dt.DeleteTopicsRequest([dt.DeleteTopicState(*one) for one in states], timeout_ms=1_000)
    return list(client.ask(request, version).responses)


@versions(20)
def test_topics_are_deleted_in_every_version(play: Play, client: Client, version: int) -> None:
    for name in ("t", "u"):
        a.create(client, name)
    id = play.service.topic_id(play.core.catalog.topic("/", "t"))
    there, missing = delete(client, ("t", NO_ID), ("none", NO_ID), version=version)
    assert (there.name, there.error_code, there.topic_id) == ("t", 0, id if version >= 6 else NO_ID)
    assert (missing.name, missing.error_code) == ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert bool(missing.error_message) == (version >= 5)
    assert [item.name for item in play.core.catalog.topics("/")] == ["u"]


def test_topics_are_deleted_by_id(play: Play, client: Client) -> None:
    a.create(client, "t")
    id = play.service.topic_id(play.core.catalog.topic("/", "t"))
    there, missing = delete(client, (None, id), (None, b"x" * 16))
    assert (there.name, there.topic_id, there.error_code) == ("t", id, 0)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)
    (again,) = delete(client, (None, id))
    assert again.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_deletions_that_make_no_sense(play: Play, client: Client) -> None:
    a.create(client, "t")
    play.core.declare_queue("/", "queue")
    id = play.service.topic_id(play.core.catalog.topic("/", "t"))
    invalid = ErrorCode.INVALID_REQUEST
    assert [one.error_code for one in delete(client, (None, NO_ID))] == [invalid]
    assert [one.error_code for one in delete(client, ("t", id))] == [invalid]
    assert [one.error_code for one in delete(client, ("t", NO_ID), ("t", NO_ID))] == [invalid]
    assert [one.error_code for one in delete(client, ("queue", NO_ID))] == [ErrorCode.POLICY_VIOLATION]
    assert play.core.catalog.find("/", "t") is not None
    assert sorted(one.error_code for one in delete(client, ("t", NO_ID), (None, id))) == [0, ErrorCode.UNKNOWN_TOPIC_ID]


# -- CreatePartitions


def grow(client: Client, name: str, count: int, version: int = 3, places: Any = None, **more: Any) -> Any:
    assigned = None if places is None else [cp.CreatePartitionsAssignment(one) for one in places]
    request = cp.CreatePartitionsRequest([cp.CreatePartitionsTopic(name, count, assigned)], 1_000, **more)
    (result,) = client.ask(request, version).results
    assert result.name == name
    assert (result.error_message is None) == (result.error_code == 0)
    return result.error_code


@versions(37)
def test_topics_grow_in_every_version(play: Play, client: Client, version: int) -> None:
    a.create(client, "t", 1)
    assert grow(client, "t", 3, version, validate_only=True) == 0
    assert len(play.core.topic("/", "t")) == 1
    assert grow(client, "t", 3, version) == 0
    assert len(play.core.topic("/", "t")) == 3
    assert grow(client, "t", 5, version, [[NODE_ID], [NODE_ID]]) == 0
    assert a.send(client, [Record(None, b"v", (), 1_700_000_000_000)], index=4).base_offset == 0


@versions(37)
def test_growth_that_cannot_be(play: Play, client: Client, version: int) -> None:
    a.create(client, "t", 2)
    play.core.declare_queue("/", "queue")
    for count in (2, 1, 0, -1, 1 << 30):
        assert grow(client, "t", count, version) == ErrorCode.INVALID_PARTITIONS
    assert grow(client, "none", 2, version) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert grow(client, "queue", 2, version) == ErrorCode.POLICY_VIOLATION
    refused: list[list[list[int]]] = [[], [[NODE_ID], [NODE_ID]], [[2]], [[]], [[NODE_ID, NODE_ID]]]
    for places in refused:
        assert grow(client, "t", 3, version, places) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    twice = [cp.CreatePartitionsTopic("t", count, None) for count in (3, 4)]
    (result,) = client.ask(cp.CreatePartitionsRequest(twice, 1_000), version).results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert len(play.core.topic("/", "t")) == 2


# -- DeleteRecords


def cut(client: Client, offset: int, version: int = 2, name: str = "t", index: int = 0) -> tuple[int, int]:
    """The error, and where the log begins."""
    topics = [dr.DeleteRecordsTopic(name, [dr.DeleteRecordsPartition(index, offset)])]
    (topic,) = client.ask(dr.DeleteRecordsRequest(topics, 1_000), version).topics
    (found,) = topic.partitions
    assert (topic.name, found.partition_index) == (name, index)
    return found.error_code, found.low_watermark


@versions(21)
def test_records_are_deleted_in_every_version(play: Play, client: Client, version: int) -> None:
    a.create(client, "t")
    for number in range(4):
        a.send(client, [Record(b"k", b"%d" % number, (), 1_700_000_000_000)])
    assert cut(client, 2, version) == (0, 2)
    assert [record.value for _, record in a.read(client, 2)] == [b"2", b"3"]
    assert a.fetched(client, offset=1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert cut(client, 1, version) == (0, 2)  # it never goes back
    assert cut(client, 5, version) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert cut(client, -2, version) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert cut(client, -1, version) == (0, 4)
    play.restart()
    client = play.connect()
    assert (a.offset(client, a.EARLIEST), a.offset(client, a.LATEST)) == (4, 4)


@versions(21)
def test_records_that_cannot_be_deleted(play: Play, client: Client, version: int) -> None:
    a.create(client, "t")
    a.create(client, "keys", configs={"cleanup.policy": "compact"})
    play.core.declare_queue("/", "queue")
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert cut(client, 0, version, index=1) == unknown
    assert cut(client, 0, version, name="none") == unknown
    assert cut(client, 0, version, name="keys") == (ErrorCode.POLICY_VIOLATION, -1)
    assert cut(client, 0, version, name="queue") == (ErrorCode.POLICY_VIOLATION, -1)
