"""Work that must not hold up the event loop: syncs, copies, checkpoints.

A worker runs a job elsewhere and calls `done` back on the thread that owns the broker. Which thread that is, is
`net`'s business; tests use ManualWorker and decide themselves when a job runs.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]


class Worker(Protocol):
    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run job away from the owner's thread; then, on the owner's thread, done(result, error)."""
        ...


class ManualWorker:
    """Holds jobs until `run` is called; runs them on the caller's thread, in order."""

    def __init__(self) -> None:
        self.jobs: deque[tuple[Callable[[], Any], Done]] = deque()

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self.jobs.append((job, done))

    def run(self, most: int | None = None) -> int:
        """Run the jobs that wait, and those they submit in turn; the number that ran."""
        ran = 0
        while self.jobs and (most is None or ran < most):
            job, done = self.jobs.popleft()
            ran += 1
            try:
                result = job()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)
        return ran
