"""What the benchmarks share: a folder on a real disk, a worker with real threads, the raw disk, tables, verdicts."""

import argparse
import compileall
import ctypes
import json
import os
import platform
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from interlog.core.broker import Core, CoreSettings  # noqa: E402

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
POLL_SECONDS = 0.1  # as often as the driver polls


def compiled() -> None:
    """The modules as an installed package has them: a clone's may be without, and compile them at each start."""
    compileall.compile_dir(str(ROOT / "interlog"), quiet=2)


class Threads:
    """A worker with real threads; `run` takes in what has ended, `wait` waits for one more to end."""

    def __init__(self, threads: int = 4) -> None:
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self.open = 0
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            job, done = self._jobs.get()
            try:
                self._ended.put((done, job(), None))
            except Exception as error:
                self._ended.put((done, None, error))

    def submit(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.open += 1
        self._jobs.put((job, done))

    def run(self) -> None:
        while True:
            try:
                done, result, error = self._ended.get_nowait()
            except Empty:
                return
            self.open -= 1
            done(result, error)

    def wait(self) -> None:
        if self.open:
            done, result, error = self._ended.get()
            self.open -= 1
            done(result, error)

    def drain(self) -> None:
        while self.open:
            self.wait()


class Broker:
    """A core on a folder, and what the driver would do for it: commit, take in what ended, poll now and then."""

    def __init__(self, folder: Path, *, polls: bool = True, **settings: Any) -> None:
        self.worker = Threads()
        self.core = Core.open(folder, settings=CoreSettings(**settings), worker=self.worker)
        self.polls = polls
        self.pending = 0  # ticks that are not durable yet
        self.waited: list[str] = []  # outcomes that were not what they should be
        self.next_poll = time.monotonic() + POLL_SECONDS

    def tick(self, *, durable: bool = True, ahead: int = 5) -> None:
        """Commit; go on as long as no more than `ahead` ticks are waited for, as clients with requests in flight do."""
        if durable:
            self.pending += 1
            self.core.ticket.when_durable(self._durable)
        self.core.commit()
        self.worker.run()
        while self.pending > ahead:
            self.worker.wait()
        if self.polls and time.monotonic() >= self.next_poll:
            self.poll()

    def poll(self) -> None:
        self.next_poll = time.monotonic() + POLL_SECONDS
        self.core.poll()
        self.core.commit()
        self.worker.run()

    def _durable(self, outcome: Any) -> None:
        self.pending -= 1
        if outcome.value != "durable":
            raise RuntimeError(f"a tick is {outcome.value}: {self.core.refusal}")

    def settle(self) -> None:
        """Until everything is durable and nothing goes on behind."""
        while self.pending or self.worker.open:
            self.worker.wait()

    def close(self) -> None:
        self.worker.drain()
        self.core.close()
        self.worker.drain()


class Disk:
    """The raw disk, for comparison: writes and fdatasyncs of one preallocated file."""

    def __init__(self, folder: Path, size: int) -> None:
        self._path = folder / "raw"
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(self._fd, 0, size)
        os.fsync(self._fd)
        self._size = size
        self._at = 0  # new blocks, as a journal's are: to write the same ones again is faster

    def write(self, size: int, seconds: float, *, sync: bool) -> tuple[float, list[float]]:
        """Writes per second, and how long each took. Where the file ends it ends: no byte is written twice."""
        data = os.urandom(size)
        took = []
        start = now = time.perf_counter()
        while now - start < seconds and self._at + size <= self._size:
            os.pwrite(self._fd, data, self._at)
            if sync:
                os.fdatasync(self._fd)
            self._at += size
            before, now = now, time.perf_counter()
            took.append(now - before)
        return len(took) / (now - start), took

    def overlapped(self, size: int, seconds: float, ahead: int) -> float:
        """Writes per second, where one thread writes and another syncs, up to `ahead` writes not yet synced.

        This is the shape of group commit, and on many disks far faster than sync after write after sync: whoever
        compares a journal with the slower of the two praises the shape, not the journal.
        """
        data = os.urandom(size)
        asked: SimpleQueue[int | None] = SimpleQueue()
        answered: SimpleQueue[int] = SimpleQueue()

        def sync() -> None:
            while (number := asked.get()) is not None:
                os.fdatasync(self._fd)
                answered.put(number)

        thread = threading.Thread(target=sync)
        thread.start()
        written = synced = 0
        busy = False
        start = time.perf_counter()
        while time.perf_counter() - start < seconds and self._at + size <= self._size:
            os.pwrite(self._fd, data, self._at)
            self._at += size
            written += 1
            while busy and (written - synced > ahead or not answered.empty()):
                synced, busy = answered.get(), False
                if written - synced > ahead:
                    asked.put(written)
                    busy = True
            if not busy:
                asked.put(written)
                busy = True
        while synced < written:
            if not busy:
                asked.put(written)
            synced, busy = answered.get(), False
        took = time.perf_counter() - start
        asked.put(None)
        thread.join()
        return written / took

    def close(self) -> None:
        os.close(self._fd)
        self._path.unlink()


class Report:
    """Lines of a table as they are measured, with a verdict where there is a target."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.missed = 0

    def title(self, text: str) -> None:
        print(f"\n{text}", flush=True)

    def row(
        self,
        name: str,
        value: float,
        unit: str,
        note: str = "",
        *,
        most: float | None = None,
        least: float | None = None,
    ) -> None:
        verdict = ""
        if most is not None or least is not None:
            good = (most is None or value <= most) and (least is None or value >= least)
            self.missed += not good
            limit = f"<= {most:g}" if most is not None else f">= {least:g}"
            verdict = f"{'PASS' if good else 'MISS'} (target {limit} {unit})"
        row = {"name": name, "value": value, "unit": unit, "note": note, "verdict": verdict}
        self.rows.append(row)
        print(f"  {name:<58} {_number(value):>12} {unit:<9} {note:<44} {verdict}".rstrip(), flush=True)

    def finish(self, path: Path | None, what: dict[str, Any]) -> None:
        judged = sum(1 for row in self.rows if row["verdict"])
        print(f"\n{judged - self.missed} of {judged} targets met.")
        if path is not None:
            path.write_text(json.dumps(what | {"machine": machine(), "rows": self.rows}, indent=1) + "\n")


def _number(value: float) -> str:
    if value and abs(value) < 10:
        return f"{value:.3f}"
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def machine() -> str:
    return f"{os.cpu_count()} CPUs, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def resident_bytes(pid: int | str = "self") -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * KIB
    return 0


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, its threads included; in steps of the system's clock, 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files() -> int:
    """How many files this process may have open: as many as the system allows, from now on."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def trim() -> None:
    """Give the C library's free memory back, so that what is resident is what is held."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        pass  # another C library


@contextmanager
def folders(given: Path | None) -> Iterator[Callable[[], Path]]:
    """Makes empty folders on the disk that is measured; all go at the end."""
    place = given or ROOT / ".bench"
    place.mkdir(parents=True, exist_ok=True)
    if given is None:
        (place / ".gitignore").write_text("*\n")
    _refuse_memory(place)
    base = Path(tempfile.mkdtemp(prefix="interlog-", dir=place))
    count = 0

    def make() -> Path:
        nonlocal count
        count += 1
        path = base / str(count)
        path.mkdir()
        return path

    try:
        yield make
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _refuse_memory(path: Path) -> None:
    """A file system in memory has no disk to be measured."""
    best, kind = "", ""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, file_system, *_ = line.split()
        if str(path.resolve()).startswith(place) and len(place) >= len(best):
            best, kind = place, file_system
    if kind in ("tmpfs", "ramfs"):
        sys.exit(f"{path} is in memory ({kind}). Give a folder on a disk with --folder.")


def size_of(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def parser(doc: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--folder", type=Path, help="a folder on the disk to be measured (default: .bench in the clone)")
    made.add_argument("--quick", action="store_true", help="small sizes and short runs: to see that it works")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file, too")
    return made
