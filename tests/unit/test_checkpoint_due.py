"""When a checkpoint is saved: what a start must replay is bounded, by bytes and by entries, over kills as well; and
what nobody needs goes, whatever else fails."""

import errno
import random
from dataclasses import replace
from pathlib import Path

import pytest

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.journal.record import Record
from interlog.journal.store import Draft, SegmentName
from tests.data_folders import SMALL, Filling

HOUR_MS = 3_600_000
ROOMY = replace(SMALL, checkpoint_ms=HOUR_MS, housekeeping_ms=HOUR_MS, journal_file_bytes=1 << 24)


class Owner:
    def __init__(self, data: Path, *, entries: int, size: int) -> None:
        self.worker = ManualWorker()
        settings = replace(ROOMY, checkpoint_entries=entries, checkpoint_bytes=size)
        self.core = Core.open(data, worker=self.worker, clock=ManualClock(), settings=settings, rng=random.Random(1))

    def publish(self, count: int, size: int = 10) -> None:
        """Each message in a tick of its own, as one that waits for each confirm would."""
        queue = self.core.declare_queue("/", "q")
        for _ in range(count):
            queue.append(Record(None, b"x" * size, (), 1), size, True)
            self.core.commit()
            self.worker.run()
            self.core.poll()
            self.worker.run()

    def kill(self) -> None:
        self.core.recovered.checkpoint.close()
        self.core._folder.release()


@pytest.mark.parametrize(("entries", "size"), [(300, 1 << 30), (1 << 30, 60_000)])
def test_what_a_start_replays_is_bounded(tmp_path: Path, entries: int, size: int) -> None:
    owner = Owner(tmp_path, entries=entries, size=size)
    owner.publish(1000, size=100)
    owner.kill()
    owner = Owner(tmp_path, entries=entries, size=size)
    assert 0 < owner.core.recovered.replayed < 320
    assert owner.core.declare_queue("/", "q").depth == 1000
    owner.kill()


def test_kill_after_kill_does_not_add_up(tmp_path: Path) -> None:
    for _ in range(10):
        owner = Owner(tmp_path, entries=600, size=1 << 30)
        owner.publish(150)
        assert owner.core.recovered.replayed < 320
        owner.kill()


def test_on_a_full_disk_files_that_nobody_needs_go(tmp_path: Path) -> None:
    """Closed journal files cannot be settled for want of room; what makes room must not wait for that."""
    filling = Filling(tmp_path)
    filling.fill(60, poll=True)
    segments = tmp_path / "segments" / str(filling.topic.item.partitions[0])
    before = set(segments.iterdir())
    assert before
    store = filling.core.storage.store

    def no_room(name: SegmentName) -> Draft:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.create = no_room  # type: ignore[method-assign]
    filling.fill(60)
    assert len(filling.core.storage.journal.closed_files()) > 1
    filling.topic.delete_records(0, -1)
    for _ in range(40):
        filling.tick()
        filling.clock.advance(200)
        filling.core.poll()
        filling.worker.run()
    assert not before & set(segments.iterdir())
    filling.kill()
