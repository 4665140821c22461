from pathlib import Path

import pytest

from interlog.base.errors import ExistsError
from interlog.journal.files import DiskFiles
from interlog.journal.store import LocalStore, SegmentName, parse_name

NAME = SegmentName(7, 40, 2)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(DiskFiles(), tmp_path / "segments")


def put(store: LocalStore, name: SegmentName, data: bytes = b"batches") -> None:
    draft = store.create(name)
    draft.log.write([data], 0)
    draft.publish(b"index", b"times")


def test_a_segment_is_there_once_published(store: LocalStore, tmp_path: Path) -> None:
    draft = store.create(NAME)
    draft.log.write([b"batches"], 0)
    assert store.segments(7) == []
    draft.publish(b"index", b"times")
    assert store.partitions() == [7]
    assert store.segments(7) == [NAME]
    assert store.open(NAME).read(100, 0) == b"batches"
    assert store.read_indexes(NAME) == (b"index", b"times")
    names = sorted(path.name for path in (tmp_path / "segments" / "7").iterdir())
    stem = "00000000000000000040-00000002"
    assert names == [stem + ".index", stem + ".log", stem + ".timeindex"]


def test_a_name_is_taken_once(store: LocalStore) -> None:
    put(store, NAME)
    draft = store.create(NAME)
    draft.log.write([b"others"], 0)
    with pytest.raises(ExistsError):
        draft.publish(b"", b"")
    draft.discard()
    assert store.open(NAME).read(100, 0) == b"batches"


def test_a_deleted_segment_stays_readable_to_who_holds_it(store: LocalStore) -> None:
    put(store, NAME)
    held = store.open(NAME)
    store.delete(NAME)
    store.delete(NAME)
    assert store.segments(7) == []
    assert store.read_indexes(NAME) == (b"", b"")
    assert held.read(7, 0) == b"batches"
    with pytest.raises(FileNotFoundError):
        store.open(NAME)


def test_what_a_crash_left_is_tidied(store: LocalStore, tmp_path: Path) -> None:
    put(store, NAME)
    store.create(SegmentName(7, 50, 1)).log.write([b"half"], 0)
    (tmp_path / "segments" / "7" / "00000000000000000060-00000001.index").write_bytes(b"no log")
    store.tidy()
    assert len(list((tmp_path / "segments" / "7").iterdir())) == 3
    assert store.segments(7) == [NAME]
    store.delete_partition(7)
    assert store.partitions() == []


@pytest.mark.parametrize("name", ["", "x.log", "1-1.log", "0000000000000000004x-00000001.log", "lost+found", "a-b.log"])
def test_other_files_are_no_segments(name: str) -> None:
    assert parse_name(1, name) is None


def test_base_and_generation_are_in_the_name() -> None:
    assert parse_name(7, f"{NAME}.log") == NAME
    assert parse_name(7, f"{NAME}.index") is None
