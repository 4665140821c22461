"""Who takes messages of a queue, and whose turn it is.

Comes in: consumers, as faces make them. Goes out: for each round, who has room, highest priority first and in turn
among equals.
"""

from collections import deque
from typing import TYPE_CHECKING, Protocol

from interlog.base.errors import InUseError
from interlog.core.leases import Message

if TYPE_CHECKING:
    from interlog.core.queues import Queue
    from interlog.core.work_queue import WorkQueue


class Consumer(Protocol):
    """One who takes messages as they come. A face makes it; the queue asks for its room and hands over."""

    @property
    def holder(self) -> int:
        """Under which number its messages are leased."""
        ...

    @property
    def for_good(self) -> bool:
        """Messages need no acknowledgement: they are gone once handed over."""
        ...

    @property
    def priority(self) -> int: ...

    def room(self) -> int:
        """How many messages it takes now. After 0 it is asked again once it calls the queue's `wake`."""
        ...

    def take(self, queue: "WorkQueue", lane: "Queue", messages: list[Message]) -> None: ...

    def cancelled(self) -> None:
        """The queue is gone."""
        ...


class Ring:
    """The consumers of one queue."""

    __slots__ = ("_levels", "_order", "exclusive", "single_active")

    def __init__(self, single_active: bool = False) -> None:
        self.single_active = single_active
        self.exclusive: Consumer | None = None
        self._order: dict[Consumer, None] = {}  # in the order in which they came
        self._levels: list[deque[Consumer]] = []  # by priority, the highest first; each in the order of turns

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, consumer: Consumer) -> bool:
        return consumer in self._order

    def all(self) -> list[Consumer]:
        return list(self._order)

    @property
    def active(self) -> Consumer | None:
        """With single_active, the one who gets messages: whoever came first of those who are there."""
        return next(iter(self._order), None)

    def add(self, consumer: Consumer, exclusive: bool) -> None:
        """InUseError if somebody has the queue alone, or wants it so and is not the first."""
        if self.exclusive is not None or (exclusive and self._order):
            raise InUseError("there is a consumer already, and one of them is exclusive")
        if exclusive:
            self.exclusive = consumer
        self._order[consumer] = None
        self._arrange()

    def remove(self, consumer: Consumer) -> bool:
        if consumer not in self._order:
            return False
        del self._order[consumer]
        if self.exclusive is consumer:
            self.exclusive = None
        self._arrange()
        return True

    def levels(self) -> list[deque[Consumer]]:
        """Those who may get messages now, by priority."""
        return self._levels

    def _arrange(self) -> None:
        if self.single_active:
            active = self.active
            self._levels = [deque((active,))] if active is not None else []
            return
        turns = {consumer: at for level in self._levels for at, consumer in enumerate(level)}
        by_priority: dict[int, list[Consumer]] = {}
        for consumer in self._order:
            by_priority.setdefault(consumer.priority, []).append(consumer)
        self._levels = [
            deque(sorted(by_priority[priority], key=lambda one: turns.get(one, len(turns))))
            for priority in sorted(by_priority, reverse=True)
        ]
