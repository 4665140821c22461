"""Groups that move from the classic kind to the one that the broker shares out, and back, with members in them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from interlog.faces.kafka.codec import decode, encode
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import consumer_protocol as cp
from interlog.faces.kafka.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from interlog.faces.kafka.schema.describe_groups import DescribeGroupsRequest
from interlog.faces.kafka.schema.heartbeat import HeartbeatRequest
from interlog.faces.kafka.schema.join_group import JoinGroupRequestProtocol
from interlog.faces.kafka.schema.leave_group import LeaveGroupRequest, MemberIdentity
from interlog.faces.kafka.schema.list_groups import ListGroupsRequest
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka.play import Client, Play

PARTITIONS = 4
ALL = list(range(PARTITIONS))


@pytest.fixture(autouse=True)
def topic(play: Play) -> bytes:
    return g.topic(play, "t", PARTITIONS)


def assignment(*indexes: int) -> bytes:
    told = cp.ConsumerProtocolAssignment([cp.ConsumerProtocolAssignmentTopicPartition("t", list(indexes))])
    return b"\0\1" + encode(cp.ConsumerProtocolAssignment, 1, told)


def subscription(owned: Sequence[int] | None, *topics: str) -> bytes:
    if owned is None:
        return g.subscription(*topics)
    held = [cp.ConsumerProtocolSubscriptionTopicPartition("t", list(owned))] if owned else []
    told = cp.ConsumerProtocolSubscription(list(topics), owned_partitions=held)
    return b"\0\1" + encode(cp.ConsumerProtocolSubscription, 1, told)


class Classic:
    """One who speaks as in a classic group. `cooperative`: it goes on reading what it has while it joins."""

    def __init__(self, play: Play, *, cooperative: bool = False, instance: str | None = None) -> None:
        self.play = play
        self.client = play.connect()
        self.id = ""
        self.generation = -1
        self.has: list[int] = []
        self.cooperative = cooperative
        self.instance = instance
        self.joined: Any = None

    def ask_to_join(self) -> None:
        owned = self.has if self.cooperative else None
        protocols = [JoinGroupRequestProtocol("range", subscription(owned, "t"))]
        request = g.join_request(self.id, protocols=protocols, group_instance_id=self.instance)
        self.client.send(request, 9)

    def told_joined(self) -> Any:
        (self.joined,) = self.client.listen()
        if self.joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = self.joined.member_id
            self.ask_to_join()
            self.play.advance(1)
            return self.told_joined()
        if not self.joined.error_code:
            self.id, self.generation = self.joined.member_id, self.joined.generation_id
        return self.joined

    def join(self) -> Any:
        self.ask_to_join()
        self.play.advance(1)
        return self.told_joined()

    def sync(self, assignments: dict[str, bytes] | None = None) -> list[int]:
        request = g.sync_request(self.joined, 5, assignments)
        request.group_instance_id = self.instance
        answer = self.client.ask(request, 5)
        assert answer.error_code == 0, answer.error_code
        told = decode(cp.ConsumerProtocolAssignment, 0, answer.assignment, 2)[0]
        self.has = sorted(index for one in told.assigned_partitions for index in one.partitions)
        return self.has

    def beat(self) -> int:
        code: int = self.client.ask(HeartbeatRequest("g", self.generation, self.id, self.instance), 4).error_code
        return code

    def follow(self) -> list[int]:
        """As a client does when its heartbeat tells it to: join, sync, and give up what is not its own any more."""
        while self.beat() == ErrorCode.REBALANCE_IN_PROGRESS:
            before = self.has
            assert self.join().error_code == 0
            self.sync()
            if self.cooperative and set(before) - set(self.has):
                assert self.join().error_code == 0  # that it has given up
                self.sync()
        return self.has


def classic_group(play: Play, **more: Any) -> Classic:
    """A classic group of one, which reads everything."""
    one = Classic(play, **more)
    assert one.join().error_code == 0
    assert one.sync({one.id: assignment(*ALL)}) == ALL
    return one


class Newer:
    """One whom the broker tells what to read."""

    def __init__(self, play: Play, name: str, topic: bytes, instance: str | None = None) -> None:
        self.client = play.connect()
        self.name = name
        self.topic = topic
        self.epoch = 0
        self.has: list[int] = []
        self.instance = instance

    def beat(self, **more: Any) -> Any:
        if self.epoch:
            more.setdefault("topic_partitions", g.owned({self.topic: self.has} if self.has else {}))
        answer = g.beat(self.client, self.name, self.epoch, instance_id=self.instance, **more)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = g.assigned(answer).get(self.topic, [])
        return answer

    def leave(self) -> None:
        assert g.beat(self.client, self.name, -1, instance_id=self.instance).error_code == 0


# -- to the newer kind


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_newer_member_moves_the_group_and_gets_its_share(play: Play, topic: bytes, cooperative: bool) -> None:
    old = classic_group(play, cooperative=cooperative)
    generation = old.generation
    new = Newer(play, "new", topic)
    assert new.beat().error_code == 0
    assert new.epoch == generation + 1
    assert new.has == []  # the other one still reads it
    assert g.commit(old.client, {0: 7}, member_id=old.id, generation_id_or_member_epoch=generation) == [0]
    assert len(old.follow()) == 2
    assert old.generation == new.epoch
    new.beat()
    assert sorted(old.has + new.has) == ALL
    assert old.beat() == 0
    assert g.fetched(old.client, 0) == [7]


def test_who_leads_no_more_is_not_asked_to_assign(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    Newer(play, "new", topic).beat()
    joined = old.join()
    assert (joined.leader, joined.members, joined.protocol_type, joined.protocol_name) == ("", [], "consumer", "range")
    late = Classic(play)
    assert late.join().error_code == 0
    assert late.joined.leader == ""


def test_members_of_a_classic_group_come_to_one_of_the_newer_kind(play: Play, topic: bytes) -> None:
    new = Newer(play, "new", topic)
    new.beat()
    assert new.has == ALL
    old = Classic(play)
    assert old.join().error_code == 0
    assert old.sync() == []
    new.beat()  # it is told to give something up,
    assert len(new.has) == 2
    assert old.beat() == 0  # has not done so yet,
    new.beat()  # and has
    assert len(old.follow()) == 2
    assert sorted(old.has + new.has) == ALL


def test_offsets_are_set_in_the_generation_that_one_is_in(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    Newer(play, "new", topic).beat()
    old.follow()

    def commit(generation: int, version: int) -> list[int]:
        return g.commit(old.client, {0: 1}, version, member_id=old.id, generation_id_or_member_epoch=generation)

    for version in (2, 8, 9):
        assert commit(old.generation, version) == [0]
        assert commit(old.generation - 1, version) == [ErrorCode.ILLEGAL_GENERATION]


def test_who_waited_for_others_is_told_to_join_again(play: Play, topic: bytes) -> None:
    """The group moves in the middle of a round."""
    one = classic_group(play)
    two = Classic(play)
    two.id = "?"
    two.ask_to_join()
    play.advance(1)
    (unknown,) = two.client.listen()
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    two.id = ""
    two.ask_to_join()
    play.advance(1)
    (needs,) = two.client.listen()
    two.id = needs.member_id
    two.ask_to_join()
    play.advance(1)
    assert not two.client.listen()  # it waits for the first one
    new = Newer(play, "new", topic)
    assert new.beat().error_code == 0
    play.advance(1)
    assert two.told_joined().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert two.join().error_code == 0
    two.sync()
    for _ in range(3):
        one.follow()
        two.follow()
        new.beat()
    assert sorted(one.has + two.has + new.has) == ALL


# -- going


def test_a_guest_that_is_not_heard_of_is_put_out(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    new = Newer(play, "new", topic)
    new.beat()
    for _ in range(4):  # its session is of ten seconds
        play.advance(3_000)
        new.beat()
    assert new.has == ALL
    assert old.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_guest_that_does_not_join_again_is_put_out(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    new = Newer(play, "new", topic)
    new.beat()
    for _ in range(10):  # it has half a minute
        assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
        play.advance(3_001)
        new.beat()
    assert old.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    new.beat()
    assert new.has == ALL


def test_a_guest_leaves(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    new = Newer(play, "new", topic)
    new.beat()
    answer = old.client.ask(LeaveGroupRequest("g", members=[MemberIdentity("stranger"), MemberIdentity(old.id)]), 5)
    assert [one.error_code for one in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID, 0]
    new.beat()
    assert new.has == ALL


def test_a_static_member_comes_back_as_one_of_the_newer_kind(play: Play, topic: bytes) -> None:
    """As when clients that do not leave are restarted one by one with another setting."""
    one, two = classic_group(play, instance="i1"), Classic(play, instance="i2")
    two.ask_to_join()
    play.advance(1)
    assert one.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    one.ask_to_join()
    play.advance(1)
    one.told_joined(), two.told_joined()
    one.sync({one.id: assignment(0, 1), two.id: assignment(2, 3)})
    assert two.sync() == [2, 3]
    new = Newer(play, "new", topic, "i2")
    assert new.beat().error_code == 0
    assert new.has == [2, 3]
    assert two.beat() == ErrorCode.FENCED_INSTANCE_ID
    assert one.follow() == [0, 1]
    late = Classic(play, instance="i2")
    assert late.join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID


# -- back to the classic kind


@pytest.mark.parametrize("how", ["leaves", "is gone"])
def test_with_the_last_newer_member_gone_the_group_is_classic_again(play: Play, topic: bytes, how: str) -> None:
    one, two = classic_group(play), Newer(play, "new", topic)
    two.beat()
    one.follow()
    three = Classic(play)
    three.join()
    three.sync()
    for _ in range(3):
        one.follow()
        three.follow()
        two.beat()
    if how == "leaves":
        two.leave()
    else:
        for _ in range(16):
            play.advance(3_000)
            one.follow() if two.name in _members(one.client) else one.beat()
            three.follow() if two.name in _members(one.client) else three.beat()
    assert [one.beat(), three.beat()] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    before = one.generation
    one.ask_to_join()
    three.ask_to_join()
    play.advance(1)
    one.told_joined(), three.told_joined()
    assert one.generation == three.generation > before
    leader, other = (one, three) if one.joined.leader == one.id else (three, one)
    assert {member.member_id for member in leader.joined.members} == {one.id, three.id}
    assert leader.sync({leader.id: assignment(0, 1), other.id: assignment(2, 3)}) == [0, 1]
    assert other.sync() == [2, 3]
    (described,) = one.client.ask(DescribeGroupsRequest(["g"]), 6).groups
    assert (described.error_code, described.group_state, len(described.members)) == (0, "Stable", 2)


def test_one_who_finds_a_full_group_disturbs_nobody(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    play.core.groups.settings = replace(play.core.groups.settings, members=1)
    for _ in range(2):
        assert Newer(play, "new", topic).beat().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert old.beat() == 0


def test_what_is_still_read_is_known_when_a_group_moves_to_and_fro(play: Play, topic: bytes) -> None:
    old = classic_group(play, cooperative=True)
    first = Newer(play, "first", topic)
    first.beat()
    first.leave()  # the group is classic again, and nobody has joined again yet
    second = Newer(play, "second", topic)
    assert second.beat().error_code == 0
    assert second.has == []
    assert len(old.follow()) == 2
    second.beat()
    assert sorted(old.has + second.has) == ALL


def test_who_is_refused_moves_nothing(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    bad = g.beat(play.connect(), "new", 0, subscribed_topic_regex="(", subscribed_topic_names=None)
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    (described,) = old.client.ask(DescribeGroupsRequest(["g"]), 6).groups
    assert described.error_code == 0
    assert old.beat() == 0
    assert old.join().error_code == 0
    assert old.sync({old.id: assignment(*ALL)}) == ALL


def test_what_cannot_be_read_does_not_move(play: Play, topic: bytes) -> None:
    client = play.connect()
    for protocols in ([JoinGroupRequestProtocol("range", b"?")], [JoinGroupRequestProtocol("range", b"\xff\xff")]):
        joined = g.join(play, client, protocols=protocols)
        assert client.ask(g.sync_request(joined, 5, {joined.member_id: assignment(0)}), 5).error_code == 0
        assert g.beat(play.connect(), "new").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        client.ask(LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]), 5)
    Newer(play, "new", topic).beat()
    refused = g.join(play, client, protocols=[JoinGroupRequestProtocol("range", b"?")])
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# -- looking


def _members(client: Client) -> list[str]:
    (group,) = client.ask(ConsumerGroupDescribeRequest(["g"]), 1).groups
    return [one.member_id for one in group.members]


def test_how_it_is_described(play: Play, topic: bytes) -> None:
    old = classic_group(play)
    Newer(play, "new", topic).beat()
    old.follow()
    (group,) = old.client.ask(ConsumerGroupDescribeRequest(["g"]), 1).groups
    assert group.error_code == 0
    told = {one.member_id: (one.member_type, one.subscribed_topic_names) for one in group.members}
    assert told == {old.id: (0, ["t"]), "new": (1, ["t"])}
    (classic,) = old.client.ask(DescribeGroupsRequest(["g"]), 6).groups
    assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    (listed,) = old.client.ask(ListGroupsRequest(), 5).groups
    assert (listed.group_id, listed.group_type) == ("g", "consumer")
