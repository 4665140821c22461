"""Reading batches back from a closed or open journal file, where other entries stand between them.

In: a file and the window that says where the batches are. Out: whole batches, each found to be what was written:
its base offset, its epoch, its length and its CRC. DamageError names the file and the position of one that is not.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import crc32c

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


class Found(NamedTuple):
    """A sound batch of a window, in data from `at` to `end`."""

    number: int  # its index in the window
    position: int  # in the file
    data: bytes
    at: int
    end: int
    base: int
    last: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    records: int


def epoch_at(epochs: Epochs, offset: int) -> tuple[int, int]:
    """The epoch of an offset, and the offset where the next begins (a huge one if none does)."""
    until = 1 << 63
    for epoch, start in reversed(epochs):
        if start <= offset:
            return epoch, until
        until = start
    return -1, until


def scan(file: File, window: Window, start: int, stop: int, epochs: Epochs, verified: int = 0) -> Iterator[Found]:
    """The batches from index start to stop, read in chunks. Those before index `verified` are not checked again."""
    positions = window.positions
    epoch, until = -1, -1
    index = start
    while index < stop:
        first = previous = positions[index]
        after = index + 1
        while after < stop:
            position = positions[after]
            if position - previous > _NEAR_BYTES or position - first > _CHUNK_BYTES:
                break
            previous = position
            after += 1
        data = file.read(previous - first + _NEAR_BYTES, first)
        origin = first
        while index < after:
            position = positions[index]
            at = position - origin
            if at + HEAD.size > len(data):
                raise _damage(file, position, "the file ends within a batch.")
            base, size, leader, magic, crc, _, delta, base_time, max_time, _, _, _, records = HEAD.unpack_from(data, at)
            if base != window.offset_at(index) or magic != 2 or size < HEAD.size - _OUTSIDE or delta < 0:
                raise _damage(file, position, f"the batch of offset {window.offset_at(index)} is not here.")
            end = at + size + _OUTSIDE
            if end > len(data):
                data = read_exactly(file, size + _OUTSIDE, position) if _plausible(file, position, size) else b""
                origin, at, end = position, 0, size + _OUTSIDE
            if index >= verified:
                if base >= until:
                    epoch, until = epoch_at(epochs, base)
                if leader not in (epoch, -1):
                    raise _damage(file, position, f"the batch of offset {base} has epoch {leader}, not {epoch}.")
                if crc != crc32c.crc32c(memoryview(data)[at + _COVERED_AT : end]):
                    raise _damage(file, position, "the batch's CRC does not match its bytes.")
            yield Found(index, position, data, at, end, base, base + delta, base_time, max_time, records)
            index += 1


def _plausible(file: File, position: int, size: int) -> bool:
    """A length that was damaged must not make us ask for gigabytes."""
    if position + size + _OUTSIDE > file.size():
        raise _damage(file, position, "the batch would end after its file.")
    return True


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
            limit = stop
            verified = 0
            if window.verified_from <= index < window.verified_to:
                verified = window.verified_to
                limit = min(stop, verified)
            for found in scan(file, window, index, limit, epochs, verified):
                if found.last >= offset:
                    size = found.end - found.at
                    some = bool(slices or parts)
                    if (size > budget and some) or (size > room and (some or not at_least_one)):
                        return slices, False
                    parts.append(memoryview(found.data)[found.at : found.end])
                    budget -= size
                    room -= size
                index = found.number + 1
                if index >= window.verified_to:
                    _remember(window, found.number)
                elif not verified and index > window.verified_from:
                    break  # this is checked territory again
    except DamageError:
        if not slices and not parts:
            raise
        return slices, False
    finally:
        _flush(parts, slices)
    return slices, True


def _remember(window: Window, index: int) -> None:
    """One stretch of checked batches is remembered: that of the reader who was here last."""
    if window.verified_to != index:
        window.verified_from = index
    window.verified_to = index + 1


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
