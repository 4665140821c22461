"""Where segments are kept: put if absent, open, list, delete. `LocalStore` keeps them in the data folder.

    DATA/segments/<partition>/<base:020d>-<generation:08d>.log         RecordBatches back to back, nothing else
                                                           .index      index.OffsetIndex
                                                           .timeindex  index.TimeIndex

A segment is there when its .log is. Indexes can be made again from it, so only the .log is synced. Drafts are made
on a worker's thread, everything else on any: nothing here is shared but the folder.
"""

from pathlib import Path
from typing import NamedTuple, Protocol

from interlog.base.errors import ExistsError
from interlog.journal.files import File, Files
from interlog.journal.index import MOST_INDEX_BYTES

_DRAFT = ".new"


class SegmentName(NamedTuple):
    partition: int
    base: int
    generation: int

    def __str__(self) -> str:
        return f"{self.base:020d}-{self.generation:08d}"


Garbage = list[SegmentName]  # segments to delete once the checkpoint no longer names them


class Draft(Protocol):
    """A segment being written. It does not exist before `publish`."""

    log: File

    def publish(self, index: bytes, time_index: bytes) -> None:
        """Make it last under its name; ExistsError if the name is taken."""
        ...

    def discard(self) -> None: ...


class SegmentStore(Protocol):
    def create(self, name: SegmentName) -> Draft: ...

    def open(self, name: SegmentName) -> File:
        """The .log, which stays readable as long as the File is held; FileNotFoundError if there is none."""
        ...

    def read_indexes(self, name: SegmentName) -> tuple[bytes, bytes]:
        """What stands in the indexes, which may be anything; b"" where there is none."""
        ...

    def copy(self, source: File, source_position: int, draft: Draft, position: int, size: int) -> None: ...

    def partitions(self) -> list[int]: ...

    def segments(self, partition: int) -> list[SegmentName]: ...

    def delete(self, name: SegmentName) -> None: ...

    def delete_partition(self, partition: int) -> None: ...

    def tidy(self) -> None:
        """At start: let go of drafts that were never published."""
        ...


def write_indexes(files: Files, stem: Path, index: bytes, time_index: bytes) -> None:
    for suffix, data in ((".index", index), (".timeindex", time_index)):
        draft = stem.with_name(stem.name + suffix + _DRAFT)
        files.remove(draft)
        file = files.open(draft, create=True)
        try:
            file.write([data], 0)
        finally:
            file.close()
        files.rename(draft, stem.with_name(stem.name + suffix))


class LocalDraft:
    """A draft in the data folder, under a temporary name."""

    def __init__(self, files: Files, folder: Path, name: SegmentName) -> None:
        self._files = files
        self._folder = folder
        self._stem = str(name)
        files.make_folder(folder)
        path = self._path(".log" + _DRAFT)
        files.remove(path)
        self.log = files.open(path, create=True)

    def _path(self, suffix: str) -> Path:
        return self._folder / (self._stem + suffix)

    def publish(self, index: bytes, time_index: bytes) -> None:
        files = self._files
        if files.exists(self._path(".log")):
            raise ExistsError(f"there is a segment {self._path('.log')} already")
        self.log.sync()
        write_indexes(files, self._folder / self._stem, index, time_index)
        files.rename(self._path(".log" + _DRAFT), self._path(".log"))
        files.sync_folder(self._folder)
        self.log.close()

    def discard(self) -> None:
        self.log.close()
        for suffix in (".log", ".index", ".timeindex"):
            self._files.remove(self._path(suffix + _DRAFT))


class LocalStore:
    """Segments in the data folder."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder

    def _path(self, name: SegmentName, suffix: str) -> Path:
        return self._folder / str(name.partition) / f"{name}{suffix}"

    def create(self, name: SegmentName) -> Draft:
        return LocalDraft(self._files, self._folder / str(name.partition), name)

    def open(self, name: SegmentName) -> File:
        return self._files.open(self._path(name, ".log"))

    def read_indexes(self, name: SegmentName) -> tuple[bytes, bytes]:
        return self._read(self._path(name, ".index")), self._read(self._path(name, ".timeindex"))

    def _read(self, path: Path) -> bytes:
        try:
            file = self._files.open(path)
        except FileNotFoundError:
            return b""
        try:
            return file.read(min(file.size(), MOST_INDEX_BYTES + 1), 0)
        finally:
            file.close()

    def copy(self, source: File, source_position: int, draft: Draft, position: int, size: int) -> None:
        self._files.copy(source, source_position, draft.log, position, size)

    def partitions(self) -> list[int]:
        return sorted(int(name) for name in self._files.list(self._folder) if name.isascii() and name.isdigit())

    def segments(self, partition: int) -> list[SegmentName]:
        names = [parse_name(partition, name) for name in self._files.list(self._folder / str(partition))]
        return [name for name in names if name is not None]

    def write_indexes(self, name: SegmentName, index: bytes, time_index: bytes) -> None:
        """Put indexes in the place of those that are there."""
        write_indexes(self._files, self._path(name, ""), index, time_index)

    def delete(self, name: SegmentName) -> None:
        # The .log goes first: an index without a log is nothing.
        for suffix in (".log", ".index", ".timeindex"):
            self._files.remove(self._path(name, suffix))

    def delete_partition(self, partition: int) -> None:
        self._files.remove_folder(self._folder / str(partition))

    def tidy(self) -> None:
        partitions = self.partitions()
        if partitions:
            self._files.sync_folder(self._folder)  # a kill may have come just after one of them was made
        for partition in partitions:
            folder = self._folder / str(partition)
            logs = {str(name) for name in self.segments(partition)}
            for name in self._files.list(folder):
                stem, _, suffix = name.partition(".")
                if name.endswith(_DRAFT) or (suffix in ("index", "timeindex") and stem not in logs):
                    self._files.remove(folder / name)


def parse_name(partition: int, name: str) -> SegmentName | None:
    """The segment a .log belongs to; None for any other file."""
    base, dash, generation = name.removesuffix(".log").partition("-")
    if not name.endswith(".log") or not dash or len(base) != 20 or len(generation) < 8:
        return None
    if not (name.isascii() and base.isdigit() and generation.isdigit()):
        return None
    return SegmentName(partition, int(base), int(generation))
