"""Walking the journal: every envelope in order, and what the end is: a clean one, a torn tail, or damage.

In come the journal folder and the position to start from; out come the sound envelopes one by one and then a
`ScanResult`. Scanning changes nothing; `cut` removes the torn tail a result found; verify.py goes on past damage.

At the first spot where envelope n should be and is not, either n never became durable (a torn tail: it is cut there) or
it did, and then bytes that must not be lost are lost. Evidence that n was durable is the sync mark, the checkpoint, or
a sound later envelope that was written when n was already known to be synced. An envelope of an older epoch than the
last sound one, or with an older sequence, is left over from before a cut, and is no evidence of anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from interlog.base.errors import DamageError, FormatError
from interlog.journal.envelope import Header, check, read_header
from interlog.journal.files import Buffer, File, Files
from interlog.journal.journal_file import (
    FILE_HEADER_BYTES,
    NEWER_ADVICE,
    NO_ROOM,
    FileInfo,
    NewerFormatError,
    file_name,
    file_numbers,
    file_salt,
    read_file_header,
)
from interlog.journal.search import sound_envelopes
from interlog.journal.sync_mark import read_mark

ADVICE = (
    "Run `interlog verify` to see everything that is damaged, and put the data folder back from a copy; "
    "nothing has been changed."
)


class Position(NamedTuple):
    """Where the envelope `sequence` is, or will be: the spot just after the one before it."""

    file: int = 0  # 0: at the very beginning
    position: int = 0
    sequence: int = 1
    epoch: int = 0  # of the envelope before it, if known


class Found(NamedTuple):
    header: Header
    file: int
    position: int  # of the envelope in its file
    data: memoryview  # the envelope's bytes, mapped, not copied


@dataclass(frozen=True, slots=True)
class End:
    """Where the journal goes on after a scan: what LocalJournal.open begins from."""

    file: int = 0  # 0: there is no file yet
    position: int = 0
    first_sequence: int = 1  # of the file
    sequence: int = 0  # the last sound envelope
    durable: int = 0  # known to have been synced; those after it are there but may not last yet
    closed: tuple[FileInfo, ...] = ()  # the files before `file`


@dataclass(frozen=True, slots=True)
class ScanResult:
    end: End
    first_sequence: int  # that the walk began at
    envelopes: int
    epoch: int  # of the last sound envelope; 0 if there was none
    highest_epoch: int  # seen anywhere: the next start must take a higher one
    clean: bool  # the journal was closed properly
    torn_bytes: int  # recognizable parts of envelopes after the end
    drop: tuple[int, ...]  # files after the end, which hold nothing that counts
    damage: DamageError | None


class _BadFileHeader(Exception):
    def __init__(self, what: str, *, foreign: bool = False, advice: str = ADVICE) -> None:
        super().__init__(what)
        self.what = what
        self.foreign = foreign
        self.advice = advice


class Scan:
    """One walk. Iterate it, then ask for `result()`, which walks the rest itself if that was not done.

    `folder` is the journal folder. `start` is where the checkpoint stands, and thereby says that everything before
    it was durable; without it the walk begins at the first file there is. `known_durable` is the newest sequence the
    caller knows to have been synced. With `resume`, an envelope at `start` was seen to be sound, so that the header of
    its file does not count.
    """

    def __init__(
        self,
        files: Files,
        folder: Path,
        folder_id: bytes,
        start: Position | None = None,
        known_durable: int = 0,
        *,
        shard: int = 0,
        numbers: Sequence[int] | None = None,
        use_mark: bool = True,
        resume: bool = False,
    ) -> None:
        self._files = files
        self._folder = folder
        self._folder_id = folder_id
        self._shard = shard
        self._resume = resume
        self._start = start if start is not None and start.file else None
        all_numbers = file_numbers(files, folder) if numbers is None else list(numbers)
        first = self._start.file if self._start is not None else 0
        self._earlier = [number for number in all_numbers if number < first]
        self._numbers = [number for number in all_numbers if number >= first]
        mark = read_mark(files, folder, folder_id) if use_mark else None
        self._clean_end = mark.sequence if mark is not None and mark.clean else -1
        before_start = start.sequence - 1 if start is not None else 0
        self._durable = max(mark.sequence if mark else 0, known_durable, before_start)
        self._expected = before_start + 1
        self.first_sequence = self._expected
        self._epoch = start.epoch if start is not None else 0
        self._highest_epoch = max(mark.epoch if mark else 0, self._epoch)
        self._envelopes = 0
        self._walked: list[FileInfo] = []
        self._result: ScanResult | None = None
        self._steps = self._walk()

    def __iter__(self) -> Iterator[Found]:
        return self._steps

    def result(self) -> ScanResult:
        for _ in self._steps:
            pass
        assert self._result is not None, "the walk ended with an exception"
        return self._result

    # -- the walk

    def _walk(self) -> Iterator[Found]:
        numbers = self._numbers
        file = position = 0  # the end of what is sound so far
        data = memoryview(b"")
        if self._start is not None and (not numbers or numbers[0] != self._start.file):
            self._end(0, 0, data, [], self._hole(self._start.file))
            return
        for index, number in enumerate(numbers):
            if file and number != file + 1:
                self._end(file, position, data, numbers[index:], self._hole(file + 1))
                return
            next_data = self._map(number, numbers[index + 1 : index + 2])
            try:
                first = self._first_sequence_of(next_data, number)
            except _BadFileHeader as error:
                if file or not self._resume:
                    self._bad_file(file, position, data, numbers[index:], error)
                    return
                first = 0
            if not file and self._start is None:
                self._expected = self.first_sequence = first
            elif file and first != self._expected:
                self._end(file, position, data, numbers[index:])
                return
            if file:
                self._closed(file, position)
            file, data, position = number, next_data, FILE_HEADER_BYTES
            if self._start is not None and number == self._start.file:
                position = self._start.position
            self._walked.append(FileInfo(number, first, self._expected - 1, position))
            salt = file_salt(self._folder_id, number)
            shard = self._shard
            while True:
                try:
                    envelope = check(data, position, salt)
                except FormatError:
                    break
                if (
                    envelope.sequence != self._expected
                    or envelope.epoch < self._epoch
                    or envelope.shard != shard
                    or envelope.durable >= envelope.sequence
                ):
                    break
                end = position + envelope.length
                self._envelopes += 1
                self._expected = envelope.sequence + 1
                self._epoch = envelope.epoch
                yield Found(envelope, number, position, data[position:end])
                position = end
        self._end(file, position, data, [])

    def _map(self, number: int, following: Sequence[int]) -> memoryview:
        file = self._files.open(self._folder / file_name(number))
        try:
            if not self._known_to_last(file, following):
                # A sync that failed may have left bytes in the system's memory that never reached the disk. They
                # must not be taken for sound: no later sync would write them.
                file.forget()
            return file.map()
        finally:
            file.close()

    def _known_to_last(self, file: File, following: Sequence[int]) -> bool:
        """Whether all that a file can hold was synced: up to its end, or to where the following file begins.

        Of a file without envelopes nothing is known, not even its header.
        """
        try:
            first = read_file_header(file.read(FILE_HEADER_BYTES, 0)).first_sequence
            last = self._clean_end
            for number in following:
                next_file = self._files.open(self._folder / file_name(number))
                last = read_file_header(next_file.read(FILE_HEADER_BYTES, 0)).first_sequence - 1
                next_file.close()
        except FormatError:
            return False
        return first <= last <= self._durable

    def _first_sequence_of(self, data: memoryview, number: int) -> int:
        """The first sequence that a file's sound and fitting header tells."""
        try:
            header = read_file_header(data)
        except NewerFormatError as error:
            raise _BadFileHeader(f"{error}.", foreign=True, advice=NEWER_ADVICE) from None
        except FormatError as error:
            raise _BadFileHeader(f"{error}.") from None
        if header.folder_id != self._folder_id:
            raise _BadFileHeader("the file belongs to another data folder.", foreign=True)
        if header.shard != self._shard:
            raise _BadFileHeader(f"the file belongs to shard {header.shard}, not {self._shard}.", foreign=True)
        if header.number != number:
            raise _BadFileHeader(f"the file header is that of journal file {header.number}.")
        if self._start is not None and number == self._start.file and header.first_sequence > self._start.sequence:
            raise _BadFileHeader(f"the file begins with envelope {header.first_sequence}, not {self._start.sequence}.")
        return header.first_sequence

    def _closed(self, number: int, position: int) -> None:
        self._walked[-1] = FileInfo(number, self._walked[-1].first_sequence, self._expected - 1, position)

    def _hole(self, number: int) -> DamageError:
        return hole(self._folder, number, self._expected)

    # -- the end of the walk

    def _bad_file(self, file: int, position: int, data: memoryview, later: list[int], error: "_BadFileHeader") -> None:
        """The next file's header is not sound: torn, if nothing in the file can have been durable."""
        damage = DamageError(str(self._folder / file_name(later[0])), 0, error.what, error.advice)
        if error.foreign or (not file and (self._start is not None or later[0] != 1)):
            self._end(file, position, data, later, damage)
        else:
            self._end(file, position, data, later, blame=damage)

    def _end(
        self,
        file: int,
        position: int,
        data: memoryview,
        later: list[int],
        damage: DamageError | None = None,
        blame: DamageError | None = None,
    ) -> None:
        """Settle the result: envelope `expected` is not at this position. `blame` is who must then be at fault."""
        torn = 0
        if file:
            self._closed(file, position)
        if damage is None and position > len(data):
            path = str(self._folder / file_name(file))
            damage = DamageError(path, len(data), f"the file ends before byte {position}, where it goes on.", ADVICE)
        if damage is None and not (self._clean_end == self._expected - 1 and not later):
            if file:
                tail = self._torn_header(data, position)
                torn += tail
                if tail:
                    blame = None
                torn += max(0, self._look_for_evidence(position, file) - tail)
            for number in later:
                torn += self._look_for_evidence(FILE_HEADER_BYTES, number)
            if self._durable >= self._expected:
                damage = blame or self._damage(file, position, data)
        closed = tuple(self._infos_of_earlier() + self._walked[:-1])
        sequence = self._expected - 1
        first = self._walked[-1].first_sequence if self._walked else sequence + 1
        self._result = ScanResult(
            end=End(file, position, first, sequence, min(self._durable, sequence), closed),
            first_sequence=self.first_sequence,
            envelopes=self._envelopes,
            epoch=self._epoch,
            highest_epoch=max(self._highest_epoch, self._epoch),
            clean=self._clean_end == sequence,
            torn_bytes=torn,
            drop=tuple(later),
            damage=damage,
        )

    def _torn_header(self, data: Buffer, position: int) -> int:
        """The bytes of the envelope that should be here, if its header at least is; 0 if not."""
        try:
            header = read_header(data, position)
        except FormatError:
            return 0
        if header.sequence != self._expected or header.epoch < self._epoch or header.shard != self._shard:
            return 0
        return min(header.length, len(data) - position)

    def _look_for_evidence(self, position: int, number: int) -> int:
        """Learn what sound later envelopes say was durable; how far they reach from the position."""
        end = position
        salt = file_salt(self._folder_id, number)
        file = self._files.open(self._folder / file_name(number))
        for header, at in sound_envelopes(file, position, salt, self._shard, self._expected, self._epoch):
            self._durable = max(self._durable, header.durable)
            self._highest_epoch = max(self._highest_epoch, header.epoch)
            end = at + header.length
        file.close()
        return end - position

    def _damage(self, file: int, position: int, data: Buffer) -> DamageError:
        path = str(self._folder / file_name(file or 1))
        if not file:
            return DamageError(path, 0, f"there is no journal file, but envelope {self._durable} was synced.", ADVICE)
        try:
            header = check(data, position, file_salt(self._folder_id, file))
            what = f"envelope {header.sequence} of epoch {header.epoch} is here"
        except FormatError as error:
            what = str(error)
        return DamageError(
            path,
            position,
            f"envelope {self._expected} should begin here, and {self._durable} was synced, but {what}.",
            ADVICE,
        )

    def _infos_of_earlier(self) -> list[FileInfo]:
        """What is known of the files before the start; they are not walked."""
        infos: list[FileInfo] = []
        following = self._walked[0].first_sequence if self._walked else 0
        for number in reversed(self._earlier):
            path = self._folder / file_name(number)
            file = self._files.open(path)
            first = 0
            try:
                header = read_file_header(file.read(FILE_HEADER_BYTES, 0))
                if header.number == number and header.folder_id == self._folder_id:
                    first = header.first_sequence
            except FormatError:
                pass  # left over from a file that was being removed; or verify tells
            file.close()
            infos.append(FileInfo(number, first, max(following - 1, 0), self._files.size(path)))
            following = first or following
        infos.reverse()
        return infos


def hole(folder: Path, number: int, sequence: int) -> DamageError:
    path = str(folder / file_name(number))
    return DamageError(path, 0, f"the journal file is missing; envelope {sequence} should be in it.", ADVICE)


def missing_beginning(folder: Path, numbers: Sequence[int]) -> DamageError | None:
    """For a journal of which no checkpoint holds anything: it must reach back to the very first file."""
    return hole(folder, 1, 1) if numbers and numbers[0] != 1 else None


def cut(files: Files, folder: Path, result: ScanResult) -> None:
    """Remove what is after the end of a scanned journal, for good. Raises the damage if there is any."""
    if result.damage is not None:
        raise result.damage
    if not result.torn_bytes and not result.drop:
        return
    for number in reversed(result.drop):  # the last first: a power cut between must not leave a hole
        files.remove(folder / file_name(number))
    if result.drop:
        files.sync_folder(folder)
    if result.end.file:
        path = folder / file_name(result.end.file)
        file = files.open(path, write=True)
        size = file.size()
        file.truncate(result.end.position)
        try:
            file.allocate(size)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
        # What was cut off must never be seen again, not even after a power cut right after the next append.
        file.sync()
        file.close()
