"""What can go wrong around a data folder, in the real process: each has its sentence, and nothing is made worse."""

import errno
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from interlog.base.errors import FolderError
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.journal.files import DiskFiles
from interlog.journal.verify import verify
from tests.data_folders import (
    SMALL,
    copy,
    flip,
    killed,
    long_used,
    make_checkpoint_newer,
    make_journal_file_newer,
    spoil,
    tree,
)
from tests.faults import FaultKind, FaultyFiles
from tests.served import ROOT, Run, Serve, Served, clean_environment

SMALL_FILES = ("--journal-file-bytes", "1MiB")


def refusal(served: Served, code: int = 1) -> str:
    """The sentence of a broker that did not start."""
    ended, errors = served.end()
    assert ended == code, errors
    assert "Traceback" not in errors
    assert not served.ready_file.exists()
    sentence = errors.splitlines()[-1]
    assert sentence.startswith("interlog: ")
    return sentence.removeprefix("interlog: ")


def said(served: Served) -> list[dict[str, Any]]:
    """What a broker that started wrote until it was asked to stop; it must end well."""
    served.addresses()
    served.process.terminate()
    code, errors = served.end()
    assert code == 0, errors
    return [json.loads(line) for line in errors.splitlines()]


def warnings(served: Served) -> str:
    return "\n".join(line["message"] for line in said(served) if line["level"] == "warning")


def answer(served: Served, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{served.addresses()['http']}{path}", timeout=10) as response:
        content: dict[str, Any] = json.load(response)
        return content


# -- where the folder is


def test_a_path_through_a_file(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "data"):
        assert refusal(serve(data=path)) == (
            f"{path} is not a folder, or a part of its path is a file. Mend that, or name another folder with --data."
        )


def test_missing_parents_are_made(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "data"
    said(serve(*SMALL_FILES, data=path))
    assert (path / "folder.json").is_file()


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no place here that nobody, root included, may write to")
def test_a_place_that_may_not_be_written(serve: Serve) -> None:
    sentence = refusal(serve(data=Path("/sys/interlog-test")))
    assert sentence.startswith("The data folder /sys/interlog-test ")
    assert sentence.endswith("Mend that, or name another folder with --data.")


def test_a_folder_that_was_made_read_only(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    killed(data)
    before = tree(data)
    sentence = refusal(serve(data=data, before=read_only(data)))
    assert sentence.startswith(f"The data folder {data} is on a disk that is read-only.")
    assert tree(data) == before


# -- a full disk


def mounts_allowed(tmp_path: Path) -> None:
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let tests mount anything, not even for themselves")


def read_only(folder: Path) -> list[str]:
    """What becomes a process that sees the folder as on a read-only disk. Nobody else sees that."""
    mounts_allowed(folder.parent)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", script, str(folder)]


def small_disk(at: Path, size: str, source: Path | None = None, left_bytes: int = 0) -> list[str]:
    """What becomes a process with a disk of that size; with a copy of source on it, and then but so much left."""
    mounts_allowed(at.parent)
    at.mkdir()
    script = f'mount -t tmpfs -o size={size} tmpfs "$0"'
    if source is not None:
        script += f' && cp -r "{source}" "$0/data" && free=$(stat -f -c %a "$0")'
        script += f' && head -c $((free * 4096 - {left_bytes})) /dev/zero > "$0/filler"'
    return ["unshare", "-rm", "sh", "-c", script + ' && exec "$@"', str(at)]


@pytest.mark.parametrize("size", ["40k", "200k", "900k"])
def test_no_room_for_a_new_folder(serve: Serve, tmp_path: Path, size: str) -> None:
    disk = tmp_path / "disk"
    sentence = refusal(serve(*SMALL_FILES, data=disk / "data", before=small_disk(disk, size)))
    assert sentence.startswith(f"There is no room on the disk of the data folder {disk / 'data'}: ")
    assert sentence.endswith("Make room, name another folder with --data, or choose a smaller journal_file_bytes.")


def test_no_room_at_all_for_a_folder_that_is_there(serve: Serve, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    killed(tmp_path / "source")
    before = small_disk(disk, "20m", tmp_path / "source")
    sentence = refusal(serve(data=disk / "data", before=before))
    assert sentence.startswith(f"The checkpoint {disk / 'data' / 'meta.db'} cannot be used: ")
    assert "the disk may be full" in sentence
    assert "it has not been changed" in sentence


def test_with_a_little_room_it_starts_and_holds_publishers_back(serve: Serve, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    killed(tmp_path / "source")
    served = serve(data=disk / "data", before=small_disk(disk, "20m", tmp_path / "source", 300_000))
    while answer(served, "/status")["core"]["accepts_messages"]:  # until its first look at the disk
        pass
    health = answer(served, "/health")
    assert health["status"] == "full"
    assert "Messages are refused until there is room." in health["reason"]
    said(served)


class FullDisk(FaultyFiles):
    """A folder that is there takes no room."""

    def step(self, operation: str, path: Path) -> FaultKind | None:
        return None if operation == "make_folder" and path.is_dir() else super().step(operation, path)


@pytest.mark.parametrize("new", [True, False])
def test_a_disk_that_is_full_at_start_and_then_is_not(tmp_path: Path, new: bool) -> None:
    data = tmp_path / "data"
    if not new:
        killed(data)
    files = FullDisk(tmp_path / "trash")
    files.full = True
    worker = ManualWorker()
    if new:
        with pytest.raises(FolderError, match="There is no room on the disk"):
            Core.open(data, settings=SMALL, worker=worker, files=files, rng=random.Random(1))
        files.full = False
        core = Core.open(data, settings=SMALL, worker=worker, files=files, rng=random.Random(1))
    else:
        core = Core.open(data, settings=SMALL, worker=worker, files=files, rng=random.Random(1))
        core.poll()
        assert not core.accepts_messages
        assert "is full" in core.refusal
        files.full = False
    core.poll()
    worker.run()
    core.poll()
    assert core.accepts_messages
    core.close()


def test_a_first_start_that_was_killed_is_begun_again(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    said(serve(*SMALL_FILES, data=data))
    shutil.rmtree(data / "journal")
    (data / "meta.db").write_bytes(b"")
    assert "Nothing was ever written to the journal" in warnings(serve(*SMALL_FILES, data=data))


# -- written by a newer version


@pytest.mark.parametrize("which", ["folder.json", "first journal file", "last journal file", "meta.db"])
def test_what_a_newer_version_wrote_is_left_alone(serve: Serve, interlog: Run, tmp_path: Path, which: str) -> None:
    data = tmp_path / "data"
    journal = killed(data)
    if which == "folder.json":
        (data / which).write_text(json.dumps({"format": 2}))
    elif which == "meta.db":
        make_checkpoint_newer(data / which)
    else:
        (data / "journal" / "synced").unlink()  # nothing says that what is in the file ever lasted
        make_journal_file_newer(journal[0 if "first" in which else -1])
    before = tree(data)
    sentence = refusal(serve(data=data))
    assert "written by a newer version of Interlog" in sentence
    assert str(data) in sentence
    assert "Start" in sentence
    checked = interlog("verify", str(data))
    assert (checked.returncode, checked.stdout) == (1, "")
    assert "written by a newer version of Interlog" in checked.stderr
    assert str(data) in checked.stderr
    after = tree(data)
    for name in ("lock", "meta.db-shm", "meta.db-wal", "spill", "."):
        before.pop(name, None)
        after.pop(name, None)
    assert after == before


# -- checkpoints


def test_a_damaged_checkpoint_gives_way_to_its_older_copy(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    long_used(data)
    spoil(data / "meta.db")
    checked = interlog("verify", str(data))
    assert checked.returncode == 1
    assert checked.stdout.splitlines()[-1].startswith("Only a checkpoint is damaged, and nothing is lost")
    told = warnings(serve(data=data))
    assert f"{data / 'meta.db'} at byte 0: the checkpoint cannot be read" in told
    assert "Trying its older copy, meta.previous.db." in told
    assert interlog("verify", str(data)).returncode == 0
    assert (data / "meta.damaged.db").exists()


def test_repair_puts_the_older_copy_in_its_place(interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    long_used(data)
    spoil(data / "meta.db")
    repaired = interlog("verify", "--repair", str(data))
    assert repaired.returncode == 0, repaired.stdout
    assert interlog("verify", str(data)).stdout.splitlines()[-1] == "The data folder is sound."


@pytest.mark.parametrize("older", [False, True])
def test_without_any_checkpoint_a_whole_journal_is_enough(serve: Serve, tmp_path: Path, older: bool) -> None:
    data = tmp_path / "data"
    killed(data)
    spoil(data / "meta.db")
    if older:
        shutil.copy(data / "meta.db", data / "meta.previous.db")
    served = serve(data=data)
    status = answer(served, "/status")["core"]
    assert (status["queues"], status["topics"], status["messages"]["ready"]) == (1, 1, 40)
    assert "everything is rebuilt from it" in warnings(served)


def test_what_is_lost_is_said_when_neither_suffices(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    long_used(data)
    spoil(data / "meta.db")
    spoil(data / "meta.previous.db")
    before = tree(data)
    sentence = refusal(serve(data=data))
    assert "so what came before it cannot be rebuilt: the names of namespaces, topics and queues" in sentence
    assert "The segments of 3 partitions are there" in sentence
    assert sentence.endswith("Put meta.db back from a copy of the data folder.")
    assert {name: entry for name, entry in tree(data).items() if entry[2]} == {
        name: entry if name != "lock" else tree(data)[name] for name, entry in before.items() if entry[2]
    }
    assert "Put the folder back from a copy" in interlog("verify", str(data)).stdout.splitlines()[-1]


def test_a_checkpoint_that_another_program_holds_is_not_taken_for_damaged(serve: Serve, tmp_path: Path) -> None:
    import sqlite3

    data = tmp_path / "data"
    long_used(data)
    holder = sqlite3.connect(data / "meta.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    sentence = refusal(serve(data=data))
    assert "another program has it open and locked" in sentence
    holder.execute("ROLLBACK")
    holder.close()
    assert not (data / "meta.damaged.db").exists()
    assert warnings(serve(data=data)) == ""


def test_a_checkpoint_that_is_a_folder(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    killed(data)
    (data / "meta.db").unlink()
    (data / "meta.db").mkdir()
    checked = interlog("verify", str(data))
    assert checked.returncode == 1
    assert "the checkpoint is not a file" in checked.stdout
    assert "the checkpoint is not a file" in warnings(serve(data=data))


# -- the journal


@pytest.mark.parametrize(("index", "sequence"), [(0, 1), (1, 10)])
def test_a_journal_file_that_is_missing(serve: Serve, interlog: Run, tmp_path: Path, index: int, sequence: int) -> None:
    data = tmp_path / "data"
    gone = killed(data)[index]
    gone.unlink()
    told = f"{gone} at byte 0: the journal file is missing; envelope {sequence} should be in it."
    assert refusal(serve(data=data)) == (
        f"{told} Run `interlog verify` to see everything that is damaged, and put the data folder back from a copy; "
        "nothing has been changed."
    )
    checked = interlog("verify", "--repair", str(data))
    assert checked.returncode == 1
    assert f"DAMAGED  {told}" in checked.stdout
    assert "Put the folder back from a copy" in checked.stdout.splitlines()[-1]


def test_the_last_journal_file_is_missing(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    journal = killed(data)
    journal[-1].unlink()
    sentence = refusal(serve(data=data))
    assert sentence.startswith(f"{journal[-2]} at byte ")
    assert "should begin here, and" in sentence


def test_the_whole_journal_is_missing(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    long_used(data)
    shutil.rmtree(data / "journal")
    assert "the journal file is missing" in refusal(serve(data=data))
    (data / "meta.db").unlink()
    (data / "meta.previous.db").unlink()
    assert "There is no journal file, so what came before it cannot be rebuilt" in refusal(serve(data=data))
    assert len(list((data / "segments").iterdir())) == 3


def test_a_journal_file_of_another_folder(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    journal = killed(data)
    other = killed(tmp_path / "other", seed=2)
    shutil.copy(other[1], journal[1])
    sentence = refusal(serve(data=data))
    assert sentence.startswith(f"{journal[1]} at byte 0: the file belongs to another data folder.")
    assert interlog("verify", str(data)).returncode == 1


def test_a_flipped_bit_in_the_journal(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    journal = killed(data)
    flip(journal[2], 5000)
    sentence = refusal(serve(data=data))
    assert sentence.startswith(f"{journal[2]} at byte ")
    checked = interlog("verify", str(data))
    assert checked.returncode == 1
    assert f"DAMAGED  {journal[2]} at byte " in checked.stdout


# -- the clock


def test_a_clock_that_was_set_back_between_two_starts(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    killed(data, now_ms=int(time.time() * 1000) + 86_400_000)
    assert "s behind the newest entry of the journal: it was set back." in warnings(serve(data=data))


JUMPING_CLOCK = """
import os, time
real = time.time_ns
jumped = os.environ["TEST_CLOCK_JUMPED"]
time.time_ns = lambda: real() - (3600_000_000_000 if os.path.exists(jumped) else 0)
"""


def test_a_clock_that_is_set_back_while_it_runs(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(JUMPING_CLOCK)
    jumped = tmp_path / "jumped"
    path = os.pathsep.join([str(tmp_path / "clock"), str(ROOT)])
    served = serve(*SMALL_FILES, environment={"PYTHONPATH": path, "TEST_CLOCK_JUMPED": str(jumped)})
    served.addresses()
    jumped.touch()
    assert served.process.stderr is not None
    while "was set back" not in (line := served.process.stderr.readline()):
        assert line, "the broker ended"
    told = json.loads(line)
    assert told["level"] == "warning"
    assert 3_599_000 < told["set_back_ms"] < 3_601_000
    assert answer(served, "/health") == {"status": "ok"}
    assert warnings(served) == ""  # it was said once


# -- settings and ports


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "The settings file interlog.toml cannot be read: Is a directory."),
        (b"http_port = ", "The settings file interlog.toml is not TOML: Invalid value (at end of document)."),
        (b"host = '\xff'", "The settings file interlog.toml is not TOML: it is not UTF-8 at byte 8."),
        (b"http_prot = 1", "http_prot (from interlog.toml) is not a setting. Did you mean http_port?"),
    ],
)
def test_a_settings_file_that_cannot_be_used(
    interlog: Run, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is None:
        (tmp_path / "interlog.toml").mkdir()
    else:
        (tmp_path / "interlog.toml").write_bytes(content)
    ended = interlog("serve")
    assert ended.returncode == 2
    assert ended.stderr == f"interlog: {sentence}\n"
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_leaves_a_folder_that_is_sound(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refusal(serve(*SMALL_FILES, "--http-port", str(port)))
    assert sentence == (
        f"Port {port} of 127.0.0.1 cannot be opened for http: it is in use. Stop the process that has it, or choose "
        "another with --http-port (0: the system chooses; off: not served)."
    )
    assert interlog("verify", str(tmp_path / "data")).returncode == 0


# -- checking


def test_verify_changes_nothing(interlog: Run, tmp_path: Path) -> None:
    sound = tmp_path / "sound"
    long_used(sound)
    folders = {"sound": sound}
    for name in ("torn", "flipped", "spoilt", "hole", "segment"):
        folders[name] = copy(sound, tmp_path / name)
    journal = folders["torn"] / "journal"
    for path in folders["torn"], folders["hole"]:
        shutil.rmtree(path)
        killed(path)
    (journal / "synced").unlink()
    last = sorted(journal.glob("*.journal"))[-1]
    flip(last, 16_000)
    flip(next((folders["flipped"] / "journal").glob("*.journal")), 300)
    spoil(folders["spoilt"] / "meta.db")
    sorted((folders["hole"] / "journal").glob("*.journal"))[1].unlink()
    flip(sorted((folders["segment"] / "segments").glob("*/*.log"))[0], 500)
    for name, folder in folders.items():
        before = tree(folder)
        checked = interlog("verify", "--data", str(folder))
        assert tree(folder) == before, name
        assert checked.stderr == ""
        assert checked.returncode == (0 if name in ("sound", "torn") else 1), (name, checked.stdout)
        assert ("DAMAGED" in checked.stdout) == bool(checked.returncode)
        assert ("were never wholly written" in checked.stdout) == (name == "torn")


def test_verify_of_a_folder_on_a_read_only_disk(tmp_path: Path) -> None:
    data = tmp_path / "data"
    long_used(data)
    before = tree(data)
    for repair, code in (([], 0), (["--repair"], 1)):
        words = [*read_only(data), sys.executable, "-m", "interlog", "verify", *repair, str(data)]
        ended = subprocess.run(words, capture_output=True, text=True, env=clean_environment(), check=False)
        assert ended.returncode == code, ended
        sentence = f"interlog: The data folder {data} is on a disk that is read-only."
        assert ended.stderr.startswith(sentence if repair else "")
        assert "Traceback" not in ended.stderr
    assert tree(data) == before


def test_a_start_lasts_before_anybody_is_served(tmp_path: Path) -> None:
    """Its epoch is never given twice, and what it cut off stays cut off, also when the power goes right then."""
    core = Core.open(tmp_path / "data", settings=SMALL, worker=ManualWorker())
    journal = core.storage.journal
    assert journal.durable() == journal.tail() > 0
    core.close()


def test_verify_without_room_for_its_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which disk has no room is told: it is not that of the folder."""
    data = tmp_path / "data"
    killed(data)

    def no_room(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(source), None, str(target))

    monkeypatch.setattr(shutil, "copyfile", no_room)
    with pytest.raises(FolderError, match=r"was broken off: .*interlog-verify-.*/meta\.db: No space left on device\."):
        verify(DiskFiles(), data)


def test_repair_cuts_a_torn_end_and_nothing_whole(interlog: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    last = killed(data)[-1]
    (data / "journal" / "synced").unlink()
    content = last.read_bytes()
    end = len(content.rstrip(b"\0"))
    flip(last, end - 10)  # the last envelope was never wholly written
    checked = interlog("verify", str(data))
    assert checked.returncode == 0, checked.stdout
    assert "the next start cuts them off. Nothing acknowledged is in them." in checked.stdout
    before = tree(data)
    repaired = interlog("verify", "--repair", str(data))
    assert repaired.returncode == 0
    assert "were cut off" in repaired.stdout
    changed = {name for name, entry in tree(data).items() if entry[2] != before[name][2]}
    assert changed <= {f"journal/{last.name}", "lock"}
    after = last.read_bytes().rstrip(b"\0")
    assert content.startswith(after)
    assert "torn" not in interlog("verify", str(data)).stdout
    assert "up to envelope 41" in interlog("verify", str(data)).stdout


def test_verify_of_a_folder_in_use(serve: Serve, interlog: Run, tmp_path: Path) -> None:
    served = serve(*SMALL_FILES)
    served.addresses()
    for words in ([], ["--repair"]):
        ended = interlog("verify", *words, str(tmp_path / "data"))
        assert ended.returncode == 1
        assert f"is in use by process {served.process.pid}. Stop that process" in ended.stderr
