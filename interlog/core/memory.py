"""How much memory the queues' messages hold, and what is done when it is too much.

Queues settle their account once a tick; the owner calls `balance` once a tick. Past the share at which paging begins,
the queues with the most in memory page out, those that nobody reads from first. `over` is the alarm: even so, more
than the limit is held (messages that are out with consumers cannot be paged out), and publishers must be held back.
"""

from typing import Protocol

from interlog.journal.record import Record

# What a message costs in memory beside its bytes: the tuple, the record, its bytes objects, its place in a deque.
OVERHEAD_BYTES = 320

_LARGE_EXTRA_BYTES = 1024
_PAGING_SHARE = 0.8  # of the limit: where paging out begins
_PAGED_SHARE = 0.7  # of the limit: where it stops
_COLD_WEIGHT = 4  # a queue without a reader pages out as if it held this much more


def record_size(record: Record) -> int:
    """The bytes of a message as queues count them: its value. The same before and after the disk.

    Key and headers count only where they are large, so that limits mean what users send, and memory is bounded still.
    """
    size = len(record.value) if record.value is not None else 0
    extra = len(record.key) if record.key is not None else 0
    for name, value in record.headers:
        extra += len(name)
        if value is not None:
            extra += len(value)
    return size + extra if extra > _LARGE_EXTRA_BYTES else size


class Pageable(Protocol):
    """A queue, as the budget sees it."""

    read_lately: bool  # set by reading, cleared by the budget

    def pageable_bytes(self) -> int:
        """What page_out could free at most."""
        ...

    def page_out(self, free_bytes: int) -> int:
        """Free about this much; what was freed."""
        ...


class MemoryBudget:
    """The sum of all queues' memory against one limit. `used` is kept by the queues themselves, by differences."""

    __slots__ = ("_members", "_retry_at", "limit_bytes", "used")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used = 0
        self._members: dict[Pageable, None] = {}
        self._retry_at = 0

    @property
    def over(self) -> bool:
        return self.used > self.limit_bytes

    def join(self, member: Pageable) -> None:
        self._members[member] = None

    def leave(self, member: Pageable) -> None:
        self._members.pop(member, None)

    def balance(self) -> int:
        """Page out if more than the paging share is held; the bytes that were freed."""
        if self.used <= self.limit_bytes * _PAGING_SHARE:
            self._retry_at = 0
            return 0
        if self.used < self._retry_at:
            return 0
        target = int(self.limit_bytes * _PAGED_SHARE)
        ranked = []
        for order, member in enumerate(self._members):
            held = member.pageable_bytes()
            if held:
                ranked.append((-held if member.read_lately else -held * _COLD_WEIGHT, order, member))
            member.read_lately = False
        ranked.sort()
        freed = 0
        for _, _, member in ranked:
            if self.used <= target:
                break
            freed += member.page_out(self.used - target)
        # What is left cannot be paged out: look again only when notably more is held, not in every tick.
        self._retry_at = self.used + self.limit_bytes // 64 if self.used > target else 0
        return freed
