"""A partition: offset → where the batch is. The newest batches are in memory, older ones in journal files, the
oldest in segments.

In come batches as they are placed in the journal (`add`), and segments that background work made (`replace`). Out go
slices of whole batches. Offsets rise and may have gaps. Per batch only arrays grow.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from interlog.base.errors import DamageError, FormatError, InvalidError, LimitError, OffsetOutOfRangeError
from interlog.journal import batch as batches
from interlog.journal.cold import read_window
from interlog.journal.files import Buffer, File
from interlog.journal.index import NO_TIMESTAMP, Window
from interlog.journal.segment import Readers, Segment
from interlog.journal.slices import FileRange, Slice, read_exactly, slice_bytes
from interlog.journal.store import Garbage
from interlog.journal.tail import Run, Tail

__all__ = ["FileRange", "Partition", "Slice", "slice_bytes"]

_EPOCH: Final = struct.Struct(">i")
_EPOCH_AT: Final = 12
_LAST_DELTA: Final = struct.Struct(">i")
_LAST_DELTA_AT: Final = 23
_SEARCH_BYTES: Final = 64 << 10


class Partition:
    """One partition. All of it belongs to the owner's thread."""

    __slots__ = (
        "_bases",
        "_epoch",
        "_garbage",
        "_generation",
        "_journal_file",
        "_readers",
        "_run",
        "_tail",
        "_window",
        "changed",
        "cleaned",
        "dropped",
        "epochs",
        "id",
        "log_end",
        "log_start",
        "segments",
        "segments_changed",
        "stored_end",
        "windows",
        "windows_changed",
    )

    def __init__(self, id: int, *, readers: Readers, tail: Tail, journal_file: Callable[[int], File]) -> None:
        self.id = id
        self.log_start = 0
        self.log_end = 0
        self.stored_end = 0  # after the last batch that was added: what begins before is known
        self.epochs: list[tuple[int, int]] = []  # (epoch, the offset of its first batch)
        self.cleaned: list[tuple[int, int]] = []  # compaction's memory: (up to this offset, first cleaned at ms)
        self.segments: list[Segment] = []
        self.windows: list[Window] = []  # of journal files, oldest first; all after the segments
        self.dropped = False
        self.changed = self.segments_changed = self.windows_changed = True  # since the checkpoint last asked
        self._readers = readers
        self._tail = tail
        self._journal_file = journal_file
        self._run = Run()
        self._bases: list[int] = []
        self._window: Window | None = None
        self._epoch = -1
        self._generation = 0
        self._garbage: Garbage = []

    def __repr__(self) -> str:
        return f"Partition({self.id}, {self.log_start} to {self.log_end})"

    # -- writing

    def add(self, batch: Buffer | None, base: int, last: int, max_timestamp_ms: int, file: int, position: int) -> bool:
        """A batch has its place: at a position of a journal file. False, and nothing done, if it is known already.

        Only a bytes object is kept in memory. Without one the batch's head is read back from the journal file.
        """
        if base < self.stored_end:
            return False
        if batch is None:
            batch = memoryview(_head(self._journal_file(file), position))
            size = batches.read_header(batch).length
        else:
            size = len(batch)
        epoch = _EPOCH.unpack_from(batch, _EPOCH_AT)[0]
        if epoch != self._epoch and epoch != -1:
            self._begin_epoch(epoch, base)
        window = self._window
        if window is None or window.file != file or not window.fits(base):
            window = self._open_window(file, base)
        window.add(base, last, position, max_timestamp_ms, size)
        self.stored_end = last + 1
        if last >= self.log_end:
            self.log_end = last + 1
        self.changed = self.windows_changed = True
        if isinstance(batch, bytes):
            self._tail.add(self._run, batch)
        else:
            self._tail.skip(self._run)
        return True

    def _begin_epoch(self, epoch: int, base: int) -> None:
        if epoch < self._epoch:
            raise InvalidError(f"epoch {epoch} of offset {base} is before epoch {self._epoch}")
        self.epochs.append((epoch, base))
        self._epoch = epoch

    def _open_window(self, file: int, base: int) -> Window:
        before = self._window
        first_index = before.first_index + len(before) if before is not None and before.file == file else 0
        run = self._run
        self._window = Window(file, base, first_index=first_index, number=run.first + len(run))
        self.windows.append(self._window)
        return self._window

    def advance(self, log_end: int) -> None:
        """Offsets before log_end are taken, by messages that are not stored here."""
        if log_end > self.log_end:
            self.log_end = log_end
            self.changed = True

    def set_log_start(self, offset: int) -> None:
        """Nothing before offset is wanted any more. What lies wholly before it goes, segments to `take_garbage`."""
        if offset <= self.log_start:
            return
        self.log_start = offset
        self.log_end = max(self.log_end, offset)
        self.changed = True
        epochs = self.epochs
        while len(epochs) > 1 and epochs[1][1] <= offset:
            del epochs[0]
        self.drop_before_start()

    def drop_before_start(self) -> None:
        gone = 0
        while gone < len(self.segments) and self.segments[gone].last < self.log_start:
            gone += 1
        if gone:
            self._splice(0, gone, [])
        while self.windows and self.windows[0].last < self.log_start:
            self._drop_window(self.windows[0])

    def _drop_window(self, window: Window) -> None:
        """The oldest window goes, and its batches from memory."""
        self.windows.remove(window)
        self.windows_changed = True
        if window is self._window:
            self._window = None
        run = self._run
        self._tail.forget(run, min(max(window.number + len(window) - run.first, 0), len(run)))

    def _splice(self, start: int, stop: int, products: Sequence[Segment]) -> None:
        for segment in self.segments[start:stop]:
            self._readers.forget(segment.name)
            self._garbage.append(segment.name)
        self.segments[start:stop] = products
        self._bases = [segment.base for segment in self.segments]
        self.segments_changed = True

    def drop(self) -> Garbage:
        """The partition is deleted: all its segments are garbage."""
        self.dropped = True
        self._splice(0, len(self.segments), [])
        while self.windows:
            self._drop_window(self.windows[0])
        self._tail.forget(self._run, len(self._run))
        return self.take_garbage()

    # -- background work

    def take_garbage(self) -> Garbage:
        """Segments that are no longer named. To be deleted once a checkpoint taken after this call is saved."""
        garbage, self._garbage = self._garbage, []
        return garbage

    def next_generation(self) -> int:
        self._generation += 1
        return self._generation

    def use_generation(self, generation: int) -> None:
        """This generation is taken, if only by a file that nothing names."""
        self._generation = max(self._generation, generation)

    def replace(self, sources: Sequence[Segment], windows: Sequence[Window], products: Sequence[Segment]) -> bool:
        """Put products in the place of the sources and of the oldest windows; False if they are not all there now.

        Sources must stand together, and at the end where windows are given. Products that lie before the log's
        start by now are garbage at once, as the sources are. With False nothing was changed.
        """
        at = len(self.segments)
        if sources:
            at = next((n for n, segment in enumerate(self.segments) if segment is sources[0]), -1)
            there = self.segments[at : at + len(sources)] if at >= 0 else []
            if len(there) != len(sources) or any(a is not b for a, b in zip(there, sources, strict=True)):
                return False
        if self.dropped or (windows and at + len(sources) != len(self.segments)):
            return False
        oldest = self.windows[: len(windows)]
        if len(oldest) != len(windows) or any(a is not b for a, b in zip(oldest, windows, strict=True)):
            return False
        for window in windows:
            self._drop_window(window)
        self._splice(at, at + len(sources), products)
        self.drop_before_start()
        return True

    # -- loading

    def load_segments(self, segments: Sequence[Segment]) -> None:
        """At start, from the checkpoint."""
        self.segments = sorted(segments, key=lambda segment: segment.base)
        self._bases = [segment.base for segment in self.segments]
        for segment in self.segments:
            self.use_generation(segment.name.generation)
            self.stored_end = max(self.stored_end, segment.last + 1)
        self.log_end = max(self.log_end, self.stored_end)

    def load_windows(self, windows: Sequence[Window]) -> None:
        """At start, from the checkpoint, oldest first, before any batch is added."""
        self.windows = list(windows)
        for window in self.windows:
            window.number = self._run.first
            self._tail.forget(self._run, len(window))  # none of them is in memory
            self._window = window
            self.stored_end = max(self.stored_end, window.last + 1)
        self.log_end = max(self.log_end, self.stored_end)

    def load_epochs(self, epochs: Sequence[tuple[int, int]]) -> None:
        self.epochs = list(epochs)
        self._epoch = self.epochs[-1][0] if self.epochs else -1

    # -- reading

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True) -> list[Slice]:
        """Whole batches from the one that holds offset, or the first after it, on; nothing at the log's end.

        Not more than max_bytes, but for one batch with at_least_one; it may be less than there is. DamageError if
        the first batch is not what was written.
        """
        if not self.log_start <= offset < self.log_end:
            if offset == self.log_end:
                return []
            raise OffsetOutOfRangeError(offset, self.log_start, self.log_end)
        windows = self.windows
        slices: list[Slice] = []
        at = len(windows) - 1
        while at >= 0 and windows[at].base > offset:
            at -= 1
        try:
            if at >= 0:
                self._read_windows(at, offset, max_bytes, at_least_one, slices)
            else:
                self._read_segments(offset, max_bytes, at_least_one, slices)
        except DamageError:
            if not slices:
                raise
        return slices

    def _read_segments(self, offset: int, room: int, at_least_one: bool, slices: list[Slice]) -> None:
        segments = self.segments
        at = max(bisect_right(self._bases, offset) - 1, 0)
        while at < len(segments):
            segment = segments[at]
            if segment.last >= offset:
                part, reached = self._readers.get(segment).read(offset, room, at_least_one and not slices)
                if part is not None:
                    slices.append(part)
                    room -= len(part)
                if not reached:
                    return
            at += 1
        if self.windows:
            self._read_windows(0, offset, room, at_least_one, slices)

    def _read_windows(self, at: int, offset: int, room: int, at_least_one: bool, slices: list[Slice]) -> None:
        windows = self.windows
        run = self._run
        while at < len(windows):
            window = windows[at]
            index = max(window.find(offset), 0)
            in_memory = run.first - window.number  # the first batch of the window that is
            if index < in_memory:
                stop = min(in_memory, len(window))
                file = self._journal_file(window.file)
                one = at_least_one and not slices
                parts, reached = read_window(file, window, index, stop, offset, room, one, self.epochs)
                slices += parts
                room -= sum(map(len, parts))
                if not reached:
                    return
                index = stop
            if index < len(window):
                self._read_memory(window, index, offset, room, at_least_one, slices)
                return  # all after it is in memory too
            at += 1

    def _read_memory(
        self, window: Window, index: int, offset: int, room: int, at_least_one: bool, slices: list[Slice]
    ) -> None:
        run = self._run
        items = run.items
        at = run.head + window.number + index - run.first
        if window.offset_at(index) + _LAST_DELTA.unpack_from(items[at], _LAST_DELTA_AT)[0] < offset:
            at += 1
        need = at_least_one and not slices
        while at < len(items):
            item = items[at]
            room -= len(item)
            if room < 0 and not need:
                return
            need = False
            slices.append(item)
            at += 1

    # -- times and epochs

    def max_timestamp(self) -> int:
        """The newest timestamp of what is stored; -1 if there is none."""
        newest = max((segment.max_timestamp_ms for segment in self.segments), default=NO_TIMESTAMP)
        return max([newest, *(window.max_timestamp_ms for window in self.windows)])

    def stored_bytes(self) -> int:
        return sum(segment.bytes for segment in self.segments) + sum(window.bytes for window in self.windows)

    def offset_for_time(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record at that time or later."""
        for segment in self.segments:
            if segment.max_timestamp_ms >= timestamp_ms:
                relative = self._readers.get(segment).times.find(timestamp_ms)
                if relative is not None:
                    found = self._search(segment.base + relative, segment.last, timestamp_ms)
                    if found is not None:
                        return found
        for window in self.windows:
            index = window.first_of_time(timestamp_ms)
            if index is not None:
                found = self._search(window.offset_at(index), window.last, timestamp_ms)
                if found is not None:
                    return found
        return None

    def _search(self, offset: int, last: int, timestamp_ms: int) -> tuple[int, int] | None:
        offset = max(offset, self.log_start)
        before = -1
        while before < offset <= last:
            before = offset
            for part in self.read(offset, _SEARCH_BYTES):
                data = slice_bytes(part)
                for position, header in batches.batches(data):
                    offset = header.next_offset
                    if header.max_timestamp_ms >= timestamp_ms:
                        found = self._first_record(data, position, header, timestamp_ms)
                        if found is not None:
                            return found
                    if offset > last:
                        return None
        return None

    def _first_record(
        self, data: bytes, position: int, header: batches.BatchHeader, timestamp_ms: int
    ) -> tuple[int, int] | None:
        try:
            records = batches.decode(data, position, verify=False)
        except (FormatError, LimitError):
            # A client's batch is stored unseen, and may not unpack: the batch is then the best there is to say.
            return max(header.base_offset, self.log_start), header.max_timestamp_ms
        for offset, record in records:
            if record.timestamp_ms >= timestamp_ms and offset >= self.log_start:
                return offset, record.timestamp_ms
        return None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest epoch known that is not after `epoch`, and where it ends; None for one that is not known yet."""
        if not self.epochs or epoch > self._epoch or epoch < 0:
            return None
        if epoch == self._epoch:
            return epoch, self.log_end
        at = bisect_right(self.epochs, epoch, key=lambda entry: entry[0])
        return (self.epochs[at - 1][0] if at else epoch), self.epochs[at][1]


def _head(file: File, position: int) -> bytes:
    return read_exactly(file, batches.HEADER_BYTES, position)
