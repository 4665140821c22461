"""The local journal: group commit, rolling, recycling, a full disk, a failing one, and starts after crashes."""

import os
import random
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from interlog.base.errors import NotFoundError
from interlog.journal.envelope import EntryKind, EnvelopeBuilder, read_header
from interlog.journal.files import DiskFile
from interlog.journal.journal import Outcome, Ticket
from interlog.journal.journal_file import FILE_HEADER_BYTES, SPARE, file_name, file_numbers
from interlog.journal.local import PREPARE_BYTES, JournalState
from interlog.journal.scan import Position
from interlog.journal.sync_mark import read_mark
from interlog.journal.verify_journal import verify_journal
from tests.faults import Fault, FaultKind, FaultyFiles, PowerCut, random_faults
from tests.unit.journal_rig import ID, SMALL, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.open()
    return rig


@pytest.fixture
def faulty(tmp_path: Path) -> tuple[Rig, FaultyFiles]:
    files = FaultyFiles(tmp_path / "trash")
    rig = Rig(tmp_path, files)
    rig.open()
    return rig, files


# -- group commit


def test_what_is_appended_while_a_sync_is_in_flight_waits_for_the_next(rig: Rig) -> None:
    rig.append(b"one")
    rig.append(b"two")
    rig.append(b"three")
    assert len(rig.worker.jobs) == 1
    rig.worker.run(1)
    assert rig.durable() == [1]
    assert len(rig.worker.jobs) == 1
    rig.worker.run(1)
    assert rig.durable() == [1, 2, 3]
    assert not rig.worker.jobs
    assert rig.journal.durable() == rig.journal.tail() == 3


def test_with_nobody_waiting_nothing_is_synced_until_it_is_due(rig: Rig) -> None:
    ticket = rig.append(b"one", wait=False)
    assert ticket.written
    rig.poll()
    rig.worker.run()  # the spare file
    assert not rig.worker.jobs
    rig.poll(900)
    assert len(rig.worker.jobs) == 1
    rig.worker.run()
    assert ticket.outcome is Outcome.DURABLE


def test_who_comes_late_still_starts_a_sync(rig: Rig) -> None:
    ticket = rig.append(b"one", wait=False)
    other = rig.append(b"two", wait=False)
    got: list[Outcome] = []
    ticket.when_durable(got.append)
    assert len(rig.worker.jobs) == 1
    other.when_durable(got.append)  # comes while the sync is in flight, which covers it
    rig.worker.run(1)
    assert got == [Outcome.DURABLE] * 2
    assert not rig.worker.jobs
    ticket.when_durable(got.append)
    assert len(got) == 3


def test_tickets_know_their_place_at_once(rig: Rig) -> None:
    first, second = rig.append(b"one"), rig.append(b"two")
    assert (first.sequence, first.file, first.position) == (1, 1, 64)
    assert second.position > first.position
    file = rig.journal.file(1)
    assert read_header(file.read(100, second.position)).sequence == 2
    assert rig.journal.end().position == second.position + (second.position - first.position)


def test_room_is_prepared_ahead_of_who_writes_much_and_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[tuple[int, int]] = []
    monkeypatch.setattr(DiskFile, "prepare", lambda file, size, position: prepared.append((position, position + size)))
    rig = Rig(tmp_path, settings=replace(SMALL, file_bytes=5 * PREPARE_BYTES))
    rig.open()
    quarter = bytes(PREPARE_BYTES // 4)
    for _ in range(3):
        rig.append(quarter)
        rig.worker.run()
    assert not prepared
    for _ in range(16):
        rig.append(quarter)
        rig.worker.run()
    end = rig.journal.end().position
    assert all(stop == start for (_, stop), (start, _) in pairwise(prepared))
    assert prepared[0][0] == FILE_HEADER_BYTES + 2 * PREPARE_BYTES
    assert prepared[-1][1] == 5 * PREPARE_BYTES >= end  # and not beyond the file's end


def test_os_durability_answers_when_written_and_syncs_behind(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=replace(SMALL, durability="os"))
    rig.open()
    assert rig.append(b"one").outcome is Outcome.DURABLE
    assert not rig.worker.jobs
    assert rig.journal.durable() == 0
    rig.poll(500)
    rig.worker.run()
    assert rig.journal.durable() == 0
    rig.poll(500)
    rig.worker.run()
    assert rig.journal.durable() == 1
    assert read_mark(rig.files, rig.folder, ID).sequence == 1


def test_a_sequence_that_is_not_the_next_is_a_conflict(rig: Rig) -> None:
    rig.append(b"one")
    for sequence in (0, 1, 3):
        builder, ticket = EnvelopeBuilder(), Ticket()
        builder.add(EntryKind.BATCH, 1, b"x")
        rig.journal.append(sequence, builder, ticket)
        assert ticket.outcome is Outcome.CONFLICT
    assert rig.journal.tail() == 1


def test_a_callback_may_append(rig: Rig) -> None:
    ticket = rig.append(b"one")

    def more(_: Outcome) -> None:
        rig.append(b"two")
        rig.append(b"three")

    ticket.when_durable(more)
    rig.worker.run()
    assert rig.durable() == [1, 2, 3]


def test_close_syncs_resolves_and_marks_a_clean_end(rig: Rig) -> None:
    rig.append(b"one")
    ticket = rig.append(b"two", wait=False)
    rig.journal.close()
    assert rig.durable() == [1]
    assert ticket.outcome is Outcome.DURABLE
    assert rig.append(b"three").outcome is Outcome.UNKNOWN
    rig.worker.run()  # the sync that was in flight comes too late to do harm
    mark = read_mark(rig.files, rig.folder, ID)
    assert (mark.sequence, mark.clean) == (2, True)
    result = rig.open()
    assert result.clean
    assert result.end.sequence == 2
    assert not read_mark(rig.files, rig.folder, ID).clean
    rig.journal.poll()
    rig.journal.close()
    rig.journal.close()


def test_read_and_trim(rig: Rig) -> None:
    rig.fill(60, 1000)
    assert rig.rolled == [1, 2, 3]
    for sequence in (1, 30, 60):
        assert rig.payloads[sequence] in rig.journal.read(sequence)
    for sequence in (0, 61):
        with pytest.raises(NotFoundError):
            rig.journal.read(sequence)
    second = rig.journal.closed_files()[1]
    rig.journal.trim(second.first_sequence)
    rig.worker.run()
    assert [info.number for info in rig.journal.closed_files()] == [2, 3]
    with pytest.raises(NotFoundError):
        rig.journal.read(1)
    with pytest.raises(NotFoundError):
        rig.journal.file(1)
    assert read_header(rig.journal.read(second.first_sequence)).sequence == second.first_sequence


# -- files


def test_rolls_by_size_and_tells_when_the_closed_file_is_synced(rig: Rig) -> None:
    tickets = rig.fill(40, 1000, sync=False)
    assert {ticket.file for ticket in tickets} == {1, 2, 3}
    assert not rig.rolled
    rig.worker.run()
    assert rig.rolled == [1, 2]
    infos = rig.journal.closed_files()
    assert [info.number for info in infos] == [1, 2]
    assert infos[0].first_sequence == 1
    assert infos[1].first_sequence == infos[0].last_sequence + 1
    assert all(info.bytes <= SMALL.file_bytes for info in infos)
    result = rig.open()
    assert result.end.sequence == 40
    assert rig.journal.closed_files() == infos
    (rig.folder / "synced").unlink()  # nobody knows any more that they are synced
    rig.open()
    assert rig.journal.closed_files() == []
    rig.append(b"start")
    rig.worker.run()
    assert rig.rolled == [1, 2]
    assert rig.journal.closed_files() == infos


def test_an_envelope_larger_than_a_file_gets_one_as_large_as_it_needs(rig: Rig) -> None:
    rig.append(b"small")
    ticket = rig.append(b"L" * 100_000)
    after = rig.append(b"small")
    rig.worker.run()
    assert (ticket.file, ticket.position, after.file) == (2, 64, 3)
    assert rig.journal.closed_files()[1].bytes > 100_000
    rig.journal.release(2)  # not of the usual size: removed, not recycled
    rig.worker.run()
    assert not (rig.folder / SPARE).exists()
    assert file_numbers(rig.files, rig.folder) == [1, 3]


def test_rolls_by_age_with_jitter(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=replace(SMALL, roll_ms=10_000))
    rig.open()
    rig.poll(20_000)
    rig.worker.run()
    assert rig.journal.end().file == 1  # an empty file does not roll
    rig.append(b"one")
    rig.worker.run()
    rig.poll()
    rig.worker.run()
    assert rig.rolled == [1]
    assert (rig.folder / file_name(2)).exists()
    end = rig.journal.closed_files()[0].bytes
    assert rig.journal.end() == (1, end, 2, 1)  # where a checkpoint can rely on it
    rig.journal.close()
    rig.open()
    assert rig.journal.end() == (1, end, 2, 2)
    assert rig.append(b"two").file == 2
    rig.poll(8_900)
    assert not (rig.folder / file_name(3)).exists()
    rig.poll(2_200)
    assert (rig.folder / file_name(3)).exists()
    rig.worker.run()
    assert rig.open().end.sequence == 2


def test_released_files_are_recycled_in_any_order_and_their_old_envelopes_never_seen(rig: Rig) -> None:
    rig.fill(60, 1000)
    inode = os.stat(rig.path(2)).st_ino
    rig.journal.release(2)
    rig.journal.release(2)
    rig.worker.run()
    assert os.stat(rig.folder / SPARE).st_ino == inode
    rig.journal.release(1)
    rig.journal.release(3)
    rig.worker.run()
    assert file_numbers(rig.files, rig.folder) == [4]
    assert rig.journal.closed_files() == []
    rig.fill(14, 1000)
    assert os.stat(rig.path(5)).st_ino == inode
    sequence = rig.journal.tail()
    for _ in range(3):  # the end is in a file full of old envelopes; some of them begin just where it ends
        result = rig.open()
        assert (result.end.sequence, result.torn_bytes, result.drop) == (sequence, 0, ())
        rig.append(b"x" * 1000)
        rig.worker.run()
        sequence += 1


def test_a_file_that_is_still_being_read_is_not_recycled(rig: Rig) -> None:
    rig.fill(30, 1000)
    reader = rig.journal.file(1)
    before = reader.read(5000, 0)
    rig.journal.release(1)
    rig.worker.run()
    assert not (rig.folder / SPARE).exists()
    rig.fill(30, 1000)
    assert reader.read(5000, 0) == before


def test_one_spare_is_kept_ready(rig: Rig) -> None:
    assert not (rig.folder / SPARE).exists()
    rig.poll()
    rig.worker.run()
    assert (rig.folder / SPARE).stat().st_size == SMALL.file_bytes
    rig.fill(20, 1000)
    assert not (rig.folder / SPARE).exists()
    rig.poll()
    rig.worker.run()
    assert (rig.folder / SPARE).exists()
    os.truncate(rig.folder / SPARE, 100)  # as if its making had been interrupted
    rig.open()
    rig.poll()
    rig.worker.run()
    assert (rig.folder / SPARE).stat().st_size == SMALL.file_bytes


# -- a full disk


def test_a_full_disk_holds_envelopes_back_and_resumes_in_order(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    rig.append(b"one")
    rig.worker.run()
    files.full = True
    tickets = [rig.append(bytes([n]) * 500) for n in range(60)]
    assert rig.journal.state is JournalState.FULL
    assert "full" in rig.journal.reason
    assert not rig.journal.accepts_messages
    assert {ticket.file for ticket in tickets} == {1}  # no file is begun meanwhile: on it goes, past its size
    assert not tickets[0].written
    assert rig.payloads[3] in rig.journal.read(3)
    rig.poll()
    rig.worker.run()
    assert rig.durable() == [1]
    files.full = False
    rig.poll(1100)
    rig.worker.run()
    assert rig.durable() == list(range(1, 62))
    assert rig.journal.accepts_messages
    assert rig.journal.reason == ""
    rig.append(b"next")
    rig.worker.run()
    payloads = dict(rig.payloads)
    assert rig.journal.end().file == 2
    assert rig.open().end.sequence == 62
    assert rig.payloads == payloads


def test_a_write_that_stopped_short_is_written_again_whole(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    files.faults = [Fault(2, FaultKind.SHORT_WRITE, only=frozenset({"write"}))]
    rig.fill(3, 700)
    assert rig.journal.state is JournalState.FULL
    rig.poll()
    rig.worker.run()
    assert rig.durable() == [1, 2, 3]
    payloads = dict(rig.payloads)
    rig.scan()
    assert rig.payloads == payloads


def test_when_no_file_can_be_made_it_goes_on_in_this_one(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    files.faults = [Fault(1, FaultKind.EIO, count=1000, only=frozenset({"create"}))]
    rig.fill(40, 1000)
    assert rig.journal.state is JournalState.FULL
    assert "cannot be made" in rig.journal.reason
    assert rig.durable() == list(range(1, 41))
    assert rig.journal.end().file == 1
    rig.poll()
    rig.worker.run()
    assert rig.journal.state is JournalState.FULL
    files.faults = []
    rig.poll(1100)
    rig.worker.run()
    rig.poll()
    assert rig.journal.accepts_messages
    rig.fill(1)
    assert rig.journal.end().file == 2
    assert rig.open().end.sequence == 41


def test_the_reserve_is_kept_free(tmp_path: Path) -> None:
    files = FaultyFiles(tmp_path / "trash")
    rig = Rig(tmp_path, files, replace(SMALL, min_free_bytes=1000))
    rig.open()
    files.free = 999
    rig.poll()
    assert rig.journal.state is JournalState.FULL
    assert "999 bytes are free" in rig.journal.reason
    assert rig.append(b"an acknowledgement").written
    files.free = 1000 + SMALL.file_bytes - 1
    rig.poll()
    assert rig.journal.state is JournalState.FULL
    files.free += 1
    rig.poll()
    assert rig.journal.accepts_messages


def test_closing_while_full_leaves_what_is_pending_unknown(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    rig.append(b"one")
    files.full = True
    rig.append(b"two")
    rig.journal.close()
    assert rig.outcomes == [(1, Outcome.DURABLE), (2, Outcome.UNKNOWN)]
    files.kill()
    assert rig.open().end.sequence == 1


# -- a failing disk


def test_after_a_failed_sync_nobody_is_told_that_anything_lasts(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    files.faults = [Fault(1, FaultKind.SYNC_FAILS)]
    rig.append(b"one")
    rig.append(b"two")
    rig.worker.run()
    assert rig.outcomes == [(1, Outcome.UNKNOWN), (2, Outcome.UNKNOWN)]
    assert rig.journal.state is JournalState.FAILED
    assert "Syncing" in rig.journal.reason
    operations = files.operations
    assert rig.append(b"three").outcome is Outcome.UNKNOWN
    rig.poll()
    rig.journal.close()
    assert files.operations == operations  # nothing is written, synced or tried again


def test_a_failed_write_fails_the_journal(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    rig.append(b"one")
    files.faults = [Fault(1, FaultKind.EIO, only=frozenset({"write"}))]
    rig.append(b"two")
    assert rig.outcomes == [(1, Outcome.UNKNOWN), (2, Outcome.UNKNOWN)]
    assert rig.journal.state is JournalState.FAILED
    assert not rig.journal.accepts_messages
    rig.worker.run()
    files.kill()
    assert rig.open().end.sequence == 1


def test_a_folder_that_vanishes_fails_the_journal(rig: Rig) -> None:
    rig.append(b"one")
    shutil.move(rig.folder, rig.folder.with_name("elsewhere"))
    rig.poll()
    assert rig.journal.state is JournalState.FAILED
    assert rig.outcomes == [(1, Outcome.UNKNOWN)]


def test_a_file_that_vanishes_fails_the_journal(rig: Rig) -> None:
    rig.path(1).unlink()
    rig.poll()
    assert rig.journal.state is JournalState.FAILED
    assert "vanished" in rig.journal.reason


def test_a_sync_mark_that_cannot_be_written_hurts_nobody(faulty: tuple[Rig, FaultyFiles]) -> None:
    rig, files = faulty
    rig.append(b"one")
    files.faults = [Fault(1, FaultKind.EIO, count=9, only=frozenset({"write"}))]
    rig.worker.run()
    assert rig.durable() == [1]


# -- starts


def test_what_a_start_found_but_was_never_synced_is_synced_before_anything_new_is_answered(tmp_path: Path) -> None:
    files = FaultyFiles(tmp_path / "trash")
    rig = Rig(tmp_path, files)
    rig.open()
    rig.fill(40, 1000, sync=False)
    files.kill()
    result = rig.open()
    assert (result.end.sequence, result.end.durable) == (40, 0)
    rig.append(b"start")
    rig.worker.run()
    assert rig.durable() == [41]
    for number in file_numbers(files, rig.folder):
        assert not files.unsynced(rig.path(number))
    payloads = dict(rig.payloads)
    files.power_cut(random.Random(3))
    assert rig.open().end.sequence == 41
    assert rig.payloads == payloads


def _life(rig: Rig, rng: random.Random) -> None:
    """Appends, syncs, polls, releases, in any order."""
    for _ in range(rng.randint(5, 40)):
        action = rng.random()
        if action < 0.6:
            rig.append(rng.randbytes(rng.choice([1, 50, 500, 3000, 9000])), wait=rng.random() < 0.8)
        elif action < 0.85:
            rig.worker.run(rng.randint(1, 3))
        elif action < 0.95:
            rig.poll(rng.choice([10, 500, 2000]))
        else:
            closed = [info.number for info in rig.journal.closed_files()]
            if len(closed) > 2:
                # As after a checkpoint at the start of the second file; a file that was gone may have come back.
                info = rig.journal.closed_files()[1]
                if rig.start is None or info.number > rig.start.file:
                    rig.start = Position(info.number, FILE_HEADER_BYTES, info.first_sequence)
                rig.journal.release(closed[0])
    if rng.random() < 0.2:
        rig.journal.close()


@pytest.mark.parametrize("seed", range(12))
def test_lives_that_end_anyhow(tmp_path: Path, seed: int) -> None:
    """Whatever fails and however it ends: what was answered is there, in order, nothing is invented, all is sound."""
    rng = random.Random(seed)
    files = FaultyFiles(tmp_path / "trash", seed=seed)
    rig = Rig(tmp_path, files, replace(SMALL, roll_ms=3000, durability="sync" if seed % 4 else "os"))
    written: dict[int, bytes] = {}
    durable = 0
    for life in range(14):
        started = False
        try:
            result = rig.open(rig.start)
            started = True
            files.faults = []
            last = result.end.sequence
            assert last >= durable, f"life {life}: {durable} was durable, {last} is left"
            assert rig.payloads == {n: data for n, data in written.items() if result.first_sequence <= n <= last}
            assert not verify_journal(files, rig.folder, ID, rig.start).damages
            files.faults = random_faults(rng, 60) if rng.random() < 0.8 else []
            _life(rig, rng)
        except PowerCut:
            pass
        except OSError:
            assert not started  # a start may fail; a journal that is open never raises
        if started:
            written = dict(rig.payloads)
            durable = max([rig.journal.durable(), *rig.durable()] if seed % 4 else [rig.journal.durable()])
        if rng.random() < 0.6:
            files.power_cut(rng)
        else:
            files.kill()
        files.faults = random_faults(rng, 30) if rng.random() < 0.1 else []  # the next start may fail too


# -- some of it need not be synced


def lax(rig: Rig, payload: bytes, *, strict: bool | None = False) -> Ticket:
    builder, ticket = EnvelopeBuilder(), Ticket()
    ticket.strict = strict
    builder.add(EntryKind.BATCH, 1, payload)
    sequence = rig.journal.tail() + 1
    rig.payloads[sequence] = payload
    ticket.when_durable(lambda outcome: rig.outcomes.append((sequence, outcome)))
    rig.journal.append(sequence, builder, ticket)
    return ticket


def test_what_need_not_be_synced_is_answered_when_written(rig: Rig) -> None:
    assert lax(rig, b"one").outcome is Outcome.DURABLE
    assert not rig.worker.jobs
    rig.poll(2_000)
    rig.worker.run()
    assert rig.journal.durable() == 1  # behind


def test_it_is_not_answered_before_what_must_be_synced(rig: Rig) -> None:
    first = rig.append(b"strict")
    tickets = [lax(rig, b"lax"), lax(rig, b"lax too")]
    assert first.outcome is None and [ticket.outcome for ticket in tickets] == [None, None]
    rig.worker.run()
    assert rig.durable() == [1, 2, 3]
    quiet = rig.append(b"nobody waits", wait=False)
    assert lax(rig, b"waits").outcome is None
    rig.worker.run()  # it asked for a sync itself
    assert rig.durable() == [1, 2, 3, 5] and quiet.outcome is Outcome.DURABLE


def test_what_must_be_synced_waits_for_that_though_the_journal_does_not(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=replace(SMALL, durability="os"))
    rig.open()
    strict = lax(rig, b"strict", strict=True)
    after = lax(rig, b"usual", strict=None)
    assert strict.outcome is None and after.outcome is None
    rig.worker.run()
    assert rig.durable() == [1, 2]
    assert lax(rig, b"usual", strict=None).outcome is Outcome.DURABLE
