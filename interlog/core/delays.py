"""Messages that are to reach a queue, or to be routed, later.

In come records with a queue or a route, and a time; they are stored at once, in a log of their own (partition 0), and
a timer is set. When the timer fires, the record comes out and the broker appends it to where it belongs; in the same
tick its place in this log is told as done with, so that it is in exactly one of the two at any time, whatever happens.
"""

import struct
from collections.abc import Iterable

from interlog.base.errors import FormatError, NotFoundError
from interlog.core.catalog_objects import is_passing
from interlog.core.leases import Delta
from interlog.core.queue_log import QueueLog
from interlog.core.queue_state import QueueState
from interlog.core.ranges import Cover
from interlog.core.timers import TimerKind, Timers
from interlog.journal.record import Record
from interlog.journal.storage import Storage

PARTITION = 0
_TARGET = b"interlog.queue"
_ROUTE = b"interlog.route"
# The queue's partition; and, for a queue that is not durable, the epoch: its number means another queue in the next.
_QUEUE = struct.Struct(">II")
_READ_BYTES = 1


class Delays:
    """The log of delayed messages. `flush` once a tick, like a queue."""

    def __init__(self, storage: Storage, state: QueueState, timers: Timers) -> None:
        self.state = state
        self._epoch = storage.epoch
        self._log = QueueLog(storage, PARTITION)
        self._timers = timers
        self._next_offset = max(state.end, self._log.log_end)
        self._pending: list[Record] = []
        self._done: list[int] = []

    @property
    def depth(self) -> int:
        """How many messages wait for their time."""
        return self.state.depth + len(self._pending) - len(self._done)

    def wanted(self, base: int, last: int) -> Cover:
        return self.state.ranges.covers(base, last)

    def add(self, record: Record, queue: int, due_ms: int) -> None:
        """Keep a record for the queue with this partition until due_ms."""
        self._add((_TARGET, _QUEUE.pack(queue, self._epoch if is_passing(queue) else 0)), record, due_ms)

    def add_route(self, route: bytes, record: Record, due_ms: int) -> None:
        """Keep a record until due_ms for whoever understands the route."""
        self._add((_ROUTE, route), record, due_ms)

    def _add(self, header: tuple[bytes, bytes], record: Record, due_ms: int) -> None:
        held = Record(record.key, record.value, (header, *record.headers), record.timestamp_ms)
        self._pending.append(held)
        self._timers.add(TimerKind.DELIVER, due_ms, PARTITION, self._next_offset)
        self._next_offset += 1

    def fire(self, offset: int) -> tuple[int | bytes, Record] | None:
        """The queue or the route, and the record whose time has come.

        None if it is done with, or was for a queue that passed.
        """
        base = self._next_offset - len(self._pending)
        if offset >= base:
            self.flush()
        if offset in self.state.ranges:
            return None
        record = self._read(offset)
        self._done.append(offset)
        header = record.headers[0] if record.headers else (b"", b"")
        rest = Record(record.key, record.value, record.headers[1:], record.timestamp_ms)
        if header[0] == _ROUTE and header[1] is not None:
            return header[1], rest
        if header[0] != _TARGET or header[1] is None or len(header[1]) != _QUEUE.size:
            raise FormatError(f"the delayed message at offset {offset} does not say which queue it is for")
        queue, epoch = _QUEUE.unpack(header[1])
        if epoch not in (0, self._epoch):
            return None
        return queue, rest

    def _read(self, offset: int) -> Record:
        for at, record in self._log.read(offset, _READ_BYTES):
            if at == offset:
                return record
            if at > offset:
                break
        raise NotFoundError(f"the delayed message at offset {offset} is not in the log")

    def flush(self) -> None:
        """Put what was added, and what has been delivered, into the tick."""
        if not self._pending and not self._done:
            return
        delta = Delta()
        if self._pending:
            base = self._next_offset - len(self._pending)
            self._log.add_batch(self._pending, base, self._next_offset - 1, None)
            self.state.apply_batch(base, self._next_offset - 1)
            delta.added_count = len(self._pending)
        delta.ranges = list(_runs(sorted(self._done)))
        delta.acked_count = len(self._done)
        self._log.add_lease(delta.encode())
        self.state.apply(delta)
        self._pending = []
        self._done = []


def _runs(offsets: Iterable[int]) -> Iterable[tuple[int, int]]:
    first = last = -2
    for offset in offsets:
        if offset == last + 1:
            last = offset
            continue
        if first >= 0:
            yield first, last
        first = last = offset
    if first >= 0:
        yield first, last
