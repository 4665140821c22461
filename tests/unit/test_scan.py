"""Scanning: torn tails are cut, damage is named, leftovers are never believed; and nothing makes it hang."""

import random
import shutil
from pathlib import Path

import pytest

from interlog.base.errors import DamageError
from interlog.journal.envelope import HEADER_BYTES, EntryKind, EnvelopeBuilder
from interlog.journal.files import DiskFiles
from interlog.journal.journal_file import FILE_HEADER_BYTES, FileHeader, file_name, file_numbers, file_salt
from interlog.journal.scan import Position, Scan, cut
from interlog.journal.sync_mark import NAME, MarkWriter, read_mark
from interlog.journal.verify_journal import verify_journal
from tests.faults import FaultyFiles
from tests.unit.journal_rig import ID, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.open()
    return rig


def put(path: Path, data: bytes, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = path.read_bytes()[position]
    put(path, bytes([data ^ 1 << bit]), position)


def envelope(file: int, sequence: int, *, epoch: int = 1, durable: int = 0, size: int = 100) -> bytes:
    builder = EnvelopeBuilder()
    builder.add(EntryKind.BATCH, 1, b"e" * size)
    buffers = builder.finish(
        shard=0, epoch=epoch, sequence=sequence, durable=durable, time_ms=0, salt=file_salt(ID, file)
    )
    return b"".join(buffers)


def unmarked(rig: Rig) -> None:
    (rig.folder / NAME).unlink(missing_ok=True)


# -- the end


def test_an_empty_folder_and_a_folder_with_nothing_but_a_header(rig: Rig, tmp_path: Path) -> None:
    result = Scan(rig.files, tmp_path / "nowhere", ID).result()
    assert (result.end.file, result.end.sequence, result.damage) == (0, 0, None)
    result = rig.scan()
    assert (result.end.file, result.end.position, result.end.sequence) == (1, FILE_HEADER_BYTES, 0)


def test_a_tail_torn_at_any_byte_is_cut(rig: Rig) -> None:
    rig.fill(3)
    last = rig.append(b"last" * 50, wait=False)
    end = rig.journal.end()
    whole = rig.path(1).read_bytes()
    for stop in range(last.position, end.position):
        torn = whole[:stop] + bytes(len(whole) - stop)
        if torn[: end.position] == whole[: end.position]:
            continue  # the bytes that were lost were zeros
        rig.path(1).write_bytes(torn)
        result = rig.scan()
        assert (result.damage, result.end.sequence, result.end.position) == (None, 3, last.position)
        # A part too small to be known as one is not counted; it is written over like anything else.
        size = end.position - last.position
        assert result.torn_bytes in ((size,) if stop >= last.position + HEADER_BYTES else (0, size))
        cut(rig.files, rig.folder, result)
        assert len(rig.path(1).read_bytes()) == len(whole)
        assert rig.scan().torn_bytes == 0


def test_a_tail_torn_with_the_file_is_cut(rig: Rig) -> None:
    rig.fill(3)
    last = rig.append(b"last" * 50, wait=False)
    with rig.path(1).open("r+b") as file:
        file.truncate(last.position + 70)
    assert rig.open().end.sequence == 3
    rig.fill(3)
    assert rig.open().end.sequence == 6


def test_any_bit_of_a_middle_envelope_is_missed(rig: Rig) -> None:
    tickets = rig.fill(5)
    victim = tickets[2]
    for position in range(victim.position, tickets[3].position):
        flip(rig.path(1), position, position % 8)
        result = rig.scan()
        damage = result.damage
        assert damage is not None
        assert (damage.file, damage.position) == (str(rig.path(1)), victim.position)
        assert "envelope 3 should begin here" in str(damage)
        with pytest.raises(DamageError):
            cut(rig.files, rig.folder, result)
        flip(rig.path(1), position, position % 8)
    assert rig.scan().damage is None


def test_without_the_mark_later_envelopes_still_show_the_damage(rig: Rig) -> None:
    tickets = rig.fill(5)
    rig.fill(1)  # written when 5 was known to be synced
    unmarked(rig)
    flip(rig.path(1), tickets[2].position + 60)
    damage = rig.scan().damage
    assert damage is not None
    assert damage.position == tickets[2].position


def test_a_flipped_bit_in_the_last_synced_envelope_is_damage_and_not_a_torn_tail(tmp_path: Path) -> None:
    files = FaultyFiles(tmp_path / "trash")
    rig = Rig(tmp_path, files)
    rig.open()
    tickets = rig.fill(4)
    files.kill()
    for position in range(tickets[3].position, rig.journal.end().position, 7):
        files.flip_bit(rig.path(1), position)
        with pytest.raises(DamageError, match="4 was synced") as caught:
            rig.open()
        assert caught.value.position == tickets[3].position
        files.flip_bit(rig.path(1), position)
    assert rig.open().end.sequence == 4


def test_envelopes_that_survive_out_of_order_are_cut_too(rig: Rig) -> None:
    rig.fill(3)
    lost = rig.append(b"lost" * 50, wait=False)
    kept = rig.append(b"kept" * 50, wait=False)
    end = rig.journal.end().position
    put(rig.path(1), bytes(kept.position - lost.position), lost.position)
    result = rig.open()
    assert (result.damage, result.end.sequence, result.torn_bytes) == (None, 3, end - lost.position)
    assert b"kept" not in rig.path(1).read_bytes()


# -- what is left over from before


def test_leftovers_of_an_older_epoch_are_neither_accepted_nor_evidence(rig: Rig) -> None:
    rig.fill(2)
    at = rig.journal.end().position
    one = envelope(1, 3, epoch=5)
    # As if a cut had not reached the disk: epoch 5 went on, and knew 3 and 4 to be synced; epoch 6 wrote over it.
    old = envelope(1, 3, epoch=5) + envelope(1, 4, epoch=5, durable=3) + envelope(1, 5, epoch=5, durable=4)
    put(rig.path(1), old, at)
    put(rig.path(1), envelope(1, 3, epoch=6), at)
    result = rig.scan()
    assert (result.damage, result.end.sequence, result.end.position) == (None, 3, at + len(one))
    assert (result.epoch, result.torn_bytes) == (6, 0)


def test_a_cut_leaves_nothing_that_could_be_believed_later(rig: Rig) -> None:
    rig.fill(2)
    lost = rig.append(b"a" * 100, wait=False)
    rig.fill(40, 1000, sync=False)
    assert file_numbers(rig.files, rig.folder) == [1, 2, 3]
    put(rig.path(1), bytes(100), lost.position)
    result = rig.open()
    assert (result.end.sequence, result.drop) == (2, (2, 3))
    assert rig.journal.epoch == 2
    rig.append(b"b" * 100)  # just as long: the old fourth would follow it
    rig.worker.run()
    assert rig.open().end.sequence == 3
    rig.fill(40, 1000)
    assert rig.open().end.sequence == 43


def test_the_highest_epoch_seen_anywhere_counts(rig: Rig) -> None:
    rig.fill(2)
    put(rig.path(1), envelope(1, 4, epoch=9, durable=2), rig.journal.end().position + 500)
    result = rig.open()
    assert (result.epoch, result.highest_epoch) == (1, 9)
    assert rig.journal.epoch == 10


def test_a_payload_that_looks_like_an_envelope_is_none(rig: Rig) -> None:
    builder = EnvelopeBuilder()
    builder.add(EntryKind.CATALOG, 0, b"{}")
    forged = b"".join(builder.finish(shard=0, epoch=1, sequence=4, durable=3, time_ms=0))
    rig.fill(2)
    ticket = rig.append(forged * 20, wait=False)
    put(rig.path(1), b"\0", ticket.position)  # torn: only the payload is left
    result = rig.open()
    assert (result.damage, result.end.sequence) == (None, 2)


def test_an_envelope_of_another_file_or_shard_or_that_knows_the_future_is_none(rig: Rig) -> None:
    rig.fill(2)
    end = rig.journal.end().position
    builder = EnvelopeBuilder()
    other_shard = b"".join(builder.finish(shard=1, epoch=1, sequence=3, durable=0, time_ms=0, salt=file_salt(ID, 1)))
    for data in (envelope(2, 3), other_shard, envelope(1, 3, durable=3), envelope(1, 2), envelope(1, 4)):
        put(rig.path(1), data, end)
        result = rig.scan()
        assert (result.damage, result.end.sequence) == (None, 2)


# -- files


def test_a_missing_file_is_a_hole(rig: Rig) -> None:
    rig.fill(60, 1000)
    unmarked(rig)
    rig.path(2).unlink()
    damage = rig.scan().damage
    assert damage is not None
    assert damage.file == str(rig.path(2))
    assert "missing" in damage.what
    with pytest.raises(DamageError):
        rig.open()


def test_a_missing_start_or_missing_last_file_is_damage(rig: Rig) -> None:
    rig.fill(60, 1000)
    last = max(file_numbers(rig.files, rig.folder))
    info = rig.journal.closed_files()[-1]
    rig.path(last).unlink()
    damage = rig.scan().damage  # the mark knows
    assert damage is not None
    assert damage.position == info.bytes
    damage = rig.scan(Position(last, 64, 50)).damage
    assert damage is not None
    assert damage.file == str(rig.path(last))
    for number in file_numbers(rig.files, rig.folder):
        rig.path(number).unlink()
    damage = rig.scan().damage
    assert damage is not None
    assert "no journal file" in damage.what


@pytest.mark.parametrize("junk", [b"", bytes(64), b"\xff" * 64, FileHeader(0, 9, 2, ID).encode()])
def test_a_torn_header_of_a_file_nothing_in_which_was_durable_is_a_torn_tail(rig: Rig, junk: bytes) -> None:
    rig.fill(10, 1000)
    rig.fill(10, 1000, sync=False)
    whole = rig.path(2).read_bytes()
    rig.path(2).write_bytes(junk + whole[64:] if junk else b"")
    closed = rig.path(1).read_bytes()
    result = rig.scan()
    assert result.damage is None
    assert (result.end.file, result.drop) == (1, (2,))
    assert result.end.sequence == 15
    rig.open()
    rig.fill(3, 1000)
    assert rig.open().end.sequence == 18
    # Were it known that the second file's envelopes had been synced, it would be damage.
    rig.path(1).write_bytes(closed)
    rig.path(2).write_bytes(junk + whole[64:] if junk else b"")
    damage = rig.scan(known_durable=16).damage
    assert damage is not None
    assert (damage.file, damage.position) == (str(rig.path(2)), 0)


def test_the_first_file_torn_at_its_making_is_made_again(rig: Rig) -> None:
    rig.path(1).write_bytes(bytes(1000))
    result = rig.open()
    assert (result.damage, result.drop, result.end.file) == (None, (1,), 0)
    rig.fill(3)
    rig.path(1).write_bytes(bytes(1000))
    assert rig.scan().damage is not None


def test_a_file_of_another_folder_is_not_dropped(rig: Rig) -> None:
    rig.fill(10)
    rig.path(2).write_bytes(FileHeader(0, 2, 11, b"another folder 1").encode() + bytes(1000))
    damage = rig.scan().damage
    assert damage is not None
    assert "another data folder" in damage.what
    rig.path(2).write_bytes(FileHeader(3, 2, 11, ID).encode() + bytes(1000))
    damage = rig.scan().damage
    assert damage is not None
    assert "shard 3" in damage.what


# -- from a checkpoint


def test_from_a_checkpoint_on_only_what_follows_is_walked(rig: Rig) -> None:
    tickets = rig.fill(60, 1000)
    start = tickets[39]
    flip(rig.path(1), 200)  # before it, damage is of no concern
    result = rig.scan(Position(start.file, start.position, 40))
    assert (result.damage, result.first_sequence, result.envelopes) == (None, 40, 21)
    assert list(rig.payloads) == list(range(40, 61))
    closed = {info.number: info for info in rig.journal.closed_files()}
    assert {info.number for info in result.end.closed} == set(closed)
    for info in result.end.closed:
        assert (info.first_sequence, info.last_sequence) == (
            closed[info.number].first_sequence,
            closed[info.number].last_sequence,
        )
    rig.path(1).unlink()
    assert rig.scan(Position(start.file, start.position, 40)).damage is None


def test_a_checkpoint_at_the_end_of_a_file(rig: Rig) -> None:
    rig.fill(60, 1000)
    info = rig.journal.closed_files()[0]
    result = rig.scan(Position(1, info.bytes, info.last_sequence + 1))
    assert (result.damage, result.end.sequence) == (None, 60)


def test_a_checkpoint_beyond_the_journal_is_damage(rig: Rig) -> None:
    rig.fill(3)
    unmarked(rig)
    end = rig.journal.end()
    for start in (Position(1, 1 << 30, 4), Position(2, 64, 4)):
        damage = rig.scan(start, known_durable=4).damage
        assert damage is not None
    assert rig.scan(end).damage is None
    damage = rig.scan(end, known_durable=4).damage
    assert damage is not None
    assert damage.position == end.position


# -- the sync mark


def test_a_mark_that_cannot_be_believed_counts_as_nothing(rig: Rig) -> None:
    rig.fill(3)
    path = rig.folder / NAME
    data = path.read_bytes()
    assert read_mark(rig.files, rig.folder, ID).sequence == 3
    assert read_mark(rig.files, rig.folder, b"another folder 1").sequence == 0
    for bad in (b"", data[:-1], bytes(len(data)), bytes([data[0] ^ 1]) + data[1:], data[:9] + b"\xff" + data[10:]):
        path.write_bytes(bad)
        assert read_mark(rig.files, rig.folder, ID).sequence == 0
        assert rig.scan().end.sequence == 3
    path.unlink()
    path.mkdir()
    assert read_mark(rig.files, rig.folder, ID).sequence == 0


def test_the_mark_never_goes_back_and_ends_with_a_clean_one(tmp_path: Path) -> None:
    mark = MarkWriter(DiskFiles(), tmp_path, ID)
    mark.write(5, 1)
    mark.write(4, 1)
    assert read_mark(DiskFiles(), tmp_path, ID).sequence == 5
    mark.write(5, 1, clean=True)
    mark.write(6, 1)
    found = read_mark(DiskFiles(), tmp_path, ID)
    assert (found.sequence, found.clean) == (5, True)


# -- verify


def test_verify_goes_on_past_damage_and_names_all_of_it(rig: Rig) -> None:
    tickets = rig.fill(80, 1000)
    before = {path.name: path.read_bytes() for path in rig.folder.iterdir()}
    sound = verify_journal(rig.files, rig.folder, ID)
    assert (sound.damages, sound.envelopes, sound.last_sequence, sound.torn_bytes) == ([], 80, 80, 0)
    assert sound.files == len(file_numbers(rig.files, rig.folder))
    flip(rig.path(1), tickets[4].position + 10)
    flip(rig.path(1), tickets[5].position + 100)
    flip(rig.path(2), 20)  # its header
    flip(rig.path(4), tickets[79].position)  # some envelope there
    found = verify_journal(rig.files, rig.folder, ID)
    places = [(Path(damage.file).name, damage.position) for damage in found.damages]
    assert places[:2] == [(file_name(1), tickets[4].position), (file_name(2), 0)]
    assert f"The next sound envelope is 7, at byte {tickets[6].position}" in str(found.damages[0])
    assert places[2][0] == file_name(4) or tickets[79].file != 4
    assert found.envelopes >= 76
    for name, data in before.items():
        (rig.folder / name).write_bytes(data)
    rig.path(3).unlink()
    found = verify_journal(rig.files, rig.folder, ID)
    assert [Path(damage.file).name for damage in found.damages] == [file_name(3)]
    assert found.last_sequence == 80


def test_verify_looks_at_files_before_the_checkpoint_too_but_not_for_those_that_were_released(rig: Rig) -> None:
    tickets = rig.fill(80, 1000)
    numbers = file_numbers(rig.files, rig.folder)
    start = Position(tickets[79].file, tickets[79].position, 80)
    assert start.file == numbers[-1] == 6
    rig.path(2).unlink()
    assert verify_journal(rig.files, rig.folder, ID, start).damages == []
    rig.path(3).write_bytes(FileHeader(0, 77, 999, ID).encode())  # was being used again when the power went
    assert verify_journal(rig.files, rig.folder, ID, start).damages == []
    first = next(ticket for ticket in tickets if ticket.file == 5)
    last_of_five = [ticket for ticket in tickets if ticket.file == 5][-1]
    flip(rig.path(5), last_of_five.position)
    flip(rig.path(1), tickets[3].position + 99)
    found = verify_journal(rig.files, rig.folder, ID, start)
    places = [(Path(damage.file).name, damage.position) for damage in found.damages]
    assert places == [(file_name(1), tickets[3].position), (file_name(5), last_of_five.position)]
    assert first.position == FILE_HEADER_BYTES


# -- anything at all


def test_random_bytes_and_mutated_files_give_an_answer(tmp_path: Path) -> None:
    source = Rig(tmp_path / "source")
    source.open()
    tickets = source.fill(45, 900)
    rng = random.Random(5)
    for _ in range(250):
        rig = Rig(tmp_path / "mutant")
        shutil.copytree(source.folder, rig.folder)
        known = dict(source.payloads)
        for _ in range(rng.randint(1, 4)):
            victim = rig.folder / rng.choice(sorted(path.name for path in rig.folder.iterdir()))
            data = bytearray(victim.read_bytes())
            action = rng.randint(0, 6)
            if action == 0 and data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            elif action == 1:
                del data[rng.randint(0, len(data)) :]
            elif action == 2:
                at = rng.randint(0, len(data))
                data[at : at + 700] = rng.randbytes(rng.randint(0, 700))
            elif action == 3:
                one, other = rng.choice(tickets).position, rng.choice(tickets).position
                data[one : one + 900] = data[other : other + 900]
            elif action == 4:
                data = bytearray(rng.randbytes(rng.randint(0, 3000)))
            elif action == 5:
                data = data[:64] + b"ILOG\x01\0\0\0" * 2000
            else:
                data = bytearray(source.path(rng.randint(1, 3)).read_bytes())
            victim.write_bytes(data)
        result = rig.scan()
        assert rig.payloads.items() <= known.items()  # nothing is invented, whatever the bytes
        assert list(rig.payloads) == list(range(1, len(rig.payloads) + 1))
        verify_journal(rig.files, rig.folder, ID)
        if result.damage is None:
            rig.open()
            rig.fill(2)
            again = rig.scan()
            assert again.damage is None
            assert again.end.sequence == result.end.sequence + 2
        shutil.rmtree(rig.folder)
