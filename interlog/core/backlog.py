"""What is ready in a queue but not in memory, in offset order: stored messages in the log, transient ones spilled.

The queue pushes what does not fit at the back, pages out from its head to the front, and takes from the front. For
stored messages there are only numbers here: how many, their bytes, and the position in the log from which they are
read again. Those of the tick under way are not in the log yet; they wait in `_unflushed`, which the queue holds for
the journal anyway.

The rule that keeps order: every ready message with an offset at or beyond the first one pushed is in here, and a
transient message is only given out when no stored one can come before it.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from interlog.base.errors import DamageError, InterlogError
from interlog.core.leases import Message
from interlog.core.memory import OVERHEAD_BYTES, record_size
from interlog.core.queue_state import QueueState
from interlog.core.spill import Spill, SpillFolder
from interlog.journal.record import Record

READ_BYTES = 256 << 10


class Log(Protocol):
    """A queue's partition and its part of the tick, as far as a queue needs them."""

    def add_batch(self, records: Sequence[Record], base: int, last: int, offsets: Sequence[int] | None) -> None:
        """Encode one batch and put it into the tick. `offsets` where they do not simply run from base to last."""
        ...

    def add_lease(self, payload: bytes) -> None:
        """Put a LEASE entry for this queue into the tick."""
        ...

    def read(self, offset: int, max_bytes: int) -> Iterable[tuple[int, Record]]:
        """Records in offset order from the batch that holds offset or the next one there is; at least one batch."""
        ...

    @property
    def log_end(self) -> int: ...


class Backlog:
    __slots__ = (
        "_ahead",
        "_gap",
        "_log",
        "_position",
        "_read_bytes",
        "_seen",
        "_spill",
        "_state",
        "_stored",
        "_stored_bytes",
        "_taken",
        "_unflushed",
        "_unflushed_bytes",
        "holes",
    )

    def __init__(self, state: QueueState, log: Log, spill: SpillFolder, read_bytes: int = READ_BYTES) -> None:
        self._state = state
        self._log = log
        self._spill = Spill(spill)
        self._read_bytes = read_bytes
        self._seen = state.lent  # messages below it were delivered before this start
        self._stored = state.depth  # in the log from _position on, or read ahead
        self._stored_bytes = state.bytes
        self._position = state.ranges.floor  # where to read on
        self._gap = state.ranges.floor  # where the gap of the first message to be read begins
        self._ahead: deque[Message] = deque()  # read from the log, not taken yet
        self._unflushed: deque[Message] = deque()
        self._unflushed_bytes = 0
        # Runs of offsets that turned out to hold nothing durable, with no later message to go with.
        self.holes: list[tuple[int, int]] = []
        self._taken: set[int] = set()  # taken out of turn in this tick: to be skipped should the log be read

    def __len__(self) -> int:
        return self._stored + len(self._unflushed) + self._spill.count

    @property
    def bytes(self) -> int:
        return self._stored_bytes + self._unflushed_bytes + self._spill.bytes

    def resident_bytes(self) -> int:
        unflushed = self._unflushed_bytes + OVERHEAD_BYTES * len(self._unflushed)
        return self.ahead_bytes() + unflushed + self._spill.resident_bytes()

    def ahead_bytes(self) -> int:
        """About what was read ahead: drop_ahead would free it."""
        ahead = self._ahead
        return len(ahead) * (OVERHEAD_BYTES + ahead[0][4]) if ahead else 0

    def push(self, message: Message) -> None:
        """A new message, at the back."""
        if message[5] < 0:
            self._spill.push(message)
            return
        if not self._stored and not self._unflushed:
            self._position, self._gap = message[0], message[5]
        self._unflushed.append(message)
        self._unflushed_bytes += message[4]

    def push_front(self, messages: Sequence[Message]) -> None:
        """Messages that come before all others, in order. OSError: nothing was taken over."""
        transient = [message for message in messages if message[5] < 0]
        if transient:
            self._spill.push_front(transient)
        self.drop_ahead()
        if len(transient) == len(messages):
            return
        kept = [message for message in messages if message[5] >= 0]
        self._position, self._gap = kept[0][0], kept[0][5]
        end = self._state.end
        for message in reversed(kept):
            if message[0] < end:
                self._stored += 1
                self._stored_bytes += message[4]
            else:
                self._unflushed.appendleft(message)
                self._unflushed_bytes += message[4]

    def flushed(self) -> None:
        """The tick's messages are in the log, or will be before the next read."""
        self._stored += len(self._unflushed)
        self._stored_bytes += self._unflushed_bytes
        self._unflushed.clear()
        self._unflushed_bytes = 0
        self._taken.clear()

    def take(self, cost_bytes: int, most: int) -> list[Message]:
        """The first messages, up to about this much memory and at least one; none if none can be had now."""
        out: list[Message] = []
        cost = 0
        spill = self._spill
        try:
            while cost < cost_bytes and len(out) < most:
                stored = self._peek_stored()
                transient = spill.peek() if spill.count else None
                if transient is not None and (stored is None or transient[0] < stored[0]):
                    if stored is None and self._stored and transient[0] >= self._position:
                        break
                    message = spill.pop()
                elif stored is not None:
                    message = stored
                    self._pop_stored()
                else:
                    break
                out.append(message)
                cost += message[4] + OVERHEAD_BYTES
        except (InterlogError, OSError):
            if not out:
                raise
        return out

    def take_one(self, offset: int) -> Message | None:
        """One message out of turn; None if it is not here."""
        for waiting in (self._ahead, self._unflushed):
            for at, message in enumerate(waiting):
                if message[0] == offset:
                    del waiting[at]
                    self.skip(offset)
                    if waiting is self._ahead:
                        self._count_out(message)
                    else:
                        self._unflushed_bytes -= message[4]
                    return message
        unread = self._stored and self._position <= offset < self._state.end
        if unread and offset not in self._taken and offset not in self._state.ranges:
            found = next(((at, record) for at, record in self._log.read(offset, 1) if at >= offset), None)
            if found is None:
                return None
            at, record = found
            if at == offset:
                # Its own offset is all its gap: what is unstored before it goes with the next message.
                message = self._message(offset, record, offset)
                self.skip(offset)
                self._count_out(message)
                return message
        return self._spill.take(offset)

    def skip(self, offset: int) -> None:
        """This offset is done with, though the durable state does not know yet: never read it again."""
        self._taken.add(offset)

    def clear(self) -> tuple[int, int, int, int, list[Message]]:
        """Forget everything: first and last offset, number and bytes of the stored part; the unflushed messages."""
        self.drop_ahead()
        answer = (self._gap, self._state.end - 1, self._stored, self._stored_bytes, list(self._unflushed))
        self._stored = self._stored_bytes = 0
        self._unflushed.clear()
        self._unflushed_bytes = 0
        self._spill.clear()
        return answer

    def drop_ahead(self) -> None:
        """Forget what was read ahead; it will be read again."""
        ahead = self._ahead
        if ahead:
            self._position, self._gap = ahead[0][0], ahead[0][5]
            ahead.clear()

    def _peek_stored(self) -> Message | None:
        if self._ahead:
            return self._ahead[0]
        if self._stored:
            self._read()
            return self._ahead[0] if self._ahead else None
        return self._unflushed[0] if self._unflushed else None

    def _pop_stored(self) -> None:
        if self._ahead:
            self._count_out(self._ahead.popleft())
        else:
            message = self._unflushed.popleft()
            self._unflushed_bytes -= message[4]
            self._position = self._gap = message[0] + 1

    def _count_out(self, message: Message) -> None:
        self._stored -= 1
        self._stored_bytes -= message[4]
        end = self._state.end
        if not self._stored and self._gap < end:
            # Messages at the very end were taken out of turn: nothing that is left will cover what is before them.
            self.holes.append((self._gap, end - 1))
            self._position = self._gap = end

    def _message(self, offset: int, record: Record, gap: int) -> Message:
        count = self._state.counts.get(offset, 0)
        return (offset, record, count, count > 0 or offset < self._seen, record_size(record), gap)

    def _read(self) -> None:
        """Read on in the log until there is a message that is still wanted, or nothing more for now."""
        state, ranges, taken, ahead = self._state, self._state.ranges, self._taken, self._ahead
        end = state.end
        while not ahead:
            start = ranges.next_missing(self._position)
            position = start
            if start < end:
                check = len(ranges) > 0 or bool(taken)
                gap = self._gap
                read = []
                for offset, record in self._log.read(start, self._read_bytes):
                    if offset < start:
                        continue
                    if offset >= end:
                        break
                    position = offset + 1
                    if check and (offset in taken or offset in ranges):
                        continue
                    read.append(self._message(offset, record, gap))
                    gap = offset + 1
                # Only now that nothing can fail half-way:
                ahead.extend(read)
                self._gap = gap
            if position == start:
                if start < end and self._log.log_end < end:
                    return  # the tick that holds them is not appended yet
                what = f"{self._stored} messages of this queue are missing from offset {start} on."
                raise DamageError(f"partition {state.partition}", start, what, "Run `interlog verify`.")
            self._position = position
