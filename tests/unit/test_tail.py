from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.journal.tail import OVERHEAD_BYTES, Run, Tail


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 120), st.sampled_from("aaaaaafs")), max_size=400))
@settings(max_examples=80, deadline=None)
def test_the_newest_stay_and_numbers_hold(steps: list[tuple[int, int, str]]) -> None:
    tail = Tail(1500)
    runs = [Run() for _ in range(4)]
    added: list[list[bytes | None]] = [[] for _ in range(4)]
    for which, size, what in steps:
        run = runs[which]
        if what == "a":
            batch = bytes([size]) * size
            tail.add(run, batch)
            added[which].append(batch)
        elif what == "s":
            tail.skip(run)
            added[which].append(None)
        else:
            tail.forget(run, min(size, len(run)))
        assert tail.bytes <= tail.budget_bytes
        assert tail.bytes == sum(one.bytes for one in runs)
        assert tail.count == sum(map(len, runs))
    for run, batches in zip(runs, added, strict=True):
        assert run.first + len(run) == len(batches)
        for number in range(run.first, len(batches)):
            assert run.items[run.head + number - run.first] is batches[number]


def test_the_oldest_goes_first_whoever_it_is_of() -> None:
    tail = Tail(3 * (10 + OVERHEAD_BYTES))
    one, two = Run(), Run()
    for run in (one, two, one, two):
        tail.add(run, b"x" * 10)
    assert (one.first, len(one)) == (1, 1)
    assert (two.first, len(two)) == (0, 2)


def test_a_batch_larger_than_all_memory_is_not_kept() -> None:
    tail = Tail(100)
    run = Run()
    tail.add(run, b"x")
    assert not tail.wants(100)
    tail.add(run, b"x" * 100)
    assert (len(run), run.first, tail.bytes) == (0, 2, 0)


def test_partitions_that_come_and_go_leave_nothing() -> None:
    tail = Tail(1 << 30)
    for _ in range(5000):
        run = Run()
        tail.add(run, b"x")
        tail.forget(run, 1)
    assert tail.bytes == 0
    assert len(tail._order) < 1000


def test_while_it_holds_nothing_goes_and_afterwards_the_oldest_does() -> None:
    tail = Tail(100)
    run = Run()
    tail.add(run, b"old" * 10)
    tail.hold()
    for _ in range(4):
        tail.add(run, b"x" * 200)
    assert len(run) == 5
    tail.release()
    assert (len(run), run.first, tail.bytes) == (0, 5, 0)
