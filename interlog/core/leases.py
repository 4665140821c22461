"""Leases: who holds which message until when, and the journal entry that tells what became of them.

In memory, `Leases` keeps the messages of one queue that are out with holders. In the journal, one LEASE entry a tick
and queue tells what its consumers and its appends changed of the durable state; `Delta` is that entry as an object.

The payload of a LEASE entry, little-endian: a version byte (1), then operations in ascending order of their codes,
each at most once:

    1 added     count u64, bytes u64: the messages in this envelope's batches for the queue
    2 acked     count u64, bytes u64, ranges u32, then per range first u64, last u64 (ascending, apart):
                these offsets need not be kept any more. Ranges also cover offsets that were never stored (transient
                messages, or messages gone before their tick was written): count and bytes tell of the stored ones only
    3 returned  number u32, then per message offset u64, delivery count u32 (ascending)
    4 lent      offset u64: everything below it has been delivered at least once

Counts and bytes stand in the entry so that replay need not read a single message body.
"""

import struct
from collections.abc import Iterable
from heapq import heappop, heappush

from interlog.base.errors import FormatError
from interlog.core.ranges import MAX_OFFSET
from interlog.journal.files import Buffer
from interlog.journal.record import Record

# offset, record, delivery count, redelivered, size, gap. A plain tuple, because one is made per message and queue.
# The gap is where the offsets begin that go when this message goes: its own offset, or an earlier one if the offsets
# just before it hold nothing durable. It is -1 for a transient message.
Message = tuple[int, Record, int, bool, int, int]

VERSION = 1
_ADDED, _ACKED, _RETURNED, _LENT = 1, 2, 3, 4
_PAIR = struct.Struct("<QQ")
_ACKED_HEAD = struct.Struct("<QQI")
_NUMBER = struct.Struct("<I")
_COUNTED = struct.Struct("<QI")
_OFFSET = struct.Struct("<Q")


class Delta:
    """What one LEASE entry says. `lent` is -1 where it says nothing of it."""

    __slots__ = ("acked_bytes", "acked_count", "added_bytes", "added_count", "lent", "ranges", "returned")

    def __init__(self) -> None:
        self.added_count = 0
        self.added_bytes = 0
        self.acked_count = 0
        self.acked_bytes = 0
        self.ranges: list[tuple[int, int]] = []
        self.returned: list[tuple[int, int]] = []
        self.lent = -1

    def encode(self) -> bytes:
        parts = [bytes((VERSION,))]
        if self.added_count:
            parts += (bytes((_ADDED,)), _PAIR.pack(self.added_count, self.added_bytes))
        ranges = self.ranges
        if ranges:
            head = _ACKED_HEAD.pack(self.acked_count, self.acked_bytes, len(ranges))
            parts += (bytes((_ACKED,)), head)
            if len(ranges) == 1:
                parts.append(_PAIR.pack(*ranges[0]))
            else:
                parts.append(struct.pack(f"<{2 * len(ranges)}Q", *[number for pair in ranges for number in pair]))
        if self.returned:
            parts += (bytes((_RETURNED,)), encode_counts(self.returned))
        if self.lent >= 0:
            parts += (bytes((_LENT,)), _OFFSET.pack(self.lent))
        return b"".join(parts)

    @classmethod
    def decode(cls, payload: Buffer) -> "Delta":
        """The delta in a payload; FormatError if it is not exactly one."""
        delta = cls()
        view = memoryview(payload)
        if not view or view[0] != VERSION:
            raise FormatError("a lease entry of a version that is not known to this version of Interlog")
        at, end, previous = 1, len(view), 0
        try:
            while at < end:
                code = view[at]
                if code <= previous:
                    raise FormatError("the operations of a lease entry must ascend")
                previous = code
                at = delta._decode_one(code, view, at + 1)
        except struct.error:
            raise FormatError("a lease entry is cut short") from None
        return delta

    def _decode_one(self, code: int, view: memoryview, at: int) -> int:
        number: int
        if code == _ADDED:
            self.added_count, self.added_bytes = _PAIR.unpack_from(view, at)
            return at + _PAIR.size
        if code == _ACKED:
            self.acked_count, self.acked_bytes, number = _ACKED_HEAD.unpack_from(view, at)
            at += _ACKED_HEAD.size
            stop = at + number * _PAIR.size
            if stop > len(view) or not number:
                raise FormatError("a lease entry tells of ranges that it does not hold")
            self.ranges = list(_PAIR.iter_unpack(view[at:stop]))
            self._check_ranges()
            return stop
        if code == _RETURNED:
            self.returned, at = _decode_counts(view, at)
            return at
        if code == _LENT:
            (self.lent,) = _OFFSET.unpack_from(view, at)
            if self.lent > MAX_OFFSET:
                raise FormatError("a lease entry reaches beyond the last possible offset")
            return at + _OFFSET.size
        raise FormatError(f"operation {code} of a lease entry is not known to this version of Interlog")

    def _check_ranges(self) -> None:
        floor, covered = 0, 0
        for first, last in self.ranges:
            if first < floor or last < first or last > MAX_OFFSET:
                raise FormatError("the ranges of a lease entry must ascend")
            covered += last - first + 1
            floor = last + 1
        if self.acked_count > covered:
            raise FormatError("a lease entry tells of more messages than its ranges can hold")


def encode_counts(counts: list[tuple[int, int]]) -> bytes:
    """Offsets with their delivery counts: their number, then each as in the `returned` operation."""
    flat = [number for pair in counts for number in pair]
    return _NUMBER.pack(len(counts)) + struct.pack("<" + "QI" * len(counts), *flat)


def decode_counts(data: Buffer) -> list[tuple[int, int]]:
    """What encode_counts made; FormatError if it is not exactly that."""
    view = memoryview(data)
    try:
        counts, at = _decode_counts(view, 0)
    except struct.error:
        raise FormatError("delivery counts are cut short") from None
    if at != len(view):
        raise FormatError("more bytes than delivery counts")
    return counts


def _decode_counts(view: memoryview, at: int) -> tuple[list[tuple[int, int]], int]:
    number = _NUMBER.unpack_from(view, at)[0]
    at += _NUMBER.size
    stop = at + number * _COUNTED.size
    if stop > len(view):
        raise FormatError("delivery counts are cut short")
    counts: list[tuple[int, int]] = list(_COUNTED.iter_unpack(view[at:stop]))
    previous = -1
    for offset, _ in counts:
        if offset <= previous or offset > MAX_OFFSET:
            raise FormatError("delivery counts must ascend by offset")
        previous = offset
    return counts, stop


class Leases:
    """The messages that are out, by holder. A holder is a number that the caller chooses."""

    __slots__ = ("_due", "held", "until")

    def __init__(self) -> None:
        self.held: dict[int, dict[int, Message]] = {}  # never an empty dict inside
        self.until: dict[int, int] = {}  # offset -> when its lease ends; only those that end by themselves
        # One item per call, not per message. An item that no longer says what `until` says is stale and skipped.
        self._due: list[tuple[int, int, list[int]]] = []

    def set_until(self, holder: int, offsets: list[int], until_ms: int) -> None:
        self.until.update(dict.fromkeys(offsets, until_ms))
        heappush(self._due, (until_ms, holder, offsets))

    def holder_of(self, offset: int) -> int | None:
        for holder, held in self.held.items():
            if offset in held:
                return holder
        return None

    def pop(self, offset: int, holder: int | None) -> Message | None:
        """Take the message from its holder (None: whoever has it); None if it is not there."""
        if holder is None:
            holder = self.holder_of(offset)
            if holder is None:
                return None
        held = self.held.get(holder)
        if held is None:
            return None
        message = held.pop(offset, None)
        if message is None:
            return None
        if not held:
            del self.held[holder]
        if self.until:
            self.until.pop(offset, None)
        return message

    def pop_many(self, offsets: Iterable[int], holder: int | None) -> list[Message]:
        """The messages among the offsets that the holder has (None: anyone)."""
        if holder is None:
            return [message for offset in offsets if (message := self.pop(offset, None)) is not None]
        held = self.held.get(holder)
        if held is None:
            return []
        take = held.pop
        out = [message for offset in offsets if (message := take(offset, None)) is not None]
        if not held:
            del self.held[holder]
        if self.until:
            for message in out:
                self.until.pop(message[0], None)
        return out

    def pop_range(self, first: int, last: int, holder: int | None) -> list[Message]:
        """The messages from first to last that the holder has (None: anyone)."""
        if holder is None:
            return [message for each in list(self.held) for message in self.pop_range(first, last, each)]
        held = self.held.get(holder)
        if held is None:
            return []
        if last - first < len(held):
            return self.pop_many(range(first, last + 1), holder)
        return self.pop_many([offset for offset in held if first <= offset <= last], holder)

    def pop_holder(self, holder: int) -> list[Message]:
        return self.pop_many(list(self.held.get(holder, ())), holder)

    def expired(self, now_ms: int) -> list[Message]:
        """Take back what was due at or before now."""
        due, until = self._due, self.until
        out: list[Message] = []
        while due and due[0][0] <= now_ms:
            until_ms, holder, offsets = heappop(due)
            still = [offset for offset in offsets if until.get(offset) == until_ms]
            out += self.pop_many(still, holder)
        return out

    def next_due_ms(self) -> int | None:
        """When to ask for expired leases next, at the earliest; None if none ends by itself."""
        due, until = self._due, self.until
        while due:
            until_ms, _, offsets = due[0]
            if any(until.get(offset) == until_ms for offset in offsets):
                return until_ms
            heappop(due)
        return None
