"""Who reads what in a balanced group: the assignors, pure functions.

Comes in: the members with the topics they want, the topics' partitions, and what each member was to have before. Goes
out: what each is to have. Every partition that somebody wants goes to exactly one of those who want its topic.

`uniform` keeps the numbers of partitions as even as they can be, and moves as few as that takes. `range` gives each
member a piece of every topic, so that topics of equal size are cut at the same places; static members come first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

Topics = Mapping[str, tuple[int, ...]]  # their partitions
Target = dict[str, frozenset[int]]  # by member


class Subscriber(NamedTuple):
    member: str
    instance: str | None
    topics: frozenset[str]
    before: frozenset[int]


Assignor = Callable[[Sequence[Subscriber], Topics], Target]


def uniform(members: Sequence[Subscriber], topics: Topics) -> Target:
    if len({member.topics for member in members}) == 1:
        return _even(members, topics)
    return _uneven(members, topics)


def _wanted(topics: Topics, names: frozenset[str]) -> list[int]:
    return [partition for name in sorted(names.intersection(topics)) for partition in topics[name]]


def _even(members: Sequence[Subscriber], topics: Topics) -> Target:
    """All want the same: each has its quota, and what is over a quota or nobody's goes to those below theirs."""
    all_of_them = _wanted(topics, members[0].topics)
    left = dict.fromkeys(all_of_them)
    share, extra = divmod(len(all_of_them), len(members))
    # Who has most keeps one more: so fewer move.
    order = sorted(members, key=lambda one: -len(one.before.intersection(left)))
    kept: dict[str, list[int]] = {}
    for at, member in enumerate(order):
        quota = share + (at < extra)
        mine = sorted(partition for partition in member.before if partition in left)[:quota]
        for partition in mine:
            del left[partition]
        kept[member.member] = mine
    rest = iter(left)
    for at, member in enumerate(order):
        mine = kept[member.member]
        quota = share + (at < extra)
        mine.extend(partition for _, partition in zip(range(quota - len(mine)), rest, strict=False))
    return {member.member: frozenset(kept[member.member]) for member in members}


def _uneven(members: Sequence[Subscriber], topics: Topics) -> Target:
    """They want different things: whoever has least takes what is free, and then from those who have too much."""
    wanting: dict[str, list[str]] = {}
    for member in members:
        for name in member.topics.intersection(topics):
            wanting.setdefault(name, []).append(member.member)
    topic_of = {partition: name for name in wanting for partition in topics[name]}
    wants = {member.member: member.topics for member in members}
    target: dict[str, set[int]] = {member.member: set() for member in members}
    owner: dict[int, str] = {}
    for member in members:
        for partition in member.before:
            if topic_of.get(partition) in wants[member.member] and partition not in owner:
                owner[partition] = member.member
                target[member.member].add(partition)
    # What few want is given first: they have less to choose from.
    for name in sorted(wanting, key=lambda name: (len(wanting[name]), name)):
        for partition in topics[name]:
            if partition not in owner:
                least = min(wanting[name], key=lambda one: len(target[one]))
                owner[partition] = least
                target[least].add(partition)
    moved = True
    while moved:  # each move makes the numbers more even: it ends
        moved = False
        for partition, has in list(owner.items()):
            least = min(wanting[topic_of[partition]], key=lambda one: len(target[one]))
            if len(target[has]) > len(target[least]) + 1:
                target[has].remove(partition)
                target[least].add(partition)
                owner[partition] = least
                moved = True
    return {name: frozenset(partitions) for name, partitions in target.items()}


def range_(members: Sequence[Subscriber], topics: Topics) -> Target:
    order = sorted(members, key=lambda one: (one.instance is None, one.instance or one.member))
    target: dict[str, list[int]] = {member.member: [] for member in members}
    for name, partitions in topics.items():
        wanting = [member for member in order if name in member.topics]
        if not wanting:
            continue
        share, extra = divmod(len(partitions), len(wanting))
        at = 0
        for number, member in enumerate(wanting):
            size = share + (number < extra)
            target[member.member].extend(partitions[at : at + size])
            at += size
    return {name: frozenset(partitions) for name, partitions in target.items()}


ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": uniform, "range": range_}
DEFAULT_ASSIGNOR: Final = "uniform"
