"""Where batches lie: in arrays for the journal, in small files beside each segment.

`Window` is told of every batch of one partition in one journal file and answers which batch an offset is in; it costs
8 bytes a batch, or 4 while each batch holds one offset. `OffsetIndex` and `TimeIndex` are the sparse indexes of a
segment. Their files, all numbers big-endian:

    magic 4 (ILOX or ILTX), log bytes 8, count 4, crc 4 (CRC32C of all the other bytes), then count entries
      ILOX  relative offset 4, position 4, crc 4    one for every 4 KiB of the log, at a batch's beginning;
                                                    the crc is of the log's bytes up to the next entry
      ILTX  timestamp 8, relative offset 4          one for every 64 KiB: the largest timestamp from the log's
                                                    beginning to the end of these 64 KiB, and where they begin
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import lt
from typing import Final

from interlog.base import crc32c
from interlog.base.errors import FormatError
from interlog.journal.files import Buffer

BLOCK_BATCHES: Final = 64  # batches between two entries of a window's times and sizes
INTERVAL_BYTES: Final = 4096  # of log between two entries of an offset index
TIME_INTERVALS: Final = 16  # entries of the offset index for one of the time index
MOST_INDEX_BYTES: Final = 32 << 20
MOST_DELTA: Final = (1 << 32) - 1
NO_TIMESTAMP: Final = -1

_HEADER: Final = struct.Struct(">4sQII")
_TIME: Final = struct.Struct(">qI")
_OFFSETS_MAGIC: Final = b"ILOX"
_TIMES_MAGIC: Final = b"ILTX"
assert array("I").itemsize == 4


class Window:
    """The batches of one partition in one journal file. Arrays only: a batch adds no object."""

    __slots__ = (
        "base",
        "bytes",
        "file",
        "first_index",
        "last",
        "max_timestamp_ms",
        "number",
        "offsets",
        "positions",
        "saved",
        "sizes",
        "times",
        "verified_from",
        "verified_to",
    )

    def __init__(self, file: int, base: int, *, first_index: int = 0, number: int = 0) -> None:
        self.file = file
        self.base = base  # the first batch's base offset
        self.last = base - 1
        self.first_index = first_index  # not 0 where a partition's batches in one file needed a second window
        self.number = number  # of the first batch, counted over all windows the partition had since the start
        self.offsets: array[int] | None = None  # None while batch n begins at base + n
        self.positions = array("I")
        self.times = array("q")  # before every 64th batch: the largest timestamp so far
        self.sizes = array("Q")  # before every 64th batch: the bytes so far
        self.max_timestamp_ms = NO_TIMESTAMP
        self.bytes = 0
        self.saved = 0  # how many batches the checkpoint was told of
        self.verified_from = self.verified_to = 0  # batches whose CRC was checked when they were last read

    def __len__(self) -> int:
        return len(self.positions)

    def fits(self, base_offset: int) -> bool:
        return base_offset - self.base <= MOST_DELTA

    def add(self, base_offset: int, last_offset: int, position: int, max_timestamp_ms: int, size: int) -> None:
        positions = self.positions
        count = len(positions)
        if not count & (BLOCK_BATCHES - 1):
            self.times.append(self.max_timestamp_ms)
            self.sizes.append(self.bytes)
        offsets = self.offsets
        if offsets is not None:
            offsets.append(base_offset - self.base)
        elif base_offset - self.base != count:
            self.offsets = array("I", range(count))
            self.offsets.append(base_offset - self.base)
        positions.append(position)
        self.last = last_offset
        self.bytes += size
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms

    def find(self, offset: int) -> int:
        """The last batch that begins at offset or before; -1 if all begin after."""
        delta = offset - self.base
        if self.offsets is None:
            count = len(self.positions)
            return max(delta, -1) if delta < count else count - 1
        return bisect_right(self.offsets, delta) - 1

    def offset_at(self, index: int) -> int:
        """The base offset of a batch; for one past the last, the offset after the window."""
        if index >= len(self.positions):
            return self.last + 1
        return self.base + (index if self.offsets is None else self.offsets[index])

    def position_at(self, index: int) -> int:
        """Where in the journal file a batch begins."""
        return self.positions[index]

    def first_of_time(self, timestamp_ms: int) -> int | None:
        """A batch near before the first whose max timestamp is timestamp_ms or more; None if there is none."""
        if self.max_timestamp_ms < timestamp_ms or not self.times:
            return None
        return (bisect_left(self.times, timestamp_ms, 1) - 1) * BLOCK_BATCHES

    def blocks(self) -> list[tuple[int, int, int]]:
        """(offset after the block, its bytes, largest timestamp up to its end), 64 batches to a block."""
        return list(self.blocks_from(self.base))

    def blocks_from(self, offset: int) -> Iterator[tuple[int, int, int]]:
        """The blocks from the one that the offset is in on, or from the first if it is before that."""
        sizes, times = self.sizes, self.times
        count = len(sizes)
        for block in range(self._block_of(offset), count):
            after = block + 1
            size, latest = (sizes[after], times[after]) if after < count else (self.bytes, self.max_timestamp_ms)
            yield self.offset_at(after * BLOCK_BATCHES), size - sizes[block], latest

    def bytes_from(self, offset: int) -> int:
        """The bytes of these blocks."""
        return self.bytes - self.sizes[self._block_of(offset)] if self.sizes else 0

    def _block_of(self, offset: int) -> int:
        return max(self.find(offset), 0) // BLOCK_BATCHES

    def export(self, start: int) -> tuple[bytes, bytes, bytes, bytes]:
        """Offsets, positions, times and sizes from a batch on, for `take`."""
        block = -(-start // BLOCK_BATCHES)
        offsets = b"" if self.offsets is None else _little(self.offsets[start:])
        return offsets, _little(self.positions[start:]), _little(self.times[block:]), _little(self.sizes[block:])

    def take(self, offsets: bytes, positions: bytes, times: bytes, sizes: bytes) -> None:
        """Append what `export` gave. The totals (last, bytes, max_timestamp_ms) are the caller's to set."""
        before = len(self.positions)
        try:
            self.positions.extend(_from_little("I", positions))
            self.times.extend(_from_little("q", times))
            self.sizes.extend(_from_little("Q", sizes))
            added = _from_little("I", offsets)
        except ValueError as error:
            raise FormatError(f"a window of the journal is no array: {error}") from None
        count = len(self.positions)
        if offsets and self.offsets is None:
            self.offsets = array("I", range(before))
        if self.offsets is not None:
            self.offsets.extend(added if offsets else array("I", range(before, count)))
            if len(self.offsets) != count:
                raise FormatError("a window of the journal has not one offset for each position")
        blocks = -(-count // BLOCK_BATCHES)
        if len(self.times) != blocks or len(self.sizes) != blocks:
            raise FormatError("a window of the journal has not one time for each block")


def _little(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _from_little(kind: str, data: bytes) -> "array[int]":
    numbers: array[int] = array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


class OffsetIndex:
    """The sparse offset index of a segment: relative offset, position and CRC of each interval."""

    __slots__ = ("crcs", "log_bytes", "offsets", "positions")

    def __init__(self, log_bytes: int = 0) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.crcs = array("I")
        self.log_bytes = log_bytes

    def __len__(self) -> int:
        return len(self.positions)

    def find(self, relative: int) -> int:
        """The last interval that begins at the relative offset or before; the first if all begin after."""
        return max(bisect_right(self.offsets, relative) - 1, 0)

    def end(self, interval: int) -> int:
        """The position after an interval."""
        return self.positions[interval + 1] if interval + 1 < len(self.positions) else self.log_bytes

    def pack(self) -> bytes:
        entries = array("I", bytes(12 * len(self.positions)))
        entries[0::3], entries[1::3], entries[2::3] = self.offsets, self.positions, self.crcs
        if sys.byteorder == "little":
            entries.byteswap()
        return _pack(_OFFSETS_MAGIC, self.log_bytes, len(self.positions), entries.tobytes())

    @classmethod
    def parse(cls, data: bytes, log_bytes: int) -> "OffsetIndex":
        """FormatError unless data is a sound index of a log of that many bytes."""
        body = _parse(_OFFSETS_MAGIC, data, log_bytes, 12)
        entries = array("I")
        entries.frombytes(body)
        if sys.byteorder == "little":
            entries.byteswap()
        self = cls(log_bytes)
        self.offsets, self.positions, self.crcs = entries[0::3], entries[1::3], entries[2::3]
        positions = self.positions
        if bool(positions) != bool(log_bytes) or (positions and (positions[0] or positions[-1] >= log_bytes)):
            raise FormatError("the offset index does not cover its log")
        if not (all(map(lt, positions, positions[1:])) and all(map(lt, self.offsets, self.offsets[1:]))):
            raise FormatError("the entries of the offset index do not rise")
        return self


class TimeIndex:
    """The sparse time index of a segment."""

    __slots__ = ("offsets", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self.offsets = array("I")

    def find(self, timestamp_ms: int) -> int | None:
        """A relative offset near before the first batch of that max timestamp or more; None if there is none."""
        entry = bisect_left(self.times, timestamp_ms)
        return self.offsets[entry] if entry < len(self.times) else None

    def pack(self, log_bytes: int) -> bytes:
        entries = b"".join(map(_TIME.pack, self.times, self.offsets))
        return _pack(_TIMES_MAGIC, log_bytes, len(self.times), entries)

    @classmethod
    def parse(cls, data: bytes, log_bytes: int) -> "TimeIndex":
        """FormatError unless data is a sound index of a log of that many bytes."""
        self = cls()
        for timestamp, offset in _TIME.iter_unpack(_parse(_TIMES_MAGIC, data, log_bytes, _TIME.size)):
            self.times.append(timestamp)
            self.offsets.append(offset)
        times, offsets = self.times, self.offsets
        if bool(times) != bool(log_bytes) or not all(map(lt, offsets, offsets[1:])):
            raise FormatError("the time index does not cover its log")
        if any(map(lt, times[1:], times)):
            raise FormatError("the entries of the time index do not rise")
        return self


def _pack(magic: bytes, log_bytes: int, count: int, entries: bytes) -> bytes:
    start = _HEADER.pack(magic, log_bytes, count, 0)[:-4]
    return start + struct.pack(">I", crc32c.crc32c(entries, crc32c.crc32c(start))) + entries


def _parse(magic: bytes, data: bytes, log_bytes: int, entry_bytes: int) -> bytes:
    if len(data) < _HEADER.size or len(data) > MOST_INDEX_BYTES:
        raise FormatError(f"{len(data)} bytes are no index")
    found, of_bytes, count, crc = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if found != magic or crc != crc32c.crc32c(body, crc32c.crc32c(data[: _HEADER.size - 4])):
        raise FormatError("the index is damaged")
    if of_bytes != log_bytes or len(body) != count * entry_bytes:
        raise FormatError("the index is of another log")
    return body


class IndexBuilder:
    """Makes both indexes of a log as its batches pass by, one after another."""

    __slots__ = ("max_timestamp_ms", "offsets", "times")

    def __init__(self) -> None:
        self.offsets = OffsetIndex()
        self.times = TimeIndex()
        self.max_timestamp_ms = NO_TIMESTAMP

    def add(self, relative: int, data: Buffer, max_timestamp_ms: int, *, sound: bool = True) -> None:
        """One batch. One that is not sound spoils its interval's CRC, so that the interval is not believed."""
        index = self.offsets
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
        position = index.log_bytes
        if not position or position - index.positions[-1] >= INTERVAL_BYTES:
            if len(index.positions) % TIME_INTERVALS == 0:
                self.times.offsets.append(relative)
                self.times.times.append(self.max_timestamp_ms)
            index.offsets.append(relative)
            index.positions.append(position)
            index.crcs.append(0)
        self.times.times[-1] = self.max_timestamp_ms
        crc: int = crc32c.crc32c(data, index.crcs[-1])
        index.crcs[-1] = crc if sound else crc ^ 1
        index.log_bytes = position + len(data)

    def extend(self, offsets: OffsetIndex, times: TimeIndex, shift: int) -> None:
        """All batches of another log, its relative offsets shifted, without looking at them."""
        index = self.offsets
        start = index.log_bytes
        index.offsets.extend(offset + shift for offset in offsets.offsets)
        index.positions.extend(position + start for position in offsets.positions)
        index.crcs.extend(offsets.crcs)
        index.log_bytes = start + offsets.log_bytes
        for timestamp, offset in zip(times.times, times.offsets, strict=True):
            self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp)
            self.times.times.append(self.max_timestamp_ms)
            self.times.offsets.append(offset + shift)
