from collections.abc import Iterable
from typing import Any

import pytest

from interlog.core.group_words import GroupKind, GroupState, Heartbeat, Join, Joined, Refused, Standing
from interlog.core.groups import GroupSettings
from tests.unit.group_rig import Rig


class Member:
    """A client that does what it is told, at once or step by step."""

    def __init__(self, rig: Rig, name: str, topics: Iterable[str] | None = ("t",), **more: Any) -> None:
        self.rig = rig
        self.name = name
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self.told: frozenset[int] = frozenset()
        self.instance = more.pop("instance", None)
        self.join(None if topics is None else frozenset(topics), **more)

    def join(self, topics: frozenset[str] | None = frozenset(("t",)), **more: Any) -> Standing:
        self.epoch = 0
        self.owned = frozenset()
        more.setdefault("rebalance_ms", 10_000)
        return self.beat(topics=topics, **more)

    def ask(self, **more: Any) -> Standing:
        more.setdefault("owned", self.owned)
        ask = Heartbeat(self.name, self.epoch, may_read=lambda name: True, instance=self.instance, **more)
        return self.rig.groups.follow("/", "g", ask)

    def beat(self, **more: Any) -> Standing:
        standing = self.ask(**more)
        if standing.refused is None:
            self.name, self.epoch = standing.member, standing.epoch
            if standing.assigned is not None:
                self.told = standing.assigned
        return standing

    def follow(self) -> None:
        """Beat, give up and take over, until nothing changes."""
        for _ in range(5):
            self.owned = self.told
            self.beat()

    def leave(self, epoch: int = -1) -> Standing:
        ask = Heartbeat(self.name, epoch, may_read=lambda name: True, instance=self.instance)
        return self.rig.groups.follow("/", "g", ask)


def state(rig: Rig) -> GroupState:
    view = rig.groups.view("/", "g")
    assert view is not None
    return view.state


def settle(*members: Member) -> None:
    for _ in range(3):
        for member in members:
            member.follow()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_the_first_member_has_everything_at_once(rig: Rig) -> None:
    partitions = rig.topic("t", 4)
    one = Member(rig, "one")
    assert one.epoch == 1
    assert one.told == set(partitions)
    assert state(rig) is GroupState.STABLE
    assert one.beat() == Standing(None, "one", 1, None, 3_000)
    assert one.beat(full=True).assigned == frozenset(partitions)


def test_an_id_is_made_where_there_is_none(rig: Rig) -> None:
    rig.topic("t", 1)
    assert len(Member(rig, "").name) == 36


def test_what_another_has_comes_once_it_is_given_up(rig: Rig) -> None:
    partitions = rig.topic("t", 4)
    one = Member(rig, "one")
    one.owned = one.told
    two = Member(rig, "two")
    assert two.epoch == 2
    assert two.told == set()
    assert state(rig) is GroupState.RECONCILING
    standing = one.beat()
    assert standing.assigned is not None
    assert len(standing.assigned) == 2
    assert standing.epoch == 1, "its epoch stays until it has given up"
    assert standing.next_ms == 500
    # It still owns what it is to give up: nobody else gets it.
    assert two.beat().assigned is None
    assert one.beat().assigned is None
    # It does not say what it owns: nobody else gets it either.
    assert one.beat(owned=None).epoch == 1
    one.owned = one.told
    assert one.beat().epoch == 2
    assert two.beat().assigned == frozenset(partitions) - one.told
    assert state(rig) is GroupState.STABLE


def test_twenty_members_settle_evenly_and_hold_nothing_twice(rig: Rig) -> None:
    partitions = rig.topic("t", 60)
    members = [Member(rig, f"m{number}") for number in range(20)]
    settle(*members)
    assert sorted(len(member.told) for member in members) == [3] * 20
    assert set().union(*(member.told for member in members)) == set(partitions)
    assert state(rig) is GroupState.STABLE
    before = {member.name: member.told for member in members}
    gone = members.pop()
    gone.leave()
    settle(*members)
    assert all(before[member.name] <= member.told for member in members), "nobody loses what it had"
    assert set().union(*(member.told for member in members)) == set(partitions)


def test_who_goes_leaves_its_partitions_to_the_others(rig: Rig) -> None:
    partitions = rig.topic("t", 4)
    one, two = Member(rig, "one"), Member(rig, "two")
    settle(one, two)
    assert two.leave() == Standing(None, "two", -1)
    one.follow()
    assert one.told == set(partitions)
    assert two.beat().refused is Refused.UNKNOWN_MEMBER
    assert one.leave().refused is None
    assert state(rig) is GroupState.EMPTY
    assert Member(rig, "again").epoch > one.epoch


def test_who_is_not_heard_of_is_gone(rig: Rig) -> None:
    partitions = rig.topic("t", 4)
    one, two = Member(rig, "one"), Member(rig, "two")
    settle(one, two)
    for _ in range(10):
        rig.advance(4_600)
        one.follow()
    assert one.told == set(partitions)
    assert two.beat().refused is Refused.UNKNOWN_MEMBER


def test_who_does_not_give_up_in_time_is_put_out(rig: Rig) -> None:
    partitions = rig.topic("t", 4)
    one = Member(rig, "one")
    one.owned = one.told
    two = Member(rig, "two")
    for _ in range(5):
        assert one.beat().refused is None
        rig.advance(1_900)
    rig.advance(600)
    assert one.beat().refused is Refused.UNKNOWN_MEMBER
    two.follow()
    assert two.told == set(partitions)


def test_epochs_that_are_not_the_members_are_fenced(rig: Rig) -> None:
    rig.topic("t", 2)
    one = Member(rig, "one")
    one.owned = one.told
    two = Member(rig, "two")
    settle(one, two)
    epoch = one.epoch
    one.epoch = epoch + 1
    standing = one.ask()
    assert standing.refused is Refused.FENCED_EPOCH
    assert standing.sentence is not None
    assert "greater" in standing.sentence
    # The answer with the new epoch was lost: the one before is still good, with what belongs to it.
    one.epoch = epoch - 1
    assert one.ask(owned=None).refused is Refused.FENCED_EPOCH
    assert one.ask(owned=one.owned | two.owned).refused is Refused.FENCED_EPOCH
    assert one.ask().epoch == epoch
    one.epoch = epoch - 2
    assert one.epoch == 0 or one.ask().refused is Refused.FENCED_EPOCH


def test_nobody_beats_before_joining(rig: Rig) -> None:
    one = Heartbeat("one", 3, may_read=lambda name: True)
    assert rig.groups.follow("/", "g", one).refused is Refused.UNKNOWN_MEMBER
    assert rig.groups.follow("/", "g", one._replace(epoch=-1)).refused is Refused.UNKNOWN_MEMBER
    rig.topic("t", 1)
    member = Member(rig, "two")
    assert rig.groups.follow("/", "g", one).refused is Refused.UNKNOWN_MEMBER
    assert rig.groups.follow("/", "g", one._replace(epoch=-1)).refused is Refused.UNKNOWN_MEMBER
    assert member.beat(assignor="none").refused is Refused.UNKNOWN_ASSIGNOR


def test_a_static_member_that_is_back_has_what_it_had(rig: Rig) -> None:
    rig.topic("t", 4)
    one, two = Member(rig, "one", instance="i"), Member(rig, "two")
    settle(one, two)
    had = one.told
    rival = Member(rig, "rival", topics=("t",), instance="i")
    assert rival.join().refused is Refused.UNRELEASED_INSTANCE
    assert rival.leave().refused is Refused.FENCED_INSTANCE
    assert one.leave(-2) == Standing(None, "one", -2)
    two.follow()
    assert not two.told & had, "it is kept for it"
    epoch = two.epoch
    assert rival.join().refused is None
    assert rival.told == had
    assert rival.epoch == epoch, "and the others do not notice"
    assert one.beat().refused is Refused.FENCED_INSTANCE
    assert rival.leave(-2).refused is None
    again = Member(rig, "rival", instance="i")
    assert again.told == had
    assert again.leave(-2).refused is None
    rig.advance(20_000)
    two.follow()
    rig.advance(25_001)
    two.follow()
    assert len(two.told) == 4, "but not for ever"


def test_topics_that_come_grow_and_go(rig: Rig) -> None:
    one = Member(rig, "one", topics=("t", "u"))
    assert one.told == set()
    t = rig.topic("t", 2)
    one.follow()
    assert one.told == set(t)
    epoch = one.epoch
    rig.topic("unwanted", 3)
    one.follow()
    assert one.epoch == epoch
    grown = rig.catalog.grow_topic("/", "t", 3).partitions
    one.follow()
    assert one.told == set(grown)
    u = rig.topic("u", 1)
    one.follow()
    assert one.told == {*grown, *u}
    rig.catalog.remove("/", "t")
    one.follow()
    assert one.told == set(u)
    assert one.epoch > epoch
    # One of the same name is another one.
    new = rig.topic("t", 1)
    one.follow()
    assert one.told == {*u, *new}


def test_what_is_wanted_may_change(rig: Rig) -> None:
    t, u = rig.topic("t", 2), rig.topic("u", 2)
    one = Member(rig, "one")
    one.owned = one.told
    one.beat(topics=frozenset(("u",)))
    assert one.told == set()
    one.follow()
    assert one.told == set(u)
    two = Member(rig, "two", topics=("t", "u"))
    settle(one, two)
    assert two.told == {*t}


def test_a_pattern_takes_what_it_fits_and_the_user_may_read(rig: Rig) -> None:
    a, b = rig.topic("logs-a", 1), rig.topic("logs-b", 1)
    rig.topic("other", 1)
    one = Member(rig, "one", topics=None, pattern="logs-.*")
    assert one.told == {*a, *b}
    secret = rig.topic("logs-secret", 1)
    ask = Heartbeat("one", one.epoch, may_read=lambda name: "secret" not in name, owned=one.told, full=True)
    assert rig.groups.follow("/", "g", ask).assigned == frozenset({*a, *b})
    c = rig.topic("logs-c", 1)
    one.follow()
    assert one.told == {*a, *b, *c, *secret}
    one.beat(pattern="")
    one.follow()
    assert one.told == set()
    standing = one.beat(pattern="logs-(")
    assert standing.refused is Refused.BAD_PATTERN
    assert Member(rig, "two", pattern="(").epoch == 0
    view = rig.groups.view("/", "g")
    assert view is not None
    assert [member.member for member in view.members] == ["one"], "a member that cannot be read is none"


def test_durable_queues_are_topics_of_one_partition(rig: Rig) -> None:
    queue = rig.catalog.create_queue("/", "q")
    rig.catalog.create_queue("/", "passing", durable=False)
    one = Member(rig, "one", topics=("q", "passing"))
    assert one.told == {queue.partition}
    assert Member(rig, "two", topics=None, pattern=".*").ask(full=True).assigned == frozenset()


def test_the_assignor_that_most_want_is_used(rig: Rig) -> None:
    t, u = rig.topic("t", 2), rig.topic("u", 2)
    one = Member(rig, "a", topics=("t", "u"), assignor="range")
    two = Member(rig, "b", topics=("t", "u"), assignor="range")
    settle(one, two)
    assert one.told == {t[0], u[0]}
    assert two.told == {t[1], u[1]}
    view = rig.groups.view("/", "g")
    assert view is not None
    assert (view.kind, view.protocol, view.generation, view.target_epoch) == (GroupKind.BALANCED, "range", 2, 2)
    assert [(m.member, m.topics, m.assigned, m.target) for m in view.members] == [
        ("a", ("t", "u"), one.told, one.told),
        ("b", ("t", "u"), two.told, two.told),
    ]


def test_who_may_set_and_ask_for_cursors(rig: Rig) -> None:
    rig.topic("t", 2)
    one = Member(rig, "one")
    check, reader = rig.groups.check, rig.groups.check_reader
    assert check("/", "g", "one", None, 1) is None
    assert check("/", "g", "one", None, 0) is Refused.STALE_EPOCH
    assert check("/", "g", "one", None, 0, transactional=True) is Refused.ILLEGAL_GENERATION
    assert check("/", "g", "one", None, 1, epochs=False) is Refused.EPOCHS_NEEDED
    assert check("/", "g", "", None, -1) is Refused.UNKNOWN_MEMBER
    assert reader("/", "g", None, -1) is None
    assert reader("/", "g", "one", 1) is None
    assert reader("/", "g", "one", 2) is Refused.STALE_EPOCH
    assert reader("/", "g", "two", 1) is Refused.UNKNOWN_MEMBER
    assert reader("/", "none", "two", 1) is None
    assert rig.groups.known("/", "g", "one") == one.told
    one.leave()
    assert check("/", "g", "", None, -1, epochs=False) is None


def test_a_group_takes_so_many_and_no_more() -> None:
    rig = Rig(GroupSettings(members=1))
    rig.topic("t", 2)
    one = Member(rig, "one")
    assert Member(rig, "two").ask().refused is Refused.FULL
    assert one.beat().refused is None


def join(rig: Rig) -> list[Joined]:
    heard: list[Joined] = []
    rig.groups.join("/", "g", Join("", "consumer", (("range", b""),), 10_000, 10_000), heard.append)
    rig.advance(1)
    return heard


def test_a_group_without_members_can_become_the_other_kind(rig: Rig) -> None:
    rig.topic("t", 1)
    one = Member(rig, "one")
    assert join(rig)[0].refused is Refused.INCONSISTENT_PROTOCOL
    one.leave()
    (joined,) = join(rig)
    assert joined.refused is None
    assert joined.generation > one.epoch
    assert one.join().refused is Refused.OTHER_KIND
    rig.advance(10_001)
    assert one.join().epoch > joined.generation


def test_groups_that_nobody_needs_are_forgotten(rig: Rig) -> None:
    rig.topic("t", 1)
    one = Member(rig, "one")
    one.leave()
    rig.advance(60_001)
    assert len(rig.groups) == 0
    one.join()
    assert rig.groups.delete("/", "g") is Refused.NOT_EMPTY
    one.leave()
    assert rig.groups.delete("/", "g") is None
