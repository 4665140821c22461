"""What a partition hands out: whole batches, as bytes in memory or as a range of a file.

A range holds its File, and so stays readable when the file is removed from its folder.
"""

from dataclasses import dataclass

from interlog.base.errors import DamageError
from interlog.journal.files import File

ADVICE = (
    "The bytes on disk are not those that were written: check the disk, and restore the file from a backup, "
    "or read on after the damage."
)


@dataclass(frozen=True, slots=True)
class FileRange:
    """Whole batches in a file, their CRCs checked: may be sent without passing through memory."""

    file: File
    position: int
    length: int

    def __len__(self) -> int:
        return self.length


Slice = bytes | FileRange


def read_exactly(file: File, size: int, position: int) -> bytes:
    """DamageError if the file ends before."""
    data = file.read(size, position)
    if len(data) < size:
        raise DamageError(str(file.path), position + len(data), "the file ends too early.", ADVICE)
    return data


def slice_bytes(part: Slice) -> bytes:
    """The batches themselves."""
    if isinstance(part, bytes):
        return part
    return read_exactly(part.file, part.length, part.position)
