"""A queue's surroundings, small but honest: a log that keeps encoded batches and forgets what was not committed, and
files in memory."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from interlog.core.memory import MemoryBudget, record_size
from interlog.core.queue_state import QueuesSection, QueueState
from interlog.core.queues import Queue
from interlog.core.spill import SpillFolder
from interlog.journal import batch as batches
from interlog.journal.files import Buffer, DiskFiles, File
from interlog.journal.record import Record

Entry = tuple[int, int] | bytes  # a batch's first and last offset, or a LEASE payload


class FakeLog:
    def __init__(self) -> None:
        self.log_end = 0
        self.entries: list[Entry] = []  # committed, to be replayed
        self.batches: list[tuple[int, int, bytes]] = []  # base, last, bytes
        self.reads = 0
        self._tick: list[Entry] = []
        self._tick_batches: list[tuple[int, int, bytes]] = []

    def add_batch(self, records: Sequence[Record], base: int, last: int, offsets: Sequence[int] | None) -> None:
        data = batches.encode(records, base_offset=base, offsets=offsets)
        header = batches.read_header(data)
        assert (header.base_offset, header.last_offset) == (base, last)
        self._tick.append((base, last))
        self._tick_batches.append((base, last, data))

    def add_lease(self, payload: bytes) -> None:
        self._tick.append(payload)

    def read(self, offset: int, max_bytes: int) -> Iterable[tuple[int, Record]]:
        self.reads += 1
        for _, last, data in self.batches:
            if last >= offset:
                yield from batches.decode(data)
                max_bytes -= len(data)
                if max_bytes <= 0:
                    return

    def commit(self) -> list[Entry]:
        tick, self._tick = self._tick, []
        self.entries += tick
        self.batches += self._tick_batches
        self._tick_batches = []
        if self.batches:
            self.log_end = self.batches[-1][1] + 1
        return tick

    def forget(self) -> None:
        """The crash: what was not committed is gone."""
        self._tick, self._tick_batches = [], []


def replay(state: QueueState, entries: Iterable[Entry]) -> QueueState:
    for entry in entries:
        if isinstance(entry, bytes):
            state.apply_lease(entry)
        else:
            state.apply_batch(*entry)
    return state


class MemoryFile:
    def __init__(self, path: Path, content: bytearray, files: "MemoryFiles") -> None:
        self.path = path
        self._content = content
        self._files = files

    def read(self, size: int, position: int) -> bytes:
        return bytes(self._content[position : position + size])

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        if self._files.full:
            raise OSError(28, "No space left on device")
        data = b"".join(buffers)
        self._content[position : position + len(data)] = data

    def close(self) -> None:
        pass


class MemoryFiles(DiskFiles):
    """As much of a file system as spills need."""

    def __init__(self) -> None:
        self.content: dict[Path, bytearray] = {}
        self.full = False

    def make_folder(self, path: Path) -> None:
        pass

    def list(self, folder: Path) -> list[str]:
        return sorted(path.name for path in self.content)

    def remove(self, path: Path) -> None:
        self.content.pop(path, None)

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        if create:
            if path in self.content:
                raise FileExistsError(path)
            self.content[path] = bytearray()
        return MemoryFile(path, self.content[path], self)  # type: ignore[return-value]


class World:
    """One queue with everything around it, and its crash."""

    def __init__(self, share_bytes: int = 1 << 20, block_bytes: int = 1500, file_bytes: int = 4000) -> None:
        self.log = FakeLog()
        self.files = MemoryFiles()
        self.budget = MemoryBudget(1 << 30)
        self.section = QueuesSection()
        self.damage: list[Exception] = []
        self.share_bytes = share_bytes
        self.limits = (block_bytes, file_bytes)
        self.saved: list[tuple[object, ...]] | None = None
        self.saved_at = 0
        self.durable = True
        self._open()

    def _open(self) -> None:
        spill = SpillFolder(self.files, Path("spill"), self.damage.append, *self.limits)
        state = self.section.state(7)
        replay(state, self.log.entries[self.saved_at :])
        self.queue = Queue(state, self.log, spill, self.budget, durable=self.durable, share_bytes=self.share_bytes)

    def tick(self) -> bool:
        wrote = self.queue.flush()
        self.log.commit()
        return wrote

    def checkpoint(self) -> None:
        changes = self.section.take_changes()
        if changes.rows:
            self.saved = list(changes.rows)
        self.saved_at = len(self.log.entries)

    def crash(self) -> None:
        self.log.forget()
        self.budget = MemoryBudget(1 << 30)
        self.section = QueuesSection()
        if self.saved is None:
            self.saved_at = 0
        else:
            self.section.load(self.saved)  # type: ignore[arg-type]
        self._open()


def make_record(number: int, size: int = 10, headers: int = 0) -> Record:
    value = (b"%d:" % number).ljust(size, b".")
    return Record(None if number % 3 else b"k", value, tuple((b"h%d" % at, b"v") for at in range(headers)), number)


def put(queue: Queue, record: Record, persistent: bool = True) -> int:
    return queue.append(record, record_size(record), persistent)
