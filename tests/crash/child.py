"""A broker in a process of its own, that is killed: by itself at its Nth file operation, or by its parent at any time.

    python -m tests.crash.child --folder F --history H --seed S --life N [--kill-at N | --threads]

In comes the history of its earlier lives; out, on standard output, goes one line of JSON before each commit and one
after each durable answer (see History.take_event). Exits 0 after a stop in good order, 3 if something was wrong.
"""

import argparse
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.journal.files import Buffer, DiskFile, DiskFiles, File
from tests.crash.differences import differences
from tests.crash.dump import dump, read_tick
from tests.crash.history import History
from tests.crash.living import Living
from tests.crash.model import Wrong
from tests.crash.settings import tiny_settings
from tests.crash.workload import Workload

T = TypeVar("T")
TICKS = 30
PATIENCE_SECONDS = 20


class KillFiles(DiskFiles):
    """Kills the process at the Nth operation, a write halfway through."""

    def __init__(self, kill_at: int, rng: random.Random) -> None:
        self._left = kill_at
        self._rng = rng

    def step(self) -> bool:
        """Whether this is the operation; who cannot do half of it asks `end`."""
        self._left -= 1
        return self._left == 0

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def count(self) -> None:
        if self.step():
            self.end()

    def part(self, size: int) -> int:
        return self._rng.randint(0, size)

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        self.count()
        file = super().open(path, write=write, create=create)
        assert isinstance(file, DiskFile)
        return KillFile(self, path, os.dup(file.fileno()))

    def rename(self, old: Path, new: Path) -> None:
        self.count()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.count()
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self.count()
        super().sync_folder(path)

    def copy(self, source: File, source_position: int, target: File, target_position: int, size: int) -> None:
        if self.step():
            super().copy(source, source_position, target, target_position, self.part(size))
            self.end()
        super().copy(source, source_position, target, target_position, size)


class KillFile(DiskFile):
    __slots__ = ("_files",)

    def __init__(self, files: KillFiles, path: Path, fd: int) -> None:
        super().__init__(path, fd)
        self._files = files

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        files = self._files
        if files.step():
            data = b"".join(buffers)
            super().write([data[: files.part(len(data))]], position)
            files.end()
        super().write(buffers, position)

    def sync(self) -> None:
        self._files.count()
        super().sync()

    def truncate(self, size: int) -> None:
        self._files.count()
        super().truncate(size)

    def allocate(self, size: int) -> None:
        self._files.count()
        super().allocate(size)


class Threads:
    """A worker with real threads. `run` takes in what has ended, on the caller's thread, and waits for nothing."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2)
        self._ended: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._open = 0

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        def ended(future: Future[T]) -> None:
            error = future.exception()
            self._ended.put(lambda: done(None if error else future.result(), error))

        self._open += 1
        self._pool.submit(job).add_done_callback(ended)

    def run(self, most: int | None = None) -> int:
        ran = 0
        while most is None or ran < most:
            try:
                done = self._ended.get_nowait()
            except Empty:
                break
            self._open -= 1
            ran += 1
            done()
        return ran

    def drain(self) -> None:
        while self._open:
            done = self._ended.get(timeout=PATIENCE_SECONDS)
            self._open -= 1
            done()


def live(folder: Path, history: History, seed: int, life: int, kill_at: int, threads: bool) -> None:
    rng = random.Random(f"child {seed} {life}")
    settings = tiny_settings(random.Random(f"child {seed}"), "sync")
    clock = ManualClock(history.now_ms)
    worker = Threads() if threads else ManualWorker()
    core = Core.open(
        folder,
        settings=settings,
        clock=clock,
        worker=worker,
        files=DiskFiles() if threads else KillFiles(kill_at, rng),
        rng=random.Random(seed),
    )
    tick, attempted = read_tick(core), history.attempted
    model = history.settle(tick)
    different = differences(model.dump(), dump(core))
    if different:
        raise Wrong(f"after {tick} of {attempted} ticks: " + "\n  ".join(different))
    emit(["settle", tick])
    living = Living(core, clock, history, model, emit)
    Workload(living, rng, worker).run(TICKS)
    if living.ops:
        living.commit()
    if isinstance(worker, Threads):
        worker.drain()
    else:
        worker.run()
    core.close()
    emit(["stopped"])


def emit(event: list[Any]) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--life", type=int, required=True)
    parser.add_argument("--kill-at", type=int, default=0)
    parser.add_argument("--threads", action="store_true")
    given = parser.parse_args()
    try:
        history = History.load(given.history.read_text())
        live(given.folder, history, given.seed, given.life, given.kill_at, given.threads)
    except Exception:
        traceback.print_exc()
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
