"""Timers: what must happen to a message later. Millions of them, in bounded memory, across restarts.

Comes in: `add(kind, due_ms, partition, offset)` and, from the event loop, `due(now_ms, most)`.
Goes out: the entries that are due, in the order of their keys (due_ms, id); one TIMER entry a tick (`flush`).

Firing is a watermark: every timer whose key is not beyond it has fired, every other one has not. It is part of
the tick's entry, so what a timer caused and the fact that it fired last or are lost together. A timer set for a
time before the watermark's gets the watermark's time, and its id, being new, puts it behind the watermark.

Where a timer is that has not fired yet:

    near      a heap in memory: all timers whose key is not beyond the horizon
    table     in the checkpoint, for any key; read in pieces when the near ones run out
    unsaved   in memory, for any key, until the checkpoint is known to have it. Those beyond the horizon are in
              `far` too, a heap, so that they are found when the horizon moves on

The horizon moves on when a piece of the table is read, and back when there are too many near ones. Whatever is
beyond it is found again in the table or in `far`, so forgetting it costs nothing. As ids only rise and a
checkpoint takes all timers there are, a timer is saved exactly when its id is below `saved_id`.

A timer that need not last (of a transient message, or of a queue that is not durable) is in memory only.

The TIMER entry, big-endian so that the bytes of timers sort as their keys do:

    watermark  due_ms 8, id 8          zeros until a timer has fired
    count      4
    timers     count times 29 bytes: due_ms 8, id 8, kind 1, partition 4, offset 8; ids rising
"""

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from interlog.base.errors import FormatError, InvalidError
from interlog.journal.envelope import EntryKind
from interlog.journal.files import Buffer
from interlog.journal.section import Changes, LazySection, Row, Section, Table

NEAR_MOST = 100_000  # near timers in memory; half of them are forgotten when there are more
UNSAVED_MOST = 50_000  # timers not in the table yet before a checkpoint is asked for
READ_ROWS = 1_024  # rows read at a time: the event loop waits for them, some milliseconds
MAX_DUE_MS = 1 << 62  # a time that no clock reaches, and that SQLite can hold

_HEAD = struct.Struct(">QQI")
_KEY = struct.Struct(">QQ")
_TIMER = struct.Struct(">QQBIQ")
_MAX_U32 = 0xFFFF_FFFF
_MAX_I64 = (1 << 63) - 1
_ID = slice(8, 16)

# Bounds are keys that go on with 0xff: of a timer's bytes, those up to and with the key compare as not beyond it.
_TAIL = b"\xff" * (_TIMER.size - _KEY.size + 1)
_BEYOND_ALL = b"\xff" * (_TIMER.size + 1)
_BEFORE_ALL = b""

Key = tuple[int, int]
Reader = Callable[[Key, int], Sequence[Row]]


class TimerKind(IntEnum):
    """What is to happen. Numbers are on disk: never change one, never use one again."""

    DELIVER = 1  # the message may be consumed from now on
    EXPIRE = 2  # the message's time to live is over


_KINDS = frozenset(int(kind) for kind in TimerKind)


class Timer(NamedTuple):
    due_ms: int
    id: int
    kind: int
    partition: int
    offset: int


class Storage(Protocol):
    def add(self, kind: int, target: int, payload: bytes) -> None: ...


def decode(payload: Buffer) -> tuple[Key, list[bytes]]:
    """The watermark and the packed timers of a TIMER entry; FormatError if it is not one."""
    data = bytes(payload)
    if len(data) < _HEAD.size:
        raise FormatError("a timer entry is cut short")
    due_ms, id_, count = _HEAD.unpack_from(data)
    if due_ms > MAX_DUE_MS or id_ > _MAX_I64:
        raise FormatError("a timer entry has an impossible watermark")
    if len(data) != _HEAD.size + count * _TIMER.size:
        raise FormatError(f"a timer entry of {count} timers cannot have {len(data)} bytes")
    timers = [data[at : at + _TIMER.size] for at in range(_HEAD.size, len(data), _TIMER.size)]
    before = 0
    for packed in timers:
        timer = _TIMER.unpack(packed)
        if timer[2] not in _KINDS or timer[0] > MAX_DUE_MS or timer[4] > _MAX_I64 or not before < timer[1] <= _MAX_I64:
            raise FormatError(f"a timer entry holds an impossible timer: {Timer(*timer)}")
        before = timer[1]
    return (due_ms, id_), timers


def timers_in(payload: Buffer) -> Iterator[Timer]:
    """The timers that a TIMER entry sets."""
    for packed in decode(payload)[1]:
        yield Timer._make(_TIMER.unpack(packed))


def _no_rows(after: Key, limit: int) -> Sequence[Row]:
    return ()


def _always(partition: int) -> bool:
    return True


class Timers:
    """All timers of a shard.

    `read(after, limit)` gives the table's first rows whose key is beyond `after`, as committed at the time of the
    call. `exists(partition)` says whether a partition is still there; timers of those that are gone do not come out.
    """

    def __init__(
        self,
        read: Reader = _no_rows,
        exists: Callable[[int], bool] = _always,
        *,
        near_most: int = NEAR_MOST,
        unsaved_most: int = UNSAVED_MOST,
        read_rows: int = READ_ROWS,
    ) -> None:
        self._read = read
        self._exists = exists
        self._near_most = near_most
        self._unsaved_most = unsaved_most
        self._read_rows = read_rows
        self._near: list[bytes] = []
        self._far: list[bytes] = []
        self._unsaved: list[bytes] = []  # by id; those that have fired meanwhile are swept out now and then
        self._sweep_at = unsaved_most
        self._passing: list[bytes] = []  # those that need not last
        self._tick: list[bytes] = []
        self._fired = False  # in this tick
        self._mark: Key = (0, 0)
        self._mark_bound = _BEFORE_ALL
        self._horizon = _BEFORE_ALL
        self._next_id = 1
        self._saved_id = 1
        self._handed_id = 1
        self.rows: LazySection = TimerRows(self)
        self.marks = TimerMarks(self)

    @property
    def sections(self) -> tuple[Section, ...]:
        return self.rows, self.marks

    @property
    def watermark(self) -> Key:
        return self._mark

    @property
    def in_memory(self) -> int:
        """How many timers memory holds; one that is near and unsaved counts once."""
        return len(self._near) + len(self._far) + len(self._passing)

    @property
    def wants_checkpoint(self) -> bool:
        """Too many timers wait for the table: memory is bounded only if they are saved soon."""
        return len(self._unsaved) >= self._unsaved_most

    # -- live

    def add(self, kind: TimerKind, due_ms: int, partition: int, offset: int, *, durable: bool = True) -> int:
        """Set a timer; the answer is its id. One that is not durable leaves no trace in the journal."""
        if not (0 <= due_ms <= MAX_DUE_MS and 0 <= partition <= _MAX_U32 and 0 <= offset <= _MAX_I64):
            raise InvalidError(f"no timer can be set at {due_ms} ms for offset {offset} of partition {partition}")
        id_ = self._next_id
        self._next_id = id_ + 1
        packed = _TIMER.pack(max(due_ms, self._mark[0]), id_, kind, partition, offset)
        if durable:
            self._tick.append(packed)
            self._keep(packed)
        else:
            heappush(self._passing, packed)
        return id_

    def due(self, now_ms: int, most: int) -> list[Timer]:
        """Take out at most `most` timers that are due at now_ms, in key order, and count them as fired.

        The answer may be short of those that are due: there are more as long as next_due_ms() is not beyond now_ms.
        OSError or the reader's error if the table cannot be read; then nothing has been taken out.
        """
        if not self._near:
            self._read_on()
        bound = _KEY.pack(min(max(now_ms, 0), MAX_DUE_MS), _MAX_I64) + _TAIL
        near, passing, exists = self._near, self._passing, self._exists
        fired: list[Timer] = []
        last = None
        for _ in range(most):
            # With no near timers left but some in the table, nobody knows which comes next: the caller asks again.
            if near:
                if passing and passing[0] < near[0]:
                    if passing[0] > bound:
                        break
                    packed = heappop(passing)
                elif near[0] > bound:
                    break
                else:
                    packed = last = heappop(near)
            elif passing and self._horizon is _BEYOND_ALL and passing[0] <= bound:
                packed = heappop(passing)
            else:
                break
            timer = Timer._make(_TIMER.unpack(packed))
            if exists(timer.partition):
                fired.append(timer)
        if last is not None:
            due_ms, id_ = _KEY.unpack_from(last)
            self._set_mark((due_ms, id_))
            self._fired = True
        return fired

    def next_due_ms(self) -> int | None:
        """When the next timer is due; None if there is none. May read from the table."""
        if not self._near:
            self._read_on()
        heads = [heap[0] for heap in (self._near, self._passing) if heap]
        return int.from_bytes(min(heads)[:8], "big") if heads else None

    def flush(self, storage: Storage) -> None:
        """Add the tick's timers, and what has fired, to the tick."""
        if self._tick or self._fired:
            storage.add(EntryKind.TIMER, 0, _HEAD.pack(*self._mark, len(self._tick)) + b"".join(self._tick))
            self._tick = []
            self._fired = False

    # -- replay

    def apply(self, payload: Buffer) -> None:
        """Do what a TIMER entry says. What the state knows already has no effect. Reads nothing."""
        mark, timers = decode(payload)
        for packed in timers:
            id_ = int.from_bytes(packed[_ID], "big")
            if id_ >= self._next_id:
                self._next_id = id_ + 1
                if packed > self._mark_bound:
                    self._keep(packed)
        # A new timer must come after the watermark, whatever else the entry says.
        self._next_id = max(self._next_id, mark[1] + 1)
        if mark > self._mark:
            self._set_mark(mark)
            bound = self._mark_bound
            for heap in (self._near, self._far):
                while heap and heap[0] <= bound:
                    heappop(heap)

    # -- within

    def _keep(self, packed: bytes) -> None:
        self._unsaved.append(packed)
        if packed > self._horizon:
            heappush(self._far, packed)
        else:
            heappush(self._near, packed)
            if len(self._near) > self._near_most:
                self._forget()
        if len(self._unsaved) >= self._sweep_at:
            bound = self._mark_bound
            self._unsaved = [kept for kept in self._unsaved if kept > bound]
            self._sweep_at = max(self._unsaved_most, 2 * len(self._unsaved))

    def _set_mark(self, mark: Key) -> None:
        self._mark = mark
        self._mark_bound = _KEY.pack(*mark) + _TAIL
        self._horizon = max(self._horizon, self._mark_bound)

    def _read_on(self) -> None:
        """Move the horizon over one more piece of the table; timers that are there and in `far` come once."""
        if self._horizon is _BEYOND_ALL:
            return
        after = _KEY.unpack_from(self._horizon) if self._horizon else (0, 0)
        rows = self._read((after[0], after[1]), self._read_rows)
        pack = _TIMER.pack
        found = {pack(*row) for row in rows}
        horizon = _BEYOND_ALL if len(rows) < self._read_rows else max(found)[: _KEY.size] + _TAIL
        far = self._far
        if horizon is _BEYOND_ALL:
            found.update(far)
            self._far = []
        while self._far and far[0] <= horizon:
            found.add(heappop(far))
        self._horizon = horizon
        self._near = sorted(found)
        if len(self._near) > self._near_most:
            self._forget()

    def _forget(self) -> None:
        """Keep the nearer half of the near timers. The others are in the table, or go to `far` if they are not."""
        self._near.sort()
        keep = max(1, self._near_most // 2)
        saved = self._saved_id.to_bytes(8, "big")
        self._far.extend(packed for packed in self._near[keep:] if packed[_ID] >= saved)
        heapify(self._far)
        del self._near[keep:]
        self._horizon = self._near[-1][: _KEY.size] + _TAIL

    def _saved(self) -> None:
        saved = self._handed_id.to_bytes(8, "big")
        self._saved_id = self._handed_id
        del self._unsaved[: bisect_left(self._unsaved, saved, key=_id_of)]
        self._far = [packed for packed in self._far if packed[_ID] >= saved]
        heapify(self._far)
        self._sweep_at = max(self._unsaved_most, 2 * len(self._unsaved))

    def _hand_over(self) -> Changes:
        bound = self._mark_bound
        self._handed_id = self._next_id
        rows: list[Row] = [_TIMER.unpack(packed) for packed in self._unsaved if packed > bound]
        return Changes(rows=rows, below=self._mark)

    def _restore(self, mark: Key, next_id: int) -> None:
        self._next_id = self._saved_id = self._handed_id = next_id
        self._set_mark(mark)


def _id_of(packed: bytes) -> bytes:
    return packed[_ID]


class TimerRows:
    """The timers that have not fired, in a table that memory need not hold."""

    table = Table(
        "timers",
        (
            ("due_ms", "INTEGER"),
            ("id", "INTEGER"),
            ("kind", "INTEGER"),
            ("partition", "INTEGER"),
            ("offset", "INTEGER"),
        ),
        keys=2,
        lazy=True,
    )

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    @property
    def wants_checkpoint(self) -> bool:
        return self._timers.wants_checkpoint

    def take_changes(self) -> Changes:
        return self._timers._hand_over()

    def saved(self) -> None:
        self._timers._saved()

    def load(self, rows: Iterable[Row]) -> None:
        raise AssertionError("the table of timers is read in pieces")


class TimerMarks:
    """How far timers have fired, and the next id."""

    table = Table("timer_marks", (("name", "TEXT"), ("value", "INTEGER")))

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def take_changes(self) -> Changes:
        due_ms, id_ = self._timers.watermark
        next_id = self._timers._next_id
        return Changes(rows=[("fired_due_ms", due_ms), ("fired_id", id_), ("next_id", next_id)])

    def load(self, rows: Iterable[Row]) -> None:
        marks = {name: value for name, value in rows if isinstance(value, int)}
        if marks:
            self._timers._restore((marks["fired_due_ms"], marks["fired_id"]), marks["next_id"])
