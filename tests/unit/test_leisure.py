"""Closed journal files wait for a quiet moment to be settled, where that is no harm; and not for ever."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.journal.leisure import BUSY_BYTES, MOST_WAITING, SMALL_BATCH_BYTES
from interlog.journal.record import Record
from tests.data_folders import SMALL

FILE_BYTES = 1 << 20


class Loaded:
    """A broker that moves so many bytes in each tenth of a second."""

    def __init__(self, data: Path, *, partitions: int = 1) -> None:
        self.clock = ManualClock()
        self.worker = ManualWorker()
        settings = replace(SMALL, journal_file_bytes=FILE_BYTES, checkpoint_ms=1_000)
        self.core = Core.open(data, worker=self.worker, clock=self.clock, settings=settings, rng=random.Random(1))
        self.core.traffic = lambda: self.moved
        self.moved = 0
        self.load = BUSY_BYTES // 5
        self.topic = self.core.create_topic("/", "t", partitions)
        self.step()

    def step(self) -> None:
        self.core.commit()
        self.worker.run()
        self.clock.advance(100)
        self.moved += self.load
        self.core.poll()
        self.worker.run()

    def write(self, size: int, *, most: int = FILE_BYTES // 4) -> None:
        """Batches of that size, and a step."""
        for _ in range(most // size):
            value = random.Random(size).randbytes(size)
            self.topic.append(0, [Record(b"k", value, (), self.clock.now_ms())])
            self.core.commit()
        self.step()

    def waiting(self) -> int:
        return len(self.core.storage.journal.closed_files())

    def segments(self) -> int:
        return len(self.core.storage.partition(self.topic.item.partitions[0]).segments)

    def begin(self) -> None:
        """Long enough for it to be known as busy."""
        for _ in range(12):
            self.step()


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    made = Loaded(tmp_path)
    made.begin()
    return made


def test_under_load_large_batches_stay_where_they_are_until_it_is_quiet(loaded: Loaded) -> None:
    for _ in range(20):
        loaded.write(2 * SMALL_BATCH_BYTES)
    assert loaded.waiting() >= 3 and not loaded.segments()
    loaded.load = 0
    for _ in range(30):
        loaded.step()
    assert loaded.segments() and loaded.waiting() <= 1  # the newest one may still be named by the older checkpoint


def test_small_batches_do_not_wait(loaded: Loaded) -> None:
    for _ in range(20):
        loaded.write(SMALL_BATCH_BYTES // 4)
    assert loaded.segments() and loaded.waiting() <= 2


def test_what_few_want_does_not_wait(loaded: Loaded) -> None:
    for _ in range(20):
        loaded.write(2 * SMALL_BATCH_BYTES)
        loaded.topic.delete_records(0, -1)
    assert loaded.waiting() <= 2


def test_so_many_wait_and_no_more(loaded: Loaded) -> None:
    for _ in range(8 * MOST_WAITING):
        loaded.write(2 * SMALL_BATCH_BYTES)
    assert MOST_WAITING - 1 <= loaded.waiting() <= MOST_WAITING + 2
    assert loaded.segments()


def test_nothing_waits_where_room_is_short(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded.core.storage.files, "free_bytes", lambda folder: 3 * FILE_BYTES)
    for _ in range(20):
        loaded.write(2 * SMALL_BATCH_BYTES)
    assert loaded.segments() and loaded.waiting() <= 2


def test_one_that_begins_to_be_busy_is_known_within_the_second(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path)
    loaded.load = BUSY_BYTES
    loaded.step()
    for _ in range(10):
        loaded.write(2 * SMALL_BATCH_BYTES)
    assert loaded.waiting() >= 2 and not loaded.segments()
