"""Checking a whole data folder without changing it, and repairing what can be repaired without losing anything whole.

In comes a folder that no broker uses; out comes a report in sentences. Read are the folder's own file, both
checkpoints, every envelope of the journal, every batch of every segment, and where the checkpoint says that batches
are. Repairing cuts the torn tail, removes files that nothing names, makes indexes again, and puts the older checkpoint
in the place of one that cannot be believed; a whole envelope or batch is never removed.
"""

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from interlog.base.errors import DamageError, FolderError, FormatError
from interlog.journal import batch as batches
from interlog.journal.checkpoint import NAME, PREVIOUS, CheckpointReport, read_checkpoint
from interlog.journal.files import Files
from interlog.journal.folder import LOCK, FolderInfo, cannot_use, read_folder
from interlog.journal.index import OffsetIndex, TimeIndex
from interlog.journal.journal_file import FILE_HEADER_BYTES, NEWER_ADVICE, file_name, file_numbers, read_file_header
from interlog.journal.recovery import put_previous_in_place, reaches_back
from interlog.journal.scan import ADVICE, Position, Scan, cut, missing_beginning
from interlog.journal.section import Row
from interlog.journal.sections import PartitionsSection, SegmentsSection, WindowsSection, segment_of, windows_of
from interlog.journal.segment import Segment, make_indexes, walk_log
from interlog.journal.store import LocalStore, SegmentName
from interlog.journal.verify_journal import verify_journal

_KEEP = (SegmentsSection.table.name, WindowsSection.table.name, PartitionsSection.table.name)


@dataclass(slots=True)
class Report:
    """`sound`: nothing that was acknowledged is damaged, as far as bytes can tell. `lines` are for people."""

    sound: bool = True
    damages: int = 0
    lines: list[str] = field(default_factory=list)

    def bad(self, line: str) -> None:
        self.sound = False
        self.damages += 1
        self.lines.append(f"DAMAGED  {line}")

    def note(self, line: str) -> None:
        self.lines.append(f"note     {line}")

    def good(self, line: str) -> None:
        self.lines.append(f"ok       {line}")


def verify(files: Files, folder: Path, repair: bool = False) -> Report:
    """FolderError if it is no data folder, is in use, or was written by a newer version."""
    info = read_folder(files, folder)
    try:
        lock = files.lock(folder / LOCK, claim=repair)
    except OSError as error:
        raise cannot_use(folder, error) from None
    try:
        report = Report()
        newest, older = _read_checkpoints(files, info)
        _report_checkpoints(report, files, info, newest, older)
        checkpoints_damaged = report.damages
        if repair and newest.damage is not None and older is not None and older.damage is None:
            put_previous_in_place(files, folder)
            report.note(f"{PREVIOUS} was put in the place of {NAME}; the next start replays the journal from there.")
            report.sound = True
        believed = newest if newest.damage is None else older
        if believed is None or believed.damage is not None:
            believed = CheckpointReport()
        _verify_journal(report, files, info, believed, repair)
        _verify_segments(report, files, info, believed, older, repair)
        _verify_windows(report, files, info, believed)
        report.lines.append(_verdict(report, checkpoints_damaged, _can_be_rebuilt(files, info, newest, older)))
        return report
    except OSError as error:
        path = error.filename2 or error.filename  # of a copy that cannot be made: where it would be
        where = f" {path}:" if path else ""
        raise FolderError(f"The check of {folder} was broken off:{where} {error.strerror or error}.") from None
    finally:
        lock.release()


def _verdict(report: Report, checkpoints_damaged: int, can_be_rebuilt: bool) -> str:
    """The last line: what to do now."""
    if report.sound:
        return "The data folder is sound."
    if report.damages == checkpoints_damaged and can_be_rebuilt:
        return "Only a checkpoint is damaged, and nothing is lost: the next start makes it again."
    return (
        "The data folder is damaged, and --repair does not mend that. Put the folder back from a copy, and keep this "
        "one until you have what you need from it."
    )


def _can_be_rebuilt(files: Files, info: FolderInfo, newest: CheckpointReport, older: CheckpointReport | None) -> bool:
    """Whether a start finds its state although a checkpoint cannot be believed."""
    if newest.damage is None or (older is not None and older.damage is None):
        return True
    return reaches_back(files, info.path / "journal", file_numbers(files, info.path / "journal"))


def _said(damage: DamageError) -> str:
    """Without the advice to do what is just being done."""
    advice = "" if damage.advice == ADVICE else f" {damage.advice}"
    return f"{damage.file} at byte {damage.position}: {damage.what}{advice}".rstrip()


# -- checkpoints


def _read_checkpoints(files: Files, info: FolderInfo) -> tuple[CheckpointReport, CheckpointReport | None]:
    """From copies, for SQLite writes beside the files that it opens."""
    with tempfile.TemporaryDirectory(prefix="interlog-verify-") as name:
        found = []
        for checkpoint in (NAME, PREVIOUS):
            path = info.path / checkpoint
            if not files.exists(path):
                missing = DamageError(str(path), 0, "the checkpoint is missing.")
                found.append(CheckpointReport(damage=missing))
                continue
            if not path.is_file():
                found.append(CheckpointReport(damage=DamageError(str(path), 0, "the checkpoint is not a file.")))
                continue
            for suffix in ("", "-wal"):
                if files.exists(path.with_name(checkpoint + suffix)):
                    shutil.copyfile(path.with_name(checkpoint + suffix), Path(name) / (checkpoint + suffix))
            copied = Path(name) / checkpoint
            try:
                report = read_checkpoint(copied, info.id.hex(), _KEEP)
            except FolderError as error:  # it is of a newer version
                raise FolderError(str(error).replace(str(copied), str(path))) from None
            if report.damage is not None:
                report.damage = DamageError(str(path), 0, report.damage.what)
            found.append(report)
    older = found[1] if files.exists(info.path / PREVIOUS) else None
    return found[0], older


def _report_checkpoints(
    report: Report, files: Files, info: FolderInfo, newest: CheckpointReport, older: CheckpointReport | None
) -> None:
    for name, one in ((NAME, newest), (PREVIOUS, older)):
        if one is None:
            continue
        if one.damage is None and one.mark is not None:
            report.good(f"{name}: holds for the journal up to envelope {one.mark.sequence}")
        elif one is newest and older is None and not files.list(info.path / "journal"):
            report.note(f"{name} is missing: nothing was ever written to this folder.")
        else:
            report.bad(str(one.damage))
    if newest.damage is not None and older is not None and older.damage is None:
        report.note(f"The next start uses {PREVIOUS} and replays the journal from there: nothing is lost.")
    elif newest.damage is not None and _can_be_rebuilt(files, info, newest, older):
        report.note("The journal reaches back to the beginning: the next start rebuilds everything from it.")


# -- the journal


def _verify_journal(report: Report, files: Files, info: FolderInfo, believed: CheckpointReport, repair: bool) -> None:
    journal = info.path / "journal"
    mark = believed.mark
    start = Position(mark.file, mark.position, mark.sequence + 1, mark.epoch) if mark and mark.sequence else None
    known = mark.sequence if mark else 0
    # Not from the mark but from the beginning of its file: what is before the mark is still read from there.
    found = verify_journal(files, journal, info.id, _beginning(files, journal, start), known)
    for damage in found.damages:
        if damage.advice == NEWER_ADVICE:
            raise FolderError(str(damage))
        report.bad(_said(damage))
    beginning = missing_beginning(journal, file_numbers(files, journal))
    if beginning is not None and mark is not None and not mark.sequence:
        report.bad(_said(beginning))
        return
    if found.damages:
        return
    report.good(f"journal: {found.envelopes} envelopes in {found.files} files, up to envelope {found.last_sequence}")
    if found.torn_bytes:
        if repair:
            cut(files, journal, Scan(files, journal, info.id, start, known).result())
            report.note(f"{found.torn_bytes} bytes of envelopes that were never wholly written were cut off.")
        else:
            report.note(
                f"{found.torn_bytes} bytes at the end are of envelopes that were never wholly written; "
                "the next start cuts them off. Nothing acknowledged is in them."
            )


def _beginning(files: Files, journal: Path, start: Position | None) -> Position | None:
    """Where the first envelope of the position's file is; the position itself if its file cannot tell."""
    if start is None:
        return None
    try:
        file = files.open(journal / file_name(start.file))
        header = read_file_header(file.read(FILE_HEADER_BYTES, 0))
        file.close()
    except (OSError, FormatError):
        return start
    return Position(start.file, FILE_HEADER_BYTES, header.first_sequence)


# -- segments


def _verify_segments(
    report: Report,
    files: Files,
    info: FolderInfo,
    believed: CheckpointReport,
    older: CheckpointReport | None,
    repair: bool,
) -> None:
    store = LocalStore(files, info.path / "segments")
    rows = (believed.rows or {}).get(SegmentsSection.table.name, [])
    segments = [segment_of(row) for row in rows]
    batches_found, damaged_before = 0, report.sound
    for segment in segments:
        try:
            batches_found += _verify_segment(report, store, segment, repair)
        except FileNotFoundError:
            report.bad(f"segment {_path(info, segment.name)} is missing.")
        except DamageError as error:
            report.bad(_said(error))
        except OSError as error:
            report.bad(f"segment {_path(info, segment.name)} cannot be read: {error}.")
    if report.sound or not damaged_before:
        report.good(f"segments: {batches_found} batches in {len(segments)} segments")
    if believed.rows is not None:
        # What the older copy names is kept, so that a start from it finds everything.
        also = (older.rows or {}).get(SegmentsSection.table.name, []) if older is not None else []
        # While anything is damaged, nothing is removed: it may be the last copy.
        _report_orphans(report, store, {segment_of(row).name for row in (*rows, *also)}, repair and report.sound)


def _verify_segment(report: Report, store: LocalStore, segment: Segment, repair: bool) -> int:
    file = store.open(segment.name)
    count, end = 0, segment.base
    size = file.size()
    if size != segment.bytes:
        raise DamageError(
            str(file.path), min(size, segment.bytes), f"{segment.bytes} bytes should be here, not {size}."
        )
    for position, header, _ in walk_log(file, size):
        if header.base_offset < end or header.last_offset > segment.last:
            what = f"a batch of offsets {header.base_offset} to {header.last_offset} does not belong here."
            raise DamageError(str(file.path), position, what)
        end = header.next_offset
        count += 1
    index, times = store.read_indexes(segment.name)
    try:
        OffsetIndex.parse(index, size)
        TimeIndex.parse(times, size)
    except FormatError as error:
        if repair:
            made, made_times, _, _ = make_indexes(file, segment.base, segment.last)
            store.write_indexes(segment.name, made.pack(), made_times.pack(size))
            report.note(f"the indexes of {file.path} were made again.")
        else:
            report.note(f"an index of {file.path} is not sound ({error}); it is made again when it is needed.")
    return count


def _report_orphans(report: Report, store: LocalStore, named: set[SegmentName], repair: bool) -> None:
    orphans = [name for id in store.partitions() for name in store.segments(id) if name not in named]
    if not orphans:
        return
    if repair:
        for name in orphans:
            store.delete(name)
        report.note(f"{len(orphans)} segments that nothing names were removed; the journal holds what was in them.")
    else:
        report.note(f"{len(orphans)} segments are named by nothing; the next start removes them.")


def _path(info: FolderInfo, name: SegmentName) -> Path:
    return info.path / "segments" / str(name.partition) / f"{name}.log"


# -- windows


def _verify_windows(report: Report, files: Files, info: FolderInfo, believed: CheckpointReport) -> None:
    """Is each batch where the checkpoint says that it is?"""
    rows: Iterable[Row] = (believed.rows or {}).get(WindowsSection.table.name, [])
    count = 0
    for partition, windows in windows_of(rows).items():
        for window in windows:
            path = info.path / "journal" / file_name(window.file)
            try:
                file = files.open(path)
            except OSError:
                report.bad(f"{path} is missing: batches of partition {partition} are in it.")
                continue
            for index in range(len(window)):
                count += 1
                position = window.position_at(index)
                try:
                    header = batches.read_header(file.read(batches.HEADER_BYTES, position))
                except FormatError as error:
                    report.bad(f"{path} at byte {position}: a batch of partition {partition} should be here: {error}.")
                    break
                if header.base_offset != window.offset_at(index):
                    report.bad(
                        f"{path} at byte {position}: the batch of partition {partition} from offset "
                        f"{window.offset_at(index)} should be here, not one from {header.base_offset}."
                    )
                    break
    if count:
        report.good(f"checkpoint: {count} batches are in the journal where it says")
