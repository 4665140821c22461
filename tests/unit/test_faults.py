"""The faulty disk itself: what it fails, and what a power cut leaves."""

import errno
import os
import random
from pathlib import Path

import pytest

from interlog.base.errors import FolderError
from tests.faults import SECTOR, Fault, FaultKind, FaultyFiles, PowerCut, random_faults


@pytest.fixture
def files(tmp_path: Path) -> FaultyFiles:
    (tmp_path / "data").mkdir()
    return FaultyFiles(tmp_path / "trash")


def test_what_was_synced_survives_and_what_was_not_may_be_lost(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    seen: set[str] = set()
    for seed in range(60):
        path.unlink(missing_ok=True)
        file = files.open(path, create=True)
        file.write([b"a" * 1000], 0)
        file.sync()
        files.sync_folder(path.parent)
        file.write([b"b" * 1000], 700)
        files.power_cut(random.Random(seed))
        data = path.read_bytes()
        assert data[:700] == b"a" * 700
        assert len(data) in (1000, 1700)
        seen.add("survived" if data[700:] == b"b" * 1000 else "did not")
        seen.add("lost" if data[700:1000] == b"a" * 300 else "not lost")
        seen.add("torn" if len(set(data[700:1000])) > 1 else "not torn")
    assert seen == {"survived", "did not", "lost", "not lost", "torn", "not torn"}


def test_bytes_that_were_not_being_written_are_never_torn(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    file = files.open(path, create=True)
    file.write([b"a" * SECTOR], 0)
    file.sync()
    files.sync_folder(path.parent)
    for seed in range(40):
        file = files.open(path, write=True)
        file.write([random.Random(seed).randbytes(100)], 200)
        files.power_cut(random.Random(seed))
        data = path.read_bytes()
        assert data[:200] == b"a" * 200
        assert data[300:] == b"a" * (SECTOR - 300)


def test_the_last_operations_in_a_folder_may_not_have_happened(files: FaultyFiles, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    seen = set()
    for seed in range(40):
        for name in os.listdir(folder):
            (folder / name).unlink()
        files.open(folder / "a", create=True).write([b"one"], 0)
        files.open(folder / "b", create=True)
        files.sync_folder(folder)
        files.rename(folder / "a", folder / "c")
        files.remove(folder / "b")
        files.open(folder / "d", create=True)
        files.rename(folder / "d", folder / "c")
        files.power_cut(random.Random(seed))
        seen.add(tuple(sorted(os.listdir(folder))))
    assert seen == {("a", "b"), ("b", "c"), ("c",), ("c", "d")}
    assert not os.listdir(tmp_path / "trash")


def test_after_a_failed_sync_a_later_one_saves_nothing(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    lost = 0
    for seed in range(30):
        path.unlink(missing_ok=True)
        file = files.open(path, create=True)
        file.allocate(4096)
        file.sync()
        files.sync_folder(path.parent)
        file.write([b"x" * 512], 0)
        files.faults = [Fault(1, FaultKind.SYNC_FAILS)]
        with pytest.raises(OSError):
            file.sync()
        file.write([b"y" * 512], 1024)
        file.sync()
        files.power_cut(random.Random(seed))
        data = path.read_bytes()
        lost += data[:512] != b"x" * 512
        assert data[1024:1536] == b"y" * 512
    assert lost > 0


def test_a_truncation_that_was_not_synced_may_be_undone(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    seen = set()
    for seed in range(30):
        path.unlink(missing_ok=True)
        file = files.open(path, create=True)
        file.write([b"a" * 2048], 0)
        file.sync()
        files.sync_folder(path.parent)
        file.truncate(512)
        files.power_cut(random.Random(seed))
        seen.add(len(path.read_bytes()))
    assert seen == {512, 2048}


def test_every_kind_of_fault(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    file = files.open(path, create=True)
    files.faults = [Fault(2, FaultKind.EIO, only=frozenset({"write"}))]
    file.write([b"1"], 0)
    with pytest.raises(OSError) as caught:
        file.write([b"2"], 0)
    assert caught.value.errno == errno.EIO
    files.faults = [Fault(1, FaultKind.ENOSPC, count=2)]
    for _ in range(2):
        file.read(1, 0)
        with pytest.raises(OSError) as caught:
            file.write([b"2"], 0)
        assert caught.value.errno == errno.ENOSPC
    file.write([b"2"], 0)
    files.faults = [Fault(1, FaultKind.SHORT_WRITE)]
    with pytest.raises(OSError):
        file.write([b"z" * 100], 1)
    assert 1 <= file.size() <= 101
    assert path.read_bytes()[1:] == b"z" * (file.size() - 1)
    files.full = True
    with pytest.raises(OSError):
        files.open(tmp_path / "data" / "b", create=True)


def test_once_the_power_is_gone_nothing_works_until_the_next_life(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    lock = files.lock(tmp_path / "data" / "lock")
    file = files.open(path, create=True)
    files.faults = [Fault(1, FaultKind.POWER_CUT)]
    with pytest.raises(PowerCut):
        file.write([b"abc"], 0)
    for attempt in (file.sync, file.size, lambda: files.exists(path), lambda: files.open(path)):
        with pytest.raises(PowerCut):
            attempt()
    files.kill()
    assert "abc".startswith(files.open(path).read(10, 0).decode())
    with pytest.raises(PowerCut):
        file.write([b"abc"], 0)
    again = files.lock(tmp_path / "data" / "lock")
    with pytest.raises(FolderError):
        files.lock(tmp_path / "data" / "lock")
    again.release()
    del lock


def test_what_was_written_before_a_kill_is_still_not_synced(files: FaultyFiles, tmp_path: Path) -> None:
    path = tmp_path / "data" / "a"
    files.open(path, create=True).write([b"abc"], 0)
    files.kill()
    assert files.unsynced(path)
    assert files.open(path).read(10, 0) == b"abc"
    gone = 0
    for seed in range(20):
        files.power_cut(random.Random(seed))
        gone += not path.exists()
        path.unlink(missing_ok=True)
        files.open(path, create=True)
    assert gone


def test_copies_and_bit_flips(files: FaultyFiles, tmp_path: Path) -> None:
    one, two = tmp_path / "data" / "a", tmp_path / "data" / "b"
    source, target = files.open(one, create=True), files.open(two, create=True)
    source.write([b"0123456789"], 0)
    files.copy(source, 2, target, 0, 5)
    assert bytes(target.map()) == b"23456"
    assert files.unsynced(two)
    target.sync()
    assert not files.unsynced(two)
    files.flip_bit(two, 0, 7)
    assert two.read_bytes() == bytes([ord("2") ^ 128]) + b"3456"
    assert random_faults(random.Random(1), 10)[0].at <= 10
