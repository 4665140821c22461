"""Checking a whole journal without changing it: goes on past damage and tells every damaged stretch.

In comes the journal folder and the checkpoint's position, out comes a `Verification`. Files before the checkpoint's may
be missing (they were released); from it on the run of files must be whole.
"""

from dataclasses import dataclass, field
from pathlib import Path

from interlog.base.errors import DamageError, FormatError
from interlog.journal.files import Files
from interlog.journal.journal_file import (
    FILE_HEADER_BYTES,
    FileHeader,
    file_name,
    file_numbers,
    file_salt,
    read_file_header,
)
from interlog.journal.scan import ADVICE, Position, Scan, ScanResult
from interlog.journal.search import sound_envelopes


@dataclass(slots=True)
class Verification:
    files: int = 0
    envelopes: int = 0
    last_sequence: int = 0
    torn_bytes: int = 0  # of a torn tail, which the next start cuts off: no damage
    damages: list[DamageError] = field(default_factory=list)


def verify_journal(
    files: Files,
    folder: Path,
    folder_id: bytes,
    start: Position | None = None,
    known_durable: int = 0,
    *,
    shard: int = 0,
) -> Verification:
    """Walk every file; `start` is the checkpoint's position, as for a Scan."""
    numbers = file_numbers(files, folder)
    found = Verification(files=len(numbers))
    first = start.file if start is not None else 0
    live = [number for number in numbers if number >= first]
    headers = {number: _header(files, folder, number) for number in numbers if number < first}
    runs: list[list[int]] = []
    for number, header in headers.items():
        if header is not None and header.number != number and header.folder_id == folder_id:
            continue  # a file that was released: its name came back after a power cut
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    for run in runs:
        following = _header(files, folder, run[-1] + 1) if run[-1] + 1 == first and live[:1] == [first] else None
        last = following.first_sequence - 1 if following is not None else 0
        _verify_run(files, folder, folder_id, shard, run, None, 0, found, closed=True, last_sequence=last)
    if live or start is not None:
        _verify_run(files, folder, folder_id, shard, live, start, known_durable, found, closed=False)
    return found


def _header(files: Files, folder: Path, number: int) -> FileHeader | None:
    file = files.open(folder / file_name(number))
    try:
        return read_file_header(file.read(FILE_HEADER_BYTES, 0))
    except FormatError:
        return None
    finally:
        file.close()


def _verify_run(
    files: Files,
    folder: Path,
    folder_id: bytes,
    shard: int,
    numbers: list[int],
    start: Position | None,
    known_durable: int,
    found: Verification,
    *,
    closed: bool,
    last_sequence: int = 0,
) -> None:
    """One unbroken run of files. A closed one must be whole to the end, and end with last_sequence if that is known."""
    at = start
    resume = False
    while True:
        from_file = at.file if at is not None else 0
        rest = [number for number in numbers if number >= from_file]
        durable = max(known_durable, last_sequence)
        result = Scan(
            files, folder, folder_id, at, durable, shard=shard, numbers=rest, use_mark=not closed, resume=resume
        ).result()
        found.envelopes += result.envelopes
        found.last_sequence = max(found.last_sequence, result.end.sequence)
        damage = result.damage
        if damage is None and closed and (result.torn_bytes or result.drop):
            path = str(folder / file_name(result.end.file or rest[0]))
            what = f"envelope {result.end.sequence + 1} should begin here, but is not whole."
            damage = DamageError(path, result.end.position, what, ADVICE)
        if damage is None:
            found.torn_bytes += result.torn_bytes
            return
        at = _resume(files, folder, folder_id, shard, rest, result)
        if at is None:
            what = f"{damage.what} Nothing sound follows it."
        else:
            where = f"byte {at.position} of {file_name(at.file)}"
            what = f"{damage.what} The next sound envelope is {at.sequence}, at {where}."
        found.damages.append(DamageError(damage.file, damage.position, what, damage.advice))
        if at is None:
            return
        resume = True


def _resume(
    files: Files, folder: Path, folder_id: bytes, shard: int, numbers: list[int], result: ScanResult
) -> Position | None:
    """The first sound envelope after the end of a walk."""
    end = result.end
    for number in numbers:
        if number < end.file:
            continue
        begin = end.position if number == end.file else FILE_HEADER_BYTES
        file = files.open(folder / file_name(number))
        salt = file_salt(folder_id, number)
        for header, at in sound_envelopes(file, begin, salt, shard, end.sequence + 1, result.epoch):
            return Position(number, at, header.sequence, header.epoch)
        file.close()
    return None
