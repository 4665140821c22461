"""Share groups: members join, take records of the same partition, say what became of them; before and after a kill."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import alter_share_group_offsets as alter
from interlog.faces.kafka.schema import delete_share_group_offsets as delete
from interlog.faces.kafka.schema import describe_share_group_offsets as describe
from interlog.faces.kafka.schema import share_fetch as sf
from interlog.faces.kafka.schema.api_versions import ApiVersionsRequest
from interlog.faces.kafka.schema.delete_groups import DeleteGroupsRequest
from interlog.faces.kafka.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from interlog.faces.kafka.schema.describe_groups import DescribeGroupsRequest
from interlog.faces.kafka.schema.list_groups import ListGroupsRequest
from interlog.faces.kafka.schema.offset_delete import OffsetDeleteRequest
from interlog.faces.kafka.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from interlog.faces.kafka.schema.share_acknowledge import ShareAcknowledgeRequest
from interlog.faces.kafka.schema.share_group_describe import ShareGroupDescribeRequest
from interlog.faces.kafka.schema.share_group_heartbeat import ShareGroupHeartbeatRequest
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka import test_transactions as t
from tests.playbooks.kafka.logins import login
from tests.playbooks.kafka.play import Client, Play
from tests.playbooks.kafka.share_play import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Member,
    acquired,
    beat,
    partitions,
    values,
)
from tests.playbooks.kafka.test_configs import OF_GROUP, change
from tests.playbooks.kafka.test_configs import values as config_values

SET = 0
LOCK_MS = 30_000


def configure(client: Client, group: str = "g", **configs: str) -> tuple[int, str | None]:
    changes = [(f"share.{name.replace('_', '.')}", SET, text) for name, text in configs.items()]
    return change(client, *changes, name=group, type=OF_GROUP)


def put(client: Client, first: int, count: int, index: int = 0) -> None:
    """One batch."""
    records = [Record(None, b"%d" % number, (), client.play.clock.now_ms()) for number in range(first, first + count)]
    assert a.send(client, records, index=index).error_code == 0


@pytest.fixture
def topic(play: Play, client: Client) -> bytes:
    made = g.topic(play, "t", 1)
    assert configure(client, auto_offset_reset="earliest") == (0, None)
    return made


def start(client: Client, group: str = "g", index: int = 0) -> tuple[int, int]:
    """Where the group's reading begins, and its lag."""
    topics = [describe.DescribeShareGroupOffsetsRequestTopic("t", [index])]
    asked = [describe.DescribeShareGroupOffsetsRequestGroup(group, topics)]
    (found,) = client.ask(describe.DescribeShareGroupOffsetsRequest(asked), 1).groups
    assert found.error_code == 0
    one = found.topics[0].partitions[0]
    return one.start_offset, one.lag


# -- members


def test_the_feature_and_the_versions_are_told(client: Client) -> None:
    answer = client.ask(ApiVersionsRequest("java", "4.1.0"), 4)
    assert ("share.version", 1) in [(one.name, one.max_version_level) for one in answer.finalized_features]
    keys = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert [keys[key] for key in (76, 77, 78, 79, 90, 91, 92)] == [
        (1, 1), (1, 1), (1, 2), (1, 2), (0, 1), (0, 0), (0, 0),
    ]  # fmt: skip


def test_a_member_is_told_what_to_read(play: Play, client: Client, topic: bytes) -> None:
    told = beat(client)
    assert (told.error_code, told.member_id, told.member_epoch, told.heartbeat_interval_ms) == (0, "m", 1, 5_000)
    assert g.assigned(told) == {topic: [0]}
    assert beat(client, epoch=1).assignment is None
    assert beat(client, epoch=-1).error_code == 0
    assert beat(client, epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"group_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"group_id": "x" * 300}, ErrorCode.INVALID_GROUP_ID),
        ({"member_epoch": 3}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_that_is_none(client: Client, asked: dict[str, Any], error: ErrorCode) -> None:
    request = ShareGroupHeartbeatRequest(
        **{"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"], **asked}
    )
    assert client.ask(request, 1).error_code == error


def test_a_group_is_described_listed_and_deleted(play: Play, client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    put(client, 0, 2)
    member.take()
    (found,) = client.ask(ShareGroupDescribeRequest(["g"], True), 1).groups
    assert (found.error_code, found.group_state, found.assignor_name, found.group_epoch) == (0, "Stable", "simple", 1)
    (one,) = found.members
    assert (one.member_id, one.client_id, one.member_epoch, one.subscribed_topic_names) == ("m", "play", 1, ["t"])
    assert [(each.topic_name, each.partitions) for each in one.assignment.topic_partitions] == [("t", [0])]
    assert found.authorized_operations != -(1 << 31)
    (listed,) = client.ask(ListGroupsRequest([], ["share"]), 5).groups
    told = listed.group_id, listed.protocol_type, listed.group_state, listed.group_type
    assert told == ("g", "share", "Stable", "share")
    assert client.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(client, epoch=-1)
    (found,) = client.ask(ShareGroupDescribeRequest(["g"]), 1).groups
    assert (found.error_code, found.group_state, found.members) == (0, "Empty", [])
    assert client.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code == 0
    (found,) = client.ask(ShareGroupDescribeRequest(["g"]), 1).groups
    assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    play.restart()
    assert play.connect().ask(ListGroupsRequest(), 5).groups == []


def test_other_groups_are_no_share_groups(play: Play, client: Client, topic: bytes) -> None:
    assert g.beat(client, group="balanced").error_code == 0
    assert beat(client, group="balanced").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    (found,) = client.ask(ShareGroupDescribeRequest(["balanced"]), 1).groups
    assert (found.error_code, found.error_message) == (69, "Group balanced is not a share group.")
    beat(client)
    assert g.beat(client).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert g.commit(client, {0: 3}) == [ErrorCode.GROUP_ID_NOT_FOUND]
    topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
    asked = [OffsetFetchRequestGroup("g", topics=topics)]
    assert client.ask(OffsetFetchRequest(groups=asked), 8).groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert client.ask(OffsetDeleteRequest("g"), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert client.ask(DescribeGroupsRequest(["g"]), 6).groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


# -- taking


@pytest.mark.parametrize("version", SERVED[78].versions)
def test_records_are_taken_and_done_with(play: Play, client: Client, topic: bytes, version: int) -> None:
    member = Member(client, topic)
    put(client, 0, 3)
    put(client, 3, 2)
    answer = member.fetch(version=version)
    assert (acquired(answer), answer.acquisition_lock_timeout_ms) == ([(0, 4, 1)], LOCK_MS)
    assert values(answer) == [b"0", b"1", b"2", b"3", b"4"]
    assert member.take(version=version) == []
    assert start(client) == (0, 5)
    answer = member.fetch([(0, 2, ACCEPT), (3, 4, [ACCEPT, REJECT])], version=version)
    (one,) = partitions(answer)
    assert (one.acknowledge_error_code, one.error_code, bytes(one.records)) == (0, 0, b"")
    assert start(client) == (5, 0)


@pytest.mark.parametrize("version", SERVED[79].versions)
def test_what_is_given_back_comes_again(play: Play, client: Client, topic: bytes, version: int) -> None:
    member = Member(client, topic)
    put(client, 0, 6)
    assert member.take() == [(0, 5, 1)]
    assert member.done((0, 1, ACCEPT), (2, 3, RELEASE), (4, 5, [GAP, RELEASE]), version=version) == 0
    assert start(client) == (2, 3)
    answer = member.fetch()
    assert acquired(answer) == [(2, 3, 2), (5, 5, 2)]
    assert values(answer) == [b"2", b"3", b"5"]


def test_two_members_have_different_records(play: Play, client: Client, topic: bytes) -> None:
    first, second = Member(client, topic, "a"), Member(client, topic, "b")
    for number in range(4):
        put(client, number * 5, 5)
    assert first.take(max_records=6) == [(0, 9, 1)], "batches are whole"
    assert second.take(max_records=6, share_acquire_mode=1) == [(10, 15, 1)], "no more than asked for"
    assert first.take() == [(16, 19, 1)]
    assert second.done((0, 4, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert second.done((10, 19, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert second.done((14, 30, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert second.done((10, 15, ACCEPT)) == 0
    assert second.done((10, 15, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert start(client) == (0, 14)
    assert first.done((0, 9, ACCEPT)) == 0
    assert start(client) == (16, 4)


def test_runs_end_where_batches_do(client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    for number in range(4):
        put(client, number * 3, 3)
    assert member.take(batch_size=7) == [(0, 5, 1), (6, 11, 1)]


def test_there_is_a_limit_to_bytes(client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    for number in range(3):
        put(client, number * 3, 3)
    assert member.take(max_bytes=1) == [(0, 2, 1)], "but for one batch"
    assert member.take(max_bytes=1) == [(3, 5, 1)]


def test_who_comes_too_early_waits(play: Play, client: Client, topic: bytes) -> None:
    member, other = Member(client, topic), play.connect()
    client.send(member.fetch_request(max_wait_ms=500), 2)
    client.silence()
    put(other, 0, 3)
    (answer,) = client.listen()
    assert acquired(answer) == [(0, 2, 1)]
    member.epoch = 1
    client.send(member.fetch_request([(0, 0, RELEASE)], max_wait_ms=500), 2)
    (answer,) = client.listen()
    assert acquired(answer) == [(0, 0, 2)], "its own"
    member.epoch = 2
    client.send(member.fetch_request(max_wait_ms=500), 2)
    client.silence()
    play.advance(500)
    (answer,) = client.listen()
    assert (answer.error_code, answer.responses) == (0, [])


def test_who_waits_gets_what_another_gives_back(play: Play, client: Client, topic: bytes) -> None:
    other = play.connect()
    first, second = Member(client, topic, "a"), Member(other, topic, "b")
    put(client, 0, 3)
    assert first.take() == [(0, 2, 1)]
    other.send(second.fetch_request(max_wait_ms=60_000), 2)
    other.silence()
    assert first.done((1, 1, RELEASE)) == 0
    (answer,) = other.listen()
    assert acquired(answer) == [(1, 1, 2)]
    second.epoch = 1
    other.send(second.fetch_request(max_wait_ms=60_000), 2)
    other.silence()
    play.advance(LOCK_MS)
    (answer,) = other.listen()
    assert acquired(answer) == [(0, 0, 2), (1, 1, 3), (2, 2, 2)], "both were silent for too long"
    assert first.done((0, 0, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE


def test_locks_are_renewed(play: Play, client: Client, topic: bytes) -> None:
    first, second = Member(client, topic, "a"), Member(client, topic, "b")
    put(client, 0, 2)
    assert first.take() == [(0, 1, 1)]
    play.advance(20_000)
    assert first.done((0, 0, RENEW), is_renew_ack=True) == 0
    assert first.done((0, 0, RENEW)) == ErrorCode.INVALID_REQUEST, "it must be announced"
    beat(client, "a", 1)
    beat(client, "b", 2)
    play.advance(20_000)
    assert second.take() == [(1, 1, 2)]
    answer = first.fetch([(0, 0, RENEW)], is_renew_ack=True, max_wait_ms=500)
    assert [one.acknowledge_error_code for one in partitions(answer)] == [0], "at once, and nothing is fetched"
    assert first.done((0, 0, ACCEPT)) == 0


def test_a_record_is_delivered_so_many_times(play: Play, client: Client, topic: bytes) -> None:
    assert configure(client, delivery_count_limit="3") == (0, None)
    member = Member(client, topic)
    put(client, 0, 2)
    for times in (1, 2):
        assert member.take() == [(0, 1, times)]
        assert member.done((0, 1, RELEASE)) == 0
    assert member.take() == [(0, 1, 3)]
    assert member.done((0, 0, RELEASE)) == 0
    assert member.take() == []
    play.advance(LOCK_MS)
    assert member.take() == []
    assert start(client) == (2, 0)


def test_only_so_many_are_looked_after(client: Client, topic: bytes) -> None:
    assert configure(client, partition_max_record_locks="100") == (0, None)
    member = Member(client, topic)
    for number in range(4):
        put(client, number * 60, 60)
    assert member.take(max_records=1_000) == [(0, 119, 1)]
    assert member.take() == []
    assert member.done((60, 119, ACCEPT), (0, 5, RELEASE)) == ErrorCode.INVALID_REQUEST, "they must ascend"
    assert member.done((0, 5, RELEASE), (60, 119, ACCEPT)) == 0
    assert member.take() == [(0, 5, 2)]
    assert member.done((0, 59, ACCEPT)) == 0
    assert member.take(max_records=1_000) == [(120, 239, 1)]


@pytest.mark.parametrize(
    "acks",
    [
        [(0, 0, 5)],
        [(0, 1, [])],
        [(0, 2, [1, 1])],
        [(1, 0, ACCEPT)],
        [(-1, 0, ACCEPT)],
        [(0, 1, ACCEPT), (1, 1, ACCEPT)],
    ],
)
def test_acknowledgements_that_are_none(client: Client, topic: bytes, acks: Any) -> None:
    member = Member(client, topic)
    put(client, 0, 3)
    member.take()
    assert member.done(*acks) == ErrorCode.INVALID_REQUEST
    (one,) = partitions(member.fetch(acks))
    assert one.acknowledge_error_code == ErrorCode.INVALID_REQUEST
    assert member.done((0, 2, ACCEPT)) == 0


# -- sessions


def test_sessions_have_epochs(client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    put(client, 0, 3)
    assert member.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.say(epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.say(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch([(0, 0, ACCEPT)]).error_code == ErrorCode.INVALID_REQUEST
    assert member.take() == [(0, 2, 1)]
    assert member.fetch(epoch=5).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.say((0, 0, ACCEPT), epoch=5).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.take(topics=[]) == [], "the session knows what is read"
    put(client, 3, 1)
    forgotten = [sf.ForgottenTopic(topic, [0])]
    assert member.take(topics=[], forgotten_topics_data=forgotten) == []
    assert member.take() == [(3, 3, 1)]
    assert member.fetch(epoch=0).error_code == 0, "it may begin a new one"
    member.epoch = 1
    assert member.done((0, 3, ACCEPT)) == 0


def test_who_ends_its_session_gives_all_back(client: Client, topic: bytes) -> None:
    first, second = Member(client, topic, "a"), Member(client, topic, "b")
    put(client, 0, 4)
    assert first.take() == [(0, 3, 1)]
    assert first.done((0, 0, ACCEPT), epoch=-1) == 0
    assert second.take() == [(1, 3, 2)]
    (one,) = partitions(second.fetch([(1, 1, ACCEPT)], epoch=-1))
    assert (one.acknowledge_error_code, one.acquired_records) == (0, [])
    first.epoch = 0
    assert first.take() == [(2, 3, 3)]


def test_who_hangs_up_gives_all_back(play: Play, client: Client, topic: bytes) -> None:
    other = play.connect()
    first, second = Member(other, topic, "a"), Member(client, topic, "b")
    put(client, 0, 4)
    assert first.take() == [(0, 3, 1)]
    client.send(second.fetch_request(max_wait_ms=60_000), 2)
    client.silence()
    other.drop()
    (answer,) = client.listen()
    assert acquired(answer) == [(0, 3, 2)]


def test_who_ends_its_session_waits_no_longer(play: Play, client: Client, topic: bytes) -> None:
    first, second = Member(client, topic, "a"), Member(play.connect(), topic, "b")
    client.send(first.fetch_request(max_wait_ms=60_000), 2)
    client.send(ShareAcknowledgeRequest("g", "a", -1), 2)
    waited, ended = client.listen()
    assert (waited.error_code, waited.responses, ended.error_code) == (0, [], 0)
    put(client, 0, 1)
    assert second.take() == [(0, 0, 1)]


def test_who_hangs_up_waits_no_longer(play: Play, client: Client, topic: bytes) -> None:
    other = play.connect()
    first, second = Member(other, topic, "a"), Member(client, topic, "b")
    other.send(first.fetch_request(max_wait_ms=60_000), 2)
    other.silence()
    other.drop()
    put(client, 0, 1)
    assert second.take() == [(0, 0, 1)]


def test_a_session_that_goes_on_elsewhere_does_not_end_with_its_first_connection(
    play: Play, client: Client, topic: bytes
) -> None:
    other = play.connect()
    first = Member(other, topic, "a")
    put(client, 0, 2)
    assert first.take() == [(0, 1, 1)]
    first.client = client
    assert first.take(epoch=0) == []
    other.drop()
    first.epoch = 1
    assert first.done((0, 1, ACCEPT)) == 0


def test_a_member_that_goes_gives_all_back(play: Play, client: Client, topic: bytes) -> None:
    first, second = Member(client, topic, "a"), Member(client, topic, "b")
    put(client, 0, 4)
    assert first.take() == [(0, 3, 1)]
    assert beat(client, "a", -1).error_code == 0
    assert second.take() == [(0, 3, 2)]


def test_a_group_that_is_none_is_not_read(client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    member.group = "other"
    assert member.fetch().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member.group = ""
    assert member.fetch().error_code == ErrorCode.INVALID_REQUEST


def test_topics_and_partitions_that_are_not_there(client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    wanted = [sf.FetchTopic(topic, [sf.FetchPartition(7)]), sf.FetchTopic(bytes(15) + b"x", [sf.FetchPartition(0)])]
    found = partitions(member.fetch(topics=wanted))
    assert [one.error_code for one in found] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
    member.index = 7
    assert member.done((0, 0, ACCEPT)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- where to begin, and the log


def test_a_group_begins_at_the_end_unless_told_otherwise(play: Play, client: Client, topic: bytes) -> None:
    put(client, 0, 3)
    assert Member(client, topic, group="latest").take() == []
    put(client, 3, 1)
    assert Member(client, topic, "n", group="latest").take() == [(3, 3, 1)]
    assert configure(client, "recent", auto_offset_reset="by_duration:PT10S") == (0, None)
    assert config_values(client, "recent", OF_GROUP)["share.auto.offset.reset"] == "by_duration:PT10S"
    play.advance(60_000)
    now_ms = play.clock.now_ms()
    for age_ms in (20_000, 5_000):
        assert a.send(client, [Record(None, b"x", (), now_ms - age_ms)]).error_code == 0
    assert Member(client, topic, group="recent").take() == [(5, 5, 1)]


def test_what_is_deleted_is_done(client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    for number in range(3):
        put(client, number * 2, 2)
    assert member.take(max_records=3) == [(0, 3, 1)]
    request = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 3)])], 1_000)
    assert client.ask(request, 2).topics[0].partitions[0].error_code == 0
    assert start(client)[0] == 3
    assert member.take() == [(4, 5, 1)]
    assert member.done((0, 5, ACCEPT)) == 0
    assert start(client) == (6, 0)


def test_a_topic_that_goes_takes_what_was_read_with_it(play: Play, client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    put(client, 0, 3)
    member.take()
    other = play.connect()
    client.send(member.fetch_request(max_wait_ms=60_000), 2)
    client.silence()
    play.core.delete_topic("/", "t")
    (answer,) = client.listen()
    assert [one.error_code for one in partitions(answer)] == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert len(play.core.share_partitions) == 0
    again = g.topic(play, "t", 1)
    assert g.assigned(beat(other, epoch=1)) == {again: [0]}
    play.advance(LOCK_MS)


# -- transactions


def transaction(play: Play, *, committed: bool) -> None:
    """Three records, and a marker."""
    client = play.connect()
    producer = t.begin(client)
    assert t.partitions(client, producer, [0]) == [0]
    assert t.send(client, producer, [b"one", b"two", b"three"], 0).error_code == 0
    assert t.end(client, producer, committed).error_code == 0


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_aborted_records_are_not_given_to_who_wants_committed_ones(
    play: Play, client: Client, topic: bytes, level: str
) -> None:
    assert configure(client, isolation_level=level) == (0, None)
    member = Member(client, topic)
    for committed in (True, False, True):
        transaction(play, committed=committed)
    found = [offset for first, last, _ in member.take() for offset in range(first, last + 1)]
    ends = play.core.topic("/", "t").log_end(0)
    size = ends // 3  # records and a marker
    markers = {size - 1, 2 * size - 1, 3 * size - 1}
    hidden = markers | (set(range(size, 2 * size)) if level == "read_committed" else set())
    assert found == [offset for offset in range(ends) if offset not in hidden]
    for offset in found:
        assert member.done((offset, offset, ACCEPT)) == 0
    assert start(client) == (ends, 0)


# -- offsets


def change_start(client: Client, offset: int, group: str = "g", topic: str = "t", index: int = 0) -> Any:
    partition = alter.AlterShareGroupOffsetsRequestPartition(index, offset)
    topics = [alter.AlterShareGroupOffsetsRequestTopic(topic, [partition])]
    return client.ask(alter.AlterShareGroupOffsetsRequest(group, topics), 0)


def test_a_group_is_made_by_what_it_is_to_read(play: Play, client: Client, topic: bytes) -> None:
    put(client, 0, 5)
    assert change_start(client, 3).error_code == 0
    assert start(client) == (3, 2)
    play.restart()
    client = play.connect()
    assert start(client) == (3, 2)
    member = Member(client, topic)
    assert [(first, last) for first, last, _ in member.take()] == [(3, 4)]


def test_a_group_of_another_kind_is_not_made_a_share_group(client: Client, topic: bytes) -> None:
    assert g.commit(client, {0: 3}) == [0]
    assert change_start(client, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_changed_while_nobody_is_there(play: Play, client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    put(client, 0, 5)
    member.take()
    assert member.done((0, 4, ACCEPT)) == 0
    assert change_start(client, 1).error_code == ErrorCode.NON_EMPTY_GROUP
    beat(client, epoch=-1)
    answer = change_start(client, 2)
    (found,) = answer.responses
    assert (answer.error_code, found.topic_name, found.topic_id) == (0, "t", topic)
    assert found.partitions[0].error_code == 0
    assert start(client) == (2, 3)
    assert change_start(client, 99).error_code == 0
    assert start(client) == (5, 0)
    assert change_start(client, 1).responses[0].partitions[0].error_code == 0
    wrong = change_start(client, 0, topic="none").responses[0].partitions[0]
    assert wrong.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert change_start(client, -1).responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    play.restart()
    again = Member(play.connect(), topic)
    assert again.take() == [(1, 4, 1)]


def remove_start(client: Client, topic: str = "t") -> Any:
    return client.ask(
        delete.DeleteShareGroupOffsetsRequest("g", [delete.DeleteShareGroupOffsetsRequestTopic(topic)]), 0
    )


def test_offsets_are_forgotten_while_nobody_is_there(play: Play, client: Client, topic: bytes) -> None:
    assert remove_start(client).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member = Member(client, topic)
    put(client, 0, 5)
    member.take()
    assert remove_start(client).error_code == ErrorCode.NON_EMPTY_GROUP
    beat(client, epoch=-1)
    assert remove_start(client, "none").responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert remove_start(client).responses[0].error_code == 0
    assert remove_start(client).responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    play.restart()
    (found,) = play.connect().ask(ShareGroupDescribeRequest(["g"]), 1).groups
    assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_all_offsets_are_described(client: Client, topic: bytes) -> None:
    asked = describe.DescribeShareGroupOffsetsRequestGroup("g", None)
    (found,) = client.ask(describe.DescribeShareGroupOffsetsRequest([asked]), 0).groups
    assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member = Member(client, topic)
    assert start(client) == (-1, -1), "nothing was read yet"
    member.take()
    (found,) = client.ask(describe.DescribeShareGroupOffsetsRequest([asked]), 0).groups
    (one,) = found.topics
    assert (one.topic_name, one.topic_id) == ("t", topic)
    assert [(each.partition_index, each.start_offset, each.lag) for each in one.partitions] == [(0, 0, -1)]
    asked.topics = [describe.DescribeShareGroupOffsetsRequestTopic("none", [0])]
    (found,) = client.ask(describe.DescribeShareGroupOffsetsRequest([asked]), 1).groups
    assert [each.start_offset for each in found.topics[0].partitions] == [-1]


# -- lasting


def test_what_is_acknowledged_never_comes_again(play: Play, client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    for number in range(4):
        put(client, number * 5, 5)
    assert member.take(max_records=15) == [(0, 14, 1)]
    assert member.done((0, 3, ACCEPT), (5, 9, [REJECT, ACCEPT, RELEASE, ACCEPT, GAP])) == 0
    play.restart()
    again = Member(play.connect(), topic)
    assert again.take() == [(4, 4, 1), (7, 7, 2), (10, 19, 1)]
    assert again.done((4, 4, ACCEPT), (7, 7, RELEASE), (10, 19, ACCEPT)) == 0
    play.restart(kill=False)
    again = Member(play.connect(), topic)
    assert again.take() == [(7, 7, 3)]


def test_an_answer_waits_until_what_it_tells_lasts(play: Play, client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    put(client, 0, 3)
    member.take()
    client.send(member.fetch_request([(0, 2, ACCEPT)]), 2)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    (answer,) = client.listen()
    assert [one.acknowledge_error_code for one in partitions(answer)] == [0]


def test_members_of_before_a_start_join_again(play: Play, client: Client, topic: bytes) -> None:
    member = Member(client, topic)
    put(client, 0, 1)
    member.take()
    play.restart()
    member.client = play.connect()
    assert beat(member.client, epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    assert member.take() == [(0, 0, 1)]


# -- configs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("auto_offset_reset", "never"),
        ("auto_offset_reset", "by_duration:P"),
        ("auto_offset_reset", "by_duration:PT"),
        ("isolation_level", "dirty"),
        ("record_lock_duration_ms", "0"),
        ("delivery_count_limit", "1"),
        ("session_timeout_ms", "5000"),
    ],
)
def test_configs_that_cannot_be(client: Client, name: str, text: str) -> None:
    code, _ = configure(client, **{name: text})
    assert code == ErrorCode.INVALID_CONFIG


def test_configs_are_shown_and_act(play: Play, client: Client, topic: bytes) -> None:
    shown = config_values(client, "g", OF_GROUP)
    assert shown["share.auto.offset.reset"] == "earliest"
    assert shown["share.isolation.level"] == "read_uncommitted"
    assert shown["share.record.lock.duration.ms"] == "30000"
    assert configure(client, record_lock_duration_ms="1000", auto_offset_reset="by_duration:P1DT1.5S") == (0, None)
    assert config_values(client, "g", OF_GROUP)["share.auto.offset.reset"] == "by_duration:PT86401.500S"
    assert configure(client, auto_offset_reset="earliest") == (0, None)
    member = Member(client, topic)
    put(client, 0, 1)
    answer = member.fetch()
    assert (acquired(answer), answer.acquisition_lock_timeout_ms) == ([(0, 0, 1)], 1_000)
    play.advance(1_000)
    assert member.take() == [(0, 0, 2)]


# -- rights


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Play]:
    """Ann may read everything, Bob the group and not the topic, Carl the topic and not the group."""
    users = {"ann": (".*", ".*", ".*"), "bob": ("", "", "^g$"), "carl": ("", "", "^t$")}
    for play in a.closed(tmp_path / "guarded", **users):
        g.topic(play, "t", 1)
        yield play


def test_who_may_not_read_the_group(guarded: Play) -> None:
    carl = login(guarded, "carl", "secret")
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert beat(carl).error_code == refused
    assert carl.ask(sf.ShareFetchRequest("g", "m", 0), 2).error_code == refused
    assert carl.ask(ShareAcknowledgeRequest("g", "m", 1), 2).error_code == refused
    assert carl.ask(ShareGroupDescribeRequest(["g"]), 1).groups[0].error_code == refused
    assert change_start(carl, 0).error_code == refused
    assert remove_start(carl).error_code == refused
    asked = [describe.DescribeShareGroupOffsetsRequestGroup("g", None)]
    assert carl.ask(describe.DescribeShareGroupOffsetsRequest(asked), 1).groups[0].error_code == refused


def test_who_may_not_read_the_topic(guarded: Play) -> None:
    ann, bob = login(guarded, "ann", "secret"), login(guarded, "bob", "secret")
    topic = guarded.service.topic_id(guarded.core.catalog.topic("/", "t"))
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert beat(bob).error_code == refused
    reader = Member(ann, topic, "a")
    assert reader.take() == []
    wanted = [sf.FetchTopic(topic, [sf.FetchPartition(0)])]
    (one,) = partitions(bob.ask(sf.ShareFetchRequest("g", "b", 0, topics=wanted), 2))
    assert one.error_code == refused
    assert bob.ask(ShareGroupDescribeRequest(["g"]), 1).groups[0].error_code == refused
    asked = [describe.DescribeShareGroupOffsetsRequestGroup("g", None)]
    assert bob.ask(describe.DescribeShareGroupOffsetsRequest(asked), 1).groups[0].topics == []
    beat(ann, "a", -1)
    assert change_start(bob, 0).responses[0].partitions[0].error_code == refused


# -- queues


def test_a_durable_queue_is_read_like_a_topic(play: Play, client: Client) -> None:
    """Its messages that need not last, and those that are gone, are no records."""
    queue = play.core.declare_queue("/", "q")
    assert configure(client, auto_offset_reset="earliest") == (0, None)
    for number, lasts in enumerate([True, False, True, False, False]):
        queue.append(Record(None, b"%d" % number, (), play.clock.now_ms()), 10, lasts)
    play.turn()
    topic = play.service.topic_id(play.core.catalog.queue("/", "q"))
    assert beat(client, subscribed_topic_names=["q"]).error_code == 0
    wanted = [sf.FetchTopic(topic, [sf.FetchPartition(0)])]
    answer = client.ask(sf.ShareFetchRequest("g", "m", 0, topics=wanted, max_records=10), 2)
    assert (acquired(answer), values(answer)) == ([(0, 2, 1)], [b"0", b"2"])
    assert queue.ready == 5, "that is nothing to the queue"
