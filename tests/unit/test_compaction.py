import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.journal import batch as batches
from interlog.journal.compaction import (
    CompactionSettings,
    cleaned_at,
    execute_compaction,
    install_compaction,
    plan_compaction,
)
from interlog.journal.record import Record
from interlog.journal.settle import Installed
from tests.unit.partition_rig import Rig, Stored, offsets, read_all

HOUR = 3_600_000
ALWAYS = CompactionSettings(min_dirty_ratio=0, delete_retention_ms=HOUR)


def put(rig: Rig, *pairs: tuple[bytes | None, bytes | None], time: int = 1000, **fields: Any) -> None:
    partition = rig.partition()
    records = [Record(key, value, ((b"h", b"1"),), time) for key, value in pairs]
    rig.write(partition, batches.encode(records, base_offset=partition.log_end, leader_epoch=1, **fields))


def close(rig: Rig, segment_bytes: int = 1) -> None:
    rig.file += 1
    rig.delete(rig.settle(rig.file - 1, segment_bytes=segment_bytes))


def compact(rig: Rig, now_ms: int = 0, limits: CompactionSettings = ALWAYS) -> Installed | None:
    plan = plan_compaction(rig.partition(), now_ms, limits)
    if plan is None:
        return None
    installed = install_compaction(plan, execute_compaction(rig.store, plan))
    assert installed.done and not installed.errors
    rig.delete(installed)
    return installed


def pairs(stored: list[Stored]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(offset, one.key, one.value) for offset, one in stored]


def test_the_newest_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    put(rig, (b"a", b"1"), (b"b", b"1"), (None, b"no key"))
    put(rig, (b"a", b"2"))
    put(rig, (b"c", b"1"), (b"b", b"2"))
    close(rig)
    compact(rig)
    assert pairs(read_all(rig.partition())) == [(2, None, b"no key"), (3, b"a", b"2"), (4, b"c", b"1"), (5, b"b", b"2")]
    assert len(rig.partition().segments) == len(rig.store.segments(1)) == 1
    assert rig.partition().log_end == 6
    assert compact(rig) is None


def test_tombstones_stay_for_their_time(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    put(rig, (b"a", b"1"), (b"b", b"1"))
    put(rig, (b"a", None))
    put(rig, (b"z", b"1"))
    close(rig)
    compact(rig, now_ms=0)
    assert offsets(read_all(rig.partition())) == [1, 2, 3]
    assert compact(rig, now_ms=HOUR - 1) is None
    assert compact(rig, now_ms=HOUR) is not None
    assert offsets(read_all(rig.partition())) == [1, 3]
    assert compact(rig, now_ms=2 * HOUR) is None  # none is left


def test_tombstones_do_not_stay_for_ever_where_there_is_always_something_new(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    put(rig, (b"a", None))
    for minute in range(70):
        put(rig, (b"k", b"%d" % minute))
        close(rig, segment_bytes=1 << 20)
        compact(rig, now_ms=minute * 60_000)
        left = [one.key for _, one in read_all(rig.partition())]
        assert left == ([b"a", b"k"] if minute < 62 else [b"k"]) or 60 <= minute < 62
        assert len(rig.partition().cleaned) <= 66


def test_a_tombstone_supersedes_and_is_superseded(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    put(rig, (b"a", b"1"))
    close(rig)
    put(rig, (b"a", None))
    close(rig)
    put(rig, (b"a", b"2"))
    close(rig)
    compact(rig)
    assert pairs(read_all(rig.partition())) == [(2, b"a", b"2")]


def test_the_last_batch_keeps_the_end_of_the_log(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    put(rig, (b"a", b"1"))
    put(rig, (b"a", None), producer_id=9, producer_epoch=1, base_sequence=3)
    close(rig)
    compact(rig, now_ms=0)
    compact(rig, now_ms=HOUR)
    assert read_all(rig.partition()) == []
    (segment,) = rig.partition().segments
    assert (segment.last, segment.records, segment.batches) == (1, 0, 1)
    (_, header), *rest = batches.batches(rig.store.open(segment.name).read(1000, 0))
    assert (header.producer_id, header.producer_epoch, header.base_sequence, rest) == (9, 1, 3, [])


def test_too_young_is_left_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for time in (1000, 2000, 3000):
        put(rig, (b"a", b"1"), time=time)
        put(rig, (b"a", b"2"), time=time)
        close(rig)
    lag = CompactionSettings(min_dirty_ratio=0, min_compaction_lag_ms=500)
    assert compact(rig, now_ms=1200, limits=lag) is None
    compact(rig, now_ms=2600, limits=lag)
    assert offsets(read_all(rig.partition())) == [3, 4, 5]
    assert compact(rig, now_ms=2700, limits=lag) is None


def test_it_waits_until_enough_is_new(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    half = CompactionSettings(min_dirty_ratio=0.5)
    for number in range(4):
        put(rig, (b"%d" % number, b"x" * 100))
    close(rig)
    assert compact(rig, limits=half) is not None
    put(rig, (b"0", b"y" * 100))
    close(rig)
    assert compact(rig, limits=half) is None
    for _ in range(4):
        put(rig, (b"0", b"y" * 100))
    close(rig)
    assert compact(rig, limits=half) is not None
    assert offsets(read_all(rig.partition())) == [1, 2, 3, 8]


def test_transactions(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    flags = {"producer_epoch": 1, "base_sequence": 0, "attributes": batches.TRANSACTIONAL}
    end = {"producer_epoch": 1, "attributes": batches.TRANSACTIONAL | batches.CONTROL}
    put(rig, (b"a", b"0"), (b"b", b"0"), (b"c", b"0"))
    put(rig, (b"a", b"1"), producer_id=1, **flags)  # 3: will be committed
    put(rig, (b"b", b"1"), producer_id=2, **flags)  # 4: will be aborted
    put(rig, (b"\0\0\0\1", b""), producer_id=1, **end)
    put(rig, (b"\0\0\0\0", b""), producer_id=2, **end)
    put(rig, (b"c", b"1"), producer_id=3, **flags)  # 7: open
    put(rig, (b"z", b"1"))
    close(rig)
    compact(rig)
    assert offsets(read_all(rig.partition())) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rig.partition().cleaned == [(7, 0)]
    put(rig, (b"\0\0\0\1", b""), producer_id=3, **end)
    close(rig)
    compact(rig)
    assert offsets(read_all(rig.partition())) == [1, 3, 4, 5, 6, 7, 8, 9]
    heads = [
        head
        for segment in rig.partition().segments
        for _, head in batches.batches(rig.store.open(segment.name).read(5000, 0))
    ]
    assert [head.producer_id for head in heads] == [-1, 1, 2, 1, 2, 3, -1, 3]
    assert [head.is_transactional for head in heads] == [False, True, True, True, True, True, False, True]


def test_batches_that_do_not_unpack_stay(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    bad = bytearray(batches.encode([Record(b"a", b"1", (), 1)], base_offset=0, leader_epoch=1))
    bad[22] |= 4
    data = batches.set_log_append_time(bytes(bad), 1)
    rig.write(rig.partition(), data)
    put(rig, (b"a", b"2"))
    close(rig)
    compact(rig)
    (segment,) = rig.partition().segments
    assert rig.store.open(segment.name).read(5000, 0).startswith(data)


def test_dropped_or_cut_in_between(tmp_path: Path) -> None:
    for what in ("drop", "cut"):
        rig = Rig(tmp_path / what)
        for _ in range(3):
            put(rig, (b"a", b"1"))
            close(rig)
        plan = plan_compaction(rig.partition(), 0, ALWAYS)
        assert plan is not None and plan_compaction(rig.partition(), 0, ALWAYS) is None
        made = execute_compaction(rig.store, plan)
        if what == "drop":
            rig.partition().drop()
        else:
            rig.partition().set_log_start(2)
        installed = install_compaction(plan, made)
        assert installed.garbage == [segment.name for segment in made.products]
        assert installed.done == (what == "drop")
        if what == "cut":
            rig.delete(installed)
            compact(rig)
            assert offsets(read_all(rig.partition())) == [2]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([b"v", b"v", None])), min_size=1, max_size=80),
    st.integers(0, 10_000),
    st.sampled_from([2, 5, 1000]),
)
@settings(max_examples=40, deadline=None)
def test_it_is_what_a_dict_would_be(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, bytes | None]], seed: int, most_keys: int
) -> None:
    rng = random.Random(seed)
    rig = Rig(tmp_path_factory.mktemp("compaction"))
    limits = CompactionSettings(
        min_dirty_ratio=0, delete_retention_ms=HOUR, most_keys=most_keys, segment_bytes=rng.choice([1, 400, 1 << 20])
    )
    state: dict[bytes, bytes | None] = {}
    now_ms = 0
    written = []
    for number, (key, value) in enumerate(writes):
        name = b"long key number %d" % key if key % 2 else b"%d" % key
        value = value and b"%d" % number
        put(rig, (name, value), *[(name, value)] * rng.randrange(2), time=number)
        written.append((name, value))
        state[name] = value
        if rng.random() < 0.2:
            close(rig, rng.choice([1, 1 << 20]))
        if rng.random() < 0.2:
            now_ms += rng.choice([0, HOUR // 2, HOUR])
            compact(rig, now_ms, limits)
            seen = {}
            for _, one in read_all(rig.partition()):
                seen[one.key or b""] = one.value
            # Who reads from the beginning ends with the same state; a key that is gone may be missing.
            assert {k: v for k, v in seen.items() if v is not None} == {k: v for k, v in state.items() if v is not None}
    rig.file += 1
    rig.settle(rig.file - 1)
    for _ in range(200):
        if compact(rig, now_ms, limits) is None:
            break
    left = read_all(rig.partition())
    assert len({one.key for _, one in left}) == len(left)  # nothing that is superseded is left
    for _ in range(200):
        if compact(rig, now_ms + 2 * HOUR, limits) is None:
            break
    end = {one.key: one.value for _, one in read_all(rig.partition())}
    assert end == {key: value for key, value in state.items() if value is not None}


def test_when_an_offset_was_cleaned() -> None:
    cleaned = [(10, 100), (20, 200)]
    assert [cleaned_at(cleaned, offset) for offset in (0, 9, 10, 19, 20)] == [100, 100, 200, 200, None]
