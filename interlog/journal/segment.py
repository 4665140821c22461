"""A segment: a closed, immutable file of one partition's batches. Finding, checking and reading what is in it.

In: the row of the manifest and the store. Out: slices of whole batches. Nothing is served before the CRC of its
interval was checked; where that does not match, the batches' own CRCs tell which of them can still be trusted.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from interlog.base import crc32c
from interlog.base.errors import DamageError, FormatError
from interlog.journal import batch
from interlog.journal.cold import HEAD, LARGE_BYTES, MOST_COLD_BYTES
from interlog.journal.files import File
from interlog.journal.index import INTERVAL_BYTES, MOST_DELTA, IndexBuilder, OffsetIndex, TimeIndex
from interlog.journal.slices import ADVICE, FileRange, Slice, read_exactly
from interlog.journal.store import SegmentName, SegmentStore

SEGMENT_BYTES: Final = 64 << 20
MOST_SEGMENT_BYTES: Final = (1 << 32) - 1
UNKNOWN: Final = -1
_PIECE_BYTES: Final = 1 << 20
_OUTSIDE: Final = 12


@dataclass(slots=True, eq=False)
class Segment:
    """What the manifest says of a segment. Two plans may name the same one: identity tells if it is still there."""

    name: SegmentName
    last: int
    bytes: int
    batches: int
    records: int
    first_timestamp_ms: int
    max_timestamp_ms: int
    tombstones: int = UNKNOWN  # records without a value that compaction left in it
    claimed: bool = field(default=False, repr=False)  # a plan works on it: others look elsewhere
    alive_at_rewrite: int = field(default=UNKNOWN, repr=False)

    @property
    def base(self) -> int:
        return self.name.base


class SegmentReader:
    """An open segment with its indexes. Remembers which intervals were found sound."""

    def __init__(self, segment: Segment, file: File, index: OffsetIndex, times: TimeIndex) -> None:
        self.segment = segment
        self.file = file
        self.index = index
        self.times = times
        self._sound = bytearray(len(index))

    def read(self, offset: int, most: int, at_least_one: bool) -> tuple[Slice | None, bool]:
        """Whole batches from the first that ends at offset or after; and whether that reached the segment's end."""
        index = self.index
        interval = index.find(offset - self.segment.base)
        start = start_at = stop = 0
        data = b""
        while True:
            start_at = index.positions[interval]
            stop = bisect_right(index.positions, start_at + min(most, MOST_COLD_BYTES) + INTERVAL_BYTES)
            if self._sound.find(0, interval, stop) < 0:
                data = b""
                # All of it is known to be sound: as far as that goes, it may be a range of the file.
                beyond = self._sound.find(0, stop)
                stop = len(index) if beyond < 0 else beyond
            else:
                data = read_exactly(self.file, index.end(stop - 1) - start_at, start_at)
                stop = self._check(data, interval, stop)
                if stop == interval:
                    found = self._salvage(interval, offset, most, at_least_one)
                    if found is not None:
                        return found
            if stop > interval:
                start = self._locate(interval, offset)
                if start < index.end(interval):
                    break
            interval += 1
            if interval == len(index):
                return None, True
        sound_end = index.end(stop - 1)
        end = sound_end if start + most >= sound_end else self._boundary(start, start + most)
        if end == start:
            if not at_least_one:
                return None, False
            end = self._batch_end(start)
        reached = end == index.log_bytes
        if data:
            return data[start - start_at : end - start_at], reached
        if end - start < LARGE_BYTES:
            return read_exactly(self.file, end - start, start), reached
        return FileRange(self.file, start, end - start), reached

    def _check(self, data: bytes, interval: int, stop: int) -> int:
        """Check intervals against their CRCs; the first that does not match, or stop."""
        index = self.index
        view = memoryview(data)
        origin = index.positions[interval]
        for at in range(interval, stop):
            if not self._sound[at]:
                if crc32c.crc32c(view[index.positions[at] - origin : index.end(at) - origin]) != index.crcs[at]:
                    return at
                self._sound[at] = 1
        return stop

    def _heads(self, interval: int) -> Iterator[tuple[int, int, int]]:
        """Position, end and last offset of each batch of a sound interval: heads only, bodies unread."""
        position = start = self.index.positions[interval]
        stop = self.index.end(interval)
        data = self.file.read(INTERVAL_BYTES + HEAD.size, start)
        while position < stop:
            if position - start + HEAD.size > len(data):
                raise self._damage(position)
            base, size, _, _, _, _, delta, *_ = HEAD.unpack_from(data, position - start)
            end = position + size + _OUTSIDE
            yield position, end, base + delta
            position = end

    def _locate(self, interval: int, offset: int) -> int:
        """The position of the first batch that ends at offset or after; the interval's end if none does."""
        for position, _, last in self._heads(interval):
            if last >= offset:
                return position
        return self.index.end(interval)

    def _boundary(self, start: int, limit: int) -> int:
        """The last beginning or end of a batch at limit or before, and not before start."""
        boundary = start
        interval = bisect_right(self.index.positions, limit) - 1
        for position, end, _ in self._heads(interval):
            boundary = max(boundary, end if end <= limit else position)
            if end > limit:
                break
        return boundary

    def _batch_end(self, position: int) -> int:
        size = HEAD.unpack(read_exactly(self.file, HEAD.size, position))[1]
        return int(position + size + _OUTSIDE)

    def _salvage(self, interval: int, offset: int, most: int, at_least_one: bool) -> tuple[Slice | None, bool] | None:
        """From an interval whose CRC does not match: the sound batches at offset, None if all end before it.

        DamageError if offset may be in a batch that is not sound.
        """
        index = self.index
        start = index.positions[interval]
        data = read_exactly(self.file, index.end(interval) - start, start)
        expected = self.segment.base + index.offsets[interval]
        last = interval + 1 == len(index)
        limit = self.segment.last + 1 if last else self.segment.base + index.offsets[interval + 1]
        sound: list[batch.BatchHeader] = []
        at: list[int] = []
        damaged: list[int] = []
        for position, header in _walk(data):
            if header is None or header.base_offset < expected or header.last_offset >= limit:
                damaged.append(position)
            else:
                sound.append(header)
                at.append(position)
                expected = header.last_offset + 1
        if not damaged:
            # All CRCs match: what was changed is an offset or an epoch, which those of the batches do not cover.
            raise self._damage(start)
        chosen = next((n for n, header in enumerate(sound) if header.last_offset >= offset), len(sound))
        if chosen == len(sound) or sound[chosen].base_offset > offset:
            # offset lies between two sound batches: is there damage between them?
            after = at[chosen - 1] if chosen else -1
            before = at[chosen] if chosen < len(sound) else len(data)
            for position in damaged:
                if after < position < before and offset < limit:
                    raise self._damage(start + position)
        if chosen == len(sound):
            return None
        begin = end = at[chosen]
        for position, header in zip(at[chosen:], sound[chosen:], strict=True):
            fits = position + header.length - begin <= most or (end == begin and at_least_one)
            if position != end or not fits:
                break
            end += header.length
        return data[begin:end] or None, False

    def _damage(self, position: int) -> DamageError:
        return DamageError(str(self.file.path), position, "the CRC does not match the bytes.", ADVICE)


def _walk(data: bytes) -> Iterator[tuple[int, batch.BatchHeader | None]]:
    """Position and header of each batch, None for one that is not sound; no further where no next one can be found."""
    position = 0
    while position < len(data):
        try:
            header = batch.read_header(data, position)
        except FormatError:
            yield position, None
            return
        try:
            yield position, batch.check(data, position)
        except FormatError:
            yield position, None
        position += header.length


def make_indexes(
    file: File, base: int, last: int | None = None, epochs: list[tuple[int, int]] | None = None
) -> tuple[OffsetIndex, TimeIndex, Segment, list[int]]:
    """Read a whole log and make its indexes again; with what else can be told of it, and where it is damaged.

    With `last`, no batch may end after it. Batches that are not sound are indexed so that reading them finds that
    out. Raises only OSError.
    """
    builder = IndexBuilder()
    most = base + MOST_DELTA if last is None else min(last, base + MOST_DELTA)
    size = file.size()
    position = 0
    damaged: list[int] = []
    segment = Segment(SegmentName(0, base, 0), base - 1, size, 0, 0, UNKNOWN, UNKNOWN)
    while position < size:
        data = file.read(min(_PIECE_BYTES, size - position), position)
        at = 0
        while at < len(data):
            try:
                header = batch.read_header(data, at)
            except FormatError:
                if at and len(data) - at < HEAD.size:
                    break
                header = None
            if header is None or header.length > size - position - at or header.base_offset < base:
                rest = file.read(size - position - at, position + at)
                builder.add(max(segment.last + 1 - base, 0), rest, UNKNOWN, sound=False)
                damaged.append(position + at)
                return builder.offsets, builder.times, segment, damaged
            if header.length > len(data) - at:
                if at:
                    break
                data = file.read(header.length, position)
            if not _index_batch(builder, segment, data, at, header, most):
                damaged.append(position + at)
            elif epochs is not None and (not epochs or epochs[-1][0] < header.leader_epoch):
                epochs.append((header.leader_epoch, header.base_offset))
            at += header.length
        position += at
    segment.max_timestamp_ms = builder.max_timestamp_ms
    return builder.offsets, builder.times, segment, damaged


def _index_batch(
    builder: IndexBuilder, segment: Segment, data: bytes, at: int, header: batch.BatchHeader, most: int
) -> bool:
    sound = segment.last < header.base_offset and header.last_offset <= most
    try:
        batch.check(data, at)
    except FormatError:
        sound = False
    if not segment.batches:
        segment.first_timestamp_ms = header.max_timestamp_ms
    segment.batches += 1
    segment.records += max(header.record_count, 0)
    relative = header.base_offset - segment.base if sound else segment.last + 1 - segment.base
    if sound:
        segment.last = header.last_offset
    piece = memoryview(data)[at : at + header.length]
    builder.add(relative, piece, header.max_timestamp_ms if sound else UNKNOWN, sound=sound)
    return sound


def walk_log(file: File, size: int) -> Iterator[tuple[int, batch.BatchHeader, bytes]]:
    """Position, header and bytes of each batch of a log, in order; DamageError at one that is not sound."""
    position = 0
    while position < size:
        data = file.read(min(_PIECE_BYTES, size - position), position)
        at = 0
        while at < len(data):
            try:
                header = batch.read_header(data, at)
                if len(data) - at < header.length <= size - position - at:
                    data, position, at = read_exactly(file, header.length, position + at), position + at, 0
                batch.check(data, at)
            except FormatError as error:
                if at and len(data) - at < HEAD.size and position + len(data) < size:
                    break
                raise DamageError(str(file.path), position + at, f"{error}.", ADVICE) from None
            yield position + at, header, data[at : at + header.length]
            at += header.length
        position += at


def load_indexes(store: SegmentStore, segment: Segment, file: File) -> tuple[OffsetIndex, TimeIndex]:
    """The indexes as stored, or made again where they are not sound."""
    index, times = store.read_indexes(segment.name)
    size = file.size()
    try:
        return OffsetIndex.parse(index, size), TimeIndex.parse(times, size)
    except FormatError:
        offsets, made, _, _ = make_indexes(file, segment.base, segment.last)
        return offsets, made


class Readers:
    """Open segments, the most recently read ones; for the owner's thread. Files close when nobody holds them."""

    def __init__(self, store: SegmentStore, most_open: int = 256) -> None:
        self._store = store
        self._most_open = most_open
        self._open: OrderedDict[SegmentName, SegmentReader] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, segment: Segment) -> SegmentReader:
        reader = self._open.get(segment.name)
        if reader is not None:
            self._open.move_to_end(segment.name)
            return reader
        file = self._store.open(segment.name)
        if file.size() != segment.bytes:
            size = file.size()
            raise DamageError(str(file.path), min(size, segment.bytes), f"{segment.bytes} bytes expected.", ADVICE)
        reader = SegmentReader(segment, file, *load_indexes(self._store, segment, file))
        self._open[segment.name] = reader
        if len(self._open) > self._most_open:
            self._open.popitem(last=False)
        return reader

    def forget(self, name: SegmentName) -> None:
        self._open.pop(name, None)
