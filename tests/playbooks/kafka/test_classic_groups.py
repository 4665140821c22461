"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and how groups are listed, described and deleted."""

from copy import copy
from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.delete_groups import DeleteGroupsRequest
from interlog.faces.kafka.schema.describe_groups import DescribeGroupsRequest
from interlog.faces.kafka.schema.heartbeat import HeartbeatRequest
from interlog.faces.kafka.schema.join_group import JoinGroupRequestProtocol
from interlog.faces.kafka.schema.leave_group import LeaveGroupRequest, MemberIdentity
from interlog.faces.kafka.schema.list_groups import ListGroupsRequest
from interlog.faces.kafka.schema.sync_group import SyncGroupRequestAssignment
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka.play import Client, Play, playing


def state(client: Client, group: str = "g") -> str:
    (found,) = client.ask(DescribeGroupsRequest([group]), 5).groups
    state: str = found.group_state
    return state


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(play: Play, client: Client, version: int) -> None:
    request = g.join_request()
    if version == 0:
        request.rebalance_timeout_ms = -1
    client.send(request, version)
    play.advance(1)
    (response,) = client.listen()
    if version >= 4:
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert response.member_id.startswith("play-")
        client.send(g.join_request(response.member_id), version)
        play.advance(1)
        (response,) = client.listen()
    assert response.error_code == 0
    assert response.generation_id == 1
    assert response.leader == response.member_id
    assert response.protocol_name == "range"
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert [(one.member_id, one.metadata) for one in response.members] == [(response.member_id, g.subscription("t"))]


@pytest.mark.parametrize("version", range(6))
def test_the_leader_assigns_in_every_version(play: Play, client: Client, version: int) -> None:
    joined = g.join(play, client)
    response = client.ask(g.sync_request(joined, version, {joined.member_id: b"mine"}), version)
    assert (response.error_code, response.assignment) == (0, b"mine")
    assert response.protocol_name == ("range" if version >= 5 else None)


@pytest.mark.parametrize("version", range(5))
def test_heartbeats_in_every_version(play: Play, client: Client, version: int) -> None:
    joined = g.form(play, client)
    ask = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert client.ask(ask, version).error_code == 0
    ask.generation_id += 1
    assert client.ask(ask, version).error_code == ErrorCode.ILLEGAL_GENERATION
    ask.member_id = "nobody"
    assert client.ask(ask, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    ask.group_id = "none"
    assert client.ask(ask, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    ask.group_id = ""
    assert client.ask(ask, version).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_leaving_in_every_version(play: Play, client: Client, version: int) -> None:
    joined = g.form(play, client)
    if version < 3:
        nobody, me = LeaveGroupRequest("g", "nobody"), LeaveGroupRequest("g", joined.member_id)
        assert client.ask(nobody, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.ask(me, version).error_code == 0
    else:
        both = LeaveGroupRequest("g", members=[MemberIdentity("nobody"), MemberIdentity(joined.member_id)])
        response = client.ask(both, version)
        assert response.error_code == 0
        assert [(one.member_id, one.error_code) for one in response.members] == [
            ("nobody", ErrorCode.UNKNOWN_MEMBER_ID),
            (joined.member_id, 0),
        ]
        response = client.ask(LeaveGroupRequest("none", members=[MemberIdentity("m", "i")]), version)
        (member,) = response.members
        assert (member.group_instance_id, member.error_code) == ("i", ErrorCode.UNKNOWN_MEMBER_ID)
    assert state(client) == "Empty"


def test_members_wait_for_each_other_and_all_are_answered(play: Play) -> None:
    one, two = play.connect(), play.connect()
    first = g.form(play, one)
    two.send(g.join_request(), 3)
    play.advance(1)
    two.silence()
    beat = HeartbeatRequest("g", first.generation_id, first.member_id)
    assert one.ask(beat, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert one.ask(g.sync_request(first, 5), 5).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert state(play.connect()) == "PreparingRebalance"
    again = one.ask(g.join_request(first.member_id), 9)
    (second,) = two.listen()
    assert again.generation_id == second.generation_id == 2
    assert {member.member_id for member in again.members} == {first.member_id, second.member_id}
    assert second.members == []
    assert second.leader == first.member_id
    two.send(g.sync_request(second, 3), 3)
    two.silence()
    assert state(play.connect()) == "CompletingRebalance"
    mine = one.ask(g.sync_request(again, 5, {first.member_id: b"1", second.member_id: b"2"}), 5)
    assert mine.assignment == b"1"
    (other,) = two.listen()
    assert other.assignment == b"2"


def test_twenty_members_come_to_one_generation(play: Play) -> None:
    clients = [play.connect() for _ in range(20)]
    for client in clients:
        client.send(g.join_request(), 3)
    play.advance(1)
    told = [client.listen()[0] for client in clients]
    assert {one.generation_id for one in told} == {1}
    assert sorted(len(one.members) for one in told) == [0] * 19 + [20]
    for client, one in zip(clients, told, strict=True):
        everybody = {other.member_id: other.member_id.encode() for other in told} if one.members else None
        client.send(g.sync_request(one, 3, everybody), 3)
    for client, one in zip(clients, told, strict=True):
        (synced,) = client.listen()
        assert synced.assignment == one.member_id.encode()


def test_the_rebalance_delay_gathers_members(tmp_path: Any) -> None:
    for play in playing(tmp_path / "data", rebalance_delay_ms=3_000):
        one, two = play.connect(), play.connect()
        one.send(g.join_request(), 3)
        play.advance(2_000)
        two.send(g.join_request(), 3)
        play.advance(1_000)
        one.silence()
        play.advance(3_000)
        assert [one.listen()[0].generation_id, two.listen()[0].generation_id] == [1, 1]


def test_a_member_that_dies_is_out_after_its_session(play: Play) -> None:
    one, two = play.connect(), play.connect()
    first = g.form(play, one)
    two.send(g.join_request(), 3)
    one.send(g.join_request(first.member_id), 9)
    (again,), (second,) = one.listen(), two.listen()
    one.ask(g.sync_request(again, 5), 5)
    two.ask(g.sync_request(second, 5), 5)
    two.drop()
    code = 0
    for _ in range(4):
        play.advance(2_600)
        code = one.ask(HeartbeatRequest("g", 2, first.member_id), 4).error_code
    assert code == ErrorCode.REBALANCE_IN_PROGRESS
    assert one.ask(g.join_request(first.member_id), 9).generation_id == 3


def test_a_client_that_hangs_up_while_it_waits_harms_nobody(play: Play) -> None:
    one, two = play.connect(), play.connect()
    first = g.form(play, one)
    two.send(g.join_request(), 3)
    play.turn()
    two.drop()
    again = one.ask(g.join_request(first.member_id), 9)
    assert again.generation_id == 2
    assert len(again.members) == 2
    one.ask(g.sync_request(again, 5), 5)
    for _ in range(4):
        play.advance(2_600)
        one.ask(HeartbeatRequest("g", 2, first.member_id), 4)
    assert len(one.ask(g.join_request(first.member_id), 9).members) == 1


def test_a_static_member_comes_back_without_a_round(play: Play, client: Client) -> None:
    client.send(g.join_request(group_instance_id="i"), 9)
    play.advance(1)
    (first,) = client.listen()
    client.ask(g.sync_request(first, 5, {first.member_id: b"mine"}), 5)
    other = play.connect()
    back = other.ask(g.join_request(group_instance_id="i"), 9)
    assert (back.error_code, back.generation_id, back.skip_assignment) == (0, 1, True)
    assert [member.group_instance_id for member in back.members] == ["i"]
    assert other.ask(g.sync_request(back, 5), 5).assignment == b"mine"
    beat = HeartbeatRequest("g", 1, first.member_id, "i")
    assert client.ask(beat, 4).error_code == ErrorCode.FENCED_INSTANCE_ID
    again = other.ask(g.join_request(group_instance_id="i"), 8)
    assert (again.leader, again.members) == (back.member_id, [])
    out = client.ask(LeaveGroupRequest("g", members=[MemberIdentity("", "i"), MemberIdentity("", "j")]), 5)
    assert [one.error_code for one in out.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "g" * 256}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": [JoinGroupRequestProtocol("x", bytes(1 << 20))]}, ErrorCode.INVALID_REQUEST),
        ({"protocols": [JoinGroupRequestProtocol(str(n), b"") for n in range(101)]}, ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("version", [0, 6, 9])
def test_joins_that_are_refused(client: Client, change: dict[str, Any], code: ErrorCode, version: int) -> None:
    request = g.join_request(**change)
    if version == 0:
        request.rebalance_timeout_ms = -1
    response = client.ask(request, version)
    assert (response.error_code, response.generation_id) == (code, -1)


def test_syncs_that_are_refused(play: Play, client: Client) -> None:
    joined = g.join(play, client)
    good = g.sync_request(joined, 5)
    for field, value, code in [
        ("group_id", "", ErrorCode.INVALID_GROUP_ID),
        ("group_id", "none", ErrorCode.UNKNOWN_MEMBER_ID),
        ("member_id", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        ("generation_id", 9, ErrorCode.ILLEGAL_GENERATION),
        ("protocol_name", "other", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("protocol_type", None, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("group_instance_id", "i", ErrorCode.UNKNOWN_MEMBER_ID),
        ("assignments", [SyncGroupRequestAssignment("m", bytes((1 << 20) + 1))], ErrorCode.INVALID_REQUEST),
    ]:
        request = copy(good)
        setattr(request, field, value)
        assert client.ask(request, 5).error_code == code, field


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described_in_every_version(play: Play, client: Client, version: int) -> None:
    joined = g.form(play, client)
    request = DescribeGroupsRequest(["g", "none", ""], include_authorized_operations=version >= 3)
    group, none, empty = client.ask(request, version).groups
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "play", "/")
    assert (member.member_metadata, member.member_assignment) == (g.subscription("t"), b"all")
    if version >= 3:
        assert group.authorized_operations & (1 << 3)
    assert none.group_state == "Dead"
    assert none.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert none.error_message == ("Group none not found." if version >= 6 else None)
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(play: Play, client: Client, version: int) -> None:
    g.topic(play)
    g.form(play, client)
    assert g.commit(client, {0: 3}, group="simple") == [0]
    groups = client.ask(ListGroupsRequest(), version).groups
    assert [(one.group_id, one.protocol_type) for one in groups] == [("g", "consumer"), ("simple", "")]
    if version >= 4:
        assert [one.group_state for one in groups] == ["Stable", "Empty"]
        (one,) = client.ask(ListGroupsRequest(["EMPTY"]), version).groups
        assert one.group_id == "simple"
        assert client.ask(ListGroupsRequest(["Dead"]), version).groups == []
    if version >= 5:
        assert [one.group_type for one in groups] == ["classic"] * 2
        assert len(client.ask(ListGroupsRequest([], ["Classic"]), version).groups) == 2
        assert client.ask(ListGroupsRequest([], ["consumer"]), version).groups == []
        assert client.ask(ListGroupsRequest([], ["unheard-of"]), version).groups == []


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted_in_every_version(play: Play, client: Client, version: int) -> None:
    g.topic(play)
    g.form(play, client)
    g.commit(client, {0: 3}, group="simple")
    results = client.ask(DeleteGroupsRequest(["g", "simple", "none", ""]), version).results
    assert [(one.group_id, one.error_code) for one in results] == [
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("simple", 0),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_GROUP_ID),
    ]
    assert g.fetched(client, 0, group="simple") == [-1]
    play.restart()
    client = play.connect()
    assert client.ask(ListGroupsRequest(), 5).groups == []


def test_a_deletion_is_answered_once_it_lasts(play: Play, client: Client) -> None:
    g.topic(play)
    g.commit(client, {0: 3}, group="simple")
    client.send(DeleteGroupsRequest(["simple"]), 2)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert [one.error_code for one in client.listen()[0].results] == [0]


def test_after_a_restart_members_join_again_and_offsets_are_there(play: Play, client: Client) -> None:
    g.topic(play)
    joined = g.form(play, client)
    told = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    assert g.commit(client, {0: 5}, **told) == [0]
    play.restart()
    client = play.connect()
    assert state(client) == "Empty"
    beat = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert client.ask(beat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert g.commit(client, {0: 6}, **told) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert g.commit(client, {0: 6}, version=8, **told) == [ErrorCode.ILLEGAL_GENERATION]
    assert g.fetched(client, 0) == [5]
    again = g.form(play, client)
    assert g.commit(client, {0: 7}, member_id=again.member_id, generation_id_or_member_epoch=1) == [0]
