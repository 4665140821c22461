"""Deadlines: who wants to be called at a time, unless what they wait for comes first.

    deadline = deadlines.after(500, call)
    deadline.cancel()

For what lives as long as a connection or a member of a group: thousands may wait, and most of them are cancelled. What
must outlive the broker is a timer (see timers.py). Times are of the clock that never goes back.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from interlog.base.clock import Clock

_CANCELLED_AT_LEAST: Final = 1_000  # before the heap is swept


class Deadline:
    __slots__ = ("_call", "_deadlines", "when")

    def __init__(self, deadlines: "Deadlines", when: float, call: Callable[[], None]) -> None:
        self._deadlines = deadlines
        self._call: Callable[[], None] | None = call
        self.when = when

    def __lt__(self, other: "Deadline") -> bool:
        return self.when < other.when

    @property
    def waits(self) -> bool:
        return self._call is not None

    def cancel(self) -> None:
        if self._call is not None:
            self._call = None
            self._deadlines.forget()

    def meet(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


class Deadlines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Deadline] = []
        self._cancelled = 0
        self.on_sooner: Callable[[float], None] = lambda seconds: None  # the first one is now due in so long

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    @property
    def first(self) -> float | None:
        """When the first one is due, which may be cancelled."""
        return self._heap[0].when if self._heap else None

    def after(self, ms: float, call: Callable[[], None]) -> Deadline:
        """Call once that many milliseconds are over."""
        deadline = Deadline(self, self._clock.monotonic() + ms / 1000, call)
        heappush(self._heap, deadline)
        if self._heap[0] is deadline:
            self.on_sooner(ms / 1000)
        return deadline

    def forget(self) -> None:
        """One was cancelled: those are swept out once they are the most."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_AT_LEAST and self._cancelled * 2 > len(self._heap):
            self._heap = [deadline for deadline in self._heap if deadline.waits]
            heapify(self._heap)
            self._cancelled = 0

    def poll(self) -> float | None:
        """Call all that are due; when the next one will be."""
        now = self._clock.monotonic()
        while self._heap and self._heap[0].when <= now:
            deadline = heappop(self._heap)
            if deadline.waits:
                deadline.meet()
            else:
                self._cancelled -= 1
        return self._heap[0].when if self._heap else None
