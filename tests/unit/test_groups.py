from collections.abc import Sequence
from typing import Any

import pytest

from interlog.core.group_words import (
    COMES_FROM,
    GroupKind,
    GroupState,
    Join,
    Joined,
    Leaving,
    Refused,
    Sync,
    Synced,
)
from interlog.core.groups import GroupSettings
from tests.unit.group_rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


class Classic:
    """A group and what its members were told."""

    def __init__(self, rig: Rig, group: str = "g") -> None:
        self.rig = rig
        self.group = group

    def join(
        self,
        member: str = "",
        protocols: Sequence[tuple[str, bytes]] = (("range", b"m"),),
        **more: Any,
    ) -> list[Joined]:
        heard: list[Joined] = []
        ask = Join(member, "consumer", tuple(protocols), more.pop("session_ms", 10_000), 30_000, **more)
        self.rig.groups.join("/", self.group, ask, heard.append)
        return heard

    def sync(self, member: str, generation: int, **more: Any) -> list[Synced]:
        heard: list[Synced] = []
        self.rig.groups.sync("/", self.group, Sync(member, generation, **more), heard.append)
        return heard

    def beat(self, member: str, generation: int, instance: str | None = None) -> Refused | None:
        return self.rig.groups.heartbeat("/", self.group, member, instance, generation)

    def leave(self, *members: str) -> list[Refused | None]:
        return self.rig.groups.leave("/", self.group, [Leaving(member) for member in members])

    def state(self) -> GroupState:
        view = self.rig.groups.view("/", self.group)
        assert view is not None
        return view.state

    def form(self, *clients: str, **more: Any) -> list[Joined]:
        """Members join together, and the leader syncs; what they were told."""
        heard = [self.join(client_id=client, **more) for client in clients]
        self.rig.advance(1)
        for _ in range(len(clients)):
            waiting = [at for at, one in enumerate(heard) if one and self.beat(one[0].member, one[0].generation)]
            for at in waiting:
                heard[at] = self.join(heard[at][0].member, **more)
        joined = [one[0] for one in heard]
        leader = next(one for one in joined if one.leader == one.member)
        assignments = tuple((one.member, one.member.encode()) for one in joined)
        for one in joined:
            if one is not leader:
                self.sync(one.member, one.generation)
        assert self.sync(leader.member, leader.generation, assignments=assignments)[0].refused is None
        assert self.state() is GroupState.STABLE
        return joined


@pytest.fixture
def group(rig: Rig) -> Classic:
    return Classic(rig)


def test_states_only_go_where_the_table_says() -> None:
    assert set(COMES_FROM[GroupState.STABLE]) == {GroupState.COMPLETING}
    assert set(COMES_FROM[GroupState.COMPLETING]) == {GroupState.PREPARING}
    assert GroupState.EMPTY in COMES_FROM[GroupState.PREPARING]
    assert GroupState.EMPTY not in COMES_FROM[GroupState.STABLE]


def test_the_first_member_leads_and_assigns(rig: Rig, group: Classic) -> None:
    heard = group.join(client_id="c", protocols=[("range", b"r"), ("sticky", b"s")])
    assert heard == []
    assert group.state() is GroupState.PREPARING
    rig.advance(1)
    (joined,) = heard
    assert joined.refused is None
    assert joined.generation == 1
    assert joined.member == joined.leader
    assert joined.member.startswith("c-")
    assert joined.protocol == "range"
    assert joined.members == ((joined.member, None, b"r"),)
    assert group.state() is GroupState.COMPLETING
    (synced,) = group.sync(joined.member, 1, assignments=((joined.member, b"all"),))
    assert synced == Synced(None, "consumer", "range", b"all")
    assert group.state() is GroupState.STABLE
    assert group.beat(joined.member, 1) is None
    assert group.sync(joined.member, 1) == [synced]


def test_an_id_is_given_first_where_the_member_can_come_again(rig: Rig, group: Classic) -> None:
    (told,) = group.join(needs_id=True, client_id="c")
    assert told.refused is Refused.NEEDS_ID
    assert group.state() is GroupState.EMPTY
    heard = group.join(told.member, needs_id=True)
    rig.advance(1)
    assert heard[0].member == told.member
    assert heard[0].generation == 1


def test_a_round_waits_for_an_id_that_was_given_but_not_for_ever(rig: Rig, group: Classic) -> None:
    (first,) = group.form("a")
    (told,) = group.join(needs_id=True, session_ms=5_000)
    again = group.join(first.member)  # the leader joins again: a round
    assert again == []
    for _ in range(5):
        group.beat(first.member, 1)
        rig.advance(1_000)
    assert [one.generation for one in again] == [2]
    assert group.join(told.member)[0].refused is Refused.UNKNOWN_MEMBER


def test_who_joins_makes_all_others_join_again(rig: Rig, group: Classic) -> None:
    (first,) = group.form("a")
    second = group.join(client_id="b")
    assert second == []
    assert group.beat(first.member, 1) is Refused.REBALANCING
    assert group.sync(first.member, 1)[0].refused is Refused.REBALANCING
    again = group.join(first.member)
    assert [again[0].generation, second[0].generation] == [2, 2]
    assert again[0].leader == second[0].leader == first.member
    assert {one.member for one in again[0].members} == {first.member, second[0].member}
    assert second[0].members == ()
    # The second waits for what the leader assigns.
    waits = group.sync(second[0].member, 2)
    assert waits == []
    group.sync(first.member, 2, assignments=((second[0].member, b"half"),))
    assert waits == [Synced(None, "consumer", "range", b"half")]


def test_who_does_not_join_again_in_time_is_out(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b", session_ms=60_000)
    third = group.join(client_id="c", session_ms=60_000)
    again = group.join(second.member, session_ms=60_000)
    rig.advance(29_000)
    assert (third, again) == ([], [])
    rig.advance(1_001)
    assert again[0].refused is None
    assert again[0].generation == first.generation + 1
    assert again[0].leader == second.member
    assert {one.member for one in again[0].members} == {second.member, third[0].member}
    assert group.beat(first.member, first.generation) is Refused.UNKNOWN_MEMBER


def test_a_member_that_is_not_heard_of_is_out_and_the_group_may_be_empty(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b")
    for _ in range(9):
        rig.advance(1_500)
        group.beat(first.member, first.generation)
    assert group.beat(second.member, second.generation) is Refused.UNKNOWN_MEMBER
    assert group.beat(first.member, first.generation) is Refused.REBALANCING
    (again,) = group.join(first.member)
    group.sync(first.member, again.generation)
    rig.advance(10_001)
    assert group.state() is GroupState.EMPTY
    assert group.beat(first.member, again.generation) is Refused.UNKNOWN_MEMBER
    heard = group.join()
    rig.advance(1)
    assert heard[0].generation > again.generation


def test_members_waiting_for_a_round_are_not_put_out_by_their_session(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b", session_ms=10_000)
    waits = group.join(second.member, protocols=[("range", b"new")])
    for _ in range(25):
        rig.advance(1_000)
        group.beat(first.member, first.generation)
        assert waits == []
    group.join(first.member)
    assert waits[0].refused is None


def test_a_leader_that_never_assigns_is_put_out(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b", session_ms=60_000)
    again = [group.join(first.member, session_ms=60_000), group.join(second.member, session_ms=60_000)]
    leader, other = (again[0][0], again[1][0]) if again[0][0].members else (again[1][0], again[0][0])
    waits = group.sync(other.member, other.generation)
    rig.advance(30_001)
    assert waits[0].refused is Refused.REBALANCING
    assert group.beat(leader.member, leader.generation) is Refused.UNKNOWN_MEMBER
    (joined,) = group.join(other.member, session_ms=60_000)
    assert joined.leader == other.member


def test_the_first_round_waits_for_more_but_not_beyond_the_rebalance_time() -> None:
    rig = Rig(GroupSettings(rebalance_delay_ms=3_000))
    group = Classic(rig)
    heard = [group.join()]
    for _ in range(4):
        rig.advance(2_000)
        heard.append(group.join())
    assert heard == [[]] * 5
    rig.advance(3_000)
    rig.advance(3_000)
    assert [one[0].generation for one in heard] == [1] * 5
    assert len(heard[0][0].members) == 5

    late = Classic(rig, "late")
    waits = late.join()
    for _ in range(20):
        rig.advance(1_500)
        late.join()
    assert waits[0].generation == 1


def test_the_protocol_is_one_that_all_know_and_most_like(rig: Rig, group: Classic) -> None:
    heard = [
        group.join(protocols=[("only-a", b""), ("x", b""), ("y", b"")]),
        group.join(protocols=[("y", b""), ("x", b"")]),
        group.join(protocols=[("y", b""), ("x", b"")]),
    ]
    stranger = group.join(protocols=[("z", b"")])
    assert stranger[0].refused is Refused.INCONSISTENT_PROTOCOL
    rig.advance(1)
    assert {one[0].protocol for one in heard} == {"y"}
    other_type: list[Joined] = []
    rig.groups.join("/", "g", Join("", "connect", (("y", b""),), 10_000, 10_000), other_type.append)
    assert other_type[0].refused is Refused.INCONSISTENT_PROTOCOL
    nothing: list[Joined] = []
    rig.groups.join("/", "new", Join("", "consumer", (), 10_000, 10_000), nothing.append)
    assert nothing[0].refused is Refused.INCONSISTENT_PROTOCOL


def test_a_member_that_asks_again_unchanged_hears_the_same_again(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b")
    follower = second if first.leader == first.member else first
    (same,) = group.join(follower.member)
    assert same.generation == follower.generation
    assert same.members == ()
    assert group.state() is GroupState.STABLE
    assert group.join(follower.member, protocols=[("range", b"other")]) == []
    assert group.state() is GroupState.PREPARING


def test_generations_and_members_are_checked(rig: Rig, group: Classic) -> None:
    (first,) = group.form("a")
    assert group.beat(first.member, 0) is Refused.ILLEGAL_GENERATION
    assert group.beat("nobody", 1) is Refused.UNKNOWN_MEMBER
    assert group.sync(first.member, 7)[0].refused is Refused.ILLEGAL_GENERATION
    assert group.sync("nobody", 1)[0].refused is Refused.UNKNOWN_MEMBER
    assert group.sync(first.member, 1, protocol="other")[0].refused is Refused.INCONSISTENT_PROTOCOL
    assert group.sync(first.member, 1, protocol_type="connect")[0].refused is Refused.INCONSISTENT_PROTOCOL
    assert group.join("nobody")[0].refused is Refused.UNKNOWN_MEMBER
    assert Classic(rig, "none").join("nobody")[0].refused is Refused.UNKNOWN_MEMBER
    assert Classic(rig, "none").sync("nobody", 1)[0].refused is Refused.UNKNOWN_MEMBER
    assert Classic(rig, "none").beat("nobody", 1) is Refused.UNKNOWN_MEMBER
    assert Classic(rig, "none").leave("nobody") == [Refused.UNKNOWN_MEMBER]


def test_many_leave_at_once(rig: Rig, group: Classic) -> None:
    first, second, third = group.form("a", "b", "c")
    assert group.leave(first.member, "nobody", second.member) == [None, Refused.UNKNOWN_MEMBER, None]
    assert group.beat(third.member, third.generation) is Refused.REBALANCING
    (again,) = group.join(third.member)
    assert again.leader == third.member
    assert group.leave(third.member) == [None]
    assert group.state() is GroupState.EMPTY


def test_who_leaves_while_waiting_is_told(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b")
    waits = group.join(second.member, protocols=[("range", b"new")])
    group.leave(second.member)
    assert waits[0].refused is Refused.UNKNOWN_MEMBER
    assert group.join(first.member)[0].refused is None


def test_a_static_member_is_replaced_without_a_round(rig: Rig, group: Classic) -> None:
    first, second = group.form("a", "b", session_ms=30_000)
    static = group.join(instance="i", session_ms=30_000)
    rejoined = [group.join(one.member, session_ms=30_000) for one in (first, second)]
    generation = static[0].generation
    assert [one[0].generation for one in rejoined] == [generation] * 2
    waiting = [group.sync(one.member, generation) for one in (second, static[0])]
    group.sync(first.member, generation, assignments=((static[0].member, b"mine"),))
    assert waiting[1][0].assignment == b"mine"

    (back,) = group.join(instance="i", session_ms=30_000)
    assert back.member != static[0].member
    assert (back.generation, back.members) == (generation, ())
    assert group.state() is GroupState.STABLE
    assert group.sync(back.member, generation, instance="i")[0].assignment == b"mine"
    assert group.beat(static[0].member, generation, "i") is Refused.FENCED_INSTANCE
    assert group.beat(back.member, generation, "other") is Refused.UNKNOWN_MEMBER
    assert group.sync(static[0].member, generation, instance="i")[0].refused is Refused.FENCED_INSTANCE
    assert group.join(static[0].member, instance="i")[0].refused is Refused.FENCED_INSTANCE
    assert rig.groups.leave("/", "g", [Leaving(static[0].member, "i")]) == [Refused.FENCED_INSTANCE]
    assert rig.groups.check("/", "g", static[0].member, "i", generation) is Refused.FENCED_INSTANCE
    assert rig.groups.check("/", "g", back.member, "i", generation) is None
    # The instance alone is enough to put it out.
    assert rig.groups.leave("/", "g", [Leaving("", "i"), Leaving("", "j")]) == [None, Refused.UNKNOWN_MEMBER]
    assert group.state() is GroupState.PREPARING


@pytest.mark.parametrize("can_skip", [False, True])
def test_a_static_leader_that_is_back_does_not_assign_again(rig: Rig, group: Classic, can_skip: bool) -> None:
    heard = group.join(instance="i")
    rig.advance(1)
    group.sync(heard[0].member, 1, assignments=((heard[0].member, b"all"),))
    (back,) = group.join(instance="i", can_skip=can_skip)
    assert back.generation == 1
    if can_skip:
        assert (back.skip, back.leader) == (True, back.member)
        assert [one.member for one in back.members] == [back.member]
    else:
        assert (back.skip, back.leader, back.members) == (False, heard[0].member, ())
    assert group.sync(back.member, 1)[0].assignment == b"all"


def test_a_static_member_with_other_protocols_makes_a_round(rig: Rig, group: Classic) -> None:
    heard = group.join(instance="i", protocols=[("x", b""), ("y", b"")])
    rig.advance(1)
    group.sync(heard[0].member, 1)
    back = group.join(instance="i", protocols=[("y", b"")])
    assert back[0].generation == 2
    assert back[0].protocol == "y"


def test_the_old_one_of_two_static_members_is_told_while_it_waits(rig: Rig, group: Classic) -> None:
    heard = group.join(instance="i")
    second = group.join(instance="i")
    assert heard[0].refused is Refused.FENCED_INSTANCE
    rig.advance(1)
    assert second[0].generation == 1


def test_a_static_member_may_be_away_for_its_session(rig: Rig, group: Classic) -> None:
    (first,) = group.form("a", session_ms=60_000)
    static = group.join(instance="i", session_ms=60_000)
    group.join(first.member, session_ms=60_000)
    generation = static[0].generation
    group.sync(static[0].member, generation)
    group.sync(first.member, generation)
    # A round without it: it is kept.
    more = group.join(client_id="b", session_ms=60_000)
    again = group.join(first.member, session_ms=60_000)
    rig.advance(30_001)
    assert again[0].generation == more[0].generation == generation + 1
    assert static[0].member in {one.member for one in again[0].members}


def test_a_group_takes_so_many_and_no_more() -> None:
    rig = Rig(GroupSettings(members=2))
    group = Classic(rig)
    first, second = group.form("a", "b")
    assert group.join()[0].refused is Refused.FULL
    again = [group.join(one.member, protocols=[("range", b"new")]) for one in (first, second)]
    assert [one[0].refused for one in again] == [None, None]
    rig.groups.settings = GroupSettings(groups=1)
    assert Classic(rig, "other").join()[0].refused is Refused.FULL


def test_ids_that_nobody_comes_with_are_bounded_and_forgotten() -> None:
    rig = Rig(GroupSettings(members=3))
    group = Classic(rig)
    told = [group.join(needs_id=True)[0].refused for _ in range(4)]
    assert told == [Refused.NEEDS_ID] * 3 + [Refused.FULL]
    rig.advance(10_001)
    assert group.join(needs_id=True)[0].refused is Refused.NEEDS_ID
    rig.advance(10_001)
    rig.advance(60_000)
    assert rig.groups.names("/") == []


def test_who_may_set_cursors(rig: Rig, group: Classic) -> None:
    check = rig.groups.check
    assert check("/", "g", "", None, -1) is None
    assert check("/", "g", "m", None, 3) is Refused.UNKNOWN_MEMBER
    assert check("/", "g", "m", None, 3, epochs=False) is Refused.ILLEGAL_GENERATION
    assert check("/", "g", "m", None, 3, transactional=True) is Refused.ILLEGAL_GENERATION
    heard = group.join()
    rig.advance(1)
    member = heard[0].member
    assert check("/", "g", member, None, 1) is Refused.REBALANCING
    assert check("/", "g", member, None, 1, transactional=True) is None
    group.sync(member, 1)
    assert check("/", "g", member, None, 1) is None
    assert check("/", "g", member, None, 0) is Refused.ILLEGAL_GENERATION
    assert check("/", "g", "other", None, 1) is Refused.UNKNOWN_MEMBER
    assert check("/", "g", "", None, -1) is Refused.UNKNOWN_MEMBER
    assert check("/", "g", "", None, -1, transactional=True) is None
    group.leave(member)
    assert check("/", "g", "", None, -1) is None


def test_a_commit_is_a_sign_of_life(rig: Rig, group: Classic) -> None:
    (first,) = group.form("a")
    for _ in range(4):
        rig.advance(9_000)
        assert rig.groups.check("/", "g", first.member, None, 1) is None


def test_groups_are_seen_and_deleted(rig: Rig, group: Classic) -> None:
    rig.topic("t", 2)
    (first,) = group.form("a")
    rig.commit("old", "t", 0, 7)
    rig.commit("g", "t", 0, 7)
    assert rig.groups.names("/") == ["g", "old"]
    view = rig.groups.view("/", "g")
    assert view is not None
    assert (view.kind, view.protocol_type, view.protocol) == (GroupKind.CLASSIC, "consumer", "range")
    assert view.members[0].metadata == b"m"
    assert view.members[0].assignment == first.member.encode()
    assert rig.groups.metadata("/", "g") == [b"m"]
    old = rig.groups.view("/", "old")
    assert old is not None
    assert old.state is GroupState.EMPTY
    assert rig.groups.view("/", "none") is None
    assert rig.groups.delete("/", "g") is Refused.NOT_EMPTY
    assert rig.groups.delete("/", "old") is None
    assert rig.groups.delete("/", "old") is Refused.NOT_FOUND
    group.leave(first.member)
    assert rig.groups.delete("/", "g") is None
    assert rig.groups.names("/") == []
    assert rig.cursors.fetch_group("/", "g") == {}


def test_cursors_expire_once_the_group_is_empty_for_long_enough() -> None:
    day = 86_400_000
    rig = Rig(GroupSettings(retention_ms=7 * day))
    rig.topic("t", 2)
    group = Classic(rig)
    (member,) = group.form("a", session_ms=1_800_000)
    rig.commit("g", "t", 0, 5)
    rig.commit("simple", "t", 0, 5)
    for _ in range(10 * 48):
        assert group.beat(member.member, 1) is None
        rig.advance(1_799_000)
    assert rig.cursors.fetch_group("/", "simple") == {}
    assert len(rig.cursors.fetch_group("/", "g")) == 1
    group.leave(member.member)
    rig.advance(6 * day)
    assert len(rig.cursors.fetch_group("/", "g")) == 1
    rig.advance(day + 120_000)
    assert rig.cursors.fetch_group("/", "g") == {}
    assert rig.groups.names("/") == []


def test_a_namespace_takes_its_groups_with_it(rig: Rig) -> None:
    rig.catalog.create_namespace("n")
    heard: list[Joined] = []
    rig.groups.join("n", "g", Join("", "consumer", (("range", b""),), 10_000, 10_000), heard.append)
    rig.catalog.remove_namespace("n")
    assert heard[0].refused is Refused.UNKNOWN_MEMBER
    assert len(rig.groups) == 0
