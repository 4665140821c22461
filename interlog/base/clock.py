"""Time comes in by this door, so that every test can own it.

Broker time is milliseconds since 1970 that never go back: when the machine's clock is set back, broker time
goes on at the pace of the monotonic clock until the machine's clock has caught up.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

# Clocks are corrected by little steps all the time; only more than this is worth a word.
_TOLD_MS: Final = 1_000


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, never less than an earlier answer."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; for measuring and for waiting."""
        ...


class SystemClock:
    """The machine's clock, made to never go back. `set_back_ms` tells how far it was seen to jump back.

    `on_set_back` is told so once a jump, with the milliseconds.
    """

    def __init__(self, on_set_back: Callable[[int], None] | None = None) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self._on_set_back = on_set_back
        self._told_ms = 0
        self.set_back_ms = 0

    def now_ms(self) -> int:
        monotonic = time.monotonic_ns()
        offset = time.time_ns() - monotonic
        if offset > self._offset_ns:
            self._offset_ns = offset
            self.set_back_ms = self._told_ms = 0
        else:
            self.set_back_ms = (self._offset_ns - offset) // 1_000_000
            if self.set_back_ms >= self._told_ms + _TOLD_MS:
                self._told_ms = self.set_back_ms
                if self._on_set_back is not None:
                    self._on_set_back(self.set_back_ms)
        return (monotonic + self._offset_ns) // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._start_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return (self._now_ms - self._start_ms) / 1000

    def advance(self, ms: int) -> None:
        self._now_ms += ms
