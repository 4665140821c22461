"""What must be in the broker's queues after it was killed, told by what its client sent and was answered.

A copy is one message in one queue, or in `graves` once it is dead. What was asked for may have happened; what was
asked for before something whose answer waited for the disk has happened for sure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.crash.model import Wrong

GRAVES = "graves"


@dataclass(frozen=True, slots=True)
class Kind:
    """What is told to the queue when it is declared, and what it means here."""

    arguments: Mapping[str, object]
    buries: bool = False  # its dead go to graves
    capped: bool = False  # it buries without being asked
    ranked: bool = False
    stream: bool = False


QUEUES: dict[str, Kind] = {
    "classic": Kind({"x-dead-letter-exchange": "dead"}, buries=True),
    "quorum": Kind(
        {"x-queue-type": "quorum", "x-dead-letter-exchange": "dead", "x-delivery-limit": 10_000}, buries=True
    ),
    "ranked": Kind({"x-max-priority": 3}, ranked=True),
    "capped": Kind({"x-max-length": 6, "x-dead-letter-exchange": "dead"}, buries=True, capped=True),
    "log": Kind({"x-queue-type": "stream"}, stream=True),
}
SPREAD = ("classic", "quorum", "log")  # bound to the exchange `spread`


@dataclass(slots=True, eq=False)
class Copy:
    number: int
    queue: str
    place: int  # in the order of its queue
    priority: int = 0
    transient: bool = False
    group: "Group | None" = None  # the transaction that brought it
    arrived: bool = False  # for sure
    removing: bool = False
    removed: bool = False  # for sure
    removed_by: "Group | None" = None
    burying: bool = False
    buried: bool = False  # for sure

    def __str__(self) -> str:
        return f"message {self.number} of {self.queue}"


@dataclass(slots=True, eq=False)
class Group:
    """A transaction: all of it or nothing."""

    brought: list[Copy] = field(default_factory=list)
    took: list[Copy] = field(default_factory=list)


Found = Mapping[str, Sequence[tuple[int, str]]]  # by queue: number, and the queue it was published to


class Model:
    def __init__(self) -> None:
        self.copies: dict[tuple[int, str], Copy] = {}
        self.groups: list[Group] = []
        self.extra: dict[str, bool | None] = {}  # durable queues besides: there, not there, or nobody knows

    def add(self, copy: Copy) -> None:
        self.copies[copy.number, copy.queue] = copy

    def find(self, number: int, queue: str) -> Copy:
        try:
            return self.copies[number, queue]
        except KeyError:
            raise Wrong(f"message {number} was never published to {queue}, or is gone for good") from None

    # -- after a restart

    def check(self, found: Found) -> None:
        """Wrong if the queues hold what they must not, or do not hold what they must."""
        counts = {queue: Counter(messages) for queue, messages in found.items()}
        for queue, counted in counts.items():
            for (number, origin), count in counted.items():
                if (number, origin) not in self.copies:
                    raise Wrong(f"invented, or back from the dead: message {number} of {origin}, in {queue}")
                if count > 1:
                    raise Wrong(f"message {number} of {origin} is {count} times in {queue}")
        for copy in self.copies.values():
            key = (copy.number, copy.queue)
            self._check_copy(copy, key in counts[copy.queue], key in counts[GRAVES])
        for group in self.groups:
            self._check_group(group, counts)
        for queue, messages in found.items():
            if queue != GRAVES:
                self._check_order(queue, [self.copies[message] for message in messages])

    def _check_copy(self, copy: Copy, there: bool, dead: bool) -> None:
        kind = QUEUES[copy.queue]
        if there and dead:
            raise Wrong(f"{copy} is in its queue, and dead as well")
        if copy.transient:
            if there or dead:
                raise Wrong(f"{copy} is transient, and outlived the broker")
            return
        if copy.removed and (there or dead):
            raise Wrong(f"{copy} was acknowledged, and came back")
        if copy.arrived and not copy.removing and not (there or dead):
            raise Wrong(f"{copy} was confirmed, and is lost")
        if copy.buried and there:
            raise Wrong(f"{copy} was rejected, and is back in its queue")
        if dead and not (copy.burying or kind.capped):
            raise Wrong(f"{copy} is dead, and nobody rejected it")

    def _check_group(self, group: Group, counts: Mapping[str, "Counter[tuple[int, str]]"]) -> None:
        def is_there(copy: Copy) -> bool:
            key = (copy.number, copy.queue)
            return key in counts[copy.queue] or key in counts[GRAVES]

        done = [is_there(copy) for copy in group.brought if not (copy.removing or copy.transient)]
        done += [not is_there(copy) for copy in group.took if copy.arrived and not copy.transient]
        if len(set(done)) > 1:
            brought, took = ", ".join(map(str, group.brought)), ", ".join(map(str, group.took))
            raise Wrong(f"half of a transaction: it brought {brought}, and took {took}: {done}")

    def _check_order(self, queue: str, copies: Sequence[Copy]) -> None:
        ranked = QUEUES[queue].ranked
        last: tuple[int, int] | None = None
        for copy in copies:
            key = (-copy.priority if ranked else 0, copy.place)
            if last is not None and key <= last:
                raise Wrong(f"out of order in {queue}: {copy}, {[one.number for one in copies]}")
            last = key

    def settle(self, found: Found) -> None:
        """What was found is what there is, from here on."""
        there = {message: queue for queue, messages in found.items() for message in messages}
        for key, copy in list(self.copies.items()):
            if key not in there:
                del self.copies[key]
                continue
            copy.arrived = True
            copy.removing = copy.removed = False
            copy.burying = copy.buried = there[key] == GRAVES
            copy.group = copy.removed_by = None
        self.groups.clear()
