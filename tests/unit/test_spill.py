from pathlib import Path

import pytest

from interlog.core.leases import Message
from interlog.core.spill import Spill, SpillFolder
from interlog.journal.files import DiskFiles
from interlog.journal.record import Record
from tests.queue_fakes import MemoryFiles


def message(offset: int) -> Message:
    return (offset, Record(None, b"value %d" % offset, ((b"h", None),), offset), 0, False, 10, -1)


def drain(spill: Spill) -> list[int]:
    out = []
    while (first := spill.peek()) is not None:
        assert spill.pop() == first == message(first[0])
        out.append(first[0])
    return out


def make(files: MemoryFiles, errors: list[Exception] | None = None) -> Spill:
    report = (errors if errors is not None else []).append
    return Spill(SpillFolder(files, Path("spill"), report, block_bytes=1000, file_bytes=500))


def test_what_goes_in_comes_out_in_order_and_files_go_as_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    (tmp_path / "spill" / "old.spill").write_bytes(b"from before the crash")
    folder = SpillFolder(DiskFiles(), tmp_path / "spill", block_bytes=1000, file_bytes=1000)
    assert not list(folder.folder.iterdir())
    spill = Spill(folder)
    for offset in range(50, 150):
        spill.push(message(offset))
    assert spill.resident_bytes() < 1500
    first = spill.peek()
    assert first is not None and first[0] == 50
    spill.push_front([message(offset) for offset in range(20, 50)])
    spill.push_front([message(offset) for offset in range(20)])
    assert (spill.count, spill.bytes) == (150, 1500)
    assert len(list(folder.folder.iterdir())) > 5
    assert drain(spill) == list(range(150))
    assert (spill.count, spill.bytes) == (0, 0)
    assert not list(folder.folder.iterdir())


def test_one_message_can_be_taken_from_anywhere() -> None:
    files = MemoryFiles()
    spill = make(files)
    for offset in range(0, 60, 2):
        spill.push(message(offset))
    spill.peek()
    for offset in (0, 20, 22, 58):
        assert spill.take(offset) == message(offset)
        assert spill.take(offset) is None
    assert spill.take(21) is None and spill.take(99) is None
    assert spill.count == 26
    assert drain(spill) == [offset for offset in range(0, 60, 2) if offset not in (0, 20, 22, 58)]


def test_clear_leaves_nothing() -> None:
    files = MemoryFiles()
    spill = make(files)
    for offset in range(30):
        spill.push(message(offset))
    assert files.content
    spill.clear()
    assert not files.content and spill.count == 0 and spill.peek() is None


def test_a_full_disk_keeps_messages_in_memory_until_there_is_room() -> None:
    files, errors = MemoryFiles(), list[Exception]()
    spill = make(files, errors)
    files.full = True
    for offset in range(10):
        spill.push(message(offset))
    assert 1 <= len(errors) <= 4 and not files.content
    with pytest.raises(OSError, match="No space"):
        spill.push_front([message(99)])
    assert not files.content and spill.count == 10
    files.full = False
    for offset in range(10, 20):
        spill.push(message(offset))
    assert files.content
    assert drain(spill) == list(range(20))


def test_a_damaged_block_is_named_and_never_served() -> None:
    files, errors = MemoryFiles(), list[Exception]()
    spill = make(files, errors)
    for offset in range(12):
        spill.push(message(offset))
    assert spill.take(4) is not None
    content = files.content[sorted(files.content)[0]]
    content[len(content) // 2 - 20] ^= 1
    got = drain(spill)
    assert len(errors) == 1 and "lost" in str(errors[0])
    assert got and set(got) < set(range(12)) and 4 not in got
    assert (spill.count, spill.bytes) == (0, 0)
