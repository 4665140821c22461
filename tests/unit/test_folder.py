"""The data folder: made, found again, and refused with a sentence."""

import errno
import json
import random
from pathlib import Path

import pytest

from interlog.base.errors import FolderError
from interlog.journal.files import DiskFiles
from interlog.journal.folder import FORMAT, open_folder, read_folder
from tests.faults import Fault, FaultKind, FaultyFiles, PowerCut

FILES = DiskFiles()


def test_a_new_folder_gets_an_id_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    folder = open_folder(FILES, path, random.Random(1), shards=2)
    assert folder.created
    assert len(folder.id) == 16
    folder.release()
    again = open_folder(FILES, path, random.Random(2))
    assert not again.created
    assert again.info == folder.info
    assert again.info.shards == 2
    assert read_folder(FILES, path) == folder.info
    again.release()


def test_the_second_process_is_refused(tmp_path: Path) -> None:
    folder = open_folder(FILES, tmp_path, random.Random(1))
    with pytest.raises(FolderError, match="in use by process"):
        open_folder(FILES, tmp_path, random.Random(1))
    folder.release()
    open_folder(FILES, tmp_path, random.Random(1)).release()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.json").write_text(json.dumps({"format": FORMAT + 1, "something": "else"}))
    for attempt in (lambda: open_folder(FILES, tmp_path, random.Random(1)), lambda: read_folder(FILES, tmp_path)):
        with pytest.raises(FolderError, match="newer version"):
            attempt()
    (tmp_path / "folder.json").write_text(json.dumps({"format": FORMAT, "shards": 1, "id": "00" * 16}))
    open_folder(FILES, tmp_path, random.Random(1)).release()  # the refusals let go of the lock


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", '{"format":"1"}', '{"format":1}', '{"format":0,"id":"","shards":1}', "\x00" * 80, "[" * 60000]
    + [json.dumps({"format": 1, "shards": shards, "id": id}) for shards, id in ((0, "00" * 16), (1, "zz"), (True, 5))],
)
def test_a_damaged_folder_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "folder.json").write_text(text)
    with pytest.raises(FolderError, match="damaged"):
        open_folder(FILES, tmp_path, random.Random(1))


def test_a_folder_with_other_things_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(FolderError, match=r"photo\.jpg"):
        open_folder(FILES, tmp_path, random.Random(1))
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def test_a_folder_that_lost_its_json_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(FolderError, match=r"no folder\.json"):
        open_folder(FILES, tmp_path, random.Random(1))


def test_what_is_not_there_or_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no data folder"):
        read_folder(FILES, tmp_path / "nowhere")
    with pytest.raises(FolderError, match="not a data folder"):
        read_folder(FILES, tmp_path)
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FolderError, match="not a folder"):
            open_folder(FILES, path, random.Random(1))
    with pytest.raises(FolderError, match="not a folder"):
        read_folder(FILES, tmp_path / "file")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EACCES, "may not be written"),
        (errno.EROFS, "read-only"),
        (errno.ENOSPC, "no room"),
        (errno.EIO, "cannot be used"),
    ],
)
def test_a_folder_that_cannot_be_written(tmp_path: Path, number: int, sentence: str) -> None:
    class Refusing(DiskFiles):
        def make_folder(self, path: Path) -> None:
            raise OSError(number, "refused", str(path))

    with pytest.raises(FolderError, match=sentence):
        open_folder(Refusing(), tmp_path / "data", random.Random(1))


def test_making_a_folder_can_be_interrupted_anywhere(tmp_path: Path) -> None:
    for at in range(1, 12):
        for kind in (FaultKind.POWER_CUT, FaultKind.EIO, FaultKind.ENOSPC):
            path = tmp_path / f"{at}-{kind.value}"
            files = FaultyFiles(tmp_path / "trash", [Fault(at, kind)])
            try:
                open_folder(files, path, random.Random(1))
            except PowerCut:
                files.power_cut(random.Random(at))
            except FolderError:
                files.kill()
            else:
                files.kill()
            open_folder(files, path, random.Random(2)).release()


def test_a_name_that_a_kill_left_unsynced_lasts_from_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "data"
    files = FaultyFiles(tmp_path / "trash")
    open_folder(files, path, random.Random(1)).release()
    names = [operation for operation, _ in files.log]
    files.kill()
    (path / "folder.json").unlink()
    files.faults = [Fault(len(names), FaultKind.POWER_CUT)]  # the sync of the folder
    with pytest.raises(PowerCut):
        open_folder(files, path, random.Random(1))
    files.kill()
    folder = open_folder(files, path, random.Random(2))
    files.power_cut(random.Random(3))
    assert read_folder(files, path) == folder.info


def test_any_bit_of_folder_json_that_flips_is_found(tmp_path: Path) -> None:
    folder = open_folder(FILES, tmp_path, random.Random(1))
    folder.release()
    path = tmp_path / "folder.json"
    text = path.read_bytes()
    for position in range(len(text) * 8):
        flipped = bytearray(text)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        told = "folder.json"
        try:
            assert read_folder(FILES, tmp_path) == folder.info
        except FolderError as error:
            told = str(error)
        assert "folder.json" in told
