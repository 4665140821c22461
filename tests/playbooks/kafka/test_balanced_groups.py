"""Groups whose broker says who reads what: heartbeats, descriptions, and offsets of their members, in every version."""

from typing import Any

import pytest

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from interlog.faces.kafka.schema.describe_groups import DescribeGroupsRequest
from interlog.faces.kafka.schema.list_groups import ListGroupsRequest
from interlog.faces.kafka.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka.play import Client, Play

BEATS = pytest.mark.parametrize("version", SERVED[68].versions)
SESSION_MS = 45_000


@pytest.fixture
def id(play: Play) -> bytes:
    return g.topic(play, "t", 4)


def member(client: Client, name: str = "m", version: int = 1, **more: Any) -> Any:
    joined = g.beat(client, name, version=version, **more)
    assert joined.error_code == 0, joined.error_message
    return joined


# -- coming, staying, going


@BEATS
def test_one_alone_has_everything(client: Client, id: bytes, version: int) -> None:
    joined = member(client, version=version)
    assert (joined.member_id, joined.member_epoch, joined.error_message) == ("m", 1, None)
    assert joined.heartbeat_interval_ms == 3_000
    assert g.assigned(joined) == {id: [0, 1, 2, 3]}
    again = g.beat(client, epoch=1, version=version, topic_partitions=g.owned({id: [0, 1, 2, 3]}))
    assert (again.error_code, again.member_epoch, again.assignment) == (0, 1, None)


def test_ids_are_made_by_the_broker_in_version_0_only(client: Client, id: bytes) -> None:
    joined = member(client, "", version=0)
    assert len(joined.member_id) == 36
    refused = g.beat(client, "", version=1)
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")


@BEATS
@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
def test_partitions_pass_from_one_to_another(client: Client, id: bytes, version: int, assignor: str | None) -> None:
    member(client, "one", version, server_assignor=assignor)
    late = member(client, "two", version, server_assignor=assignor)
    assert (late.member_epoch, g.assigned(late)) == (2, {})
    assert late.heartbeat_interval_ms == 500
    told = g.beat(client, "one", 1, version, topic_partitions=g.owned({id: [0, 1, 2, 3]}))
    kept = g.assigned(told)
    assert (told.member_epoch, len(kept[id])) == (1, 2)
    waits = g.beat(client, "two", 2, version, topic_partitions=[])
    assert (waits.error_code, waits.assignment) == (0, None)
    gave_up = g.beat(client, "one", 1, version, topic_partitions=g.owned(kept))
    assert (gave_up.error_code, gave_up.member_epoch) == (0, 2)
    gets = g.beat(client, "two", 2, version, topic_partitions=[])
    assert sorted(g.assigned(gets)[id] + kept[id]) == [0, 1, 2, 3]
    assert gets.heartbeat_interval_ms == 3_000


@BEATS
def test_one_that_leaves_frees_what_it_had(client: Client, id: bytes, version: int) -> None:
    member(client, "one", version)
    member(client, "two", version)
    left = g.beat(client, "one", -1, version)
    assert (left.error_code, left.member_id, left.member_epoch) == (0, "one", -1)
    gets = g.beat(client, "two", 2, version, topic_partitions=[])
    assert g.assigned(gets) == {id: [0, 1, 2, 3]}
    assert g.beat(client, "one", 1, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_is_silent_is_out(play: Play, client: Client, id: bytes) -> None:
    member(client, "one")
    play.advance(SESSION_MS - 1)
    assert g.beat(client, "one", 1).error_code == 0
    play.advance(SESSION_MS)
    assert g.beat(client, "one", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_does_not_give_up_in_time_is_out(play: Play, client: Client, id: bytes) -> None:
    owned = g.owned({id: [0, 1, 2, 3]})
    member(client, "one", rebalance_timeout_ms=5_000)
    member(client, "two")
    for _ in range(5):
        assert g.beat(client, "one", 1, topic_partitions=owned).error_code == 0
        play.advance(1_000)
    assert g.beat(client, "one", 1, topic_partitions=owned).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert g.assigned(g.beat(client, "two", 2, topic_partitions=[])) == {id: [0, 1, 2, 3]}


@BEATS
def test_a_static_member_comes_back_to_what_it_had(client: Client, id: bytes, version: int) -> None:
    member(client, "old", version, instance_id="i")
    member(client, "other", version)
    taken = g.beat(client, "new", 0, version, instance_id="i")
    assert taken.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    away = g.beat(client, "old", -2, version, instance_id="i")
    assert (away.error_code, away.member_epoch) == (0, -2)
    back = g.beat(client, "new", 0, version, instance_id="i")
    assert (back.error_code, back.member_id, len(g.assigned(back)[id])) == (0, "new", 2)
    fenced = g.beat(client, "old", 2, version, instance_id="i")
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_topics_that_come_grow_and_go(play: Play, client: Client, id: bytes) -> None:
    member(client, "one", subscribed_topic_names=["t", "later"])
    other = g.topic(play, "later", 1)
    told = g.beat(client, "one", 1, topic_partitions=[])
    assert (told.member_epoch, g.assigned(told)) == (2, {id: [0, 1, 2, 3], other: [0]})
    play.core.topics.grow("/", "later", 3)
    play.turn()
    assert g.assigned(g.beat(client, "one", 2, topic_partitions=[]))[other] == [0, 1, 2]
    play.core.delete_topic("/", "t")
    play.turn()
    assert g.assigned(g.beat(client, "one", 3, topic_partitions=[])) == {other: [0, 1, 2]}


def test_no_one_knows_the_members_of_before_a_start(play: Play, client: Client, id: bytes) -> None:
    member(client)
    play.restart()
    client = play.connect()
    assert g.beat(client, epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert g.assigned(member(client)) == {id: [0, 1, 2, 3]}


# -- what is refused


@BEATS
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"group": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"epoch": -3}, "MemberEpoch is invalid."),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": 1, "member": ""}, "MemberId can't be empty."),
    ],
)
def test_heartbeats_that_make_no_sense(
    client: Client, id: bytes, version: int, change: dict[str, Any], sentence: str
) -> None:
    answer = g.beat(client, **{"member": "m", "epoch": 0, "version": version, **change})
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, sentence)
    assert (answer.member_id, answer.assignment) == (None, None)


@BEATS
def test_members_that_are_refused(play: Play, client: Client, id: bytes, version: int) -> None:
    answer = g.beat(client, version=version, server_assignor="none")
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert g.beat(client, epoch=1, version=version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    member(client, version=version)
    for epoch in (2, 7):
        assert g.beat(client, epoch=epoch, version=version).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert g.beat(client, "stranger", 1, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert g.beat(client, "stranger", -1, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    classic = play.connect()
    g.form(play, classic, group="g2")  # its assignment means nothing to anybody but itself
    assert g.beat(client, "m", 0, version, group="g2").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    other = g.join(play, classic, group="g", protocol_type="connect")
    assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# -- offsets of members


@pytest.mark.parametrize("version", [9, 10])
def test_members_set_offsets_in_their_epoch(play: Play, client: Client, id: bytes, version: int) -> None:
    member(client)
    known = {"topic_id": id} if version >= 10 else {}

    def commit(name: str, epoch: int) -> list[int]:
        more: dict[str, Any] = {"member_id": name, "generation_id_or_member_epoch": epoch}
        return g.commit(client, {0: 5}, version, **known, **more)

    assert commit("m", 1) == [0]
    assert commit("m", 0) == commit("m", 2) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert commit("x", 1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit("", -1) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_members_are_asked_for_their_epoch_when_they_fetch(client: Client, id: bytes) -> None:
    member(client)

    def fetch(name: str | None, epoch: int) -> int:
        asked = OffsetFetchRequestGroup("g", name, epoch, [OffsetFetchRequestTopics("t", partition_indexes=[0])])
        (group,) = client.ask(OffsetFetchRequest(groups=[asked]), 9).groups
        error: int = group.error_code
        return error

    assert fetch("m", 1) == fetch(None, -1) == 0
    assert fetch("m", 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID


# -- looking


@pytest.mark.parametrize("version", SERVED[69].versions)
def test_groups_are_described_in_every_version(play: Play, client: Client, id: bytes, version: int) -> None:
    member(client, "one", rack_id="r", instance_id="i")
    member(client, "two", subscribed_topic_regex="t.*", subscribed_topic_names=[])
    g.form(play, play.connect(), group="classic")
    answer = client.ask(ConsumerGroupDescribeRequest(["g", "none", "classic"], True), version)
    found, none, classic = answer.groups
    assert (found.error_code, found.group_id, found.group_state) == (0, "g", "Reconciling")
    assert (found.group_epoch, found.assignment_epoch, found.assignor_name) == (2, 2, "uniform")
    assert found.authorized_operations > 0
    one, two = found.members
    assert (one.member_id, one.instance_id, one.rack_id, one.member_epoch) == ("one", "i", "r", 1)
    assert (one.client_id, one.subscribed_topic_names) == ("play", ["t"])
    assert one.client_host
    (has,) = one.assignment.topic_partitions
    assert (has.topic_id, has.topic_name, has.partitions) == (id, "t", [0, 1, 2, 3])
    assert len(one.target_assignment.topic_partitions[0].partitions) == 2
    assert (two.subscribed_topic_regex, two.assignment.topic_partitions) == ("t.*", [])
    assert one.member_type == (1 if version >= 1 else -1)
    for other, name in ((none, "none"), (classic, "classic")):
        assert (other.group_id, other.error_code) == (name, ErrorCode.GROUP_ID_NOT_FOUND)
        assert bool(other.error_message)


def test_groups_of_both_kinds_in_one_list(play: Play, client: Client, id: bytes) -> None:
    member(client)
    g.form(play, play.connect(), group="classic")
    listed = {one.group_id: one for one in client.ask(ListGroupsRequest([], []), 5).groups}
    assert {name: one.group_type for name, one in listed.items()} == {"g": "consumer", "classic": "classic"}
    assert {name: one.group_state for name, one in listed.items()} == {"g": "Stable", "classic": "Stable"}
    (only,) = client.ask(ListGroupsRequest([], ["consumer"]), 5).groups
    assert only.group_id == "g"
    for version in SERVED[15].versions:
        (found,) = client.ask(DescribeGroupsRequest(["g"]), version).groups
        assert found.group_state == "Dead"
        assert found.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
