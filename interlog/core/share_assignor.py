"""Who reads what in a share group: a pure function.

Comes in: the members with the topics they want, the topics' partitions, and what each member was to have before. Goes
out: what each is to have. Several members may have the same partition: where there are more members than partitions,
each partition has as many of them as any other, give or take one, and nobody who wants something has nothing.
"""

from collections.abc import Sequence

from interlog.core.group_assignors import Subscriber, Target, Topics


def simple(members: Sequence[Subscriber], topics: Topics) -> Target:
    """Each topic is shared out among those who want it; who has least so far is served first."""
    target: dict[str, set[int]] = {member.member: set() for member in members}
    for name in sorted(topics):
        wanting = [member for member in members if name in member.topics]
        if wanting:
            _share(wanting, topics[name], target)
    return {name: frozenset(partitions) for name, partitions in target.items()}


def _share(members: Sequence[Subscriber], partitions: Sequence[int], target: dict[str, set[int]]) -> None:
    if not partitions:
        return
    here = frozenset(partitions)
    # Who has least takes one more; of those who have as much, who had more here before: so fewer move.
    order = sorted(members, key=lambda one: (len(target[one.member]), -len(one.before & here)))
    # Each partition has so many of the members, and some have one more.
    together, more = divmod(len(members), len(partitions)) if len(members) > len(partitions) else (1, 0)
    share, extra = divmod(len(partitions), len(members))
    quotas = {member.member: share + (at < extra) if share else 1 for at, member in enumerate(order)}
    readers = dict.fromkeys(partitions, 0)
    for member in order:
        mine = target[member.member]
        for partition in sorted(member.before & here)[: quotas[member.member]]:
            if readers[partition] == together and more:
                more -= 1
            elif readers[partition] >= together:
                continue
            mine.add(partition)
            readers[partition] += 1
            quotas[member.member] -= 1
    for member in order:
        mine = target[member.member]
        for _ in range(quotas[member.member]):
            least = min((one for one in partitions if one not in mine), key=lambda one: readers[one], default=None)
            if least is not None:
                mine.add(least)
                readers[least] += 1
