"""The sync mark: a small file that says up to which envelope the journal is known to be on the disk.

In goes a sequence after every sync; out comes, at the next start, what must be there. It makes a damaged last envelope
distinguishable from one that was never wholly written. Losing the mark loses only that: a missing or torn mark counts
as 0, and so it is itself never synced, save when the mark of a clean end is taken back.

    magic     8   b"ILOGSYNC"
    sequence  8
    epoch     4
    clean     4   1: the journal was closed, nothing was appended after `sequence`
    crc       4   CRC32C of the above, begun from the folder's id
"""

import struct
import threading
from dataclasses import dataclass
from pathlib import Path

from interlog.base import crc32c
from interlog.journal.files import File, Files

NAME = "synced"
_MARK = struct.Struct("<8sQII")
_CRC = struct.Struct("<I")
_MAGIC = b"ILOGSYNC"


@dataclass(frozen=True, slots=True)
class Mark:
    sequence: int = 0
    epoch: int = 0
    clean: bool = False


def read_mark(files: Files, folder: Path, folder_id: bytes) -> Mark:
    """The mark of a journal folder; the zero mark where there is none that can be believed."""
    path = folder / NAME
    try:
        if not files.exists(path):
            return Mark()
        file = files.open(path)
        data = file.read(_MARK.size + _CRC.size, 0)
        file.close()
    except OSError:
        return Mark()
    if len(data) < _MARK.size + _CRC.size:
        return Mark()
    magic, sequence, epoch, clean = _MARK.unpack_from(data)
    crc = crc32c.crc32c(data[: _MARK.size], crc32c.crc32c(folder_id))
    if magic != _MAGIC or clean > 1 or crc != _CRC.unpack_from(data, _MARK.size)[0]:
        return Mark()
    return Mark(sequence, epoch, bool(clean))


class MarkWriter:
    """Writes the mark, from any thread. It never goes back, and the mark of a clean end is the last."""

    def __init__(self, files: Files, folder: Path, folder_id: bytes) -> None:
        path = folder / NAME
        self._salt = crc32c.crc32c(folder_id)
        self._file: File = files.open(path, write=True, create=not files.exists(path))
        self._lock = threading.Lock()
        self._sequence = 0
        self._closed = False

    def write(self, sequence: int, epoch: int, *, clean: bool = False) -> None:
        """OSError if it cannot be written: nothing that anyone was promised depends on it."""
        with self._lock:
            if self._closed or sequence < self._sequence:
                return
            self._sequence = sequence
            self._closed = clean
            data = _MARK.pack(_MAGIC, sequence, epoch, clean)
            self._file.write([data + _CRC.pack(crc32c.crc32c(data, self._salt))], 0)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._file.close()
