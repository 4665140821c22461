"""The part of a queue that survives: which offsets are done with, delivery counts, how far it was lent, its size.

It changes in two ways only, by a batch and by a LEASE entry, and it makes no difference whether the entry was just
written or is read back at start. Nothing here is about transient messages: they are not stored, and offsets that were
never stored count as done with as soon as the next stored message is. Depth and bytes follow from the numbers in the
LEASE entries, so a start reads no message bodies.

`QueuesSection` keeps these states in the checkpoint.
"""

from collections.abc import Iterable
from typing import NamedTuple

from interlog.base.errors import FormatError
from interlog.core.leases import Delta, decode_counts, encode_counts
from interlog.core.ranges import RangeSet
from interlog.journal.files import Buffer
from interlog.journal.section import Changes, Row, Table


class Snapshot(NamedTuple):
    """Everything that survives, for comparing."""

    floor: int
    ranges: tuple[tuple[int, int], ...]
    counts: tuple[tuple[int, int], ...]
    lent: int
    end: int
    depth: int
    bytes: int


class QueueState:
    __slots__ = ("bytes", "changed", "counts", "depth", "end", "lent", "partition", "ranges")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.ranges = RangeSet()
        self.counts: dict[int, int] = {}  # delivery counts of messages that were returned
        self.lent = 0  # everything below was delivered at least once
        self.end = 0  # one beyond the last stored message
        self.depth = 0  # stored and not acknowledged: number and bytes
        self.bytes = 0
        self.changed = False

    def apply_batch(self, base: int, last: int) -> None:
        """A batch with offsets base to last was stored. Its number of messages comes with the LEASE entry."""
        self.end = max(self.end, last + 1)
        self.changed = True

    def apply_lease(self, payload: Buffer) -> None:
        """A LEASE entry for this queue; FormatError if the payload is not one."""
        self.apply(Delta.decode(payload))

    def apply(self, delta: Delta) -> None:
        end, ranges = self.end, self.ranges
        depth = self.depth + delta.added_count - delta.acked_count
        size = self.bytes + delta.added_bytes - delta.acked_bytes
        if depth < 0 or size < 0:
            raise FormatError(f"a lease entry takes more out of queue {self.partition} than it holds")
        self.depth = depth
        self.bytes = size
        for first, last in delta.ranges:
            # Offsets at and beyond the end will be given to other messages after a restart.
            if first < end:
                last = min(last, end - 1)
                ranges.add(first, last)
                if self.counts:
                    self._forget_counts(first, last)
        for offset, count in delta.returned:
            if offset < end and offset not in ranges:
                self.counts[offset] = count
        self.lent = max(self.lent, min(delta.lent, end))
        self.changed = True

    def _forget_counts(self, first: int, last: int) -> None:
        counts = self.counts
        if last - first < len(counts):
            for offset in range(first, last + 1):
                counts.pop(offset, None)
        else:
            for offset in [offset for offset in counts if first <= offset <= last]:
                del counts[offset]

    def snapshot(self) -> Snapshot:
        counts = tuple(sorted(self.counts.items()))
        return Snapshot(self.ranges.floor, tuple(self.ranges), counts, self.lent, self.end, self.depth, self.bytes)

    def row(self) -> Row:
        counts = encode_counts(sorted(self.counts.items()))
        return (self.partition, self.end, self.lent, self.depth, self.bytes, self.ranges.export(), counts)

    def load(self, row: Row) -> None:
        """Become what the row says; FormatError if it cannot be."""
        _, end, lent, depth, size, ranges, counts = row
        if not (isinstance(end, int) and isinstance(lent, int) and isinstance(depth, int) and isinstance(size, int)):
            raise FormatError(f"the row of queue {self.partition} holds no numbers where numbers must be")
        if not (isinstance(ranges, bytes) and isinstance(counts, bytes)):
            raise FormatError(f"the row of queue {self.partition} holds no bytes where bytes must be")
        self.end, self.lent, self.depth, self.bytes = end, lent, depth, size
        self.ranges = RangeSet.load(ranges)
        self.counts = dict(decode_counts(counts))


class QueuesSection:
    """The durable queues' states as rows of the checkpoint."""

    table = Table(
        "queues",
        (
            ("partition", "INTEGER"),
            ("log_end", "INTEGER"),
            ("lent", "INTEGER"),
            ("depth", "INTEGER"),
            ("size_bytes", "INTEGER"),
            ("ranges", "BLOB"),
            ("counts", "BLOB"),
        ),
    )

    def __init__(self) -> None:
        self._states: dict[int, QueueState] = {}
        self._saved: dict[int, Row] = {}  # rows of queues that have not been asked for yet
        self._removed: list[Row] = []

    def state(self, partition: int) -> QueueState:
        """The state of this queue: as it was saved, or a new one."""
        state = self._states.get(partition)
        if state is None:
            state = self._states[partition] = QueueState(partition)
            row = self._saved.pop(partition, None)
            if row is None:
                state.changed = True
            else:
                state.load(row)
        return state

    def remove(self, partition: int) -> None:
        """The queue is gone for good."""
        if self._states.pop(partition, None) is not None or self._saved.pop(partition, None) is not None:
            self._removed.append((partition,))

    def take_changes(self) -> Changes:
        removals, self._removed = self._removed, []
        rows = []
        for state in self._states.values():
            if state.changed:
                state.changed = False
                rows.append(state.row())
        return Changes(rows, removals)

    def load(self, rows: Iterable[Row]) -> None:
        for row in rows:
            partition = row[0]
            if not isinstance(partition, int) or len(row) != len(self.table.columns):
                raise FormatError("a row of the queues table has no partition")
            self._saved[partition] = row
