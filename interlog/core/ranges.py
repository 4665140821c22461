"""A set of offsets as a floor and ranges above it: what of a queue need not be kept any more.

Single offsets and ranges come in, in any order, overlapping or not; out come membership, how far a run of offsets is
covered, the ranges in order, and bytes for the checkpoint. Everything below `floor` is in the set. Ranges above it are
disjoint and never touch. Their starts stand in sorted chunks, so that adding costs the same with ten ranges or a
million; their ends in a dict.

Exported: the floor, then first and last of each range in order, all u64 little-endian.
"""

import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from enum import Enum

from interlog.base.errors import FormatError

MAX_OFFSET = (1 << 63) - 1
_CHUNK = 512


class Cover(Enum):
    """How much of a run of offsets is in the set."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


class RangeSet:
    __slots__ = ("_chunks", "_ends", "_mins", "floor")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._ends: dict[int, int] = {}  # first offset of a range -> its last
        self._chunks: list[list[int]] = []  # the first offsets, sorted, none of the chunks empty
        self._mins: list[int] = []  # the first of each chunk

    def __len__(self) -> int:
        """The number of ranges above the floor."""
        return len(self._ends)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        ends = self._ends
        for chunk in self._chunks:
            for first in chunk:
                yield first, ends[first]

    def __contains__(self, offset: int) -> bool:
        if offset < self.floor:
            return True
        first = self._before(offset)
        return first >= 0 and self._ends[first] >= offset

    def add(self, first: int, last: int) -> None:
        """Put first to last, both included, into the set."""
        ends = self._ends
        floor = self.floor
        if first <= floor:
            if last < floor:
                return
            if ends:
                last = self._absorb(-1, last)
            self.floor = last + 1
            return
        before = self._before(first) if ends else -1
        if before >= 0 and ends[before] >= first - 1:
            if ends[before] >= last:
                return
            first = before
        else:
            self._insert(first)
        ends[first] = self._absorb(first, last)

    def _absorb(self, first: int, last: int) -> int:
        """Take out the ranges that begin after first and touch what ends at last; the end of it all."""
        while (after := self._after(first)) >= 0 and after <= last + 1:
            last = max(last, self._ends.pop(after))
            self._delete(after)
        return last

    def next_missing(self, offset: int) -> int:
        """The first offset, from this one on, that is not in the set."""
        if offset < self.floor:
            return self.floor
        first = self._before(offset)
        if first >= 0 and self._ends[first] >= offset:
            return self._ends[first] + 1
        return offset

    def missing(self, first: int, last: int) -> int:
        """How many of first to last are not in the set."""
        count = 0
        first = max(first, self.floor)
        ends = self._ends
        before = self._before(first)
        if before >= 0:
            first = max(first, ends[before] + 1)
        while first <= last:
            after = self._after(first - 1)
            if not first <= after <= last:
                return count + last - first + 1
            count += after - first
            first = ends[after] + 1
        return count

    def covers(self, first: int, last: int) -> Cover:
        """Whether all, some or none of first to last are in the set."""
        missing = self.next_missing(first)
        if missing > last:
            return Cover.ALL
        if missing > first:
            return Cover.SOME
        after = self._after(first)
        return Cover.SOME if 0 <= after <= last else Cover.NONE

    def export(self) -> bytes:
        numbers = [self.floor]
        for pair in self:
            numbers.extend(pair)
        return struct.pack(f"<{len(numbers)}Q", *numbers)

    @classmethod
    def load(cls, data: bytes) -> "RangeSet":
        """The set that was exported; FormatError if these bytes are not one."""
        if len(data) % 16 != 8:
            raise FormatError(f"{len(data)} bytes cannot be a set of ranges")
        numbers = struct.unpack(f"<{len(data) // 8}Q", data)
        if numbers[-1] > MAX_OFFSET:
            raise FormatError("a set of ranges reaches beyond the last possible offset")
        made = cls(numbers[0])
        previous = numbers[0]
        firsts = []
        for first, last in zip(numbers[1::2], numbers[2::2], strict=True):
            if first <= previous or last < first:
                raise FormatError("the ranges of a set must ascend and not touch")
            made._ends[first] = last
            firsts.append(first)
            previous = last + 1
        made._chunks = [firsts[start : start + _CHUNK] for start in range(0, len(firsts), _CHUNK)]
        made._mins = [chunk[0] for chunk in made._chunks]
        return made

    def _before(self, offset: int) -> int:
        """The greatest first offset that is not above this one; -1 if there is none."""
        at = bisect_right(self._mins, offset) - 1
        if at < 0:
            return -1
        chunk = self._chunks[at]
        return chunk[bisect_right(chunk, offset) - 1]

    def _after(self, offset: int) -> int:
        """The smallest first offset above this one; -1 if there is none."""
        at = bisect_right(self._mins, offset) - 1
        if at >= 0:
            chunk = self._chunks[at]
            inside = bisect_right(chunk, offset)
            if inside < len(chunk):
                return chunk[inside]
        return self._mins[at + 1] if at + 1 < len(self._mins) else -1

    def _insert(self, first: int) -> None:
        chunks, mins = self._chunks, self._mins
        if not chunks:
            chunks.append([first])
            mins.append(first)
            return
        at = max(bisect_right(mins, first) - 1, 0)
        chunk = chunks[at]
        insort(chunk, first)
        mins[at] = chunk[0]
        if len(chunk) > 2 * _CHUNK:
            chunks.insert(at + 1, chunk[_CHUNK:])
            mins.insert(at + 1, chunk[_CHUNK])
            del chunk[_CHUNK:]

    def _delete(self, first: int) -> None:
        at = bisect_right(self._mins, first) - 1
        chunk = self._chunks[at]
        del chunk[bisect_left(chunk, first)]
        if chunk:
            self._mins[at] = chunk[0]
        else:
            del self._chunks[at]
            del self._mins[at]
