"""One journal file: its name and header; and the stock that files come from and go back to.

In come a number and a size, out comes an open file with its header written and its room reserved. One spare file is
kept ready, made in the background or taken from the files that are no longer needed.

    magic           8   b"ILOGFILE"
    format          4
    shard           4
    number          8
    first sequence  8   of the first envelope that is or would be in it
    folder id      16
    reserved       12   zero
    crc             4   CRC32C of the above
"""

import errno
import re
import struct
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from interlog.base import crc32c
from interlog.base.errors import FormatError
from interlog.base.work import Worker
from interlog.journal.files import Buffer, File, Files

FORMAT = 1
SPARE = "spare"
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))
NEWER_ADVICE = "Start the version of Interlog that wrote it; nothing has been changed."

_MAGIC = b"ILOGFILE"
_HEADER = struct.Struct("<8sIIQQ16s12x")
_CRC = struct.Struct("<I")
FILE_HEADER_BYTES = _HEADER.size + _CRC.size
_NAME = re.compile(r"(\d{16})\.journal")


class NewerFormatError(FormatError):
    """The header is whole, and of a later format. What a file of it holds must never be taken for damage."""


@dataclass(frozen=True, slots=True)
class FileHeader:
    shard: int
    number: int
    first_sequence: int
    folder_id: bytes

    def encode(self) -> bytes:
        data = _HEADER.pack(_MAGIC, FORMAT, self.shard, self.number, self.first_sequence, self.folder_id)
        return data + _CRC.pack(crc32c.crc32c(data))


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A closed journal file. A file of an earlier run that cannot be read has first_sequence 0."""

    number: int
    first_sequence: int
    last_sequence: int  # first_sequence - 1 where the file holds no envelope
    bytes: int


def read_file_header(data: Buffer) -> FileHeader:
    """The header at the start of a journal file; FormatError where it is not whole."""
    if len(data) < FILE_HEADER_BYTES:
        raise FormatError("the file header is cut short")
    magic, version, shard, number, first_sequence, folder_id = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise FormatError("no journal file header is here")
    if crc32c.crc32c(data[: _HEADER.size]) != _CRC.unpack_from(data, _HEADER.size)[0]:
        raise FormatError("the file header's CRC does not match its bytes")
    if version != FORMAT:
        raise NewerFormatError(
            f"the file has format {version}, written by a newer version of Interlog; this one knows {FORMAT}"
        )
    return FileHeader(shard, number, first_sequence, folder_id)


def file_name(number: int) -> str:
    return f"{number:016d}.journal"


def file_numbers(files: Files, folder: Path) -> list[int]:
    """The numbers of the journal files in a folder, ascending."""
    return [int(match[1]) for name in files.list(folder) if (match := _NAME.fullmatch(name))]


def file_salt(folder_id: bytes, number: int) -> int:
    """What the CRCs of a file's envelopes begin from."""
    return crc32c.crc32c(folder_id + number.to_bytes(8, "little"))


class Spare(Enum):
    NONE = "none"
    MAKING = "making"  # a job in the worker makes or recycles it
    READY = "ready"


class Stock:
    """Makes journal files and takes them back. `trouble` is a sentence while no further file can be made."""

    def __init__(
        self, files: Files, folder: Path, folder_id: bytes, *, shard: int, file_bytes: int, worker: Worker
    ) -> None:
        self.trouble = ""
        self.spare = Spare.NONE
        self._files = files
        self._folder = folder
        self._folder_id = folder_id
        self._shard = shard
        self._file_bytes = file_bytes
        self._worker = worker
        path = folder / SPARE
        if files.exists(path):
            # A spare that is cut short was being made when the process ended; one of another size, when the
            # setting was another.
            if files.size(path) == file_bytes:
                self.spare = Spare.READY
            else:
                files.remove(path)

    def make(self, number: int, first_sequence: int, least_bytes: int) -> tuple[File, int]:
        """A new file and its size. OSError if it cannot be had: nothing of it is then left under its name.

        Neither the file nor its name is synced: that is due before anything in it is said to last.
        """
        size = max(self._file_bytes, least_bytes)
        path = self._folder / file_name(number)
        header = FileHeader(self._shard, number, first_sequence, self._folder_id).encode()
        try:
            if self.spare is Spare.READY:
                spare = self._folder / SPARE
                file = self._files.open(spare, write=True)
                if size > self._file_bytes:
                    file.allocate(size)
                file.write([header], 0)  # before it gets its name: a name never shows an older header
                file.close()
                self._files.rename(spare, path)
                self.spare = Spare.NONE
                file = self._files.open(path, write=True)
            else:
                self._files.remove(path)  # left behind by a failed attempt
                file = self._files.open(path, create=True)
                file.allocate(size)
                file.write([header], 0)
        except OSError as error:
            self.trouble = f"The next journal file {path} cannot be made: {error.strerror or error}."
            self._remove_quietly(path)
            if self.spare is Spare.READY and not self._files.exists(self._folder / SPARE):
                self.spare = Spare.NONE
            raise
        self.trouble = ""
        return file, size

    def want_spare(self, changed: Callable[[], None]) -> None:
        """Begin to make the spare if there is none; `changed` is called when it is ready or has failed."""
        if self.spare is not Spare.NONE:
            return
        self.spare = Spare.MAKING
        path = self._folder / SPARE

        def job() -> None:
            try:
                self._files.remove(path)
                file = self._files.open(path, create=True)
                file.allocate(self._file_bytes)
                file.close()
            except OSError:
                self._remove_quietly(path)  # a part of it would only take the room that is missing
                raise

        def done(_: None, error: BaseException | None) -> None:
            self._spare_done(error)
            changed()

        self._worker.submit(job, done)

    def take_back(self, number: int, reader: "weakref.ref[File] | None") -> None:
        """A file that nobody needs: it becomes the spare, or goes.

        It goes too when `reader` shows that somebody still reads it: bytes must not change under a reader's hands.
        """
        path = self._folder / file_name(number)
        recycle = self.spare is Spare.NONE and (reader is None or reader() is None)
        if recycle:
            self.spare = Spare.MAKING

        def job() -> bool:
            if not recycle or self._files.size(path) != self._file_bytes:
                self._files.remove(path)
                return False
            self._files.rename(path, self._folder / SPARE)
            # The old name must not come back after a power cut with the bytes of the next use in it.
            self._files.sync_folder(self._folder)
            return True

        def done(recycled: bool | None, error: BaseException | None) -> None:
            # A file that could not be removed is found, and released again, at the next start.
            if recycle:
                self._spare_done(error, ready=bool(recycled))

        self._worker.submit(job, done)

    def _spare_done(self, error: BaseException | None, *, ready: bool = True) -> None:
        self.spare = Spare.READY if ready and error is None else Spare.NONE
        if error is not None:
            what = error.strerror if isinstance(error, OSError) and error.strerror else error
            self.trouble = f"The next journal file in {self._folder} cannot be made: {what}."
        elif ready:
            self.trouble = ""

    def _remove_quietly(self, path: Path) -> None:
        try:
            self._files.remove(path)
        except OSError:
            pass
