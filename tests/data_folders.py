"""Data folders as brokers leave them, for tests of what can befall one.

In comes an empty path; out comes a folder: of a broker that was killed (`killed`), or of one that ran for long, so that
its first journal files are gone and only checkpoints and segments know what was in them (`long_used`).
"""

import random
import shutil
import sqlite3
import struct
from pathlib import Path

import crc32c

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core, CoreSettings
from interlog.core.memory import record_size
from interlog.journal.checkpoint import row_crc
from interlog.journal.journal_file import FILE_HEADER_BYTES
from interlog.journal.record import Record

SMALL = CoreSettings(journal_file_bytes=1 << 16, min_free_bytes=0, checkpoint_ms=100, housekeeping_ms=100)


class Filling:
    """A core whose background work is done when told to."""

    def __init__(self, data: Path, *, seed: int = 1, now_ms: int = 1_700_000_000_000) -> None:
        self.clock = ManualClock(now_ms)
        self.worker = ManualWorker()
        self.core = Core.open(data, worker=self.worker, clock=self.clock, settings=SMALL, rng=random.Random(seed))
        self.queue = self.core.declare_queue("/", "q")
        self.topic = self.core.create_topic("/", "t", 2)
        self.tick()

    def tick(self) -> None:
        self.core.commit()
        self.worker.run()

    def fill(self, ticks: int, *, poll: bool = False) -> None:
        for number in range(ticks):
            record = Record(timestamp_ms=self.clock.now_ms(), key=b"k", value=bytes([number % 256]) * 4000, headers=())
            self.queue.append(record, record_size(record), True)
            self.topic.append(number % 2, [record])
            self.tick()
            if poll:
                self.settle()

    def settle(self) -> None:
        """Let time pass until nothing more follows from it."""
        while True:
            self.clock.advance(200)
            self.core.poll()
            if not self.worker.run():
                return

    def kill(self) -> None:
        self.core.recovered.checkpoint.close()
        self.core._folder.release()


def killed(data: Path, *, seed: int = 1, now_ms: int = 1_700_000_000_000) -> list[Path]:
    """All of it is in the journal, and the checkpoint holds nothing. Its journal files, several."""
    filling = Filling(data, seed=seed, now_ms=now_ms)
    filling.fill(40)
    filling.kill()
    return journal_files(data)


def long_used(data: Path) -> list[Path]:
    """Its journal no longer reaches back."""
    filling = Filling(data)
    filling.fill(60, poll=True)
    filling.kill()
    return journal_files(data)


def journal_files(data: Path) -> list[Path]:
    return sorted((data / "journal").glob("*.journal"))


def spoil(checkpoint: Path) -> None:
    checkpoint.write_bytes(b"no database at all " * 1000)
    for suffix in ("-wal", "-shm"):
        checkpoint.with_name(checkpoint.name + suffix).unlink(missing_ok=True)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def make_journal_file_newer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, 2)
    end = FILE_HEADER_BYTES - 4
    struct.pack_into("<I", data, end, crc32c.crc32c(bytes(data[:end])))
    path.write_bytes(data)


def make_checkpoint_newer(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("UPDATE about SET value = 2, crc = ? WHERE key = 'format'", (row_crc(("format", 2)),))
    database.commit()
    database.close()


def copy(data: Path, target: Path) -> Path:
    shutil.copytree(data, target)
    return target


def tree(data: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything that a change would show in: names, modes, times of change, bytes."""
    found = {}
    for path in (data, *sorted(data.rglob("*"))):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(data))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found
