import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import FormatError
from interlog.core.ranges import Cover, RangeSet


def offsets(ranges: RangeSet, limit: int) -> set[int]:
    inside = set(range(ranges.floor))
    for first, last in ranges:
        inside |= set(range(first, last + 1))
    return {offset for offset in inside if offset < limit}


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 9))))
def test_is_the_set_of_all_that_was_added(added: list[tuple[int, int]]) -> None:
    ranges, expected = RangeSet(), set[int]()
    for first, more in added:
        ranges.add(first, first + more)
        expected |= set(range(first, first + more + 1))
    assert offsets(ranges, 100) == expected
    assert all((offset in ranges) == (offset in expected) for offset in range(100))
    pairs = list(ranges)
    assert pairs == sorted(pairs) and len(pairs) == len(ranges)
    ends = [ranges.floor - 1, *(last for _, last in pairs)]
    assert all(first > end + 1 for (first, _), end in zip(pairs, ends, strict=False))
    for first in range(0, 90, 7):
        run = set(range(first, first + 6))
        cover = Cover.ALL if run <= expected else Cover.SOME if run & expected else Cover.NONE
        assert ranges.covers(first, first + 5) is cover
        assert ranges.missing(first, first + 5) == len(run - expected)
        assert ranges.next_missing(first) == next(at for at in range(first, 200) if at not in expected)
    again = RangeSet.load(ranges.export())
    assert (again.floor, list(again)) == (ranges.floor, pairs)


def test_many_ranges_in_any_order_become_one_floor() -> None:
    ranges = RangeSet()
    order = list(range(30_000))
    random.Random(1).shuffle(order)
    for offset in order[:15_000]:
        ranges.add(offset, offset)
    assert len(ranges) > 5_000
    loaded = RangeSet.load(ranges.export())
    for offset in order[15_000:]:
        ranges.add(offset, offset)
        loaded.add(offset, offset)
    assert (ranges.floor, len(ranges)) == (loaded.floor, len(loaded)) == (30_000, 0)


@given(st.binary(max_size=80))
def test_loads_only_what_is_a_set(data: bytes) -> None:
    try:
        ranges = RangeSet.load(data)
    except FormatError:
        return
    assert ranges.export() == data


@pytest.mark.parametrize("numbers", [[5, 5, 6], [5, 8, 7], [5, 7, 8, 9, 9], [1 << 63], [0, 1, 1 << 63]])
def test_refuses_ranges_that_touch_or_go_back(numbers: list[int]) -> None:
    with pytest.raises(FormatError):
        RangeSet.load(b"".join(number.to_bytes(8, "little") for number in numbers))
