from hypothesis import given
from hypothesis import strategies as st

from interlog.core.group_assignors import Subscriber, Target, range_, uniform

NAMES = ("a", "b", "c", "d")


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Subscriber], dict[str, tuple[int, ...]]]:
    topics, first = {}, 1
    for name in NAMES:
        size = draw(st.integers(1, 8))
        topics[name] = tuple(range(first, first + size))
        first += size
    same = draw(st.none() | st.sets(st.sampled_from(NAMES), min_size=1))
    members = []
    free = set(range(1, first + 5))  # some of them are of topics that are gone
    for number in range(draw(st.integers(1, 6))):
        wants = same if same is not None else draw(st.sets(st.sampled_from(NAMES)))
        had = draw(st.sets(st.sampled_from(sorted(free)), max_size=6)) if free else set()
        free -= had
        instance = draw(st.none() | st.just(f"i{number}"))
        members.append(Subscriber(f"m{number}", instance, frozenset(wants), frozenset(had)))
    return members, topics


def sound(members: list[Subscriber], topics: dict[str, tuple[int, ...]], target: Target) -> None:
    assert target.keys() == {member.member for member in members}
    given_out = [partition for partitions in target.values() for partition in partitions]
    assert len(given_out) == len(set(given_out)), "one is given twice"
    assert set(given_out) == {one for member in members for name in member.topics for one in topics[name]}
    for member in members:
        assert target[member.member] <= {one for name in member.topics for one in topics[name]}


@given(cases())
def test_each_partition_goes_to_one_who_wants_it(case: tuple[list[Subscriber], dict[str, tuple[int, ...]]]) -> None:
    members, topics = case
    sound(members, topics, uniform(members, topics))
    sound(members, topics, range_(members, topics))


@given(cases())
def test_uniform_is_as_even_as_can_be_and_then_stays(
    case: tuple[list[Subscriber], dict[str, tuple[int, ...]]],
) -> None:
    members, topics = case
    target = uniform(members, topics)
    topic_of = {partition: name for name in topics for partition in topics[name]}
    for member in members:
        for partition in target[member.member]:
            for other in members:
                if topic_of[partition] in other.topics:
                    assert len(target[member.member]) <= len(target[other.member]) + 1
    again = uniform([member._replace(before=target[member.member]) for member in members], topics)
    assert again == target


def test_uniform_moves_no_more_than_it_must() -> None:
    topics = {"t": tuple(range(12))}
    wants = frozenset(("t",))
    three = [Subscriber(f"m{n}", None, wants, frozenset(range(4 * n, 4 * n + 4))) for n in range(3)]
    target = uniform([*three, Subscriber("new", None, wants, frozenset())], topics)
    assert len(target["new"]) == 3
    for member in three:
        assert target[member.member] < member.before
    left = uniform(three[:2], topics)
    assert all(member.before <= left[member.member] for member in three[:2])


def test_range_cuts_topics_of_equal_size_alike_and_puts_static_members_first() -> None:
    topics = {"t": (10, 11, 12), "u": (20, 21, 22), "v": (30,)}
    both, all_three = frozenset(("t", "u")), frozenset(("t", "u", "v"))
    members = [Subscriber("a", None, both, frozenset()), Subscriber("z", "i", all_three, frozenset())]
    assert range_(members, topics) == {"z": {10, 11, 20, 21, 30}, "a": {12, 22}}


def test_uniform_is_quick_enough_for_many() -> None:
    topics = {f"t{n}": tuple(range(n * 100, n * 100 + 100)) for n in range(20)}
    wants = frozenset(topics)
    target = uniform([Subscriber(f"m{n}", None, wants, frozenset()) for n in range(500)], topics)
    assert {len(partitions) for partitions in target.values()} == {4}
