import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlog.base.errors import DamageError, InvalidError, OffsetOutOfRangeError
from interlog.journal import batch as batches
from interlog.journal.partition import FileRange, Partition, slice_bytes
from interlog.journal.section import Section
from interlog.journal.sections import PartitionsSection, SegmentsSection, WindowsSection
from tests.unit.partition_rig import Rig, Stored, encode, flip, offsets, read_all, records_of


def grow(rig: Rig, partition: Partition, rng: random.Random, steps: int, *, settle_upto: int = 0) -> list[Stored]:
    """Batches with gaps over several journal files, some of them settled. All records written."""
    written: list[Stored] = []
    for _ in range(steps):
        roll = rng.random()
        if roll < 0.08:
            rig.file += 1
        elif roll < 0.15:
            partition.advance(partition.log_end + rng.randrange(1, 4))
        else:
            count = rng.randrange(1, 4)
            times = [rng.randrange(1000, 1400) for _ in range(count)]
            data = encode(partition.log_end, count, size=rng.choice([3, 50, 3000]), times=times)
            assert rig.write(partition, data, junk=b"j" * rng.choice([0, 9, 5000]))
            written += batches.decode(data)
    for file in range(1, settle_upto + 1):
        rig.delete(rig.settle(file))
    return written


@pytest.mark.parametrize("memory_bytes", [0, 3000, 1 << 20])
@pytest.mark.parametrize("settled", [0, 2, 99])
@pytest.mark.parametrize("seed", range(2))
def test_reading_at_each_offset(tmp_path: Path, memory_bytes: int, settled: int, seed: int) -> None:
    rig = Rig(tmp_path, memory_bytes=memory_bytes)
    partition = rig.partition()
    written = grow(rig, partition, random.Random(seed), 120, settle_upto=min(settled, 99))
    assert read_all(partition) == written
    assert read_all(partition, max_bytes=500) == written
    for offset in range(partition.log_end + 1):
        expected = [one for one in written if one[0] >= offset]
        for most in (1, 4000):
            got = [one for one in records_of(partition.read(offset, most)) if one[0] >= offset]
            assert got == expected[: len(got)]
            assert bool(got) == bool(expected)
            parts = partition.read(offset, most, at_least_one=False)
            assert sum(map(len, parts)) <= most
    for offset in (-1, partition.log_end + 1):
        with pytest.raises(OffsetOutOfRangeError):
            partition.read(offset, 1)


@given(st.integers(0, 10_000), st.sampled_from([0, 2, 99]), st.sampled_from([0, 2000]), st.integers(0, 60))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_times_are_found_to_the_record(
    tmp_path_factory: pytest.TempPathFactory, seed: int, settled: int, memory: int, start: int
) -> None:
    rig = Rig(tmp_path_factory.mktemp("times"), memory_bytes=memory)
    partition = rig.partition()
    written = grow(rig, partition, random.Random(seed), 90, settle_upto=settled)
    partition.set_log_start(min(start, partition.log_end))
    alive = [one for one in written if one[0] >= partition.log_start]
    for time in [0, *range(995, 1405, 9), 1399, 5000]:
        exact = next(((offset, one.timestamp_ms) for offset, one in alive if one.timestamp_ms >= time), None)
        assert partition.offset_for_time(time) == exact
    if alive and partition.log_start == 0:
        assert partition.max_timestamp() == max(one.timestamp_ms for _, one in alive)


def test_a_batch_that_does_not_unpack_has_its_own_time(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    good = bytearray(encode(0, 1, times=[5000]))
    good[22] |= 4  # says zstd, but is not
    bad = batches.set_log_append_time(bytes(good), 5000)
    rig.write(rig.partition(), bad)
    assert rig.partition().offset_for_time(4000) == (0, 5000)


def test_what_is_known_is_not_added_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    assert rig.write(partition, encode(0, 3))
    assert not rig.write(partition, encode(0, 3))
    partition.advance(9)
    assert rig.write(partition, encode(9, 1))
    assert offsets(read_all(partition)) == [0, 1, 2, 9]
    assert partition.log_end == 10


def test_without_bytes_the_head_is_read_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path, memory_bytes=1 << 20)
    partition = rig.partition()
    data = encode(4, 2, epoch=7)
    rig.journal(1).write([data], 0)
    assert partition.add(None, 4, 5, 1001, 1, 0)
    assert partition.epochs == [(7, 4)]
    assert partition.stored_bytes() == len(data)
    assert offsets(read_all(partition)) == [4, 5]


def test_the_newest_batches_are_the_very_bytes_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path, memory_bytes=1 << 20)
    partition = rig.partition()
    written = [encode(n) for n in range(5)]
    for data in written:
        rig.write(partition, data)
    assert all(a is b for a, b in zip(partition.read(0, 1 << 20), written, strict=True))
    assert partition.read(3, 1)[0] is written[3]


def test_large_batches_checked_before_are_ranges_of_the_journal(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    written = [encode(n, size=200_000) for n in range(4)]
    for number, data in enumerate(written):
        rig.write(partition, data, junk=b"" if number != 2 else b"x")
    while partition.windows[0].verified_to < 4:
        partition.read(partition.windows[0].verified_to, 1 << 20)
    parts = partition.read(0, 1 << 20)
    assert [type(part) for part in parts] == [FileRange, FileRange]
    assert [slice_bytes(part) for part in parts] == [b"".join(written[:2]), b"".join(written[2:])]


@pytest.mark.parametrize("size", [20, 5000, 100_000])
def test_a_flipped_bit_in_the_journal_is_named_and_never_served(tmp_path: Path, size: int) -> None:
    rng = random.Random(size)
    rig = Rig(tmp_path)
    partition = rig.partition()
    written = [encode(n * 2, 2, size=size) for n in range(6)]
    for data in written:
        rig.write(partition, data)
    path = tmp_path / "journal" / f"{1:016d}.journal"
    for number in range(60):
        victim = rng.randrange(6)
        position = partition.windows[0].positions[victim]
        at = position + (number if number < 40 else rng.randrange(40, len(written[victim])))
        bit = rng.randrange(8)
        flip(path, at, bit)
        partition.windows[0].verified_from = partition.windows[0].verified_to = 0
        with pytest.raises(DamageError) as caught:
            partition.read(victim * 2, 1 << 20)
        assert str(path) in str(caught.value) and caught.value.position == position
        if victim:
            got = b"".join(map(slice_bytes, partition.read(0, 1 << 24)))
            assert b"".join(written[:victim]).startswith(got) and got
        if victim < 5:
            assert slice_bytes(partition.read(victim * 2 + 2, 1)[0]) == written[victim + 1]
        flip(path, at, bit)


def test_the_log_start_moves_and_lets_go(tmp_path: Path) -> None:
    rig = Rig(tmp_path, memory_bytes=1 << 20)
    partition = rig.partition()
    for file in range(1, 5):
        rig.file = file
        for _ in range(3):
            rig.write(partition, encode(partition.log_end, 2))
    for file in (1, 2):
        rig.settle(file, segment_bytes=1)
    assert len(partition.segments) == 6
    partition.take_garbage()
    partition.set_log_start(5)
    assert [name.base for name in partition.take_garbage()] == [0, 2]
    assert offsets(read_all(partition)) == list(range(5, 24))
    with pytest.raises(OffsetOutOfRangeError):
        partition.read(4, 1)
    partition.set_log_start(19)
    assert [window.file for window in partition.windows] == [4]
    assert not partition.segments
    assert offsets(read_all(partition)) == list(range(19, 24))
    partition.set_log_start(24)
    assert not partition.windows and rig.tail.bytes == 0
    assert partition.read(24, 1) == []
    rig.write(partition, encode(24, 2))
    assert offsets(read_all(partition)) == [24, 25]


def test_epochs(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    assert partition.end_offset_for_epoch(1) is None
    for offset, epoch in ((0, 2), (1, 2), (2, 5), (3, 9)):
        rig.write(partition, encode(offset, epoch=epoch))
    assert partition.epochs == [(2, 0), (5, 2), (9, 3)]
    answers = {1: (1, 0), 2: (2, 2), 4: (2, 2), 5: (5, 3), 8: (5, 3), 9: (9, 4), 10: None}
    assert {epoch: partition.end_offset_for_epoch(epoch) for epoch in answers} == answers
    partition.set_log_start(3)
    assert partition.epochs == [(9, 3)]
    with pytest.raises(InvalidError):
        rig.write(partition, encode(4, epoch=8))


def reload(rig: Rig, tables: list[dict[Any, Any]]) -> Rig:
    """Another start: what the checkpoint has, and nothing else."""
    again = Rig(rig.folder, memory_bytes=0)
    sections: list[Section] = [
        PartitionsSection(again.partitions, again.make),
        SegmentsSection(again.partitions),
        WindowsSection(again.partitions),
    ]
    for section, rows in zip(sections, tables, strict=True):
        section.load([rows[key] for key in sorted(rows)])
        assert not section.take_changes().rows
    return again


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_checkpoint_brings_all_back(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    rig = Rig(tmp_path_factory.mktemp("checkpoint"), memory_bytes=2000)
    sections: list[Section] = [
        PartitionsSection(rig.partitions, rig.make),
        SegmentsSection(rig.partitions),
        WindowsSection(rig.partitions),
    ]
    tables: list[dict[Any, Any]] = [{}, {}, {}]
    written: dict[int, list[Stored]] = {}
    settled = 0
    for _ in range(rng.randrange(2, 9)):
        what = rng.randrange(5)
        id = rng.randrange(1, 4)
        if what == 0 and id in rig.partitions:
            rig.partitions.pop(id).drop()
            written.pop(id)
            rig.store.delete_partition(id)
            rig.partition(id + 10)
            written.setdefault(id + 10, [])
        elif what == 1 and settled < rig.file:
            settled += 1
            rig.file = max(rig.file, settled + 1)
            rig.delete(rig.settle(settled))
        elif what == 2 and id in rig.partitions and rig.partitions[id].log_end:
            rig.partitions[id].set_log_start(rng.randrange(rig.partitions[id].log_end + 1))
        else:
            partition = rig.partition(id)
            written.setdefault(id, [])
            written[id] += grow(rig, partition, rng, 40)
        for section, rows in zip(sections, tables, strict=True):
            changes = section.take_changes()
            for prefix in changes.removals:
                for key in [key for key in rows if key[: len(prefix)] == prefix]:
                    del rows[key]
            for row in changes.rows:
                assert row[: section.table.keys] not in rows or section.table.name == "partitions"
                assert len(row) == len(section.table.columns)
                rows[row[: section.table.keys]] = row
            assert not section.take_changes().rows
    again = reload(rig, tables)
    assert again.partitions.keys() == rig.partitions.keys()
    for id, partition in again.partitions.items():
        other = rig.partitions[id]
        for name in ("log_start", "log_end", "stored_end", "epochs", "cleaned"):
            assert getattr(partition, name) == getattr(other, name)
        assert read_all(partition) == [one for one in written[id] if one[0] >= partition.log_start]
        if other.windows:  # what replay brings once more is known
            window = other.windows[-1]
            data = encode(window.offset_at(0))
            assert not partition.add(data, window.base, window.base, 1, window.file, window.positions[0])
        again.file = rig.file
        again.write(partition, encode(partition.log_end, 2))
        assert offsets(read_all(partition, partition.log_end - 2)) == [partition.log_end - 2, partition.log_end - 1]


def test_more_than_32_bits_of_offsets_in_one_journal_file(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition()
    far = (1 << 33) + 5
    for base in (0, 1, far, far + 1):
        rig.write(partition, encode(base))
    assert [len(window) for window in partition.windows] == [2, 2]
    assert offsets(read_all(partition)) == [0, 1, far, far + 1]
    sections: list[Section] = [PartitionsSection(rig.partitions, rig.make), WindowsSection(rig.partitions)]
    again = Rig(tmp_path)
    loads: list[Section] = [PartitionsSection(again.partitions, again.make), WindowsSection(again.partitions)]
    for section, load in zip(sections, loads, strict=True):
        load.load(section.take_changes().rows)
    assert offsets(read_all(again.partition())) == [0, 1, far, far + 1]
    rig.file = 2
    assert rig.settle(1).done
    assert len(partition.segments) == 2
    assert offsets(read_all(partition)) == [0, 1, far, far + 1]


def test_a_backlog_of_small_batches_costs_few_bytes(tmp_path: Path) -> None:
    rig = Rig(tmp_path, memory_bytes=10_000)
    partition = rig.partition()
    data = encode(0)
    count = 100_000
    tracemalloc.start()
    try:
        for number in range(count):
            partition.add(data, number, number, 1000, 1, number * 150)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < 6.4


def test_many_partitions_share_one_memory_and_one_set_of_open_files(tmp_path: Path) -> None:
    rig = Rig(tmp_path, memory_bytes=5000, most_open=3)
    for id in range(20):
        for _ in range(5):
            rig.write(rig.partition(id), encode(rig.partition(id).log_end))
    assert rig.tail.bytes <= 5000
    rig.settle(1)
    assert rig.tail.bytes == 0
    for id in range(20):
        assert offsets(read_all(rig.partition(id))) == list(range(5))
    assert len(rig.readers) <= 3
