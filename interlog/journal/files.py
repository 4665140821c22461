"""The only module that touches the disk. Everything that can fail on a disk fails here, as OSError.

`Files` is the door; `DiskFiles` the real one; tests put a faulty one in its place. SQLite keeps its own files
and does not pass through here.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from interlog.base.errors import FolderError

Buffer = bytes | bytearray | memoryview

# One call takes at most IOV_MAX buffers; 1024 everywhere that matters.
_MOST_BUFFERS = 1024
# A piece of advice is taken for so many bytes at the most: as many as the system may read ahead.
_MOST_ADVISED = 128 << 10


class File(Protocol):
    """An open file. Positions are always given: a File has no cursor. Safe to use from several threads."""

    path: Path

    def read(self, size: int, position: int) -> bytes:
        """Up to size bytes; fewer only at the end of the file."""
        ...

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """All the buffers, one after another, from position on; or OSError, with an unknown part written."""
        ...

    def sync(self) -> None: ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def allocate(self, size: int) -> None:
        """Reserve room up to size; the file is at least that long afterwards."""
        ...

    def map(self) -> memoryview:
        """The file as it is now, read-only, without copying. Empty files give an empty view."""
        ...

    def written(self, position: int) -> list[tuple[int, int]]:
        """The ranges from position on that were ever written, as far as can be told; all else reads as zeros."""
        ...

    def forget(self) -> None:
        """Let go of what the system keeps of the file in memory, but for bytes still to be written: read the disk."""
        ...

    def prepare(self, size: int, position: int) -> None:
        """Bytes will soon be written there: have the system's memory for them at hand. A hint, which never fails."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class Files(Protocol):
    """A file system, as far as the journal needs one."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        """Open for reading, or reading and writing. With create: a new file, FileExistsError if there is one."""
        ...

    def exists(self, path: Path) -> bool: ...

    def size(self, path: Path) -> int: ...

    def list(self, folder: Path) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        ...

    def make_folder(self, path: Path) -> None:
        """The folder and its parents, synced into their parent; no error if it is there."""
        ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None:
        """No error if it is gone already."""
        ...

    def remove_folder(self, path: Path) -> None:
        """A folder of plain files, with its files; no error if it is gone already."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Make creations, renames and removals in the folder last."""
        ...

    def copy(self, source: File, source_position: int, target: File, target_position: int, size: int) -> None:
        """Copy a range inside the kernel where it can; OSError if the source ends before."""
        ...

    def free_bytes(self, folder: Path) -> int: ...

    def total_bytes(self, folder: Path) -> int:
        """Of the disk that the folder is on."""
        ...

    def lock(self, path: Path, *, claim: bool = True) -> "Lock":
        """Take the folder's lock or raise FolderError with a sentence that says who holds it.

        Without claim, for those who only look: nothing is written, and where there is no lock file there is no lock.
        """
        ...


class Lock(Protocol):
    def release(self) -> None: ...


class DiskFile:
    """A file of the operating system. Closes itself when the last reader lets go of it."""

    __slots__ = ("__weakref__", "_fd", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def read(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        have = len(data)
        while have < size:
            data = os.pread(self._fd, size - have, position + have)
            if not data:
                break
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        for start in range(0, len(buffers), _MOST_BUFFERS):
            group = buffers[start : start + _MOST_BUFFERS]
            size = sum(map(len, group))
            written = os.pwritev(self._fd, group, position)
            if written < size:
                self._write_rest(memoryview(b"".join(group)), written, position)
            position += size

    def _write_rest(self, data: memoryview, done: int, position: int) -> None:
        """A write may stop short (a signal, a nearly full disk): go on until it is whole or fails."""
        while done < len(data):
            done += os.pwrite(self._fd, data[done:], position + done)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def allocate(self, size: int) -> None:
        os.posix_fallocate(self._fd, 0, size)

    def map(self) -> memoryview:
        if not self.size():
            return memoryview(b"")
        return memoryview(mmap.mmap(self._fd, 0, prot=mmap.PROT_READ))

    def written(self, position: int) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        try:
            while True:
                start = os.lseek(self._fd, position, os.SEEK_DATA)
                position = os.lseek(self._fd, start, os.SEEK_HOLE)
                ranges.append((start, position))
        except OSError as error:
            if error.errno != errno.ENXIO:  # ENXIO: nothing follows. Else: not every file system can tell.
                ranges.append((position, self.size()))
        return ranges

    def forget(self) -> None:
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def prepare(self, size: int, position: int) -> None:
        try:
            for at in range(position, position + size, _MOST_ADVISED):
                os.posix_fadvise(self._fd, at, min(_MOST_ADVISED, position + size - at), os.POSIX_FADV_WILLNEED)
        except OSError:
            pass  # not every file system can

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class FileLock:
    """An exclusive lock on a file, held for the life of the process at most."""

    def __init__(self, path: Path, *, claim: bool) -> None:
        self._fd = -1
        if not claim and not path.exists():
            return
        flags = os.O_RDWR | os.O_CREAT if claim else os.O_RDONLY
        self._fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise FolderError(
                f"The data folder {path.parent} is in use by process {holder}. "
                "Stop that process, or give this one another folder with --data."
            ) from None
        if not claim:
            return
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class DiskFiles:
    """The operating system's files."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        flags = os.O_CLOEXEC | (os.O_RDWR if write or create else os.O_RDONLY)
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        return DiskFile(path, os.open(path, flags, 0o644))

    def exists(self, path: Path) -> bool:
        return path.exists()

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def list(self, folder: Path) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def make_folder(self, path: Path) -> None:
        if path.is_dir():
            return
        if path.parent != path:
            self.make_folder(path.parent)
        path.mkdir(exist_ok=True)
        try:
            self.sync_folder(path.parent)
        except OSError:
            path.rmdir()  # or the next call would find it and take it for lasting
            raise

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        for name in self.list(path):
            self.remove(path / name)
        try:
            path.rmdir()
        except FileNotFoundError:
            pass

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def copy(self, source: File, source_position: int, target: File, target_position: int, size: int) -> None:
        while size:
            done = os.copy_file_range(source.fileno(), target.fileno(), size, source_position, target_position)
            if not done:
                raise OSError(f"{source.path} ends at byte {source_position}, {size} bytes short")
            source_position += done
            target_position += done
            size -= done

    def free_bytes(self, folder: Path) -> int:
        stat = os.statvfs(folder)
        return stat.f_bavail * stat.f_frsize

    def total_bytes(self, folder: Path) -> int:
        stat = os.statvfs(folder)
        return stat.f_blocks * stat.f_frsize

    def lock(self, path: Path, *, claim: bool = True) -> Lock:
        return FileLock(path, claim=claim)
