"""What the checkpoint keeps of the partitions: their bounds, the manifest of segments, the windows of the journal.

Three sections over the same partitions; `PartitionsSection` is loaded first, for it makes them. Between checkpoints
only what changed is handed over; of a window, only the batches that came.
"""

import json
from collections.abc import Callable, Iterable
from typing import cast

from interlog.base.errors import FormatError
from interlog.journal.index import Window
from interlog.journal.partition import Partition
from interlog.journal.section import Changes, Row, Table
from interlog.journal.segment import Segment
from interlog.journal.store import SegmentName

Partitions = dict[int, Partition]


class PartitionsSection:
    """id → log start, log end, what is known, epochs, what compaction remembers."""

    table = Table(
        "partitions",
        (
            ("id", "INTEGER"),
            ("log_start", "INTEGER"),
            ("log_end", "INTEGER"),
            ("stored_end", "INTEGER"),
            ("epochs", "TEXT"),
            ("cleaned", "TEXT"),
        ),
    )

    def __init__(self, partitions: Partitions, make: Callable[[int], Partition]) -> None:
        self._partitions = partitions
        self._make = make
        self._saved: set[int] = set()

    def take_changes(self) -> Changes:
        changes = Changes()
        changes.removals = [(id,) for id in sorted(self._saved - self._partitions.keys())]
        for partition in self._partitions.values():
            if partition.changed:
                partition.changed = False
                epochs, cleaned = _pairs_json(partition.epochs), _pairs_json(partition.cleaned)
                ends = partition.log_start, partition.log_end, partition.stored_end
                changes.rows.append((partition.id, *ends, epochs, cleaned))
        self._saved = set(self._partitions)
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for row in rows:
            id, log_start, log_end, stored_end = cast(tuple[int, int, int, int], row[:4])
            partition = self._make(id)
            partition.log_start, partition.log_end, partition.stored_end = log_start, log_end, stored_end
            partition.load_epochs([(epoch, start) for epoch, start in json.loads(str(row[4]))])
            partition.cleaned = [(offset, ms) for offset, ms in json.loads(str(row[5]))]
            partition.changed = False
            self._partitions[id] = partition
        self._saved = set(self._partitions)


def _pairs_json(pairs: list[tuple[int, int]]) -> str:
    """What json.dumps would give, at a fifth of the cost: it is asked of thousands of partitions in one turn."""
    return "[" + ", ".join([f"[{first}, {second}]" for first, second in pairs]) + "]"


class SegmentsSection:
    """The manifest: a segment that is not in it is not there."""

    table = Table(
        "segments",
        (
            ("partition", "INTEGER"),
            ("base", "INTEGER"),
            ("generation", "INTEGER"),
            ("last", "INTEGER"),
            ("bytes", "INTEGER"),
            ("batches", "INTEGER"),
            ("records", "INTEGER"),
            ("first_timestamp_ms", "INTEGER"),
            ("max_timestamp_ms", "INTEGER"),
            ("tombstones", "INTEGER"),
        ),
        keys=3,
    )

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._saved: dict[int, set[SegmentName]] = {}

    def take_changes(self) -> Changes:
        changes = Changes()
        for id in sorted(self._saved.keys() - self._partitions.keys()):
            del self._saved[id]
            changes.removals.append((id,))
        for partition in self._partitions.values():
            if not partition.segments_changed:
                continue
            partition.segments_changed = False
            saved = self._saved.get(partition.id, set())
            now = {segment.name for segment in partition.segments}
            changes.removals += sorted(saved - now)
            changes.rows += [_segment_row(segment) for segment in partition.segments if segment.name not in saved]
            if now:
                self._saved[partition.id] = now
            else:
                self._saved.pop(partition.id, None)
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        found: dict[int, list[Segment]] = {}
        for row in rows:
            segment = segment_of(row)
            found.setdefault(segment.name.partition, []).append(segment)
        for id, segments in found.items():
            _known(self._partitions, id).load_segments(segments)
            self._saved[id] = {segment.name for segment in segments}
        for partition in self._partitions.values():
            partition.segments_changed = False


def _segment_row(segment: Segment) -> Row:
    times = segment.first_timestamp_ms, segment.max_timestamp_ms
    return *segment.name, segment.last, segment.bytes, segment.batches, segment.records, *times, segment.tombstones


def segment_of(row: Row) -> Segment:
    """The segment of a row of the manifest."""
    partition, base, generation, *numbers = cast(tuple[int, ...], row)
    last, size, count, records, first_ms, newest_ms, tombstones = numbers
    name = SegmentName(partition, base, generation)
    return Segment(name, last, size, count, records, first_ms, newest_ms, tombstones)


class WindowsSection:
    """Where batches lie in the journal: rows of blobs, of which a window may have several, one after another."""

    table = Table(
        "windows",
        (
            ("file", "INTEGER"),
            ("partition", "INTEGER"),
            ("from_index", "INTEGER"),
            ("base", "INTEGER"),  # of the window, and after it what holds for the window up to this row's end
            ("last", "INTEGER"),
            ("bytes", "INTEGER"),
            ("max_timestamp_ms", "INTEGER"),
            ("offsets", "BLOB"),
            ("positions", "BLOB"),
            ("times", "BLOB"),
            ("sizes", "BLOB"),
        ),
        keys=3,
    )

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._saved: dict[int, set[int]] = {}  # by partition: the files it has rows for

    def take_changes(self) -> Changes:
        changes = Changes()
        for id in sorted(self._saved.keys() - self._partitions.keys()):
            changes.removals += [(file, id) for file in sorted(self._saved.pop(id))]
        for partition in self._partitions.values():
            if not partition.windows_changed:
                continue
            partition.windows_changed = False
            saved = self._saved.get(partition.id, set())
            # A file whose first window is new has no rows that still hold.
            firsts = {window.file: window for window in reversed(partition.windows)}
            stale = {file for file in saved if file not in firsts or not firsts[file].saved}
            changes.removals += [(file, partition.id) for file in sorted(stale)]
            for window in partition.windows:
                if window.saved < len(window):
                    changes.rows.append(_window_row(partition.id, window))
                    window.saved = len(window)
            if firsts:
                self._saved[partition.id] = set(firsts)
            else:
                self._saved.pop(partition.id, None)
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for id, windows in windows_of(rows).items():
            partition = _known(self._partitions, id)
            partition.load_windows(windows)
            self._saved[id] = {window.file for window in windows}
        for partition in self._partitions.values():
            partition.windows_changed = False
            partition.drop_before_start()


def windows_of(rows: Iterable[Row]) -> dict[int, list[Window]]:
    """The windows in the rows of their table, by partition."""
    found: dict[int, list[Window]] = {}
    for row in rows:
        file, id, from_index, base, last, size, newest_ms = cast(tuple[int, ...], row[:7])
        windows = found.setdefault(id, [])
        window = windows[-1] if windows else None
        if window is None or window.file != file or window.base != base:
            window = Window(file, base, first_index=from_index)
            windows.append(window)
        if window.first_index + len(window) != from_index:
            raise FormatError(f"the windows of partition {id} in journal file {file} have a gap at {from_index}")
        window.take(*cast(tuple[bytes, bytes, bytes, bytes], row[7:11]))
        window.last, window.bytes, window.max_timestamp_ms = last, size, newest_ms
        window.saved = len(window)
    return found


def _window_row(id: int, window: Window) -> Row:
    start = window.saved
    totals = window.last, window.bytes, window.max_timestamp_ms
    return window.file, id, window.first_index + start, window.base, *totals, *window.export(start)


def _known(partitions: Partitions, id: int) -> Partition:
    try:
        return partitions[id]
    except KeyError:
        raise FormatError(f"the checkpoint has rows for partition {id}, but no such partition") from None
