"""The data folder: whose it is, what format it has, and that only one process uses it.

In comes a path; out comes a locked `Folder`, or a FolderError with a sentence that says what is wrong with it. What is
read without the lock (`read_folder`) is for looking only.

    folder.json   {"format": 1, "shards": 1, "id": "<32 hex digits>", "crc": <CRC32C of the rest, see _crc>}
    lock          held while a process uses the folder
"""

import errno
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlog.base import crc32c
from interlog.base.errors import FolderError
from interlog.journal.files import Files, Lock

FORMAT = 1
NAME = "folder.json"
LOCK = "lock"
_NEW = "folder.json.new"
_MOST_BYTES = 1 << 16
# What may be in a folder that is about to become a data folder.
_HARMLESS = frozenset({LOCK, _NEW, "lost+found"})
_OURS = frozenset({"journal", "segments", "meta.db", "meta.previous.db"})


@dataclass(frozen=True, slots=True)
class FolderInfo:
    path: Path
    id: bytes
    format: int = FORMAT
    shards: int = 1


@dataclass(frozen=True, slots=True)
class Folder:
    """A data folder in use by this process, until `release`."""

    info: FolderInfo
    created: bool
    lock: Lock

    @property
    def path(self) -> Path:
        return self.info.path

    @property
    def id(self) -> bytes:
        return self.info.id

    def release(self) -> None:
        self.lock.release()


def open_folder(files: Files, path: Path, rng: random.Random, *, shards: int = 1) -> Folder:
    """Lock the data folder; make it first where there is none. `shards` counts only then."""
    try:
        files.make_folder(path)
        names = files.list(path)
        if NAME not in names:
            _refuse_foreign(path, names)
        lock = files.lock(path / LOCK)
    except OSError as error:
        raise cannot_use(path, error) from None
    try:
        created = not files.exists(path / NAME)
        if created:
            info = _create(files, path, rng, shards)
        else:
            info = _read(files, path)
            # A kill may have come between the file's new name and the sync that makes it last.
            files.sync_folder(path)
        return Folder(info, created, lock)
    except OSError as error:
        lock.release()
        raise cannot_use(path, error) from None
    except BaseException:
        lock.release()
        raise


def read_folder(files: Files, path: Path) -> FolderInfo:
    """What a data folder says of itself, without locking or changing it."""
    try:
        if not files.exists(path):
            raise FolderError(f"There is no data folder {path}. Name the right one with --data.")
        names = files.list(path)
        if NAME not in names:
            _refuse_foreign(path, names)
            raise FolderError(f"{path} is not a data folder: there is no {NAME} in it. Name the right one with --data.")
        return _read(files, path)
    except OSError as error:
        raise cannot_use(path, error) from None


def _create(files: Files, path: Path, rng: random.Random, shards: int) -> FolderInfo:
    info = FolderInfo(path, rng.randbytes(16), FORMAT, shards)
    about = {"format": info.format, "shards": info.shards, "id": info.id.hex()}
    text = json.dumps(about | {"crc": _crc(about)}) + "\n"
    new = path / _NEW
    files.remove(new)
    file = files.open(new, create=True)
    file.write([text.encode()], 0)
    file.sync()
    file.close()
    try:
        # The folder itself may be there only since a start that was killed.
        files.sync_folder(path.parent)
    except OSError:
        pass  # whoever made it may have a parent that this user cannot open: then its name is their business
    # Under its name it is always whole; and it lasts before anything else is made in the folder.
    files.rename(new, path / NAME)
    files.sync_folder(path)
    return info


def _read(files: Files, path: Path) -> FolderInfo:
    file = files.open(path / NAME)
    try:
        data = file.read(_MOST_BYTES, 0)
    finally:
        file.close()
    try:
        found = json.loads(data)
        crc = found.pop("crc", None)
        # Without it, a bit that flipped in the id would make every other file look like another folder's.
        if crc is not None and crc != _crc(found):
            raise ValueError
        version, folder_id, shards = found["format"], b"", 0
        if type(version) is not int or version < 1:
            raise ValueError
        if version <= FORMAT:
            folder_id, shards = bytes.fromhex(found["id"]), found["shards"]
            if len(folder_id) != 16 or type(shards) is not int or shards < 1:
                raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FolderError(
            f"{path / NAME} is damaged, and the journal cannot be read without it. "
            "Put it back from a copy of the data folder."
        ) from None
    if version > FORMAT:
        raise FolderError(
            f"The data folder {path} has format {version}, written by a newer version of Interlog; "
            f"this one knows formats up to {FORMAT}. Start the newer version again."
        )
    return FolderInfo(path, folder_id, version, shards)


def _crc(about: dict[str, Any]) -> int:
    """Of everything but the CRC itself, whatever a version puts there."""
    return int(crc32c.crc32c(json.dumps(about, sort_keys=True).encode()))


def _refuse_foreign(path: Path, names: list[str]) -> None:
    ours = [name for name in names if name in _OURS]
    if ours:
        raise FolderError(
            f"{path} holds {', '.join(ours)} but no {NAME}. Put {NAME} back from a copy of the data folder."
        )
    foreign = [name for name in names if name not in _HARMLESS]
    if foreign:
        some = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise FolderError(
            f"{path} is not a data folder and is not empty: it holds {some}. Name an empty or a new folder with --data."
        )


def cannot_start(
    files: Files, path: Path, error: Exception, journal_file_bytes: int, min_free_bytes: int
) -> FolderError:
    """What failed while a folder was opened, as a sentence. That a disk is full may show in several ways."""
    try:
        free = files.free_bytes(path)
    except OSError as failure:
        return cannot_use(path, failure)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or (not isinstance(error, OSError) and free < journal_file_bytes + min_free_bytes):
        return FolderError(
            f"There is no room on the disk of the data folder {path}: {free} bytes are free, a journal file takes "
            f"{journal_file_bytes} (journal_file_bytes) and {min_free_bytes} are kept in reserve (min_free_bytes). "
            "Make room, name another folder with --data, or choose a smaller journal_file_bytes."
        )
    if isinstance(error, OSError):
        return cannot_use(path, error)
    return FolderError(f"The data folder {path} cannot be used: {error}. Check its disk, then start again.")


def cannot_use(path: Path, error: OSError) -> FolderError:
    """What went wrong with the data folder, as a sentence with what to do."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        what = f"{path} is not a folder, or a part of its path is a file"
    elif error.errno in (errno.EACCES, errno.EPERM):
        what = f"The data folder {path} may not be written by this user"
    elif error.errno == errno.EROFS:
        what = f"The data folder {path} is on a disk that is read-only"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = f"There is no room on the disk of the data folder {path}"
    else:
        what = f"The data folder {path} cannot be used: {error.strerror or error}"
    return FolderError(f"{what}. Mend that, or name another folder with --data.")
