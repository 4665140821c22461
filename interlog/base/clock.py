"""Time comes in by this door, so that every test can own it.

Broker time is milliseconds since 1970 that never go back: when the machine's clock is set back, broker time
goes on at the pace of the monotonic clock until the machine's clock has caught up.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, never less than an earlier answer."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; for measuring and for waiting."""
        ...


class SystemClock:
    """The machine's clock, made to never go back. `set_back_ms` tells how far it was seen to jump back."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self.set_back_ms = 0

    def now_ms(self) -> int:
        monotonic = time.monotonic_ns()
        offset = time.time_ns() - monotonic
        if offset > self._offset_ns:
            self._offset_ns = offset
            self.set_back_ms = 0
        else:
            self.set_back_ms = (self._offset_ns - offset) // 1_000_000
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
