"""Reading batches back from a closed or open journal file, where other entries stand between them.

In: a file and the window that says where the batches are. Out: whole batches, each found to be what was written:
its base offset, its epoch, its length and its CRC. DamageError names the file and the position of one that is not.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from interlog.base import crc32c
from interlog.base.errors import DamageError
from interlog.journal.files import File
from interlog.journal.index import Window
from interlog.journal.slices import ADVICE, FileRange, Slice, read_exactly

Epochs = Sequence[tuple[int, int]]  # (epoch, the offset it starts at), both rising

# Batches nearer than this to each other are read together, up to a chunk.
_NEAR_BYTES: Final = 4096
_CHUNK_BYTES: Final = 256 << 10
LARGE_BYTES: Final = 64 << 10  # from here on a range of a file is cheaper than bytes
MOST_COLD_BYTES: Final = 1 << 20  # unchecked bytes that one read takes up, or one batch if that is larger

HEAD: Final = struct.Struct(">qiibIhiqqqhii")
_OUTSIDE: Final = 12  # the batch length does not count itself and what stands before it
_COVERED_AT: Final = 21
_LEAST_SIZE: Final = HEAD.size - _OUTSIDE


# A sound batch of a window: its index there, its position in the file, data and where in it the batch begins and
# ends, base offset, last offset, largest timestamp, number of records. A plain tuple, as there may be millions.
Found = tuple[int, int, memoryview, int, int, int, int, int, int]


def epoch_at(epochs: Epochs, offset: int) -> tuple[int, int]:
    """The epoch of an offset, and the offset where the next begins (a huge one if none does)."""
    until = 1 << 63
    for epoch, start in reversed(epochs):
        if start <= offset:
            return epoch, until
        until = start
    return -1, until


def scan(
    file: File,
    window: Window,
    start: int,
    stop: int,
    epochs: Epochs,
    *,
    verified: int = 0,
    chunk_bytes: int = _CHUNK_BYTES,
) -> Iterator[Found]:
    """The batches from index start to stop, read in chunks. Those before index `verified` are not checked again."""
    positions = window.positions
    epoch, until = -1, -1
    unpack = HEAD.unpack_from
    index = start
    while index < stop:
        first = previous = positions[index]
        after = index + 1
        while after < stop:
            position = positions[after]
            if position - previous > _NEAR_BYTES or position - first > chunk_bytes:
                break
            previous = position
            after += 1
        data = memoryview(file.read(previous - first + _NEAR_BYTES, first))
        size_read = len(data)
        origin = first
        offsets = window.offsets
        while index < after:
            position = positions[index]
            at = position - origin
            if at + HEAD.size > size_read:
                raise _damage(file, position, "the file ends within a batch.")
            base, size, leader, magic, crc, _, delta, _, newest_ms, _, _, _, records = unpack(data, at)
            expected = window.base + (index if offsets is None else offsets[index])
            if base != expected or magic != 2 or size < _LEAST_SIZE or delta < 0:
                raise _damage(file, position, f"the batch of offset {expected} is not here.")
            end = at + size + _OUTSIDE
            if end > size_read:
                data = memoryview(_whole(file, position, size + _OUTSIDE))
                origin, at, end = position, 0, size + _OUTSIDE
                size_read = end
            if index >= verified:
                if base >= until:
                    epoch, until = epoch_at(epochs, base)
                if leader != epoch and leader != -1:
                    raise _damage(file, position, f"the batch of offset {base} has epoch {leader}, not {epoch}.")
                if crc != crc32c.crc32c(data[at + _COVERED_AT : end]):
                    raise _damage(file, position, "the batch's CRC does not match its bytes.")
            yield index, position, data, at, end, base, base + delta, newest_ms, records
            index += 1


def _whole(file: File, position: int, size: int) -> bytes:
    """A length that was damaged must not make us ask for gigabytes."""
    if position + size > file.size():
        raise _damage(file, position, "the batch would end after its file.")
    return read_exactly(file, size, position)


def _damage(file: File, position: int, what: str) -> DamageError:
    return DamageError(str(file.path), position, what, ADVICE)


def read_window(
    file: File, window: Window, start: int, stop: int, offset: int, room: int, at_least_one: bool, epochs: Epochs
) -> tuple[list[Slice], bool]:
    """Slices of the batches from index start on that end at offset or after, and whether `stop` was reached.

    What was read for checking is served from memory. Large batches that were checked before are ranges of the file.
    """
    slices: list[Slice] = []
    parts: list[memoryview] = []
    index = start
    budget = min(room, MOST_COLD_BYTES)
    try:
        while index < stop:
            if window.verified_from <= index < window.verified_to and _is_large(window, index):
                part = _range(file, window, index, offset)
                if part is not None:
                    if part.length > room and (slices or parts or not at_least_one):
                        return slices, False
                    _flush(parts, slices)
                    _append_range(slices, part)
                    room -= part.length
                    budget = min(room, MOST_COLD_BYTES)
                index += 1
                continue
            checked_from = index
            fresh = not window.verified_from <= index < window.verified_to
            limit = stop if fresh else min(stop, window.verified_to)
            found = scan(
                file,
                window,
                index,
                limit,
                epochs,
                verified=0 if fresh else limit,
                chunk_bytes=min(_CHUNK_BYTES, max(budget, 0)),
            )
            try:
                for number, _, data, at, end, _, last, _, _ in found:
                    if last >= offset:
                        size = end - at
                        if size > budget:
                            some = bool(slices or parts)
                            if some or (size > room and not at_least_one):
                                return slices, False
                        parts.append(data[at:end])
                        budget -= size
                        room -= size
                    index = number + 1
                    if fresh and window.verified_from < index < window.verified_to:
                        break  # this is checked territory again
            finally:
                if fresh:
                    _remember(window, checked_from, index)
    except DamageError:
        if not slices and not parts:
            raise
        return slices, False
    finally:
        _flush(parts, slices)
    return slices, True


def _remember(window: Window, start: int, stop: int) -> None:
    """One stretch of checked batches is remembered: that of the reader who was here last."""
    if start == stop:
        return
    if start > window.verified_to or stop < window.verified_from:
        window.verified_from, window.verified_to = start, stop
    else:
        window.verified_from, window.verified_to = min(start, window.verified_from), max(stop, window.verified_to)


def _is_large(window: Window, index: int) -> bool:
    positions = window.positions
    return index + 1 == len(positions) or positions[index + 1] - positions[index] >= LARGE_BYTES


def _range(file: File, window: Window, index: int, offset: int) -> FileRange | None:
    """A checked batch as a range of the file; None if it ends before offset."""
    position = window.positions[index]
    base, size, _, _, _, _, delta, *_ = HEAD.unpack(read_exactly(file, HEAD.size, position))
    if base != window.offset_at(index):
        raise _damage(file, position, f"the batch of offset {window.offset_at(index)} is not here.")
    return FileRange(file, position, size + _OUTSIDE) if base + delta >= offset else None


def _append_range(slices: list[Slice], part: FileRange) -> None:
    last = slices[-1] if slices else None
    if isinstance(last, FileRange) and last.file is part.file and last.position + last.length == part.position:
        slices[-1] = FileRange(part.file, last.position, last.length + part.length)
    else:
        slices.append(part)


def _flush(parts: list[memoryview], slices: list[Slice]) -> None:
    if parts:
        slices.append(b"".join(parts))
    parts.clear()
