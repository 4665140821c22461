"""Meters: how much there was lately, and how long somebody waits for it to be little enough again.

Both count as Kafka does, so that the same numbers hold back as much. A Rate is what came in the last eleven windows of
a second, over at least ten seconds: a short burst costs nothing. A Bucket holds eleven seconds' worth.
"""

from collections import deque
from typing import Final, Protocol

WINDOWS: Final = 11
WINDOW_S: Final = 1.0


class Meter(Protocol):
    def add(self, amount: float, most: float, now_s: float) -> float:
        """Count it; the milliseconds until no more than `most` came in a second, 0 if that is so."""
        ...

    def is_idle(self, most: float, now_s: float) -> bool:
        """A new one would say the same."""
        ...


class Rate:
    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: deque[list[float]] = deque(maxlen=WINDOWS)  # when each began, and how much came in it

    def add(self, amount: float, most: float, now_s: float) -> float:
        windows = self._windows
        if not windows or now_s - windows[-1][0] >= WINDOW_S:
            windows.append([now_s, 0.0])
        windows[-1][1] += amount
        self._forget(now_s)
        span_s = self._span_s(now_s)
        rate = sum(window[1] for window in windows) / span_s
        return (rate - most) / most * span_s * 1000 if rate > most else 0.0

    def is_idle(self, most: float, now_s: float) -> bool:
        self._forget(now_s)
        return not self._windows

    def _forget(self, now_s: float) -> None:
        while self._windows and now_s - self._windows[0][0] >= WINDOWS * WINDOW_S:
            self._windows.popleft()

    def _span_s(self, now_s: float) -> float:
        """Since the oldest window began; those that are missing count in full."""
        passed_s = now_s - self._windows[0][0]
        missing = WINDOWS - 1 - int(passed_s / WINDOW_S)
        return max(passed_s + max(missing, 0) * WINDOW_S, WINDOW_S)


class Bucket:
    __slots__ = ("_filled_s", "_tokens")

    def __init__(self) -> None:
        self._tokens: float | None = None  # as many as there can be
        self._filled_s = 0.0

    def _fill(self, most: float, now_s: float) -> float:
        full = most * WINDOWS * WINDOW_S
        tokens = self._tokens
        self._tokens = full if tokens is None else min(tokens + (now_s - self._filled_s) * most, full)
        self._filled_s = now_s
        return self._tokens

    def add(self, amount: float, most: float, now_s: float) -> float:
        self._tokens = self._fill(most, now_s) - amount
        return self.wait_ms(most, now_s)

    def wait_ms(self, most: float, now_s: float) -> float:
        """How long until something may be taken out, without taking any."""
        return max(-self._fill(most, now_s) / most * 1000, 0.0)

    def is_idle(self, most: float, now_s: float) -> bool:
        return self._fill(most, now_s) >= most * WINDOWS * WINDOW_S
