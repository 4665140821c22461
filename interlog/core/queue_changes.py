"""What one tick changed of a queue's stored messages, on its way into the journal.

In come persistent messages, appended or done with; out go the tick's batches and one LEASE entry, to the log and to
the queue's durable state alike. A message that was done with in the tick that brought it is left out; its offset is
told as done with as soon as a later message is written.
"""

from bisect import bisect_left
from operator import itemgetter

from interlog.core.backlog import Log
from interlog.core.leases import Delta, Message
from interlog.core.queue_state import QueueState

BATCH_BYTES = 1 << 20  # a tick with more than this is written as several batches, so that reading back stays small

_offset = itemgetter(0)


class TickChanges:
    """Filled by the queue, emptied by `write`."""

    __slots__ = ("acked", "pending", "purged", "recounted")

    def __init__(self) -> None:
        self.pending: list[Message] = []  # appended, in order
        self.acked: list[Message] = []  # done with, in any order
        self.purged: list[tuple[int, int, int, int]] = []  # first, last, count, bytes: done with, never read
        self.recounted: dict[int, int] = {}  # offset -> delivery count

    def write(self, state: QueueState, log: Log, lent: int) -> bool:
        """Hand the tick over; whether there was anything to write."""
        delta = Delta()
        ranges = [(first, last) for first, last, _, _ in self.purged]
        acked = self.acked
        acked.sort(key=_offset)
        pending = self.pending
        if acked and acked[-1][0] >= state.end:
            at = bisect_left(acked, state.end, key=_offset)
            gone = {message[0] for message in acked[at:]}
            del acked[at:]
            pending = [message for message in pending if message[0] not in gone]
        if pending:
            ranges += _holes(pending, state.end)
            delta.added_count = len(pending)
            delta.added_bytes = sum([message[4] for message in pending])
            _write_batches(pending, delta.added_bytes, state, log)
        if acked:
            first, last = acked[0][5], acked[-1][0]
            if last - first + 1 == len(acked):
                ranges.append((first, last))
            else:
                ranges += [(message[5], message[0]) for message in acked]
        delta.ranges = _coalesce(ranges)
        delta.acked_count = len(acked) + sum([count for _, _, count, _ in self.purged])
        delta.acked_bytes = sum([message[4] for message in acked]) + sum([size for _, _, _, size in self.purged])
        if self.recounted:
            end = state.end
            delta.returned = [pair for pair in sorted(self.recounted.items()) if pair[0] < end]
        self.pending.clear()
        self.acked.clear()
        self.purged.clear()
        self.recounted.clear()
        if not (delta.added_count or delta.ranges or delta.returned):
            return False
        lent = min(lent, state.end)
        if lent > state.lent:
            delta.lent = lent
        log.add_lease(delta.encode())
        state.apply(delta)
        return True


def _holes(pending: list[Message], expected: int) -> list[tuple[int, int]]:
    """Offsets before and between the messages to be written whose own messages are gone already."""
    holes = []
    for message in pending:
        if message[5] != expected:
            holes.append((expected, message[5] - 1))
        expected = message[0] + 1
    return holes


def _write_batches(pending: list[Message], size: int, state: QueueState, log: Log) -> None:
    start = 0
    while start < len(pending):
        stop = len(pending) if size <= BATCH_BYTES else _batch_end(pending, start)
        part = pending[start:stop]
        base, last = part[0][0], part[-1][0]
        offsets = None if last - base + 1 == len(part) else [message[0] for message in part]
        log.add_batch([message[1] for message in part], base, last, offsets)
        state.apply_batch(base, last)
        start = stop


def _batch_end(pending: list[Message], start: int) -> int:
    """Where the batch that begins at start ends: before it grows too big, but never empty."""
    room = BATCH_BYTES
    for at in range(start, len(pending)):
        room -= pending[at][4]
        if room < 0 and at > start:
            return at
    return len(pending)


def _coalesce(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets as ascending ranges that do not touch."""
    if len(ranges) < 2:
        return ranges
    ranges.sort()
    out = []
    first, last = ranges[0]
    for begin, end in ranges:
        if begin > last + 1:
            out.append((first, last))
            first, last = begin, end
        elif end > last:
            last = end
    out.append((first, last))
    return out
