"""A compacted topic is compacted in time, however little else is written: its settings say when."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.core.topics import Topic
from interlog.journal.record import Record
from tests.data_folders import SMALL

HOUR_MS = 3_600_000
DIRTY = {"cleanup": "compact", "min_dirty_ratio": 0.0}


class Table:
    """A topic in a broker whose journal file has room for everything and is never old enough."""

    def __init__(self, data: Path, settings: dict[str, Any]) -> None:
        self.clock = ManualClock()
        self.worker = ManualWorker()
        quiet = replace(SMALL, journal_file_bytes=16 << 20, journal_roll_ms=0, checkpoint_ms=1_000, housekeeping_ms=500)
        self.core = Core.open(data, worker=self.worker, clock=self.clock, settings=quiet)
        self.topic: Topic = self.core.create_topic("/", "table", 1, {**DIRTY, **settings})

    def put(self, turn: int, size: int = 10, keys: int = 10) -> None:
        for key in range(keys):
            value = b"%d" % turn + bytes(size)
            self.topic.append(0, [Record(b"%d" % key, value, (), self.clock.now_ms())])
            self.core.commit()
        self.worker.run()

    def wait(self, ms: int) -> None:
        for _ in range(ms // 100):
            self.clock.advance(100)
            self.core.poll()
            self.core.commit()
            self.worker.run()

    def left(self) -> list[int]:
        records, _ = self.topic.records(0, self.topic.log_start(0), 1 << 20)
        return [offset for offset, _ in records]


def test_what_was_written_is_compacted_once_segment_ms_are_over(tmp_path: Path) -> None:
    table = Table(tmp_path, {"segment_ms": 10_000})
    for turn in range(5):
        table.put(turn)
    table.wait(8_000)
    assert table.left() == list(range(50))
    table.wait(6_000)
    assert table.left() == list(range(40, 50))


def test_what_was_written_is_compacted_once_there_are_segment_bytes(tmp_path: Path) -> None:
    table = Table(tmp_path, {"segment_bytes": 20_000})
    table.put(0)
    table.wait(5_000)
    table.put(1)
    table.wait(5_000)
    assert len(table.left()) == 20
    table.put(2, size=2_000)
    table.wait(5_000)
    assert table.left() == list(range(20, 30))


def test_how_much_must_be_new_is_as_it_is_set(tmp_path: Path) -> None:
    table = Table(tmp_path, {"segment_ms": 1_000, "min_dirty_ratio": 0.5})
    table.put(0, keys=100)
    table.wait(5_000)
    table.put(1, keys=2)
    table.wait(5_000)
    assert len(table.left()) == 102
    table.core.topics.alter("/", "table", {**DIRTY, "segment_ms": 1_000})
    table.wait(5_000)
    assert table.left() == list(range(2, 102))


def test_little_that_is_new_need_not_wait_for_ever(tmp_path: Path) -> None:
    table = Table(tmp_path, {"segment_ms": 1_000, "min_dirty_ratio": 1.0, "max_compaction_lag_ms": HOUR_MS})
    table.put(0, keys=100)
    table.wait(5_000)
    table.put(1, keys=2)
    table.wait(5_000)
    assert len(table.left()) == 102
    table.clock.advance(HOUR_MS)
    table.wait(3_000)
    assert table.left() == list(range(2, 102))


@pytest.mark.parametrize("cleanup", ["delete", "compact"])
def test_others_do_not_close_the_journal_file(tmp_path: Path, cleanup: str) -> None:
    """Nor does a compacted topic in which nothing is written."""
    table = Table(tmp_path, {"segment_ms": 1_000, "cleanup": cleanup})
    if cleanup == "delete":
        table.put(0)
    table.wait(10_000)
    assert table.core.storage.journal.current == 1
