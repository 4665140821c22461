"""A partition over real files: batches go into pretend journal files, with other bytes between them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from interlog.journal import batch as batches
from interlog.journal.files import DiskFiles, File
from interlog.journal.partition import Partition, Slice, slice_bytes
from interlog.journal.record import Record
from interlog.journal.segment import SEGMENT_BYTES, Readers
from interlog.journal.settle import (
    SEGMENT_MS,
    Installed,
    SegmentLimits,
    Wanted,
    WantedRange,
    execute_settle,
    install_settle,
    plan_settle,
)
from interlog.journal.store import LocalStore
from interlog.journal.tail import Tail

Stored = tuple[int, Record]
JUNK = b"\xa5" * 37  # what stands between two batches: other partitions' entries


class Rig:
    """One folder: journal files, a store, and any number of partitions."""

    def __init__(self, folder: Path, *, memory_bytes: int = 0, most_open: int = 4) -> None:
        self.folder = folder
        self.files = DiskFiles()
        self.store = LocalStore(self.files, folder / "segments")
        self.readers = Readers(self.store, most_open)
        self.tail = Tail(memory_bytes)
        self.journals: dict[int, File] = {}
        self.ends: dict[int, int] = {}
        self.partitions: dict[int, Partition] = {}
        self.file = 1

    def make(self, id: int) -> Partition:
        return Partition(id, readers=self.readers, tail=self.tail, journal_file=self.journal)

    def partition(self, id: int = 1) -> Partition:
        if id not in self.partitions:
            self.partitions[id] = self.make(id)
        return self.partitions[id]

    def journal(self, number: int) -> File:
        if number not in self.journals:
            self.files.make_folder(self.folder / "journal")
            path = self.folder / "journal" / f"{number:016d}.journal"
            self.journals[number] = self.files.open(path, create=not path.exists(), write=True)
            self.ends[number] = self.journals[number].size()
        return self.journals[number]

    def write(self, partition: Partition, data: bytes, *, junk: bytes = JUNK, keep: bool = True) -> bool:
        """Put a batch into the current journal file, and tell the partition."""
        journal = self.journal(self.file)
        position = self.ends[self.file] + len(junk)
        journal.write([junk, data], self.ends[self.file])
        self.ends[self.file] = position + len(data)
        header = batches.read_header(data)
        taken = data if keep else memoryview(data)
        return partition.add(
            taken, header.base_offset, header.last_offset, header.max_timestamp_ms, self.file, position
        )

    def settle(
        self,
        file: int,
        ask: WantedRange | None = None,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        segment_ms: int = SEGMENT_MS,
    ) -> Installed:
        limits = SegmentLimits(segment_bytes, segment_ms)
        plan = plan_settle(
            self.partitions.values(), file, self.journal(file), ask or all_wanted, lambda partition: limits
        )
        return install_settle(plan, execute_settle(self.store, plan))

    def delete(self, installed: Installed) -> None:
        for name in installed.garbage:
            self.store.delete(name)
        for partition in self.partitions.values():
            for name in partition.take_garbage():
                self.store.delete(name)


def all_wanted(partition: int, first: int, last: int) -> Wanted:
    return Wanted.ALL


class Wants:
    """A queue: the offsets that are not acknowledged."""

    def __init__(self, offsets: Sequence[int]) -> None:
        self.offsets = set(offsets)
        self.asked = 0

    def __call__(self, partition: int, first: int, last: int) -> Wanted:
        self.asked += 1
        count = self.alive(partition, first, last)
        return Wanted.NONE if not count else Wanted.ALL if count == last + 1 - first else Wanted.SOME

    def alive(self, partition: int, first: int, last: int) -> int:
        return sum(1 for offset in range(first, last + 1) if offset in self.offsets)


def record(number: int, *, key: bytes | None = b"k", size: int = 20, time: int | None = None) -> Record:
    return Record(key, b"%d:" % number + b"x" * size, (), 1000 + number if time is None else time)


def encode(base: int, count: int = 1, *, epoch: int = 1, size: int = 20, times: Sequence[int] = ()) -> bytes:
    records = [record(base + n, size=size, time=times[n] if times else None) for n in range(count)]
    return batches.encode(records, base_offset=base, leader_epoch=epoch)


def records_of(parts: Sequence[Slice]) -> Iterator[Stored]:
    for part in parts:
        data = slice_bytes(part)
        for position, _ in batches.batches(data):
            yield from batches.decode(data, position)


def read_all(partition: Partition, offset: int | None = None, max_bytes: int = 1 << 20) -> list[Stored]:
    """As a consumer does: read, and go on after the last record."""
    at = partition.log_start if offset is None else offset
    found: list[Stored] = []
    while at < partition.log_end:
        parts = partition.read(at, max_bytes)
        if not parts:
            break
        for part in parts:
            data = slice_bytes(part)
            for position, header in batches.batches(data):
                found += [one for one in batches.decode(data, position) if one[0] >= at]
                at = max(at, header.next_offset)
    return found


def offsets(stored: Sequence[Stored]) -> list[int]:
    return [offset for offset, _ in stored]


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(bytes(data))
