import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from interlog.base.errors import DamageError, ExistsError
from interlog.journal import batch as batches
from interlog.journal.files import DiskFiles
from interlog.journal.manifest import collect_orphans, rebuild_manifest
from interlog.journal.segment import Readers, Segment, make_indexes, walk_log
from interlog.journal.segment_writer import SegmentWriter
from interlog.journal.slices import FileRange, slice_bytes
from interlog.journal.store import LocalStore, SegmentName
from tests.unit.partition_rig import Rig, encode, flip


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(DiskFiles(), tmp_path)


def write(store: LocalStore, data: Sequence[bytes], *, generation: int = 1, most: int = 1 << 26) -> list[Segment]:
    writer = SegmentWriter(store, 1, generation, most)
    for one in data:
        header = batches.read_header(one)
        writer.add(
            memoryview(one), header.base_offset, header.last_offset, header.max_timestamp_ms, header.record_count
        )
    return writer.finish()


def some_batches(count: int, *, gap: int = 0, start: int = 0, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    made = []
    offset = start
    for _ in range(count):
        records = rng.randrange(1, 4)
        made.append(encode(offset, records, size=rng.choice([5, 40, 700, 6000])))
        offset += records + (rng.randrange(gap) if gap else 0)
    return made


def log_path(tmp_path: Path, segment: Segment) -> Path:
    return tmp_path / "1" / f"{segment.name}.log"


@pytest.mark.parametrize("most", [1, 200, 5000, 70_000, 1 << 22])
def test_reads_begin_at_each_offset_and_end_at_a_batch(store: LocalStore, most: int) -> None:
    data = some_batches(150, gap=3)
    (segment,) = write(store, data)
    heads = [batches.read_header(one) for one in data]
    assert (segment.base, segment.last) == (0, heads[-1].last_offset)
    assert (segment.batches, segment.records) == (150, sum(head.record_count for head in heads))
    for _ in range(2):  # the second time all is known to be sound
        readers = Readers(store)
        for offset in range(0, segment.last + 1, 1 if most < 1 << 20 else 7):
            first = next(n for n, head in enumerate(heads) if head.last_offset >= offset)
            part, reached = readers.get(segment).read(offset, most, True)
            assert part is not None
            got = slice_bytes(part)
            stop = first + 1
            while stop < len(data) and sum(map(len, data[first : stop + 1])) <= most:
                stop += 1
            assert got == b"".join(data[first:stop]) or (len(got) > 5000 and b"".join(data[first:]).startswith(got))
            assert sum(1 for _ in batches.batches(got)) >= 1
            assert reached == got.endswith(data[-1])
            if len(data[first]) > most:
                assert readers.get(segment).read(offset, most, False) == (None, False)


def test_what_is_known_to_be_sound_is_a_range_of_the_file(store: LocalStore) -> None:
    data = some_batches(200)
    (segment,) = write(store, data)
    reader = Readers(store).get(segment)
    first, _ = reader.read(0, 1 << 26, True)
    assert isinstance(first, bytes)
    again, reached = reader.read(0, 1 << 26, True)
    assert isinstance(again, FileRange) and reached
    assert slice_bytes(again) == b"".join(data)
    store.delete(segment.name)
    assert slice_bytes(again) == b"".join(data)  # who holds the file can still read it


def test_large_pieces_are_copied_inside_the_kernel(store: LocalStore, tmp_path: Path) -> None:
    data = [encode(n, 1, size=100_000) for n in range(5)]
    source = DiskFiles().open(tmp_path / "source", create=True)
    source.write([b"junk", *data], 0)
    writer = SegmentWriter(store, 1, 1, 250_000)
    position = 4
    for number, one in enumerate(data):
        writer.add(memoryview(one), number, number, 1000 + number, 1, (source, position))
        position += len(one)
    segments = writer.finish()
    assert [(one.base, one.last) for one in segments] == [(0, 1), (2, 3), (4, 4)]
    assert b"".join(log_path(tmp_path, one).read_bytes() for one in segments) == b"".join(data)


def test_segments_are_joined_with_their_indexes(store: LocalStore, tmp_path: Path) -> None:
    one, two = some_batches(60, gap=3), some_batches(60, start=5000, seed=2)
    (first,), (second,) = write(store, one), write(store, two)
    writer = SegmentWriter(store, 1, 2)
    writer.add_segment(first)
    writer.add_segment(second)
    (joined,) = writer.finish()
    assert (joined.base, joined.last, joined.records) == (0, second.last, first.records + second.records)
    assert log_path(tmp_path, joined).read_bytes() == b"".join(one + two)
    reader = Readers(store).get(joined)
    assert all(slice_bytes(reader.read(n, 1, True)[0] or b"") == two[0] for n in range(first.last + 1, 5001))
    assert reader._check(log_path(tmp_path, joined).read_bytes(), 0, len(reader.index)) == len(reader.index)


@pytest.mark.parametrize("how", ["missing", "flipped", "empty", "of another"])
def test_bad_indexes_are_made_again(store: LocalStore, tmp_path: Path, how: str) -> None:
    data = some_batches(80)
    (segment,) = write(store, data)
    for suffix in (".index", ".timeindex"):
        path = log_path(tmp_path, segment).with_suffix(suffix)
        if how == "missing":
            path.unlink()
        elif how == "flipped":
            flip(path, 30)
        else:
            path.write_bytes(b"" if how == "empty" else b"ILOX" + bytes(80))
    reader = Readers(store).get(segment)
    got = b""
    offset = 0
    while len(got) < segment.bytes:
        part, _ = reader.read(offset, 1 << 20, True)
        assert part is not None
        got += slice_bytes(part)
        offset = [head for _, head in batches.batches(got)][-1].next_offset
    assert got == b"".join(data)


def test_a_flipped_bit_is_named_and_never_served(store: LocalStore, tmp_path: Path) -> None:
    data = some_batches(40, gap=3)
    (segment,) = write(store, data)
    path = log_path(tmp_path, segment)
    whole = path.read_bytes()
    starts = [position for position, _ in batches.batches(whole)]
    heads = [head for _, head in batches.batches(whole)]
    rng = random.Random(5)
    for keep_index in (True, False):
        if not keep_index:
            path.with_suffix(".index").unlink()
        for _ in range(120):
            victim = rng.randrange(len(data))
            low = starts[victim] if keep_index else starts[victim] + 16  # offset and epoch: only the index covers them
            high = starts[victim] + (rng.choice([17, 62]) if keep_index else len(data[victim]))
            at = rng.randrange(low, max(high, low + 1))
            flip(path, at, rng.randrange(8))
            readers = Readers(store)
            with pytest.raises(DamageError) as caught:
                readers.get(segment).read(heads[victim].base_offset, 1 << 20, True)
            assert str(path) in str(caught.value)
            assert caught.value.position <= starts[victim] < caught.value.position + 16_000
            for offset in range(0, segment.last + 1, 3):
                try:
                    part, _ = readers.get(segment).read(offset, 9000, True)
                except DamageError:
                    continue
                assert slice_bytes(part or b"") in whole
                assert heads[victim].crc not in [head.crc for _, head in batches.batches(slice_bytes(part or b""))]
            path.write_bytes(whole)


def test_around_the_damage_all_is_served(store: LocalStore, tmp_path: Path) -> None:
    data = [encode(n, 1) for n in range(40)]
    (segment,) = write(store, data)
    flip(log_path(tmp_path, segment), sum(map(len, data[:20])) + 70)
    reader = Readers(store).get(segment)
    for offset in range(40):
        if offset == 20:
            with pytest.raises(DamageError) as caught:
                reader.read(offset, 1, True)
            assert caught.value.position == sum(map(len, data[:20]))
        else:
            assert slice_bytes(reader.read(offset, 1, True)[0] or b"") == data[offset]


def test_a_log_cut_short_is_damage(store: LocalStore, tmp_path: Path) -> None:
    (segment,) = write(store, some_batches(10))
    path = log_path(tmp_path, segment)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamageError):
        Readers(store).get(segment)


def test_any_bytes_can_be_indexed(tmp_path: Path) -> None:
    rng = random.Random(3)
    whole = b"".join(some_batches(12))
    for number in range(150):
        data = bytearray(whole if number % 3 else rng.randbytes(rng.randrange(1, 300)))
        for _ in range(number % 3):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = tmp_path / str(number)
        path.write_bytes(data)
        index, _, segment, damaged = make_indexes(DiskFiles().open(path), 0)
        assert index.log_bytes == len(data) == segment.bytes
        assert damaged or segment.batches == 12
        if damaged:
            with pytest.raises(DamageError):
                list(walk_log(DiskFiles().open(path), len(data)))


def test_at_most_so_many_files_are_open(store: LocalStore) -> None:
    segments = write(store, some_batches(60, seed=9), most=4000)
    assert len(segments) > 8
    readers = Readers(store, 3)
    for segment in segments:
        readers.get(segment)
        assert len(readers) <= 3
    assert readers.get(segments[-1]) is readers.get(segments[-1])


def test_a_writer_that_fails_leaves_nothing(store: LocalStore, tmp_path: Path) -> None:
    data = some_batches(30)
    write(store, data)
    writer = SegmentWriter(store, 1, 1)  # the name is taken
    head = batches.read_header(data[0])
    writer.add(memoryview(data[0]), head.base_offset, head.last_offset, 0, 1)
    with pytest.raises(ExistsError):
        writer.finish()
    writer.abandon()
    assert not list((tmp_path / "1").glob("*.new"))


def test_orphans_are_found_and_their_names_not_used_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition = rig.partition(1)
    for offset in range(3):
        rig.write(partition, encode(offset))
    rig.settle(1)
    write(rig.store, [encode(0)], generation=9)
    SegmentWriter(rig.store, 5, 1).add(memoryview(encode(0)), 0, 0, 0, 1)  # never finished
    orphans = collect_orphans(rig.store, rig.partitions)
    assert orphans.segments == [SegmentName(1, 0, 9)]
    assert orphans.partitions == [5]
    assert partition.next_generation() == 10


def test_a_manifest_is_made_again_from_the_segments(store: LocalStore, tmp_path: Path) -> None:
    old = write(store, [encode(n, 2, epoch=1) for n in range(0, 20, 2)], most=500)
    new = write(store, [encode(n, 2, epoch=3) for n in range(20, 30, 2)], generation=2)
    merged = write(store, [encode(4, 2, epoch=1), encode(8, 2, epoch=1)], generation=3)
    rebuilt = rebuild_manifest(store)[1]
    assert rebuilt.epochs == [(1, rebuilt.segments[0].base), (3, 20)]
    assert not rebuilt.damage
    covered = [one for one in old if one.last >= 4 and one.base <= 9]
    assert sorted(rebuilt.superseded) == sorted(one.name for one in covered)
    expected = sorted([one for one in old if one not in covered] + new + merged, key=lambda one: one.base)
    assert [(one.name, one.last, one.bytes, one.records, one.max_timestamp_ms) for one in rebuilt.segments] == [
        (one.name, one.last, one.bytes, one.records, one.max_timestamp_ms) for one in expected
    ]
    flip(log_path(tmp_path, new[0]), 90)
    assert [error.position for error in rebuild_manifest(store)[1].damage] == [0]
