"""A disk that fails on purpose. `FaultyFiles` stands where DiskFiles would; the files are real ones.

    files = FaultyFiles(trash=tmp_path / "trash", faults=[Fault(at=7, kind=FaultKind.POWER_CUT)], seed=1)
    try:
        ...                               # use it as the `Files` of a broker
    except PowerCut:
        files.power_cut(rng)              # the folder now looks as after the power went; or
        files.kill()                      # as after kill -9: everything written is there
    ...                                   # and the same FaultyFiles serves the next life

What it models. Writes are kept by the disk in sectors of 512 bytes; what was not synced may survive, be lost or be
torn, each sector for itself. A torn sector changes only bytes that were being written: its other bytes were there
before and stay ("powersafe overwrite", which SQLite too relies on). A file's new size lasts with its sync. Creations,
renames and removals in a folder last with the folder's sync; without it, the last few of them may not have happened.
After a sync that failed, the bytes it was for are clean as far as a later sync is concerned, and may still be lost;
`File.forget` shows what is left of them.

SQLite's files beside are not touched. An operation counts in the order it was called: see `COUNTED`.
"""

import errno
import os
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NoReturn

from interlog.journal.files import Buffer, DiskFiles, File, Lock

SECTOR = 512
COUNTED = frozenset({"open", "create", "read", "write", "sync", "truncate", "allocate", "map"}) | frozenset(
    {"make_folder", "rename", "remove", "remove_folder", "sync_folder", "copy"}
)
NEEDS_ROOM = frozenset({"create", "write", "allocate", "make_folder", "copy"})


class PowerCut(BaseException):
    """The machine went off at this operation. Not an Exception, so that nobody handles it by accident."""


class FaultKind(Enum):
    EIO = "eio"
    ENOSPC = "enospc"
    SHORT_WRITE = "short write"  # a part is written, then ENOSPC; another operation than a write: EIO
    SYNC_FAILS = "sync fails"  # at the next sync from `at` on; the bytes may be lost for good
    POWER_CUT = "power cut"  # in the middle of the operation, if that is a write; also for a kill -9


@dataclass(slots=True)
class Fault:
    """The `at`th operation (from 1) among those named by `only` fails, and `count - 1` more of them after it."""

    at: int
    kind: FaultKind
    count: int = 1
    only: frozenset[str] | None = None  # names of COUNTED; None: all (ENOSPC: those that need room)
    seen: int = 0

    def strikes(self, operation: str) -> bool:
        only = self.only
        if only is None and self.kind is FaultKind.ENOSPC:
            only = NEEDS_ROOM
        if self.kind is FaultKind.SYNC_FAILS and only is None:
            # Counted over all operations, but it waits for a sync.
            self.seen += 1
            if self.seen < self.at or self.count < 1 or operation not in ("sync", "sync_folder"):
                return False
            self.count -= 1
            return True
        if only is not None and operation not in only:
            return False
        self.seen += 1
        return self.at <= self.seen < self.at + self.count


def random_faults(rng: random.Random, operations: int) -> list[Fault]:
    """One fault somewhere among so many operations."""
    kind = rng.choice(list(FaultKind))
    count = rng.randint(1, 8) if kind is FaultKind.ENOSPC else 1
    return [Fault(rng.randint(1, max(operations, 1)), kind, count)]


@dataclass(slots=True)
class _Sector:
    """A sector with unsynced bytes: what the disk holds, and which bytes were written over."""

    old: bytes
    low: int
    high: int


@dataclass(slots=True)
class _Inode:
    """What of a file is not synced. Its own descriptor keeps the number from being given to another file."""

    fd: int
    path: Path
    durable_size: int
    dirty: dict[int, _Sector] = field(default_factory=dict)
    doomed: dict[int, _Sector] = field(default_factory=dict)  # a sync of these failed


@dataclass(slots=True)
class _FolderOperation:
    """Undone by: renaming `back` to where it was, then `restore` out of the trash. Either may be missing."""

    remove: Path | None = None
    back: tuple[Path, Path] | None = None
    restore: tuple[Path, Path] | None = None


class FaultyFiles:
    """`trash` is a folder on the same file system, outside the data folder, for what may have to come back."""

    def __init__(self, trash: Path, faults: Sequence[Fault] = (), *, seed: int = 0) -> None:
        self.faults = list(faults)
        self.full = False  # True: every operation that needs room fails with ENOSPC
        self.free: int | None = None  # what free_bytes says; None: the truth
        self.log: list[tuple[str, str]] = []  # (operation, name of the file) of this life
        self.dead = False
        self.life = 0
        self._rng = random.Random(seed)
        self._disk = DiskFiles()
        self._trash = trash
        self._trashed = 0
        self._mutex = threading.RLock()
        self._inodes: dict[tuple[int, int], _Inode] = {}
        self._folders: dict[Path, list[_FolderOperation]] = {}
        self._locks: list[Lock] = []
        trash.mkdir(parents=True, exist_ok=True)

    @property
    def operations(self) -> int:
        return len(self.log)

    # -- the ends of a life

    def power_cut(self, rng: random.Random) -> None:
        """Make the disk look as after a power cut; the next life begins."""
        with self._mutex:
            # A folder before what is in it: it may have to come back first.
            for _, operations in sorted(self._folders.items()):
                keep = rng.randint(0, len(operations))
                for operation in reversed(operations[keep:]):
                    self._undo(operation)
            for inode in self._inodes.values():
                _lose(inode, rng)
            self._next_life()

    def kill(self) -> None:
        """kill -9: what was written is there, and is still not synced; the next life begins."""
        with self._mutex:
            unsynced, folders = self._inodes, self._folders
            self._inodes, self._folders = {}, {}
            self._next_life()
            self._inodes, self._folders = unsynced, folders

    def _next_life(self) -> None:
        for lock in self._locks:
            lock.release()
        self._locks.clear()
        for inode in self._inodes.values():
            os.close(inode.fd)
        self._inodes.clear()
        for folder in list(self._folders):
            self._forget_folder(folder)
        self.dead = False
        self.full = False
        self.life += 1
        self.log = []
        self.faults = []

    def close(self) -> None:
        """Nothing more happens here: let go of what is held open."""
        self._next_life()

    def flip_bit(self, path: Path, position: int, bit: int = 0) -> None:
        """Rot: one bit of the file changes, behind everybody's back, as if it had been synced that way."""
        fd = os.open(path, os.O_RDWR)
        try:
            byte = os.pread(fd, 1, position)[0]
            os.pwrite(fd, bytes([byte ^ 1 << bit]), position)
        finally:
            os.close(fd)

    def unsynced(self, path: Path) -> bool:
        """Whether anything written to the file could still be lost."""
        stat = os.stat(path)
        inode = self._inodes.get((stat.st_dev, stat.st_ino))
        return inode is not None and bool(inode.dirty or inode.doomed or inode.durable_size != stat.st_size)

    # -- faults

    def step(self, operation: str, path: Path) -> FaultKind | None:
        """Count an operation; raise what is due, or tell the caller to do half of it first."""
        self.alive()
        self.log.append((operation, path.name))
        due = [fault.kind for fault in self.faults if fault.strikes(operation)]
        if self.full and operation in NEEDS_ROOM:
            due.append(FaultKind.ENOSPC)
        if not due:
            return None
        kind = due[0]
        if operation == "sync" or (operation == "write" and kind in (FaultKind.SHORT_WRITE, FaultKind.POWER_CUT)):
            return kind
        self.fail(kind, path)

    def fail(self, kind: FaultKind, path: Path, *, writing: bool = False) -> NoReturn:
        if kind is FaultKind.POWER_CUT:
            self.dead = True
            raise PowerCut(f"at operation {self.operations}, {self.log[-1]}")
        full = kind is FaultKind.ENOSPC or (kind is FaultKind.SHORT_WRITE and writing)
        number = errno.ENOSPC if full else errno.EIO
        raise OSError(number, os.strerror(number), str(path))

    def alive(self) -> None:
        if self.dead:
            raise PowerCut("the machine is off")

    # -- what is not synced

    def inode(self, fd: int, path: Path, *, new: bool = False) -> _Inode:
        stat = os.fstat(fd)
        key = (stat.st_dev, stat.st_ino)
        inode = self._inodes.get(key)
        if inode is None:
            own = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
            inode = self._inodes[key] = _Inode(own, path, 0 if new else stat.st_size)
        return inode

    def before_write(self, inode: _Inode, position: int, size: int) -> None:
        """Keep what the disk holds where `size` bytes are about to be written."""
        end = position + size
        for number in range(position // SECTOR, -(-end // SECTOR)):
            start = number * SECTOR
            low, high = max(position - start, 0), min(end - start, SECTOR)
            sector = inode.dirty.get(number)
            if sector is None:
                sector = inode.doomed.pop(number, None)
                if sector is None:
                    old = os.pread(inode.fd, SECTOR, start).ljust(SECTOR, b"\0")
                    inode.dirty[number] = _Sector(old, low, high)
                    continue
                inode.dirty[number] = sector
            sector.low, sector.high = min(sector.low, low), max(sector.high, high)

    def synced(self, inode: _Inode) -> None:
        inode.dirty.clear()
        inode.durable_size = os.fstat(inode.fd).st_size

    def sync_failed(self, inode: _Inode) -> None:
        inode.doomed.update(inode.dirty)
        inode.dirty.clear()

    def forget(self, fd: int) -> None:
        """From here on, what a failed sync was for reads as what the disk really has."""
        inode = self._inodes.get((os.fstat(fd).st_dev, os.fstat(fd).st_ino))
        if inode is not None:
            _lose_sectors(inode, inode.doomed, self._rng)
            inode.doomed.clear()

    def random(self, most: int) -> int:
        return self._rng.randint(0, most)

    def mutex(self) -> threading.RLock:
        return self._mutex

    # -- what happened in folders

    def _did(self, folder: Path, operation: _FolderOperation) -> None:
        self._folders.setdefault(folder, []).append(operation)

    def _to_trash(self, path: Path) -> Path:
        self._trashed += 1
        kept = self._trash / str(self._trashed)
        os.rename(path, kept)
        return kept

    def _undo(self, operation: _FolderOperation) -> None:
        if operation.remove is not None:
            operation.remove.unlink(missing_ok=True)
        for move in (operation.back, operation.restore):
            # Its folder may be gone, which then lasts.
            if move is not None and move[0].exists() and move[1].parent.is_dir():
                os.rename(*move)

    def _forget_folder(self, folder: Path) -> None:
        for operation in self._folders.pop(folder, []):
            if operation.restore is not None:
                kept = operation.restore[0]
                if kept.is_dir():
                    self._disk.remove_folder(kept)
                else:
                    self._drop(kept)

    def _drop(self, kept: Path) -> None:
        """A removal that lasts: what was not synced of the file is of no interest any more."""
        try:
            stat = os.stat(kept)
        except FileNotFoundError:
            return
        inode = self._inodes.pop((stat.st_dev, stat.st_ino), None) if stat.st_nlink == 1 else None
        if inode is not None:
            os.close(inode.fd)
        kept.unlink()

    # -- Files

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        with self._mutex:
            self.step("create" if create else "open", path)
            file = self._disk.open(path, write=write, create=create)
            if create:
                self.inode(file.fileno(), path, new=True)
                self._did(path.parent, _FolderOperation(remove=path))
            return FaultyFile(self, file)

    def exists(self, path: Path) -> bool:
        self.alive()
        return self._disk.exists(path)

    def size(self, path: Path) -> int:
        self.alive()
        return self._disk.size(path)

    def list(self, folder: Path) -> list[str]:
        self.alive()
        return self._disk.list(folder)

    def make_folder(self, path: Path) -> None:
        with self._mutex:
            self.step("make_folder", path)
            self._disk.make_folder(path)

    def rename(self, old: Path, new: Path) -> None:
        with self._mutex:
            self.step("rename", new)
            restore = None
            if new.exists():
                restore = (self._to_trash(new), new)
            self._disk.rename(old, new)
            self._did(new.parent, _FolderOperation(back=(new, old), restore=restore))

    def remove(self, path: Path) -> None:
        with self._mutex:
            self.step("remove", path)
            if path.exists():
                self._did(path.parent, _FolderOperation(restore=(self._to_trash(path), path)))

    def remove_folder(self, path: Path) -> None:
        with self._mutex:
            self.step("remove_folder", path)
            if path.is_dir():
                self._did(path.parent, _FolderOperation(restore=(self._to_trash(path), path)))

    def sync_folder(self, path: Path) -> None:
        with self._mutex:
            self.step("sync_folder", path)
            self._disk.sync_folder(path)
            self._forget_folder(path)

    def copy(self, source: File, source_position: int, target: File, target_position: int, size: int) -> None:
        with self._mutex:
            self.step("copy", target.path)
            self.before_write(self.inode(target.fileno(), target.path), target_position, size)
            self._disk.copy(source, source_position, target, target_position, size)

    def free_bytes(self, folder: Path) -> int:
        self.alive()
        return self._disk.free_bytes(folder) if self.free is None else self.free

    def total_bytes(self, folder: Path) -> int:
        self.alive()
        return self._disk.total_bytes(folder)

    def lock(self, path: Path, *, claim: bool = True) -> Lock:
        self.alive()
        lock = self._disk.lock(path, claim=claim)
        self._locks.append(lock)
        return lock


class FaultyFile:
    """A real file, watched. One of an earlier life is dead for good."""

    def __init__(self, files: FaultyFiles, file: File) -> None:
        self.path = file.path
        self._files = files
        self._file = file
        self._life = files.life

    def _step(self, operation: str) -> FaultKind | None:
        if self._life != self._files.life:
            raise PowerCut("this file was open in an earlier life")
        return self._files.step(operation, self.path)

    def read(self, size: int, position: int) -> bytes:
        self._step("read")
        return self._file.read(size, position)

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        files = self._files
        with files.mutex():
            kind = self._step("write")
            size = sum(map(len, buffers))
            if kind is None:
                files.before_write(files.inode(self.fileno(), self.path), position, size)
                self._file.write(buffers, position)
                return
            part = b"".join(buffers)[: files.random(size)]
            files.before_write(files.inode(self.fileno(), self.path), position, len(part))
            self._file.write([part], position)
            files.fail(kind, self.path, writing=True)

    def sync(self) -> None:
        files = self._files
        with files.mutex():
            kind = self._step("sync")
            inode = files.inode(self.fileno(), self.path)
            if kind is not None:
                if kind is not FaultKind.POWER_CUT:
                    files.sync_failed(inode)
                files.fail(kind, self.path)
            files.synced(inode)

    def size(self) -> int:
        self._files.alive()
        return self._file.size()

    def truncate(self, size: int) -> None:
        files = self._files
        with files.mutex():
            self._step("truncate")
            inode = files.inode(self.fileno(), self.path)
            gone = self._file.size() - size
            if gone > 0:
                files.before_write(inode, size, gone)
            self._file.truncate(size)

    def allocate(self, size: int) -> None:
        files = self._files
        with files.mutex():
            self._step("allocate")
            files.inode(self.fileno(), self.path)
            self._file.allocate(size)

    def map(self) -> memoryview:
        self._step("map")
        return self._file.map()

    def written(self, position: int) -> list[tuple[int, int]]:
        self._files.alive()
        return self._file.written(position)

    def forget(self) -> None:
        self._files.alive()
        with self._files.mutex():
            self._files.forget(self._file.fileno())

    def prepare(self, size: int, position: int) -> None:
        """A hint changes nothing, and so nothing can go wrong with it."""

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


def _lose(inode: _Inode, rng: random.Random) -> None:
    """Settle what of a file's unsynced bytes is on the disk."""
    size = os.fstat(inode.fd).st_size
    _lose_sectors(inode, inode.doomed | inode.dirty, rng)
    # A size that was not synced may be the old one; or the new one, whatever became of the bytes.
    os.ftruncate(inode.fd, size if rng.random() < 0.5 else inode.durable_size)


def _lose_sectors(inode: _Inode, sectors: dict[int, _Sector], rng: random.Random) -> None:
    size = os.fstat(inode.fd).st_size
    fate = rng.random()  # of the file as a whole: often all of it is lost or all of it survives
    for number, sector in sorted(sectors.items()):
        start = number * SECTOR
        new = os.pread(inode.fd, SECTOR, start).ljust(SECTOR, b"\0")
        choice = rng.random()
        if fate < 0.2:
            data = sector.old
        elif fate < 0.4 or choice < 0.4:
            data = new
        elif choice < 0.7:
            data = sector.old
        else:
            data = _torn(sector, new, rng)
        os.pwrite(inode.fd, data, start)
    if os.fstat(inode.fd).st_size > size:  # the last sector is a whole one; the file need not be
        os.ftruncate(inode.fd, size)


def _torn(sector: _Sector, new: bytes, rng: random.Random) -> bytes:
    low, high = sector.low, sector.high
    stop = rng.randint(low, high)
    rest = rng.choice([sector.old[stop:high], bytes(high - stop), rng.randbytes(high - stop)])
    return sector.old[:low] + new[low:stop] + rest + sector.old[high:]
