"""Threads for work that must not hold up the event loop.

Jobs go to whichever thread is free; each job's `done` is called on the thread that owns the loop. There are a few
more threads than the broker has long jobs at a time, so that a sync does not wait behind a copy. Jobs that are under
way together may end in any order: who needs an order submits the next job when the one before is done.
"""

import queue
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from interlog.base.work import Done

T = TypeVar("T")
_Job = tuple[Callable[[], Any], Done]


# One sync, one piece of housekeeping, one file being made ready for the journal; and one to spare.
THREADS = 4


class ThreadWorker:
    """A few threads beside the loop, each started when the ones before it are busy."""

    def __init__(self, loop: AbstractEventLoop, threads: int = THREADS) -> None:
        self._loop = loop
        self._most = threads
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._finished: deque[tuple[Done, Any, BaseException | None]] = deque()
        self._ready = threading.Semaphore(0)  # one permit for each job finished and not yet delivered
        self._outstanding = 0  # submitted, `done` not yet called; owner's thread only
        self._closed = False

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        if self._closed:
            raise RuntimeError("the worker is closed")
        if self._outstanding >= len(self._threads) < self._most:
            name = f"interlog-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._outstanding += 1
        self._jobs.put((job, done))

    def drain(self) -> None:
        """Block the owner's thread until nothing is left to do, calling every `done` on the way.

        For stopping: what the dones submit in turn is waited for too.
        """
        while self._outstanding:
            self._ready.acquire()
            self._deliver_one()

    def close(self) -> None:
        """Drain, then end the threads."""
        self.drain()
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            try:
                self._finished.append((done, job(), None))
            except BaseException as error:  # whatever it was, the owner must hear of it
                self._finished.append((done, None, error))
            del item, job, done
            self._ready.release()
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                pass  # the loop is closed; whoever closed it drains

    def _deliver(self) -> None:
        while self._ready.acquire(blocking=False):
            self._deliver_one()

    def _deliver_one(self) -> None:
        done, result, error = self._finished.popleft()
        self._outstanding -= 1
        done(result, error)
