"""Share groups: members, what each is to read, and what the other kinds of groups make of their names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.core.group_alarm import GroupSettings
from interlog.core.group_assignors import Subscriber
from interlog.core.group_settings import keep_settings
from interlog.core.group_words import GroupKind, GroupState, Heartbeat, Join, Joined, Refused, Standing
from interlog.core.share_assignor import simple
from tests.unit.group_rig import Rig

NAMES = ("a", "b", "c")


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.topic("t", 4)
    return rig


def beat(rig: Rig, member: str = "m", epoch: int = 0, group: str = "g", **more: Any) -> Standing:
    if epoch == 0:
        more.setdefault("topics", frozenset(("t",)))
    return rig.groups.shares.follow("/", group, Heartbeat(member, epoch, may_read=lambda name: True, **more))


def test_a_member_joins_and_is_told_once_what_to_read(rig: Rig) -> None:
    told = beat(rig)
    assert told == Standing(None, "m", 1, frozenset(rig.catalog.topic("/", "t").partitions), 5_000)
    assert beat(rig, epoch=1) == Standing(None, "m", 1, None, 5_000)
    view = rig.groups.view("/", "g")
    assert view is not None
    assert (view.kind, view.state, view.protocol) == (GroupKind.SHARE, GroupState.STABLE, "simple")
    assert rig.groups.names("/") == ["g"]


def test_partitions_are_shared_out_anew_when_members_come_and_go(rig: Rig) -> None:
    beat(rig, "a")
    second = beat(rig, "b")
    first = beat(rig, "a", 1)
    assert first.assigned is not None and second.assigned is not None
    assert (len(first.assigned), len(second.assigned), first.assigned & second.assigned) == (2, 2, frozenset())
    assert first.epoch == second.epoch == 2
    assert beat(rig, "b", -1).refused is None
    assert len(beat(rig, "a", 2).assigned or ()) == 4


def test_more_members_than_partitions_read_the_same(rig: Rig) -> None:
    gone: list[tuple[str, str, str]] = []
    rig.groups.shares.on_gone = lambda *who: gone.append(who)
    names = [f"m{number}" for number in range(9)]
    for name in names:
        beat(rig, name)
    for at, name in enumerate(names):
        assert beat(rig, name, at + 1).epoch == 9
    told = [member.assigned for member in rig.groups.shares.view("/", "g").members]
    assert all(told)
    readers = [sum(partition in one for one in told) for partition in rig.catalog.topic("/", "t").partitions]
    assert sorted(readers) == [2, 2, 2, 3]
    rig.advance(44_000)
    assert not gone
    beat(rig, "m0", 9)
    rig.advance(2_000)
    assert sorted(gone) == [("/", "g", name) for name in names[1:]]


def test_epochs_are_checked(rig: Rig) -> None:
    beat(rig, "a")
    beat(rig, "b")
    assert beat(rig, "a", 1).epoch == 2
    assert beat(rig, "a", 1).assigned is not None, "the answer before may have been lost: it is told again"
    assert beat(rig, "a", 3).refused is Refused.FENCED_EPOCH
    beat(rig, "c")
    beat(rig, "a", 2)
    assert beat(rig, "a", 1).refused is Refused.FENCED_EPOCH
    assert beat(rig, "x", 1).refused is Refused.UNKNOWN_MEMBER
    assert beat(rig, "x", -1).refused is Refused.UNKNOWN_MEMBER
    assert beat(rig, "x", -1, group="none").refused is Refused.UNKNOWN_MEMBER
    assert beat(rig, "x", 4, group="none").refused is Refused.UNKNOWN_MEMBER


def test_a_member_can_join_again(rig: Rig) -> None:
    beat(rig, "a")
    again = beat(rig, "a")
    assert (again.refused, again.epoch, len(again.assigned or ())) == (None, 1, 4)


def test_topics_that_come_grow_and_go_are_told(rig: Rig) -> None:
    beat(rig, topics=frozenset(("t", "later")))
    later = rig.topic("later", 1)
    told = beat(rig, epoch=1)
    assert told.epoch == 2 and told.assigned is not None and set(later) <= told.assigned
    rig.catalog.grow_topic("/", "later", 3)
    assert len(beat(rig, epoch=2).assigned or ()) == 7
    rig.catalog.remove("/", "t")
    assert len(beat(rig, epoch=3).assigned or ()) == 3
    assert beat(rig, epoch=4, topics=frozenset(("t",))).assigned == frozenset()
    rig.topic("other", 1)
    assert beat(rig, epoch=5).epoch == 5


def test_there_is_room_for_so_many(rig: Rig) -> None:
    rig.groups.settings = GroupSettings(members=1, groups=1)
    beat(rig, "a")
    assert beat(rig, "b").refused is Refused.FULL
    assert beat(rig, "b", group="other").refused is Refused.FULL


def test_a_group_has_settings_of_its_own(rig: Rig) -> None:
    keep_settings(rig.catalog, "/", "g", {"share_session_ms": 2_000, "share_heartbeat_ms": 700})
    assert beat(rig).next_ms == 700
    rig.advance(1_900)
    assert beat(rig, epoch=1).refused is None
    rig.advance(2_100)
    assert beat(rig, epoch=1).refused is Refused.UNKNOWN_MEMBER


def test_a_name_is_of_one_kind(rig: Rig) -> None:
    told: list[Joined] = []
    rig.groups.follow("/", "balanced", Heartbeat("m", 0, may_read=lambda name: True, topics=frozenset("t")))
    rig.commit("read", "t", 0, 5)
    assert beat(rig, group="balanced").refused is Refused.OTHER_KIND
    assert beat(rig, group="read").refused is Refused.OTHER_KIND
    beat(rig, "m")
    rig.groups.join("/", "g", Join("", "consumer", (("range", b""),), 10_000, 10_000), told.append)
    assert told[0].refused is Refused.INCONSISTENT_PROTOCOL
    ask = Heartbeat("m", 0, may_read=lambda name: True, topics=frozenset("t"))
    assert rig.groups.follow("/", "g", ask).refused is Refused.OTHER_KIND
    assert rig.groups.check("/", "g", "", None, -1) is Refused.OTHER_KIND


def test_what_was_read_keeps_a_group(rig: Rig) -> None:
    beat(rig)
    (number, *_) = rig.catalog.topic("/", "t").partitions
    rig.share_partitions.begin("/", "g", number, 0)
    assert rig.groups.delete("/", "g") is Refused.NOT_EMPTY
    beat(rig, epoch=-1)
    rig.advance(120_000)
    assert rig.groups.names("/") == ["g"]
    view = rig.groups.view("/", "g")
    assert view is not None and view.state is GroupState.EMPTY
    assert rig.groups.delete("/", "g") is None
    assert rig.groups.names("/") == []
    assert rig.groups.delete("/", "g") is Refused.NOT_FOUND


def test_a_group_that_read_nothing_is_forgotten(rig: Rig) -> None:
    beat(rig)
    beat(rig, epoch=-1)
    rig.advance(120_000)
    assert rig.groups.names("/") == []


def test_a_namespace_goes_with_its_groups(rig: Rig) -> None:
    rig.catalog.create_namespace("tenant")
    ask = Heartbeat("m", 0, may_read=lambda name: True, topics=frozenset("t"))
    assert rig.groups.shares.follow("tenant", "g", ask).refused is None
    rig.catalog.remove_namespace("tenant")
    assert len(rig.groups) == 0
    rig.advance(120_000)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Subscriber], dict[str, tuple[int, ...]]]:
    topics, first = {}, 1
    for name in NAMES:
        size = draw(st.integers(0, 6))
        topics[name] = tuple(range(first, first + size))
        first += size
    same = draw(st.none() | st.sets(st.sampled_from(NAMES), min_size=1))
    members = []
    for number in range(draw(st.integers(1, 9))):
        wants = same if same is not None else draw(st.sets(st.sampled_from(NAMES)))
        had = draw(st.sets(st.integers(1, first + 2), max_size=6))
        members.append(Subscriber(f"m{number}", None, frozenset(wants), frozenset(had)))
    return members, topics


@given(cases())
def test_every_partition_has_readers_who_want_it(case: tuple[list[Subscriber], dict[str, tuple[int, ...]]]) -> None:
    members, topics = case
    target = simple(members, topics)
    assert target.keys() == {member.member for member in members}
    for member in members:
        assert target[member.member] <= {one for name in member.topics for one in topics[name]}
    for name, partitions in topics.items():
        wanting = [member.member for member in members if name in member.topics]
        if not wanting or not partitions:
            continue
        mine = [len(target[member].intersection(partitions)) for member in wanting]
        readers = [sum(partition in target[member] for member in wanting) for partition in partitions]
        assert min(readers) >= 1 and max(readers) - min(readers) <= 1
        assert min(mine) >= 1 or len(wanting) <= len(partitions)
        assert max(mine) - min(mine) <= 1


@given(cases())
def test_who_has_its_share_keeps_it(case: tuple[list[Subscriber], dict[str, tuple[int, ...]]]) -> None:
    members, topics = case
    target = simple(members, topics)
    again = simple([member._replace(before=target[member.member]) for member in members], topics)
    if len({member.topics for member in members}) == 1 and len([name for name in topics if topics[name]]) == 1:
        assert again == target
