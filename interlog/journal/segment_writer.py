"""Writing segments: batches from journal files and other segments go in, published segments come out.

For a worker's thread. Small pieces are gathered and written together; large ones are copied inside the kernel. Both
indexes are made on the way. A segment is full at `segment_bytes`: then the next one begins.
"""

from typing import Final

from interlog.journal.files import File
from interlog.journal.index import MOST_DELTA, NO_TIMESTAMP, IndexBuilder
from interlog.journal.segment import MOST_SEGMENT_BYTES, SEGMENT_BYTES, UNKNOWN, Segment, load_indexes
from interlog.journal.store import Draft, SegmentName, SegmentStore

_GATHER_BYTES: Final = 1 << 20
_COPY_BYTES: Final = 64 << 10  # from here on a copy inside the kernel pays


class SegmentWriter:
    """Writes a run of segments of one partition and generation. `finish`, or `abandon`, ends it."""

    def __init__(
        self, store: SegmentStore, partition: int, generation: int, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._store = store
        self._partition = partition
        self._generation = generation
        self._segment_bytes = min(segment_bytes, MOST_SEGMENT_BYTES)
        self._draft: Draft | None = None
        self._builder = IndexBuilder()
        self._gathered: list[bytes | memoryview] = []
        self._written = 0  # bytes of the log that are in the file; the gathered ones follow
        self._now: Segment | None = None
        self._done: list[Segment] = []

    def add(
        self,
        data: memoryview,
        base: int,
        last: int,
        max_timestamp_ms: int,
        records: int,
        source: tuple[File, int] | None = None,
        tombstones: int = 0,
    ) -> None:
        """One batch, its bytes already checked. With a source (file, position) it may be copied from there."""
        segment = self._room(base, last, len(data))
        builder = self._builder
        position = builder.offsets.log_bytes
        builder.add(base - segment.base, data, max_timestamp_ms)
        if not segment.batches:
            segment.first_timestamp_ms = max_timestamp_ms
        segment.batches += 1
        segment.records += records
        if segment.tombstones != UNKNOWN:
            segment.tombstones += tombstones
        segment.last = last
        if source is not None and len(data) >= _COPY_BYTES:
            self._copy(source[0], source[1], position, len(data))
        else:
            self._gathered.append(data)
            if builder.offsets.log_bytes - self._written >= _GATHER_BYTES:
                self._flush()

    def add_segment(self, source: Segment) -> None:
        """All batches of another segment, without looking at them: their CRCs in the index go with them."""
        file = self._store.open(source.name)
        index, times = load_indexes(self._store, source, file)
        segment = self._room(source.base, source.last, source.bytes)
        position = self._builder.offsets.log_bytes
        self._builder.extend(index, times, source.base - segment.base)
        if not segment.batches:
            segment.first_timestamp_ms = source.first_timestamp_ms
        segment.batches += source.batches
        segment.records += source.records
        known = UNKNOWN not in (segment.tombstones, source.tombstones)
        segment.tombstones = segment.tombstones + source.tombstones if known else UNKNOWN
        segment.last = source.last
        self._copy(file, 0, position, source.bytes)

    def finish(self) -> list[Segment]:
        """The published segments, in order."""
        self._close()
        return self._done

    def abandon(self) -> list[SegmentName]:
        """Let go of what is being written; the names of what was, or may have been, published already."""
        names = [segment.name for segment in self._done]
        if self._draft is not None and self._now is not None:
            self._draft.discard()
            self._draft = None
            names.append(self._now.name)
        return names

    def _room(self, base: int, last: int, size: int) -> Segment:
        segment = self._now
        if segment is not None:
            full = self._builder.offsets.log_bytes + size > self._segment_bytes
            if not full and last - segment.base <= MOST_DELTA:
                return segment
            self._close()
        name = SegmentName(self._partition, base, self._generation)
        self._draft = self._store.create(name)
        self._builder = IndexBuilder()
        self._written = 0
        self._now = Segment(name, base - 1, 0, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, tombstones=0)
        return self._now

    def _copy(self, file: File, source_position: int, position: int, size: int) -> None:
        assert self._draft is not None
        self._flush()
        self._store.copy(file, source_position, self._draft, position, size)
        self._written = position + size

    def _flush(self) -> None:
        if self._gathered:
            assert self._draft is not None
            self._draft.log.write(self._gathered, self._written)
            self._written += sum(map(len, self._gathered))
            self._gathered = []

    def _close(self) -> None:
        segment, draft = self._now, self._draft
        if segment is None or draft is None:
            return
        self._flush()
        index = self._builder.offsets
        draft.publish(index.pack(), self._builder.times.pack(index.log_bytes))
        segment.bytes = index.log_bytes
        segment.max_timestamp_ms = self._builder.max_timestamp_ms
        self._draft = self._now = None
        self._done.append(segment)
