"""Start: the checkpoint, then the journal from there on, then a new epoch.

In comes a locked data folder, and what wants its state back (sections, and `apply` for every envelope since); out
comes where the journal goes on. What cannot be believed is not used: a damaged checkpoint gives way to its older
copy, both to the journal if that reaches back to the beginning, and else the start stops with a sentence that says
what is lost.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlog.base.errors import DamageError, FormatError
from interlog.journal.checkpoint import NAME, PREVIOUS, Checkpoint, copy_whole
from interlog.journal.files import Files
from interlog.journal.journal_file import FILE_HEADER_BYTES, file_name, file_numbers, read_file_header
from interlog.journal.scan import Found, Position, Scan, ScanResult, cut, missing_beginning
from interlog.journal.section import Row, Section, Table
from interlog.journal.sync_mark import read_mark

log = logging.getLogger("interlog.journal")

DAMAGED = "meta.damaged.db"


class _UnknownRowError(DamageError):
    """A row of a checkpoint is whole, but this version can make nothing of it."""


@dataclass(frozen=True, slots=True)
class Recovered:
    checkpoint: Checkpoint
    result: ScanResult
    epoch: int  # the new one
    replayed: int  # envelopes
    clean: bool  # the stop before was in good order


def recover(
    files: Files, data: Path, folder_id: bytes, sections: Sequence[Section], apply: Callable[[Found], None]
) -> Recovered:
    """Load, replay, cut a torn tail. DamageError where the folder cannot be started from."""
    checkpoint = _checkpoint(files, data, folder_id, sections)
    try:
        mark = checkpoint.mark
        beginning = missing_beginning(data / "journal", file_numbers(files, data / "journal"))
        if beginning is not None and not mark.sequence:
            raise beginning
        start = Position(mark.file, mark.position, mark.sequence + 1, mark.epoch) if mark.sequence else None
        scan = Scan(files, data / "journal", folder_id, start, mark.sequence)
        for found in scan:
            try:
                apply(found)
            except FormatError as error:
                path = str(data / "journal" / file_name(found.file))
                what = f"envelope {found.header.sequence} is whole, but this version cannot read it: {error}."
                raise DamageError(path, found.position, what, "Start the version of Interlog that wrote it.") from error
        result = scan.result()
        cut(files, data / "journal", result)
    except BaseException:
        checkpoint.close()
        raise
    if result.torn_bytes:
        log.warning(
            "The journal ended in %d bytes of envelopes that were never wholly written; they were cut off. "
            "Nothing that was acknowledged was in them.",
            result.torn_bytes,
        )
    epoch = max(result.highest_epoch, mark.epoch) + 1
    return Recovered(checkpoint, result, epoch, result.envelopes, result.clean)


def _checkpoint(files: Files, data: Path, folder_id: bytes, sections: Sequence[Section]) -> Checkpoint:
    """The newest checkpoint that can be believed, its rows loaded; a new one for a new folder."""
    tables = [section.table for section in sections]
    numbers = file_numbers(files, data / "journal")
    path = data / NAME
    new = not numbers and not (data / PREVIOUS).exists() and not files.list(data / "segments")
    new = new and not read_mark(files, data / "journal", folder_id).sequence
    if new and not path.exists():
        return Checkpoint.create(path, tables, folder_id.hex())
    try:
        return _load(path, tables, folder_id, sections)
    except _UnknownRowError:
        raise
    except DamageError as error:
        first = error
    if new:
        log.warning("%s Nothing was ever written to the journal, so it is made again.", first)
        _put_aside(files, data)
        return Checkpoint.create(path, tables, folder_id.hex())
    log.warning("%s Trying its older copy, %s.", first, PREVIOUS)
    try:
        Checkpoint.open(data / PREVIOUS, tables, folder_id.hex()).close()
    except DamageError as error:
        if not reaches_back(files, data / "journal", numbers):
            raise _lost(files, data, numbers, first, error) from None
        log.warning("%s The journal reaches back to the beginning, so everything is rebuilt from it.", error)
        _put_aside(files, data)
        return Checkpoint.create(path, tables, folder_id.hex())
    put_previous_in_place(files, data)
    return _load(path, tables, folder_id, sections)


def _load(path: Path, tables: Sequence[Table], folder_id: bytes, sections: Sequence[Section]) -> Checkpoint:
    checkpoint = Checkpoint.open(path, tables, folder_id.hex())
    try:
        # All rows are read and checked before the first section takes one: it is all or nothing.
        loaded: list[tuple[Section, list[Row]]] = []
        for section in sections:
            rows = checkpoint.rows(section.table)
            if not section.table.lazy:
                loaded.append((section, list(rows)))
                continue
            for _ in rows:
                pass  # checked only: a row whose key has changed would later not be found, and nobody would know
        for section, kept in loaded:
            try:
                section.load(kept)
            except (FormatError, ValueError, TypeError, KeyError, AssertionError) as error:
                # Its CRC holds, so no disk did that; and a part is loaded, so no other checkpoint can be tried.
                what = f"table {section.table.name} cannot be understood: {error!r}."
                raise _UnknownRowError(str(path), 0, what, "Start the version of Interlog that wrote it.") from error
    except BaseException:
        checkpoint.close()
        raise
    return checkpoint


def reaches_back(files: Files, folder: Path, numbers: list[int]) -> bool:
    return bool(numbers) and _first_sequence(files, folder, numbers[0]) == 1


def _first_sequence(files: Files, folder: Path, number: int) -> int:
    file = files.open(folder / file_name(number))
    try:
        return read_file_header(file.read(FILE_HEADER_BYTES, 0)).first_sequence
    except FormatError:
        return 0
    finally:
        file.close()


def _lost(files: Files, data: Path, numbers: list[int], newest: DamageError, older: DamageError) -> DamageError:
    """What is lost when neither checkpoint can be believed and the journal does not reach back."""
    if numbers:
        kept = f"The journal begins at envelope {_first_sequence(files, data / 'journal', numbers[0])}"
    else:
        kept = "There is no journal file"
    partitions = files.list(data / "segments")
    what = (
        f"{newest.what} Its older copy {PREVIOUS}: {older.what} {kept}, so what came before it cannot be rebuilt: the "
        "names of namespaces, topics and queues, what was acknowledged, cursors and timers. "
        f"The segments of {len(partitions)} partitions are there, and are plain record batches."
    )
    return DamageError(newest.file, newest.position, what, f"Put {NAME} back from a copy of the data folder.")


def put_previous_in_place(files: Files, data: Path) -> None:
    """A copy of the older checkpoint becomes the checkpoint; the damaged one is kept beside it."""
    _put_aside(files, data)
    source = files.open(data / PREVIOUS)
    try:
        copy_whole(files, source, data / NAME)
    finally:
        source.close()


def _put_aside(files: Files, data: Path) -> None:
    """Keep the damaged file for those who want to look at it; its write-ahead log must not meet the new one."""
    path = data / NAME
    if files.exists(path):
        files.rename(path, data / DAMAGED)
    for suffix in ("-wal", "-shm"):
        files.remove(path.with_name(path.name + suffix))
    files.sync_folder(data)
