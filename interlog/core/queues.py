"""A queue: a topic of one partition read by lease.

In come messages (`append`) and what consumers do (`lease`, `ack`, `release`, …); `flush`, once a tick and just before
the tick is committed, hands the tick's batch and LEASE entry to the log. Out go messages, and counters that are always
at hand. Between `flush` and the commit nothing may be leased.

Persistent and transient messages share one sequence of offsets, so one order; where ready messages stand is Ready's
business. A message that is acknowledged in the tick that brought it is never written at all.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush
from itertools import count

from interlog.core.backlog import READ_BYTES, Log
from interlog.core.leases import Delta, Leases, Message
from interlog.core.memory import OVERHEAD_BYTES, MemoryBudget
from interlog.core.queue_changes import TickChanges
from interlog.core.queue_state import QueueState
from interlog.core.ranges import Cover
from interlog.core.ready import Ready
from interlog.core.spill import SpillFolder
from interlog.journal.record import Record

SHARE_BYTES = 16 << 20


class Queue(Ready):
    """Made over a state that has been loaded and replayed; what it holds is ready to be leased at once."""

    __slots__ = (
        "_acked",
        "_budget",
        "_changes",
        "_dirty",
        "_durable",
        "_gap",
        "_leased_bytes",
        "_leases",
        "_lent",
        "_log",
        "_pending",
        "_purged",
        "_recounted",
        "_settled",
        "_touched",
        "leased",
        "next_offset",
        "on_gone",
        "read_lately",
        "state",
    )

    def __init__(
        self,
        state: QueueState,
        log: Log,
        spill: SpillFolder,
        budget: MemoryBudget,
        *,
        durable: bool = True,
        share_bytes: int = SHARE_BYTES,
        dirty: "list[Queue] | None" = None,
    ) -> None:
        """A queue that anything happened to since its last flush is in `dirty`, once."""
        super().__init__(state, log, spill, share_bytes)
        self.state = state
        self.next_offset = max(state.end, log.log_end)
        self.leased = 0  # how many messages are out
        self.read_lately = False
        # Told what is done with, one by one or many; after a purge `out` says what is left.
        self.on_gone: Callable[[Iterable[Message]], None] | None = None
        self._log = log
        self._budget = budget
        self._durable = durable
        self._leases = Leases()
        self._leased_bytes = 0
        self._gap = state.end  # where the gap of the next persistent message begins
        self._lent = state.lent
        self._changes = TickChanges()
        self._pending = self._changes.pending  # the same lists, one step nearer
        self._acked = self._changes.acked
        self._purged = self._changes.purged
        self._recounted = self._changes.recounted
        self._settled = 0
        self._dirty = dirty if dirty is not None else []
        self._touched = False
        budget.join(self)

    def _touch_by_reader(self) -> None:
        self.read_lately = True
        if not self._touched:
            self._touch()

    def _touch(self) -> None:
        self._touched = True
        self._dirty.append(self)

    # What it holds

    @property
    def depth(self) -> int:
        return self.ready + self.leased

    @property
    def bytes(self) -> int:
        return self.ready_bytes + self._leased_bytes

    @property
    def acknowledged_end(self) -> int:
        """Nothing before it is wanted any more."""
        return self.state.ranges.floor

    def memory_bytes(self) -> int:
        """About what it holds in memory."""
        return self._ready_memory() + self._leased_bytes + OVERHEAD_BYTES * self.leased

    def out(self) -> list[Record]:
        """All that anybody holds."""
        return [message[1] for held in self._leases.held.values() for message in held.values()]

    def stored(self) -> Iterator[Record]:
        """All stored messages that are not done with, out of the log. Those of the tick under way are not in it."""
        ranges, end = self.state.ranges, self.state.end
        position = ranges.next_missing(ranges.floor)
        while position < end:
            before = position
            for offset, record in self._log.read(position, READ_BYTES):
                if position <= offset < end:
                    position = offset + 1
                    if offset not in ranges:
                        yield record
            if position == before:
                return
            position = ranges.next_missing(position)

    def wanted(self, base: int, last: int) -> bool:
        """Whether a stored batch of these offsets must be kept."""
        return self.state.ranges.covers(base, last) is not Cover.ALL

    # Messages in

    def append(self, record: Record, size: int, persistent: bool) -> int:
        """Add a message at the back; its offset. `size` is record_size(record), asked once for all queues."""
        if not self._touched:
            self._touch()
        offset = self.next_offset
        self.next_offset = offset + 1
        if persistent and self._durable:
            message = (offset, record, 0, False, size, self._gap)
            self._gap = offset + 1
            self._pending.append(message)
        else:
            message = (offset, record, 0, False, size, -1)
        if self._paging or self._head_cost > self._share:
            self._paging = True
            self._backlog.push(message)
        else:
            self._head.append(message)
            self._head_cost += size + OVERHEAD_BYTES
        return offset

    def append_run(self, records: Sequence[Record], sizes: Sequence[int], persistent: bool) -> None:
        """The same for messages that came together."""
        if self._paging or self._head_cost > self._share:
            for record, size in zip(records, sizes, strict=True):
                self.append(record, size, persistent)
            return
        if not self._touched:
            self._touch()
        first = self.next_offset
        self.next_offset = first + len(records)
        if persistent and self._durable:
            # Each one's gap ends with itself; only before the first there may be offsets that were never stored.
            gap = self._gap
            messages: list[Message] = [
                (offset, record, 0, False, size, offset)
                for offset, record, size in zip(count(first), records, sizes, strict=False)
            ]
            if gap != first:
                messages[0] = (*messages[0][:5], gap)
            self._gap = self.next_offset
            self._pending += messages
        else:
            messages = [
                (offset, record, 0, False, size, -1)
                for offset, record, size in zip(count(first), records, sizes, strict=False)
            ]
        self._head += messages
        self._head_cost += sum(sizes) + OVERHEAD_BYTES * len(messages)

    # Messages out

    def lease(self, holder: int, most: int, max_bytes: int = 0, until_ms: int | None = None) -> list[Message]:
        """Lend the first ready messages, up to `most` and `max_bytes` (0: any), but one at least if there is one."""
        self._touch_by_reader()
        out, size = self._pop_ready(most, max_bytes)
        if not out:
            return out
        holders = self._leases.held
        held = holders.get(holder)
        if held is None:
            held = holders[holder] = {}
        for message in out:
            held[message[0]] = message
        self.leased += len(out)
        self._leased_bytes += size
        if out[-1][0] >= self._lent:
            self._lent = out[-1][0] + 1
        if until_ms is not None:
            self._leases.set_until(holder, [message[0] for message in out], until_ms)
        return out

    def peek_head(self) -> Message | None:
        """The message that would be leased next."""
        if self._returned:
            return self._returned[0]
        if not self._head and self._paging:
            if not self._touched:
                self._touch()
            self._page_in(1)
        return self._head[0] if self._head else None

    def drop_head(self, most: int, max_bytes: int = 0) -> list[Message]:
        """Take the first ready messages out for good: too long a queue, or a consumer that need not acknowledge."""
        self._touch_by_reader()
        out, _ = self._pop_ready(most, max_bytes)
        if self.on_gone is not None:
            self.on_gone(out)
        self._acked += [message for message in out if message[5] >= 0]
        return out

    def expire_head(self, expired: Callable[[int, Record], bool]) -> list[Message]:
        """Take out the first ready messages as long as they are expired."""
        out: list[Message] = []
        while (message := self.peek_head()) is not None and expired(message[0], message[1]):
            out += self.drop_head(1)
        return out

    def take(self, offset: int) -> Message | None:
        """Take one ready message out for good, wherever it stands; None if it is not ready. Not fast."""
        if not self._touched:
            self._touch()
        message = self._find_ready(offset)
        if message is not None and self.on_gone is not None:
            self.on_gone((message,))
        if message is not None and message[5] >= 0:
            self._acked.append(message)
            self._backlog.skip(offset)
        return message

    def purge(self) -> int:
        """Take out all that is ready, unread; how many that was."""
        if not self._touched:
            self._touch()
        count = self.ready
        messages, (first, last, stored, size) = self._clear_ready()
        self._acked += [message for message in messages if message[5] >= 0]
        if stored:
            self._purged.append((first, last, stored, size))
        return count

    # What holders do

    def held(self, holder: int, offsets: Iterable[int] | None = None) -> list[Message]:
        """What the holder has of these, or all it has; it keeps them."""
        held = self._leases.held.get(holder, {})
        if offsets is None:
            return list(held.values())
        return [held[offset] for offset in offsets if offset in held]

    def ack(self, offset: int, holder: int | None = None) -> bool:
        """Done with; False if the holder (None: anyone) does not have it."""
        message = self._leases.pop(offset, holder)
        if message is None:
            return False
        if not self._touched:
            self._touch()
        self.leased -= 1
        self._leased_bytes -= message[4]
        if message[5] >= 0:
            self._acked.append(message)
        if self.on_gone is not None:
            self.on_gone((message,))
        return True

    def ack_many(self, offsets: Iterable[int], holder: int | None = None) -> int:
        """Done with; how many of them the holder had."""
        return self._ack(self._leases.pop_many(offsets, holder))

    def ack_range(self, first: int, last: int, holder: int | None = None) -> int:
        """All that the holder has from first to last; how many that were."""
        return self._ack(self._leases.pop_range(first, last, holder))

    def _ack(self, messages: list[Message]) -> int:
        if not self._touched:
            self._touch()
        size = 0
        acked = self._acked.append
        for message in messages:
            size += message[4]
            if message[5] >= 0:
                acked(message)
        self.leased -= len(messages)
        self._leased_bytes -= size
        if self.on_gone is not None:
            self.on_gone(messages)
        return len(messages)

    def release(self, offsets: Iterable[int], holder: int | None = None, *, count: bool) -> int:
        """Back to where they stood, redelivered from now on; how many. `count`: one delivery more for each."""
        return len(self._return(self._leases.pop_many(offsets, holder), count))

    def release_holder(self, holder: int, *, count: bool) -> int:
        """All that the holder has goes back."""
        return len(self._return(self._leases.pop_holder(holder), count))

    def expire_leases(self, now_ms: int, *, count: bool = True) -> list[int]:
        """Leases that ended by now go back; their offsets."""
        # Asked at every poll, of every queue that has messages out: nothing may follow from an answer of none.
        ended = self._leases.expired(now_ms)
        return self._return(ended, count) if ended else []

    def next_lease_end_ms(self) -> int | None:
        """When to call expire_leases next; None if no lease ends by itself."""
        return self._leases.next_due_ms()

    def extend(self, offset: int, until_ms: int, holder: int | None = None) -> bool:
        """Let a lease end later or earlier; False if the holder does not have the message."""
        owner = self._leases.holder_of(offset) if holder is None else holder
        if owner is None or offset not in self._leases.held.get(owner, ()):
            return False
        self._leases.set_until(owner, [offset], until_ms)
        return True

    def _return(self, messages: list[Message], count: bool) -> list[int]:
        if not self._touched:
            self._touch()
        returned = self._returned
        offsets = []
        for offset, record, delivered, _, size, gap in messages:
            if count:
                delivered += 1
                if gap >= 0:
                    self._recounted[offset] = delivered
            heappush(returned, (offset, record, delivered, True, size, gap))
            self._returned_bytes += size
            self._leased_bytes -= size
            offsets.append(offset)
        self.leased -= len(messages)
        return offsets

    # The tick

    def flush(self) -> bool:
        """Hand over what the tick must write and settle the memory account; whether there was anything to write."""
        wrote = False
        self._touched = False
        holes = self._backlog.holes
        if holes:
            self._purged += [(first, last, 0, 0) for first, last in holes]
            holes.clear()
        if self._pending or self._acked or self._recounted or self._purged:
            wrote = self._changes.write(self.state, self._log, self._lent)
            self._backlog.flushed()
        held = self.memory_bytes()
        self._budget.used += held - self._settled
        self._settled = held
        return wrote

    def write_lent(self) -> None:
        """Tell how far the queue was lent, if that is news: for ticks that are written anyway."""
        lent = min(self._lent, self.state.end)
        if lent > self.state.lent:
            delta = Delta()
            delta.lent = lent
            self._log.add_lease(delta.encode())
            self.state.apply(delta)

    def close(self) -> None:
        """The queue goes: its spilled messages and its memory account with it."""
        self._backlog.clear()
        self._budget.used -= self._settled
        self._settled = 0
        self._budget.leave(self)

    def page_out(self, free_bytes: int) -> int:
        """Free about so much memory, by moving ready messages to the backlog; what that freed."""
        before = self.memory_bytes()
        self._page_out(free_bytes)
        held = self.memory_bytes()
        self._budget.used += held - self._settled
        self._settled = held
        return before - held
