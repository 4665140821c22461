import gc
import random
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlog.base.errors import DamageError, InvalidError
from interlog.journal import batch as batches
from interlog.journal.compaction import CompactionSettings, execute_compaction, install_compaction, plan_compaction
from interlog.journal.partition import FileRange, Partition
from interlog.journal.settle import (
    Installed,
    Wanted,
    execute_rewrite,
    execute_settle,
    install_rewrite,
    install_settle,
    plan_rewrite,
    plan_settle,
    wanted_ranges,
)
from tests.faults import Fault, FaultKind, FaultyFiles
from tests.unit.partition_rig import Rig, Wants, all_wanted, encode, flip, offsets, read_all, records_of


def fill(rig: Rig, partition: Partition, count: int, *, records: int = 1, size: int = 20) -> None:
    for _ in range(count):
        rig.write(partition, encode(partition.log_end, records, size=size))


def close(rig: Rig) -> int:
    rig.file += 1
    return rig.file - 1


def test_ranges_are_found_by_halving() -> None:
    rng = random.Random(1)
    for _ in range(50):
        first = rng.randrange(100)
        last = first + rng.randrange(300)
        wants = Wants([n for n in range(first, last + 1) if rng.random() < rng.choice([0.0, 0.1, 0.9, 1.0])])
        ranges = wanted_ranges(wants, 1, first, last)
        assert [n for low, high in ranges for n in range(low, high + 1)] == sorted(wants.offsets)
    wants = Wants(range(900_000, 1_000_000))
    assert wanted_ranges(all_wanted, 1, 5, 1 << 40) == [(5, 1 << 40)]
    asked: list[int] = []

    def half(partition: int, first: int, last: int) -> Wanted:
        asked.append(first)
        return Wanted.NONE if last < 700_001 else Wanted.ALL if first > 700_000 else Wanted.SOME

    ((low, high),) = wanted_ranges(half, 1, 0, 10_000_000)
    assert high == 10_000_000 and 700_001 - 2500 <= low <= 700_001 and len(asked) < 60


def test_a_topic_moves_whole_and_the_file_goes(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    one, two = rig.partition(1), rig.partition(2)
    for _ in range(30):
        fill(rig, one, 2, size=900)
        fill(rig, two, 1, records=3)
    before = {id: read_all(partition) for id, partition in rig.partitions.items()}
    file = close(rig)
    fill(rig, one, 2)
    installed = rig.settle(file)
    assert installed.done and not installed.garbage and not installed.errors
    del rig.journals[file]
    (tmp_path / "journal" / f"{file:016d}.journal").unlink()
    assert [segment.records for segment in one.segments] == [60]
    assert read_all(one)[:60] == before[1] and read_all(two) == before[2]
    assert [window.file for window in one.windows] == [2] and not two.windows


def test_only_what_is_wanted_is_copied(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    dead, partly, alive = (rig.partition(id) for id in (1, 2, 3))
    for partition in (dead, partly, alive):
        fill(rig, partition, 40, records=2)
    wanted: dict[int, Wants] = {1: Wants([]), 2: Wants([0, 7, 8, 9, 40, 79]), 3: Wants(range(80))}
    installed = rig.settle(close(rig), lambda id, first, last: wanted[id](id, first, last))
    assert installed.done
    assert not dead.segments and not dead.windows
    assert offsets(read_all(partly)) == [0, 1, 6, 7, 8, 9, 40, 41, 78, 79]
    assert offsets(read_all(alive)) == list(range(80))
    assert wanted[1].asked == wanted[3].asked == 1
    assert rig.store.segments(1) == []


def test_what_lies_before_the_log_start_is_not_copied(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    fill(rig, partition, 10)
    partition.set_log_start(6)
    rig.settle(close(rig))
    assert partition.segments[0].base == 6


def test_gaps_between_batches_are_no_wish(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    fill(rig, partition, 2)
    partition.advance(10)
    fill(rig, partition, 2)
    rig.settle(close(rig), Wants([5, 6, 11]))
    assert offsets(read_all(partition)) == [11]


def test_files_settle_in_order(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    fill(rig, rig.partition(), 1)
    close(rig)
    fill(rig, rig.partition(), 1)
    with pytest.raises(InvalidError):
        rig.settle(2)


def test_many_small_settlings_make_few_files(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for _ in range(40):
        for id in range(5):
            fill(rig, rig.partition(id), 1)
        rig.delete(rig.settle(close(rig)))
    for id in range(5):
        assert len(rig.partition(id).segments) == 1
        assert rig.store.segments(id) == [rig.partition(id).segments[0].name]
        assert offsets(read_all(rig.partition(id))) == list(range(40))


def test_larger_segments_are_merged_a_few_times_only(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    written = 0
    for _ in range(32):
        fill(rig, partition, 2, size=50_000)
        before = set(partition.segments)
        rig.delete(rig.settle(close(rig), segment_bytes=2_000_000))
        written += sum(segment.bytes for segment in set(partition.segments) - before)
    assert len(partition.segments) <= 8
    assert written < 6 * partition.stored_bytes()
    assert max(segment.bytes for segment in partition.segments) <= 2_000_000
    assert offsets(read_all(partition)) == list(range(64))


def test_segments_do_not_grow_over_too_long_a_time(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    for day in range(10):
        rig.write(partition, encode(day, times=[day * 1000]))
        rig.delete(rig.settle(close(rig), segment_ms=3000))
    assert [segment.base for segment in partition.segments] == [0, 4, 8]


# -- what may happen between plan and install


@dataclass(eq=False)
class Job:
    plan: Any
    execute: Callable[..., Any]
    install: Callable[..., Installed]
    settles: bool = False


def test_a_plan_is_for_so_many_batches(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for number in range(1, 8):
        fill(rig, rig.partition(number), 10 * number)
    file = close(rig)
    plans = 0
    whole = False
    while not whole:
        plan = plan_settle(rig.partitions.values(), file, rig.journal(file), all_wanted, most_batches=45)
        assert plan.jobs and sum(len(window) for job in plan.jobs[:-1] for window in job.windows) < 45
        assert install_settle(plan, execute_settle(rig.store, plan)).done
        plans += 1
        whole = plan.whole
    assert plans == 4
    for number, partition in rig.partitions.items():
        assert not partition.windows and offsets(read_all(partition)) == list(range(10 * number))


def test_a_partition_dropped_in_between(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    fill(rig, rig.partition(), 5)
    plan = plan_settle(rig.partitions.values(), 1, rig.journal(1), all_wanted)
    made = execute_settle(rig.store, plan)
    rig.partitions.pop(1).drop()
    installed = install_settle(plan, made)
    assert installed.done and installed.garbage == rig.store.segments(1) != []


@pytest.mark.parametrize("start", [3, 5, 10])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_log_start_moved_in_between(tmp_path: Path, start: int, when: str) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    fill(rig, partition, 5)
    rig.settle(close(rig))
    fill(rig, partition, 5)
    plan = plan_settle(rig.partitions.values(), close(rig), rig.journal(2), all_wanted)
    assert plan.jobs[0].sources
    if when == "before":
        partition.set_log_start(start)
        for name in partition.take_garbage():
            rig.store.delete(name)  # even with the file gone
    made = execute_settle(rig.store, plan)
    partition.set_log_start(start)
    fill(rig, partition, 2)
    installed = install_settle(plan, made)
    if not installed.done:
        rig.delete(installed)
        installed = rig.settle(2)
    assert installed.done
    rig.delete(installed)
    assert offsets(read_all(partition)) == list(range(start, 12))
    assert rig.store.segments(1) == [segment.name for segment in partition.segments]
    assert [window.file for window in partition.windows] == [3]


def test_batches_that_came_in_between(tmp_path: Path) -> None:
    rig = Rig(tmp_path, memory_bytes=1 << 20)
    partition = rig.partition()
    fill(rig, partition, 5)
    plan = plan_settle(rig.partitions.values(), close(rig), rig.journal(1), all_wanted)
    fill(rig, partition, 5)
    made = execute_settle(rig.store, plan)
    close(rig)
    fill(rig, partition, 5)
    assert install_settle(plan, made).done
    assert offsets(read_all(partition)) == list(range(15))
    assert rig.settle(2).done
    assert offsets(read_all(partition)) == list(range(15))


def test_a_reader_goes_on_in_what_was_replaced(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    fill(rig, partition, 3, size=80_000)
    rig.settle(close(rig))
    partition.read(0, 1 << 20)
    held = partition.read(0, 1 << 20)
    assert isinstance(held[0], FileRange)
    fill(rig, partition, 3, size=80_000)
    rig.delete(rig.settle(close(rig)))
    assert len(partition.segments) == 1
    assert offsets(read_all(partition)) == list(range(6))
    assert offsets(list(records_of(held))) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_comes_between_nothing_wanted_is_lost(tmp_path: Path, seed: int) -> None:
    """Settling, rewriting, compaction, acknowledgements, log starts and drops, in any order."""
    rng = random.Random(seed)
    rig = Rig(tmp_path, memory_bytes=rng.choice([0, 4000]))
    alive: dict[int, set[int]] = {1: set(), 2: set(), 3: set()}
    settled = 0

    def ask(id: int, first: int, last: int) -> Wanted:
        return Wants(list(alive[id]))(id, first, last)

    def count(id: int, first: int, last: int) -> int:
        return sum(1 for offset in alive[id] if first <= offset <= last)

    pending: list[Job] = []
    made: list[tuple[Job, Any]] = []
    for _ in range(250):
        what = rng.randrange(12)
        id = rng.choice(list(alive))
        partition = rig.partition(id)
        if what < 4:
            start = partition.log_end
            fill(rig, partition, rng.randrange(1, 4), records=2)
            alive[id] |= set(range(start, partition.log_end))
        elif what == 4 and id != 3:
            alive[id] = {offset for offset in alive[id] if rng.random() < 0.4}
        elif what == 5 and partition.log_end:
            start = rng.randrange(partition.log_start, partition.log_end + 1)
            partition.set_log_start(start)
            alive[id] = {offset for offset in alive[id] if offset >= start}
        elif what == 6:
            close(rig)
        elif what == 7 and settled + 1 < rig.file and not any(job.settles for job in [*pending, *dict(made)]):
            plan = plan_settle(rig.partitions.values(), settled + 1, rig.journal(settled + 1), ask)
            pending.append(Job(plan, execute_settle, install_settle, settles=True))
        elif what == 8:
            rewrite = plan_rewrite([rig.partition(one) for one in (1, 2)], ask, count)
            pending += [Job(rewrite, execute_rewrite, install_rewrite)] if rewrite else []
        elif what == 9:
            compaction = plan_compaction(rig.partition(3), 0, CompactionSettings(min_dirty_ratio=0))
            pending += [Job(compaction, execute_compaction, install_compaction)] if compaction else []
        elif what == 10 and pending:
            job = pending.pop(rng.randrange(len(pending)))
            made.append((job, job.execute(rig.store, job.plan)))
        elif made:
            job, result = made.pop(rng.randrange(len(made)))
            installed = job.install(job.plan, result)
            assert not installed.errors
            rig.delete(installed)
            if job.settles and installed.done:
                settled += 1
                rig.journals[settled].truncate(0)
                assert all(window.file != settled for one in rig.partitions.values() for window in one.windows)
        for one in (1, 2):
            assert alive[one] <= set(offsets(read_all(rig.partition(one))))
        left = offsets(read_all(rig.partition(3)))
        assert not alive[3] or left[-1] == max(alive[3])  # one key: the newest is always there
        for partition in rig.partitions.values():
            assert all(a.last < b.base for a, b in zip(partition.segments, partition.segments[1:], strict=False))
    assert settled > 2


@pytest.mark.parametrize("kind", [FaultKind.ENOSPC, FaultKind.EIO, FaultKind.SYNC_FAILS])
def test_a_disk_that_fails_changes_nothing(tmp_path: Path, kind: FaultKind) -> None:
    for at in range(1, 40):
        rig = Rig(tmp_path / str(at))
        partition = rig.partition()
        fill(rig, partition, 5)
        rig.settle(close(rig))
        fill(rig, partition, 5)
        plan = plan_settle(rig.partitions.values(), close(rig), rig.journal(2), all_wanted)
        faulty = FaultyFiles(trash=tmp_path / "trash", faults=[Fault(at=at, kind=kind)], seed=1)
        rig.store._files = faulty
        made = execute_settle(rig.store, plan)
        rig.store._files = rig.files
        installed = install_settle(plan, made)
        assert offsets(read_all(partition)) == list(range(10))
        rig.delete(installed)
        if installed.done:
            return
        assert len(installed.errors) == 1
        assert not list((tmp_path / str(at) / "segments" / "1").glob("*.new"))
        assert rig.settle(2).done
        assert offsets(read_all(partition)) == list(range(10))
    raise AssertionError("it never succeeded")


def test_a_disk_that_failed_keeps_no_journal_file_open(tmp_path: Path) -> None:
    """A file that is open takes its room though it has no name: and room is what a full disk needs."""
    rig = Rig(tmp_path)
    fill(rig, rig.partition(), 5)
    plan = plan_settle(rig.partitions.values(), close(rig), rig.journal(1), all_wanted)
    rig.store._files = FaultyFiles(trash=tmp_path / "trash", faults=[Fault(at=1, kind=FaultKind.ENOSPC)], seed=1)
    gc.disable()  # a busy broker looks for cycles rarely
    try:
        installed = install_settle(plan, execute_settle(rig.store, plan))
        assert installed.errors
        file = weakref.ref(rig.journals.pop(1))
        del plan
        assert file() is None
    finally:
        gc.enable()


def test_damage_in_the_journal_keeps_the_journal(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    one, two = rig.partition(1), rig.partition(2)
    fill(rig, one, 5)
    fill(rig, two, 5)
    flip(tmp_path / "journal" / f"{1:016d}.journal", one.windows[0].positions[2] + 70)
    installed = rig.settle(close(rig))
    assert not installed.done
    assert [type(error) for error in installed.errors] == [DamageError]
    assert offsets(read_all(two)) == list(range(5)) and two.segments
    one.set_log_start(3)  # who is told may give up what is lost
    assert rig.settle(1).done
    assert offsets(read_all(one)) == [3, 4]


# -- rewriting


def test_segments_mostly_dead_are_rewritten(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    for _ in range(4):
        fill(rig, partition, 20, records=2, size=100)
        rig.settle(close(rig), segment_bytes=8000)
    assert len(partition.segments) == 4
    wants = Wants([*range(40), *range(90, 100), *range(120, 143)])
    plan = plan_rewrite([partition], wants, wants.alive)
    assert plan is not None
    assert [segment.base for job in plan.jobs for segment in job.sources] == [40, 80]
    assert plan_rewrite([partition], wants, wants.alive) is None  # all are being worked on, or well alive
    installed = install_rewrite(plan, execute_rewrite(rig.store, plan))
    assert installed.done
    rig.delete(installed)
    assert offsets(read_all(partition)) == [*range(40), *range(90, 100), *range(120, 160)]
    assert [segment.base for segment in partition.segments] == [0, 90, 120]
    assert len(rig.store.segments(1)) == 3


def test_batches_with_one_wanted_message_are_not_rewritten_for_ever(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    fill(rig, partition, 10, records=10)
    rig.settle(close(rig))
    wants = Wants(range(0, 100, 10))
    plan = plan_rewrite([partition], wants, wants.alive)
    assert plan is not None
    install_rewrite(plan, execute_rewrite(rig.store, plan))
    assert plan_rewrite([partition], wants, wants.alive) is None
    wants.offsets = set(range(0, 40, 10))
    plan = plan_rewrite([partition], wants, wants.alive)
    assert plan is not None
    install_rewrite(plan, execute_rewrite(rig.store, plan))
    assert offsets(read_all(partition)) == list(range(40))


def test_damage_in_a_segment_keeps_the_segment(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    fill(rig, partition, 10)
    rig.settle(close(rig))
    name = partition.segments[0].name
    size = batches.read_header(encode(0)).length
    flip(tmp_path / "segments" / "1" / f"{name}.log", size + 70)
    wants = Wants([8])
    plan = plan_rewrite([partition], wants, wants.alive)
    assert plan is not None
    installed = install_rewrite(plan, execute_rewrite(rig.store, plan))
    assert not installed.done and len(installed.errors) == 1
    assert partition.segments[0].name == name
    assert offsets(read_all(partition, 8)) == [8, 9]
