import random
import tracemalloc
from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.base.errors import FormatError
from interlog.journal.index import INTERVAL_BYTES, IndexBuilder, OffsetIndex, TimeIndex, Window


def fill(window: Window, steps: list[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Steps of (gap before, offsets in the batch, timestamp) become batches."""
    batches: list[tuple[int, int, int, int]] = []
    offset, position = window.base, 0
    for gap, count, time in steps:
        offset += gap if batches else 0
        batches.append((offset, offset + count - 1, position, time))
        window.add(*batches[-1], 100)
        offset += count
        position += 150
    return batches


STEPS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 5]), st.integers(1, 3), st.integers(0, 50)), max_size=200)


@given(STEPS, st.integers(0, 1 << 40))
@settings(max_examples=60, deadline=None)
def test_window_finds_each_offset(steps: list[tuple[int, int, int]], base: int) -> None:
    window = Window(1, base)
    batches = fill(window, steps)
    bases = [first for first, *_ in batches]
    for offset in range(base - 2, window.last + 3):
        assert window.find(offset) == bisect_right(bases, offset) - 1
    assert [window.offset_at(n) for n in range(len(batches))] == bases
    assert window.offset_at(len(batches)) == window.last + 1
    for time in range(52):
        exact = next((n for n, one in enumerate(batches) if one[3] >= time), None)
        near = window.first_of_time(time)
        assert (near is None) == (exact is None)
        if near is not None and exact is not None:
            assert near <= exact < near + 64


@given(STEPS, st.lists(st.integers(0, 200), max_size=4))
@settings(max_examples=60, deadline=None)
def test_window_comes_back_from_its_rows(steps: list[tuple[int, int, int]], cuts: list[int]) -> None:
    window, copy, whole = Window(1, 7), Window(1, 7), Window(1, 7)
    done = 0
    for cut in [*sorted(min(cut, len(steps)) for cut in cuts), len(steps)]:
        offset = window.last + 1
        for gap, count, time in steps[done:cut]:
            offset += gap if len(window) else 0
            window.add(offset, offset + count - 1, len(window) * 150, time, 100)
            offset += count
        copy.take(*window.export(done))
        done = cut
    whole.take(*window.export(0))
    for other in (copy, whole):
        other.last, other.bytes, other.max_timestamp_ms = window.last, window.bytes, window.max_timestamp_ms
        assert list(other.positions) == list(window.positions)
        assert [other.offset_at(n) for n in range(len(other))] == [window.offset_at(n) for n in range(len(window))]
        assert (other.times, other.sizes, other.blocks()) == (window.times, window.sizes, window.blocks())


def test_window_refuses_rows_that_are_none() -> None:
    for blobs in [(b"", b"123", b"", b""), (b"", bytes(4), b"", b""), (bytes(8), bytes(4), bytes(8), bytes(8))]:
        with pytest.raises(FormatError):
            Window(1, 0).take(*blobs)


@pytest.mark.parametrize(("step", "most"), [(1, 6.4), (3, 10.0)])
def test_a_batch_costs_a_few_bytes(step: int, most: float) -> None:
    count = 200_000
    tracemalloc.start()
    try:
        window = Window(1, 0)
        for number in range(count):
            window.add(number * step, number * step, number * 140, 1, 100)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count <= most


def build(sizes: list[int]) -> tuple[OffsetIndex, TimeIndex, list[tuple[int, int, int]], bytes]:
    builder = IndexBuilder()
    log = b""
    placed = []
    for number, size in enumerate(sizes):
        placed.append((number * 2, len(log), number * 7 % 50))
        data = bytes([number & 255]) * size
        builder.add(number * 2, data, number * 7 % 50)
        log += data
    return builder.offsets, builder.times, placed, log


def test_sparse_indexes_lead_near_each_batch() -> None:
    index, times, placed, log = build([random.Random(4).randrange(61, 9000) for _ in range(300)])
    index = OffsetIndex.parse(index.pack(), len(log))
    times = TimeIndex.parse(times.pack(len(log)), len(log))
    for offset, position, _ in placed:
        for wanted in (offset, offset + 1):
            interval = index.find(wanted)
            assert index.positions[interval] <= position < index.end(interval)
            assert position - index.positions[interval] < INTERVAL_BYTES
    for time in range(52):
        exact = next((offset for offset, _, one in placed if one >= time), None)
        near = times.find(time)
        assert (near is None) == (exact is None)
        if near is not None and exact is not None:
            assert near <= exact


def test_two_logs_make_one_index() -> None:
    index, times, _, log = build([500] * 40)
    joined = IndexBuilder()
    joined.add(0, b"a" * 300, 4)
    joined.extend(index, times, 1000)
    joined.add(5000, b"b" * 300, 90)
    whole = OffsetIndex.parse(joined.offsets.pack(), len(log) + 600)
    assert whole.find(999) == 0 and whole.positions[whole.find(1000)] == 300
    assert TimeIndex.parse(joined.times.pack(len(log) + 600), len(log) + 600).times[-1] == 90


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_no_index(data: bytes) -> None:
    for parse in (OffsetIndex.parse, TimeIndex.parse):
        with pytest.raises(FormatError):
            parse(data, 100)


def test_each_flipped_bit_of_an_index_is_found() -> None:
    index, times, _, log = build([3000] * 5)
    for packed, parse in ((index.pack(), OffsetIndex.parse), (times.pack(len(log)), TimeIndex.parse)):
        parse(packed, len(log))
        for bit in range(len(packed) * 8):
            bad = bytearray(packed)
            bad[bit // 8] ^= 1 << bit % 8
            with pytest.raises(FormatError):
                parse(bytes(bad), len(log))
        with pytest.raises(FormatError):
            parse(packed, len(log) + 1)
