import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import FormatError, InvalidError
from interlog.core.timers import Key, Timer, TimerKind, Timers, decode
from interlog.journal.checkpoint import Checkpoint, Mark
from interlog.journal.envelope import EntryKind
from interlog.journal.section import Row

DELIVER, EXPIRE = TimerKind.DELIVER, TimerKind.EXPIRE


class Tick:
    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def add(self, kind: int, target: int, payload: bytes) -> None:
        assert kind == EntryKind.TIMER
        assert target == 0
        self.payloads.append(payload)


def fire_all(timers: Timers, now_ms: int, most: int = 1000) -> list[Timer]:
    fired = []
    while (due_ms := timers.next_due_ms()) is not None and due_ms <= now_ms:
        fired += timers.due(now_ms, most)
    return fired


class OnDisk:
    """Timers with a real checkpoint beneath them."""

    def __init__(self, path: Path, **limits: int) -> None:
        self.limits = limits
        tables = [section.table for section in Timers().sections]
        self.checkpoint = Checkpoint.create(path, tables, "f")
        self.timers = self.build()

    def build(self) -> Timers:
        return Timers(self.read, **self.limits)  # type: ignore[arg-type]

    def read(self, after: Key, limit: int) -> list[Row]:
        return self.checkpoint.read_table(self.timers.rows.table, after, limit)

    def save(self) -> None:
        self.checkpoint.save([(s.table, s.take_changes()) for s in self.timers.sections], Mark())
        self.timers.rows.saved()

    def restart(self) -> None:
        self.timers = self.build()
        self.checkpoint.load(self.timers.sections)

    def row_count(self) -> int:
        return sum(1 for _ in self.checkpoint.rows(self.timers.rows.table))


def test_timers_fire_in_order_of_due_time_then_of_setting() -> None:
    timers = Timers()
    timers.add(DELIVER, 300, 1, 10)
    timers.add(EXPIRE, 100, 2, 20)
    timers.add(DELIVER, 100, 3, 30)
    assert timers.next_due_ms() == 100
    assert timers.due(99, 10) == []
    assert timers.due(300, 2) == [Timer(100, 2, EXPIRE, 2, 20), Timer(100, 3, DELIVER, 3, 30)]
    assert timers.next_due_ms() == 300
    assert timers.due(300, 2) == [Timer(300, 1, DELIVER, 1, 10)]
    assert timers.next_due_ms() is None


def test_a_tick_is_one_entry_and_an_idle_tick_is_none() -> None:
    timers, tick = Timers(), Tick()
    timers.flush(tick)
    assert tick.payloads == []
    timers.add(DELIVER, 5, 1, 1)
    timers.add(DELIVER, 6, 1, 2)
    timers.due(5, 10)
    timers.flush(tick)
    timers.flush(tick)
    assert len(tick.payloads) == 1
    mark, packed = decode(tick.payloads[0])
    assert mark == (5, 1)
    assert len(packed) == 2


def test_a_timer_for_the_past_gets_the_time_of_the_watermark() -> None:
    timers, tick = Timers(), Tick()
    timers.add(DELIVER, 50, 1, 1)
    timers.due(50, 10)
    late = timers.add(DELIVER, 10, 1, 2)
    timers.flush(tick)
    replayed = Timers()
    for payload in tick.payloads:
        replayed.apply(payload)
    for each in (timers, replayed):
        assert each.due(50, 10) == [Timer(50, late, DELIVER, 1, 2)]


def test_replay_gives_the_same_state_and_applying_twice_changes_nothing() -> None:
    timers, tick = Timers(), Tick()
    for due_ms in (30, 10, 20):
        timers.add(DELIVER, due_ms, 1, due_ms)
    timers.flush(tick)
    timers.due(10, 10)
    timers.flush(tick)
    replayed = Timers()
    for payload in tick.payloads + tick.payloads:
        replayed.apply(payload)
    assert replayed.watermark == timers.watermark
    assert replayed.add(DELIVER, 99, 1, 1) == timers.add(DELIVER, 99, 1, 1)
    assert fire_all(replayed, 100) == fire_all(timers, 100)


def test_timers_of_a_partition_that_is_gone_do_not_come_out() -> None:
    gone = {7}
    timers = Timers(exists=lambda partition: partition not in gone)
    timers.add(DELIVER, 1, 7, 1)
    timers.add(DELIVER, 2, 8, 1)
    assert [timer.partition for timer in timers.due(5, 10)] == [8]
    assert timers.next_due_ms() is None


def test_a_timer_that_need_not_last_leaves_no_trace() -> None:
    timers, tick = Timers(), Tick()
    timers.add(EXPIRE, 10, 1, 1, durable=False)
    timers.add(EXPIRE, 20, 1, 2)
    timers.add(EXPIRE, 30, 1, 3, durable=False)
    assert [timer.offset for timer in timers.due(20, 10)] == [1, 2]
    timers.flush(tick)
    (mark, packed) = decode(tick.payloads[0])
    assert mark == (20, 2)
    assert len(packed) == 1
    assert timers.next_due_ms() == 30
    assert [timer.offset for timer in timers.due(30, 10)] == [3]
    timers.flush(tick)
    assert len(tick.payloads) == 1
    assert timers.rows.take_changes().rows == []


@pytest.mark.parametrize(
    ("due_ms", "partition", "offset"), [(-1, 1, 1), (1 << 63, 1, 1), (1, 1 << 32, 1), (1, -1, 1), (1, 1, -1)]
)
def test_impossible_timers_are_refused(due_ms: int, partition: int, offset: int) -> None:
    with pytest.raises(InvalidError, match="no timer can be set"):
        Timers().add(DELIVER, due_ms, partition, offset)


@given(st.binary(max_size=120))
def test_any_bytes_are_an_entry_or_a_format_error(data: bytes) -> None:
    timers = Timers()
    try:
        timers.apply(data)
    except FormatError:
        assert timers.next_due_ms() is None


def test_a_broken_entry_changes_nothing() -> None:
    timers, tick = Timers(), Tick()
    timers.add(DELIVER, 5, 1, 1)
    timers.add(DELIVER, 6, 1, 2)
    timers.flush(tick)
    payload = tick.payloads[0]
    bad_kind = bytearray(payload)
    bad_kind[20 + 29 + 16] = 9
    falling_ids = payload[:20] + payload[49:] + payload[20:49]
    for broken in (bytes(bad_kind), falling_ids, payload[:-1], payload + b"x", b""):
        replayed = Timers()
        with pytest.raises(FormatError):
            replayed.apply(broken)
        assert replayed.next_due_ms() is None


def test_a_checkpoint_carries_them_over_a_restart(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "meta.db", near_most=8, read_rows=3)
    for due_ms in range(20, 0, -1):
        disk.timers.add(DELIVER, due_ms * 10, 1, due_ms)
    first = fire_all(disk.timers, 50)
    disk.save()
    assert disk.row_count() == 15
    disk.restart()
    assert disk.timers.watermark == (50, 16)
    assert disk.timers.add(DELIVER, 0, 1, 99) == 21
    rest = fire_all(disk.timers, 1000, most=4)
    assert [timer.offset for timer in first + rest] == [1, 2, 3, 4, 5, 99, *range(6, 21)]
    disk.save()
    assert disk.row_count() == 0


def test_a_save_under_way_neither_loses_nor_doubles(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "meta.db", near_most=4, read_rows=3)
    for offset in range(10):
        disk.timers.add(DELIVER, 100 + offset, 1, offset)
    assert [timer.offset for timer in disk.timers.due(101, 10)] == [0, 1]
    changes = [(s.table, s.take_changes()) for s in disk.timers.sections]
    disk.timers.add(DELIVER, 105, 1, 55)
    fired = disk.timers.due(103, 10)
    disk.checkpoint.save(changes, Mark())  # the table has them; the timers do not know it yet
    fired += fire_all(disk.timers, 106, most=1)
    disk.timers.rows.saved()
    fired += fire_all(disk.timers, 200)
    assert [timer.offset for timer in fired] == [2, 3, 4, 5, 55, 6, 7, 8, 9]


@pytest.mark.parametrize("near_most", [2, 100])
def test_timers_set_while_a_save_is_under_way_are_in_the_next(tmp_path: Path, near_most: int) -> None:
    disk = OnDisk(tmp_path / "meta.db", near_most=near_most, read_rows=3)
    disk.timers.add(DELIVER, 10, 1, 0)
    assert disk.timers.next_due_ms() == 10
    changes = [(s.table, s.take_changes()) for s in disk.timers.sections]
    for offset in range(1, 5):
        disk.timers.add(DELIVER, 10 + offset, 1, offset)
    disk.checkpoint.save(changes, Mark())
    disk.timers.rows.saved()
    for offset in range(5, 9):
        disk.timers.add(DELIVER, 10 + offset, 1, offset)
    disk.save()
    assert disk.row_count() == 9
    assert [timer.offset for timer in fire_all(disk.timers, 100)] == list(range(9))


def test_near_timers_that_are_forgotten_after_a_save_are_found_again(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "meta.db", near_most=6, read_rows=3)
    disk.timers.add(DELIVER, 10, 1, 0)
    assert disk.timers.next_due_ms() == 10
    changes = [(s.table, s.take_changes()) for s in disk.timers.sections]
    for offset in range(1, 6):
        disk.timers.add(DELIVER, 10 + offset, 1, offset)
    disk.checkpoint.save(changes, Mark())
    disk.timers.rows.saved()
    for offset in range(6, 9):  # too many now: those in the table are forgotten, the others must not be
        disk.timers.add(DELIVER, 10 + offset, 1, offset)
    assert [timer.offset for timer in fire_all(disk.timers, 100)] == list(range(9))


def test_a_failed_save_is_made_up_for_by_the_next(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "meta.db")
    disk.timers.add(DELIVER, 10, 1, 1)
    for section in disk.timers.sections:
        section.take_changes()
    disk.timers.add(DELIVER, 20, 1, 2)
    disk.save()
    disk.restart()
    assert [timer.offset for timer in fire_all(disk.timers, 30)] == [1, 2]


def test_a_table_that_cannot_be_read_loses_nothing(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "meta.db", read_rows=2)
    for offset in range(5):
        disk.timers.add(DELIVER, offset, 1, offset)
    disk.save()
    unplugged = {True}

    def read(after: Key, limit: int) -> list[Row]:
        if unplugged:
            raise OSError("unplugged")
        return disk.checkpoint.read_table(disk.timers.rows.table, after, limit)

    timers = Timers(read, read_rows=2)
    disk.checkpoint.load(timers.sections)
    with pytest.raises(OSError, match="unplugged"):
        timers.due(10, 10)
    unplugged.clear()
    first = timers.due(10, 10)
    unplugged.add(True)
    with pytest.raises(OSError, match="unplugged"):
        timers.due(10, 10)
    unplugged.clear()
    assert [timer.offset for timer in first + fire_all(timers, 10)] == list(range(5))


def test_a_checkpoint_is_wanted_when_too_many_are_unsaved_but_not_for_those_that_have_fired() -> None:
    timers = Timers(unsaved_most=10)
    for offset in range(100):
        timers.add(DELIVER, offset, 1, offset)
        timers.due(offset, 10)
    wanted = [timers.wants_checkpoint]
    for offset in range(11):
        timers.add(DELIVER, 1000, 1, offset)
    wanted.append(getattr(timers.rows, "wants_checkpoint", False))
    timers.rows.take_changes()
    timers.add(DELIVER, 1000, 1, 11)
    timers.rows.saved()
    assert [*wanted, timers.wants_checkpoint] == [False, True, False]


def test_many_timers_take_bounded_memory_and_fire_in_order(tmp_path: Path) -> None:
    count, near_most, unsaved_most = 30_000, 2_000, 1_000
    disk = OnDisk(tmp_path / "meta.db", near_most=near_most, unsaved_most=unsaved_most, read_rows=1_000)
    timers, tick, rng = disk.timers, Tick(), random.Random(5)
    tracemalloc.start()
    try:
        most = 0
        for offset in range(count):
            timers.add(DELIVER, rng.randrange(864_000_000), 1, offset)
            if offset % 500 == 499:
                timers.flush(tick)
                tick.payloads.clear()
                most = max(most, timers.in_memory)
                if timers.wants_checkpoint:
                    disk.save()
        seen = set()
        last = (0, 0)
        for now_ms in range(0, 864_000_001, 864_000):
            for timer in fire_all(timers, now_ms):
                assert last < (timer.due_ms, timer.id)
                assert timer.due_ms <= now_ms
                last = (timer.due_ms, timer.id)
                seen.add(timer.offset)
            timers.flush(tick)
            tick.payloads.clear()
            most = max(most, timers.in_memory)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(seen) == count
    assert most <= near_most + 2 * unsaved_most
    assert peak < 5_000_000  # the set of what was seen is about half of it
