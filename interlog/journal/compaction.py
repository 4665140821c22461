"""Compaction: of each key only the newest record stays. Offsets never change.

In: a partition's closed segments. Out: segments without the records that a later one of the same key supersedes. The
part of the log that was never cleaned is read first, to learn the newest offset of each key there; then everything up
to there is copied without what is superseded. A record without a value (a tombstone) supersedes too, and stays for
`delete_retention_ms` after it was first cleaned, so that every reader meets it. Records without a key stay: they
supersede nothing. Control batches stay. Records of a transaction count once its commit is read, and not at all if it
was aborted; the clean part ends where an open one begins. Batches that do not unpack stay as they are.

Memory is bounded by `most_keys`: when so many are known, the rest of the log waits for the next pass.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from interlog.base.errors import FormatError, LimitError
from interlog.journal import batch as batches
from interlog.journal.partition import Partition
from interlog.journal.record import Record
from interlog.journal.segment import SEGMENT_BYTES, Segment, walk_log
from interlog.journal.segment_writer import SegmentWriter
from interlog.journal.settle import SEGMENT_MS, Installed
from interlog.journal.store import Garbage, SegmentStore

_DIGEST_BYTES: Final = 16
_MARKS: Final = 64  # cleanings remembered one by one within the delete retention
_COMMIT: Final = b"\0\0\0\1"  # the key of a control record: version 0, type 1

Cleaned = Sequence[tuple[int, int]]  # (up to this offset, first cleaned at ms), both rising


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    min_dirty_ratio: float = 0.5  # of the bytes: how much must be new for a pass to pay
    min_compaction_lag_ms: int = 0  # younger records are left alone
    max_compaction_lag_ms: int = (1 << 63) - 1  # older ones are not left alone, however little is new
    delete_retention_ms: int = 24 * 3600 * 1000
    most_keys: int = 1_000_000
    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int = SEGMENT_MS  # what is written is settled after this time, or after so many bytes


@dataclass(slots=True)
class CompactionPlan:
    partition: Partition
    sources: list[Segment]
    log_start: int
    dirty_from: int
    cleaned: list[tuple[int, int]]
    keeps_end: bool  # nothing is stored after the sources: their last batch must stay
    now_ms: int
    settings: CompactionSettings
    generation: int


@dataclass(slots=True)
class Compacted:
    products: list[Segment] = field(default_factory=list)
    clean_to: int = 0
    error: Exception | None = None
    leftovers: Garbage = field(default_factory=list)


def cleaned_at(cleaned: Cleaned, offset: int) -> int | None:
    """When an offset was first cleaned; None if it never was."""
    at = bisect_right(cleaned, offset, key=lambda mark: mark[0])
    return cleaned[at][1] if at < len(cleaned) else None


def plan_compaction(partition: Partition, now_ms: int, settings: CompactionSettings) -> CompactionPlan | None:
    """None if it would not pay now."""
    cleaned = partition.cleaned
    dirty_from = max(cleaned[-1][0] if cleaned else 0, partition.log_start)
    sources: list[Segment] = []
    dirty = clean = 0
    due = False  # tombstones whose time has come, or records that have waited long enough
    youngest_ms = now_ms - settings.min_compaction_lag_ms
    for segment in partition.segments:
        if segment.claimed:
            return None
        if segment.last >= dirty_from:
            if settings.min_compaction_lag_ms > 0 and segment.max_timestamp_ms > youngest_ms:
                break
            dirty += segment.bytes
            due = due or segment.first_timestamp_ms + settings.max_compaction_lag_ms <= now_ms
        else:
            clean += segment.bytes
        since = cleaned_at(cleaned, segment.base)
        if segment.tombstones and since is not None and since + settings.delete_retention_ms <= now_ms:
            due = True
        sources.append(segment)
    if not sources or not (due or (dirty and dirty >= settings.min_dirty_ratio * (dirty + clean))):
        return None
    for segment in sources:
        segment.claimed = True
    keeps_end = len(sources) == len(partition.segments) and not partition.windows
    return CompactionPlan(
        partition,
        sources,
        partition.log_start,
        dirty_from,
        list(cleaned),
        keeps_end,
        now_ms,
        settings,
        partition.next_generation(),
    )


def execute_compaction(store: SegmentStore, plan: CompactionPlan) -> Compacted:
    """On a worker's thread. Never raises."""
    writer = SegmentWriter(store, plan.partition.id, plan.generation, plan.settings.segment_bytes)
    try:
        keys = _Keys(plan.settings.most_keys)
        clean_to = _learn(store, plan, keys)
        _copy(store, plan, keys, writer)
        return Compacted(writer.finish(), clean_to)
    except Exception as error:  # whatever it was, the job's sources must be let go of by its install
        try:
            leftovers = writer.abandon()
        except OSError:
            leftovers = []
        return Compacted(error=error, leftovers=leftovers)


def install_compaction(plan: CompactionPlan, made: Compacted) -> Installed:
    """`done` is False if the segments were replaced or dropped in between: nothing was changed then."""
    installed = Installed()
    partition = plan.partition
    for segment in plan.sources:
        segment.claimed = False
    if made.error is None and partition.replace(plan.sources, [], made.products):
        partition.cleaned = _mark(partition.cleaned, made.clean_to, plan)
        partition.changed = True
        return installed
    installed.garbage = made.leftovers + [segment.name for segment in made.products]
    installed.done = partition.dropped
    still = set(map(id, partition.segments))
    if made.error is not None and all(id(segment) in still for segment in plan.sources):
        installed.errors.append(made.error)
    return installed


def _mark(cleaned: Cleaned, clean_to: int, plan: CompactionPlan) -> list[tuple[int, int]]:
    """Remember this cleaning, and no more of the earlier ones than tombstones still need."""
    marks = list(cleaned)
    now_ms = plan.now_ms
    retention_ms = plan.settings.delete_retention_ms
    if not marks or clean_to > marks[-1][0]:
        if len(marks) > 1 and now_ms - marks[-2][1] < retention_ms // _MARKS:
            marks.pop()
        marks.append((clean_to, now_ms))
    while len(marks) > 1 and (marks[1][1] + retention_ms <= now_ms or marks[0][0] <= plan.log_start):
        del marks[0]
    return marks


class _Keys:
    """The newest offset of each key, by digest."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.latest: dict[bytes, int] = {}
        self.open: dict[int, list[tuple[bytes, int]]] = {}  # by producer: keys of a transaction without an end yet
        self._waiting = 0

    @property
    def full(self) -> bool:
        return len(self.latest) + self._waiting >= self.most

    def see(self, offset: int, key: bytes, producer: int | None) -> None:
        digest = _digest(key)
        if producer is not None:
            self.open.setdefault(producer, []).append((digest, offset))
            self._waiting += 1
        elif self.latest.get(digest, -1) < offset:
            self.latest[digest] = offset

    def end(self, producer: int, commit: bool) -> None:
        seen = self.open.pop(producer, [])
        self._waiting -= len(seen)
        if commit:
            for digest, offset in seen:
                if self.latest.get(digest, -1) < offset:
                    self.latest[digest] = offset


def _digest(key: bytes) -> bytes:
    return key if len(key) < _DIGEST_BYTES else hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()


def _records(data: bytes) -> list[tuple[int, Record]] | None:
    """None if the batch does not unpack."""
    try:
        return batches.decode(data, verify=False)
    except (FormatError, LimitError):
        return None


def _learn(store: SegmentStore, plan: CompactionPlan, keys: _Keys) -> int:
    """Read the part that was never cleaned; up to which offset it is now known."""
    seen = False
    for segment in plan.sources:
        if segment.last < plan.dirty_from:
            continue
        for _, header, data in walk_log(store.open(segment.name), segment.bytes):
            if header.last_offset < plan.dirty_from:
                continue
            if seen and keys.full:
                return _known_to(keys, header.base_offset)
            seen = True
            records = _records(data)
            if records is None:
                continue
            if header.is_control:
                for _, record in records:
                    keys.end(header.producer_id, record.key == _COMMIT)
                continue
            producer = header.producer_id if header.is_transactional else None
            for offset, record in records:
                if record.key is not None and offset >= plan.dirty_from:
                    keys.see(offset, record.key, producer)
    return _known_to(keys, plan.sources[-1].last + 1)


def _known_to(keys: _Keys, offset: int) -> int:
    return min([offset, *(seen[0][1] for seen in keys.open.values())])


def _copy(store: SegmentStore, plan: CompactionPlan, keys: _Keys, writer: SegmentWriter) -> None:
    latest = keys.latest
    marks = plan.cleaned
    # Tombstones before this offset have been met by every reader that is not too late.
    gone_before = 0
    for offset, since_ms in marks:
        if since_ms + plan.settings.delete_retention_ms <= plan.now_ms:
            gone_before = offset
    tombstones = 0

    def keep(offset: int, record: Record) -> bool:
        nonlocal tombstones
        if offset < plan.log_start:
            return False
        if record.key is None:
            return True
        if latest.get(_digest(record.key), -1) > offset:
            return False
        if record.value is None:
            if offset < gone_before:
                return False
            tombstones += 1
        return True

    last_base = plan.sources[-1].last
    for segment in plan.sources:
        file = store.open(segment.name)
        for _, header, data in walk_log(file, segment.bytes):
            kept: bytes | None = data
            tombstones = 0
            if not header.is_control:
                is_end = plan.keeps_end and header.last_offset == last_base
                try:
                    kept = batches.filter_records(data, keep, keep_empty=is_end)
                except (FormatError, LimitError):
                    tombstones = 0
            if kept is not None:
                count = header.record_count if kept is data else batches.read_header(kept).record_count
                base, last, newest_ms = header.base_offset, header.last_offset, header.max_timestamp_ms
                writer.add(memoryview(kept), base, last, newest_ms, count, tombstones=tombstones)
