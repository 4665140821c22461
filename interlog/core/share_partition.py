"""One partition as the members of a share group read it together: who holds which records, and what became of them.

Comes in: offsets that a member takes, gives back or is done with, and the time. Goes out: what was taken, and the
changes that must last. From `start` to `end` every offset is in one run of a state; all before is over, and from `end`
on nobody was given anything yet. That a record is held does not last: after a start it is available, and was delivered
once less. Times are of the clock that never goes back.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final

from interlog.core.share_entries import Kept, Range


class State(Enum):
    AVAILABLE = "available"
    HELD = "held"
    DONE = "done"


class Verdict(Enum):
    """What a member says of a record that it holds."""

    ACCEPT = "it was worked on"
    RELEASE = "somebody else may have it"
    REJECT = "nobody shall have it again"
    RENEW = "it takes longer"


# What becomes of a record by it; RELEASE depends on how often it was delivered, and RENEW changes nothing.
_BECOMES: Final = {Verdict.ACCEPT: State.DONE, Verdict.REJECT: State.DONE}
_KEPT: Final = {State.AVAILABLE: Kept.AVAILABLE, State.DONE: Kept.DONE}
_STATES: Final = {kept: state for state, kept in _KEPT.items()}


class Run:
    """Neighbours that are alike in all."""

    __slots__ = ("delivered", "first", "holder", "last", "state", "until_s")

    def __init__(
        self, first: int, last: int, state: State, delivered: int, holder: str = "", until_s: float = 0
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivered = delivered  # how often, this time included if it is held
        self.holder = holder
        self.until_s = until_s

    def like(self, other: "Run") -> bool:
        return (
            self.state is other.state
            and self.delivered == other.delivered
            and self.holder == other.holder
            and self.until_s == other.until_s
        )

    def free(self, state: State) -> None:
        self.state, self.holder, self.until_s = state, "", 0


def _first(run: Run) -> int:
    return run.first


class SharePartition:
    __slots__ = ("_changes", "_runs", "_told_start", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self._runs: list[Run] = []
        self._changes: list[Range] = []  # since they were last taken
        self._told_start = start

    # -- asked

    @property
    def end(self) -> int:
        return self._runs[-1].last + 1 if self._runs else self.start

    @property
    def in_flight(self) -> int:
        """How many offsets are looked after one by one."""
        return self.end - self.start

    @property
    def done(self) -> int:
        """How many of them are done: others before them are not."""
        return sum(run.last - run.first + 1 for run in self._runs if run.state is State.DONE)

    @property
    def held(self) -> int:
        return sum(run.last - run.first + 1 for run in self._runs if run.state is State.HELD)

    def next_available(self, offset: int = 0) -> int:
        """The first one from an offset on that can be taken."""
        for run in self._runs[max(self._find(offset), 0) :]:
            if run.state is State.AVAILABLE and run.last >= offset:
                return max(run.first, offset)
        return max(self.end, offset)

    def next_due(self) -> float | None:
        """When the first of those that are held is not any more."""
        return min((run.until_s for run in self._runs if run.state is State.HELD), default=None)

    def holds(self, holder: str, first: int, last: int) -> bool:
        """Whether somebody holds all of these, but for those that are over."""
        first = max(first, self.start)
        if last < first:
            return True
        if last >= self.end:
            return False
        return all(run.state is State.HELD and run.holder == holder for run in self._between(first, last))

    def kept(self) -> Iterator[Range]:
        """All that lasts, beside `start`."""
        last: Range | None = None
        for run in self._runs:
            state, delivered = (
                (State.AVAILABLE, run.delivered - 1) if run.state is State.HELD else (run.state, run.delivered)
            )
            one = Range(run.first, run.last, _KEPT[state], delivered if state is State.AVAILABLE else 0)
            if last is not None and (last.state, last.delivered) == (one.state, one.delivered):
                last = last._replace(last=one.last)
                continue
            if last is not None and _is_told(last):
                yield last
            last = one
        if last is not None and _is_told(last):
            yield last

    # -- changed

    def take(
        self, first: int, last: int, holder: str, until_s: float, most: int | None = None
    ) -> list[tuple[int, int, int]]:
        """Give somebody what is available of these, at most so many: first, last, how often it was delivered now."""
        first = max(first, self.start)
        if last < first:
            return []
        self._reach(last + 1)
        taken: list[tuple[int, int, int]] = []
        for run in self._cut(first, last):
            if run.state is not State.AVAILABLE:
                continue
            if most is not None:
                if most <= 0:
                    break
                if run.last - run.first + 1 > most:
                    self._split(run.first + most)
                most -= run.last - run.first + 1
            run.state, run.holder, run.until_s = State.HELD, holder, until_s
            run.delivered += 1
            taken.append((run.first, run.last, run.delivered))
        self._tidy(first, last)
        return taken

    def skip(self, first: int, last: int) -> None:
        """Nobody is to have these: there are no records, or none that anybody may see."""
        first = max(first, self.start)
        if last < first:
            return
        self._reach(last + 1)
        for run in self._cut(first, last):
            if run.state is State.AVAILABLE:
                self._become(run, State.DONE)
        self._tidy(first, last)

    def settle(self, holder: str, ranges: Iterable[tuple[int, int, Verdict]], limit: int, until_s: float) -> None:
        """What somebody says of what it holds. Released, it is done if it was delivered `limit` times."""
        for first, last, verdict in ranges:
            first, last = max(first, self.start), min(last, self.end - 1)
            if last < first:
                continue
            for run in self._cut(first, last):
                if run.state is not State.HELD or run.holder != holder:
                    continue
                if verdict is Verdict.RENEW:
                    run.until_s = until_s
                elif verdict is Verdict.RELEASE:
                    self._release(run, limit)
                else:
                    self._become(run, _BECOMES[verdict])
        self._tidy(self.start, self.end)

    def release(self, holder: str, limit: int) -> bool:
        """All that somebody holds; whether that is anything."""
        return self._release_all(lambda run: run.holder == holder, limit)

    def expire(self, now_s: float, limit: int) -> bool:
        """All whose time is over; whether that is anything."""
        return self._release_all(lambda run: run.until_s <= now_s, limit)

    def move_start(self, start: int) -> None:
        """All before it is gone."""
        if start <= self.start:
            return
        if start >= self.end:
            self._runs.clear()
        else:
            self._split(start)
            del self._runs[: self._find(start)]
        self.start = start
        self._tidy(start, start)

    def take_changes(self) -> tuple[int, tuple[Range, ...]] | None:
        """What changed and must last: all before an offset is over, and these have other states."""
        if not self._changes and self.start == self._told_start:
            return None
        # What was done at the front moved the start, and the start is told.
        changes = tuple(one for one in self._changes if one.last >= self.start)
        self._changes = []
        self._told_start = self.start
        return self.start, changes

    def apply(self, start: int, ranges: Iterable[Range]) -> None:
        """Changes that were told of. They are not told again."""
        self.move_start(start)
        for one in ranges:
            first = max(one.first, self.start)
            if one.last < first:
                continue
            self._reach(one.last + 1)
            for run in self._cut(first, one.last):
                run.free(_STATES[one.state])
                run.delivered = one.delivered
        self._tidy(self.start, self.end)
        self._told_start = self.start

    # -- runs

    def _become(self, run: Run, state: State) -> None:
        run.free(state)
        if state is State.DONE:
            run.delivered = 0
        self._changes.append(Range(run.first, run.last, _KEPT[state], run.delivered))

    def _release(self, run: Run, limit: int) -> None:
        self._become(run, State.DONE if run.delivered >= limit else State.AVAILABLE)

    def _release_all(self, which: Callable[[Run], bool], limit: int) -> bool:
        found = [run for run in self._runs if run.state is State.HELD and which(run)]
        for run in found:
            self._release(run, limit)
        self._tidy(self.start, self.end)
        return bool(found)

    def _find(self, offset: int) -> int:
        """Which run has it; -1 if all come after."""
        return bisect_right(self._runs, offset, key=_first) - 1

    def _between(self, first: int, last: int) -> Iterator[Run]:
        for run in self._runs[max(self._find(first), 0) :]:
            if run.first > last:
                return
            yield run

    def _reach(self, end: int) -> None:
        if end > self.end:
            self._runs.append(Run(self.end, end - 1, State.AVAILABLE, 0))

    def _split(self, offset: int) -> None:
        """A run begins there."""
        at = self._find(offset)
        run = self._runs[at]
        if run.first < offset <= run.last:
            self._runs.insert(at + 1, Run(offset, run.last, run.state, run.delivered, run.holder, run.until_s))
            run.last = offset - 1

    def _cut(self, first: int, last: int) -> list[Run]:
        """The runs that are these offsets, and no others."""
        self._split(first)
        self._split(last + 1)
        return self._runs[self._find(first) : self._find(last) + 1]

    def _tidy(self, first: int, last: int) -> None:
        """Neighbours that are alike are one, about these offsets; and what is done at the front is over."""
        if not self._runs:
            return
        low, high = max(self._find(first) - 1, 0), self._find(last) + 2
        merged: list[Run] = []
        for run in self._runs[low:high]:
            if merged and merged[-1].like(run):
                merged[-1].last = run.last
            else:
                merged.append(run)
        self._runs[low:high] = merged
        if self._runs[0].state is State.DONE:  # the next one is not: they are not alike
            self.start = self._runs.pop(0).last + 1


def _is_told(one: Range) -> bool:
    return one.state is Kept.DONE or one.delivered > 0
