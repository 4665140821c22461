"""Settling: when a journal file is closed, the batches still wanted move to segments. And rewriting: segments of
queues that are mostly acknowledged lose the batches that nobody wants.

Each is planned on the owner's thread, executed on a worker's with nothing but files, and installed on the owner's
thread. In between anything may happen to a partition: it grows (in newer files), its log start moves, it is dropped,
its segments are replaced by another plan. So a plan names the very windows and segments that it read, and is
installed only where they all still are; elsewhere what was made is garbage and the partition is planned again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from interlog.base.errors import InvalidError
from interlog.journal.cold import scan
from interlog.journal.files import File
from interlog.journal.index import Window
from interlog.journal.partition import Partition
from interlog.journal.segment import SEGMENT_BYTES, Segment, walk_log
from interlog.journal.segment_writer import SegmentWriter
from interlog.journal.store import Garbage, SegmentStore

SEGMENT_MS: Final = 7 * 24 * 3600 * 1000
_SMALL_BYTES: Final = 64 << 10  # a segment this small is always worth merging
_REWRITE_BYTES: Final = 256 << 20  # of segments that one plan rewrites
_MOST_PROBES: Final = 8192
ALL_BATCHES: Final = 1 << 62


class Wanted(Enum):
    """Of the offsets in a range: is there one that must be kept?"""

    NONE = "none"
    SOME = "some"  # perhaps: ask again for parts of the range
    ALL = "all"


# Partition id, first and last offset. What was answered NONE must never be wanted again.
WantedRange = Callable[[int, int, int], Wanted]
# Partition id, first and last offset: how many messages there are not acknowledged.
Alive = Callable[[int, int, int], int]
Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """How much a partition's segments hold: of bytes, and of time where small ones are merged."""

    bytes: int = SEGMENT_BYTES
    ms: int = SEGMENT_MS


LimitsOf = Callable[[int], SegmentLimits]  # a partition's


@dataclass(slots=True)
class SettleJob:
    partition: Partition
    windows: list[Window]
    sources: list[Segment]  # the partition's last segments, to be merged with what comes
    ranges: Ranges  # the offsets that are wanted
    epochs: list[tuple[int, int]]
    generation: int
    segment_bytes: int


@dataclass(slots=True)
class SettlePlan:
    file: int
    journal: File
    jobs: list[SettleJob]
    whole: bool = True  # no partition of the file is left for another plan


@dataclass(slots=True)
class RewriteJob:
    partition: Partition
    sources: list[Segment]
    ranges: Ranges
    generation: int


@dataclass(slots=True)
class RewritePlan:
    jobs: list[RewriteJob]
    alive: Alive
    segment_bytes: int


@dataclass(slots=True)
class Made:
    """What executing one job came to: segments, or an error and what it left behind."""

    products: list[Segment] = field(default_factory=list)
    error: Exception | None = None
    leftovers: Garbage = field(default_factory=list)


@dataclass(slots=True)
class Installed:
    """`garbage`: to delete once a checkpoint taken from now on is saved (with the partitions' `take_garbage`).

    `done`: everything planned was installed, or has become needless. If not, plan again: at once where `errors` is
    empty, later where it tells what must be seen to first.
    """

    garbage: Garbage = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    done: bool = True


def wanted_ranges(ask: WantedRange, partition: int, first: int, last: int) -> Ranges:
    """The wanted offsets from first to last, found by halving. Over a very long range, in steps of 1/8192 of it."""
    leaf = max(1, (last - first + 1) // _MOST_PROBES)
    ranges: Ranges = []
    stack = [(first, last)] if first <= last else []
    while stack:
        low, high = stack.pop()
        verdict = ask(partition, low, high)
        if verdict is Wanted.NONE:
            continue
        if verdict is Wanted.SOME and high - low >= leaf:
            middle = (low + high) // 2
            stack.append((middle + 1, high))
            stack.append((low, middle))
        elif ranges and ranges[-1][1] + 1 == low:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return ranges


# -- settling


def plan_settle(
    partitions: Iterable[Partition],
    file: int,
    journal: File,
    wanted_range: WantedRange,
    limits_of: LimitsOf = lambda partition: SegmentLimits(),
    *,
    most_batches: int = ALL_BATCHES,
) -> SettlePlan:
    """For a journal file that is closed; files settle in their order.

    A plan is for so many batches, or for one partition that has more: what else is to be done need not wait for all.
    """
    jobs: list[SettleJob] = []
    batches = 0
    whole = True
    for partition in partitions:
        windows = partition.windows
        if not windows or windows[0].file > file:
            continue
        if windows[0].file < file:
            raise InvalidError(f"journal file {windows[0].file} must be settled before {file}")
        if batches >= most_batches:
            whole = False
            break
        windows = [window for window in windows if window.file == file]
        batches += sum(map(len, windows))
        first = max(windows[0].base, partition.log_start)
        ranges = wanted_ranges(wanted_range, partition.id, first, windows[-1].last)
        limits = limits_of(partition.id)
        sources = _to_merge(partition, windows, ranges, limits) if ranges else []
        epochs, generation = list(partition.epochs), partition.next_generation()
        jobs.append(SettleJob(partition, windows, sources, ranges, epochs, generation, limits.bytes))
    return SettlePlan(file, journal, jobs, whole)


def _to_merge(partition: Partition, windows: list[Window], ranges: Ranges, limits: SegmentLimits) -> list[Segment]:
    """The last segments, as far as each is not larger than what is written after it: every byte is then copied a
    few times only, and a partition has few small segments. Not over more time than there may be, for retention's sake.
    """
    offsets = windows[-1].last + 1 - windows[0].base
    wanted = sum(last + 1 - first for first, last in ranges)
    total = sum(window.bytes for window in windows) * wanted // max(offsets, 1)
    newest = max(window.max_timestamp_ms for window in windows)
    sources: list[Segment] = []
    for segment in reversed(partition.segments):
        small = segment.bytes <= max(total, _SMALL_BYTES) and segment.bytes + total <= limits.bytes
        if not small or segment.claimed or newest - segment.first_timestamp_ms > limits.ms:
            break
        sources.insert(0, segment)
        segment.claimed = True
        total += segment.bytes
    return sources


def execute_settle(store: SegmentStore, plan: SettlePlan) -> list[Made]:
    """On a worker's thread. Never raises: each job's error stands in its place."""
    made: list[Made] = []
    for job in plan.jobs:
        writer = SegmentWriter(store, job.partition.id, job.generation, job.segment_bytes)
        try:
            for segment in job.sources:
                writer.add_segment(segment)
            for window in job.windows:
                _copy_window(plan.journal, window, job, writer)
            made.append(Made(writer.finish()))
        except Exception as error:  # whatever it was, the job's sources must be let go of by its install
            # Without its traceback, which knows this frame, and so would keep the plan's files open for long.
            made.append(Made(error=error.with_traceback(None), leftovers=_abandon(writer)))
    return made


def _copy_window(journal: File, window: Window, job: SettleJob, writer: SegmentWriter) -> None:
    done = 0
    for first, last in job.ranges:
        start = max(window.find(first), done)
        stop = window.find(last) + 1
        for _, position, data, at, end, base, newest, newest_ms, records in scan(
            journal, window, start, stop, job.epochs
        ):
            if newest >= first:
                writer.add(data[at:end], base, newest, newest_ms, records, (journal, position))
        done = max(done, stop)


def _abandon(writer: SegmentWriter) -> Garbage:
    try:
        return writer.abandon()
    except OSError:
        return []  # what stays behind is collected at the next start


def install_settle(plan: SettlePlan, made: list[Made]) -> Installed:
    """After it, and once a checkpoint taken since is saved, the journal file is needed no more if `done`."""
    installed = Installed()
    for job, one in zip(plan.jobs, made, strict=True):
        _install(job.partition, job.sources, job.windows, one, installed)
    return installed


def _install(
    partition: Partition, sources: list[Segment], windows: list[Window], made: Made, installed: Installed
) -> bool:
    for segment in sources:
        segment.claimed = False
    if made.error is None and partition.replace(sources, windows, made.products):
        return True
    installed.garbage += made.leftovers
    installed.garbage += [segment.name for segment in made.products]
    still = set(map(id, partition.windows)) | set(map(id, partition.segments))
    if any(id(one) in still for one in (windows or sources)):
        # Still there, so still to be done. That a source is gone explains any error: its file may have been deleted.
        installed.done = False
        if made.error is not None and all(id(one) in still for one in sources):
            installed.errors.append(made.error)
    return False


# -- rewriting


def plan_rewrite(
    partitions: Iterable[Partition], wanted_range: WantedRange, alive: Alive, *, segment_bytes: int = SEGMENT_BYTES
) -> RewritePlan | None:
    """For queues: segments of which more than half of the messages are acknowledged. None if there is none."""
    jobs: list[RewriteJob] = []
    budget = _REWRITE_BYTES
    for partition in partitions:
        run: list[Segment] = []
        for segment in [*partition.segments, None]:
            if segment is not None and budget > 0 and _mostly_dead(partition, segment, alive):
                run.append(segment)
                segment.claimed = True
                budget -= segment.bytes
            elif run:
                first = max(run[0].base, partition.log_start)
                ranges = wanted_ranges(wanted_range, partition.id, first, run[-1].last)
                jobs.append(RewriteJob(partition, run, ranges, partition.next_generation()))
                run = []
    return RewritePlan(jobs, alive, segment_bytes) if jobs else None


def _mostly_dead(partition: Partition, segment: Segment, alive: Alive) -> bool:
    if segment.claimed:
        return False
    count = alive(partition.id, segment.base, segment.last)
    # Batches that hold one wanted message among many stay as they are: half of what was alive then must go first.
    before = segment.records if segment.alive_at_rewrite < 0 else segment.alive_at_rewrite
    return count == 0 or count * 2 < before


def execute_rewrite(store: SegmentStore, plan: RewritePlan) -> list[Made]:
    """On a worker's thread. Never raises."""
    made: list[Made] = []
    for job in plan.jobs:
        writer = SegmentWriter(store, job.partition.id, job.generation, plan.segment_bytes)
        try:
            if job.ranges:
                _copy_wanted(store, job, writer)
            made.append(Made(writer.finish()))
        except Exception as error:  # whatever it was, the job's sources must be let go of by its install
            # Without its traceback, which knows this frame, and so would keep the plan's files open for long.
            made.append(Made(error=error.with_traceback(None), leftovers=_abandon(writer)))
    return made


def _copy_wanted(store: SegmentStore, job: RewriteJob, writer: SegmentWriter) -> None:
    at = 0
    for segment in job.sources:
        file = store.open(segment.name)
        for position, header, data in walk_log(file, segment.bytes):
            while at < len(job.ranges) and job.ranges[at][1] < header.base_offset:
                at += 1
            if at == len(job.ranges):
                return
            last = header.last_offset
            if job.ranges[at][0] <= last:
                count = header.record_count
                writer.add(memoryview(data), header.base_offset, last, header.max_timestamp_ms, count, (file, position))


def install_rewrite(plan: RewritePlan, made: list[Made]) -> Installed:
    installed = Installed()
    for job, one in zip(plan.jobs, made, strict=True):
        if _install(job.partition, job.sources, [], one, installed):
            for segment in one.products:
                segment.alive_at_rewrite = plan.alive(job.partition.id, segment.base, segment.last)
    return installed
