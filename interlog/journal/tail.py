"""The newest batches, kept in memory: the bytes just written are the bytes served.

One budget for all partitions. Batches come in as they are written and go out oldest first, whoever's they are. What
goes in is the immutable bytes object that was written; nothing is copied. While the journal waits for room, what it has
not written can be read from nowhere else: then the tail is `hold`ing, and grows past its budget.
"""

from collections import deque
from typing import Final

# What a batch costs beside its bytes: the object's head, its place in two queues.
OVERHEAD_BYTES: Final = 64
_COMPACT_AFTER: Final = 512


class Run:
    """One partition's newest batches, in order. Batch `first` is the oldest in memory; none is missing after it."""

    __slots__ = ("bytes", "first", "head", "items")

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.head = 0  # items before it are gone
        self.first = 0  # the number of items[head]
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.items) - self.head


class Tail:
    """The memory that all partitions share."""

    __slots__ = ("_order", "budget_bytes", "bytes", "count", "holding")

    def __init__(self, budget_bytes: int = 64 << 20) -> None:
        self.budget_bytes = budget_bytes
        self.bytes = 0
        self.count = 0
        self.holding = False
        self._order: deque[Run] = deque()  # whose batch is the oldest, the next oldest, ...

    def wants(self, size: int) -> bool:
        """Would a batch of this size be kept at all?"""
        return size + OVERHEAD_BYTES <= self.budget_bytes

    def add(self, run: Run, batch: bytes) -> None:
        """Keep the next batch of a run; what is oldest goes."""
        size = len(batch) + OVERHEAD_BYTES
        if size > self.budget_bytes and not self.holding:
            self.skip(run)
            return
        run.items.append(batch)
        run.bytes += size
        self._order.append(run)
        self.count += 1
        self.bytes += size
        if self.bytes > self.budget_bytes and not self.holding:
            self._shrink()

    def hold(self) -> None:
        """Keep everything from here on."""
        self.holding = True

    def release(self) -> None:
        """Back to the budget."""
        self.holding = False
        self._shrink()

    def _shrink(self) -> None:
        while self.bytes > self.budget_bytes:
            self._drop_oldest(self._order.popleft())

    def skip(self, run: Run) -> None:
        """The next batch of a run is not kept, and so none before it."""
        self.forget(run, len(run) + 1)

    def forget(self, run: Run, count: int) -> None:
        """Let go of a run's first batches; with more than it has, of those that would have come next."""
        for _ in range(min(count, len(run))):
            self._drop_oldest(run)
            count -= 1
        run.first += count
        if len(self._order) > 2 * self.count + _COMPACT_AFTER:
            self._tidy()

    def _drop_oldest(self, run: Run) -> None:
        items = run.items
        head = run.head
        if head == len(items):
            return  # the batch was forgotten before its turn came
        size = len(items[head]) + OVERHEAD_BYTES
        items[head] = b""
        run.head = head = head + 1
        run.first += 1
        run.bytes -= size
        self.bytes -= size
        self.count -= 1
        if head == len(items):
            items.clear()
            run.head = 0
        elif head >= 64 and head * 2 >= len(items):
            del items[:head]
            run.head = 0

    def _tidy(self) -> None:
        """Drop the places in the order that forgotten batches left behind."""
        left: dict[int, int] = {}
        order: list[Run] = []
        for run in reversed(self._order):
            have = left.setdefault(id(run), len(run))
            if have:
                left[id(run)] = have - 1
                order.append(run)
        self._order = deque(reversed(order))
