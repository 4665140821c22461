"""The journal in a local folder: appends are written at once and synced in the background, together.

In come one builder and one ticket per tick; out go envelopes in journal files, and the tickets' outcomes in order. One
sync is in flight at a time; whatever was appended meanwhile is covered by the next. `poll` must be called every 100 ms
or so: it retries, rolls by age, makes the spare file and sees to it that nothing stays unsynced for long.

No envelope goes to a new file while an earlier one is still waiting for room, and a closed file is announced only when
all of it is synced: whoever moves it away needs no thought for either.
"""

import functools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import ref

from interlog.base.clock import Clock
from interlog.base.errors import DamageError, FormatError, NotFoundError
from interlog.base.work import Worker
from interlog.journal.condition import Condition, JournalSettings, JournalState
from interlog.journal.envelope import EnvelopeBuilder, check, read_header
from interlog.journal.files import Buffer, File, Files
from interlog.journal.journal import Outcome, Ticket
from interlog.journal.journal_file import FILE_HEADER_BYTES, NO_ROOM, FileInfo, Stock, file_name, file_salt
from interlog.journal.scan import ADVICE, End, Position
from interlog.journal.syncer import Syncer

__all__ = ["JournalSettings", "JournalState", "LocalJournal"]

_NEVER_MS: Final = 1 << 62
PREPARE_BYTES: Final = 8 << 20  # of a journal file, before they are written to


@dataclass(slots=True)
class _Pending:
    """An envelope that there was no room for yet. Where it goes is settled all the same."""

    ticket: Ticket
    file: File
    buffers: list[Buffer]


class LocalJournal:
    """Goes on at the `end` that a scan found, after `cut`. Owner's thread only, but for the jobs given to the worker.

    `folder` is the journal folder. `epoch` must be higher than any seen before (ScanResult.highest_epoch). `on_roll` is
    told the number of each file that is closed and wholly synced.
    """

    def __init__(
        self,
        files: Files,
        folder: Path,
        folder_id: bytes,
        clock: Clock,
        worker: Worker,
        settings: JournalSettings,
        *,
        end: End,
        epoch: int,
        shard: int = 0,
        rng: random.Random | None = None,
        on_roll: Callable[[int], None] | None = None,
    ) -> None:
        self.epoch = epoch
        self.on_roll = on_roll
        self._files = files
        self._folder = folder
        self._folder_id = folder_id
        self._clock = clock
        self._worker = worker
        self._settings = settings
        self._shard = shard
        self._rng = rng
        self._sync_mode = settings.durability == "sync"
        self._closed = False

        files.make_folder(folder)
        self._stock = Stock(files, folder, folder_id, shard=shard, file_bytes=settings.file_bytes, worker=worker)
        self._condition = Condition(folder, settings, self._stock)

        # Appended (tail) >= written >= durable. Tickets in _waiting are written but not durable.
        self._tail = end.sequence
        self._written = end.sequence
        self._durable = min(end.durable, end.sequence)
        self._wanted = self._durable  # somebody waits for this one to be durable
        self._waiting: deque[Ticket] = deque()
        self._pending: deque[_Pending] = deque()
        self._synced_waiters: deque[tuple[int, Callable[[Outcome], None]]] = deque()
        self._unsynced_since_ms = clock.now_ms()
        self._syncer = Syncer(files, folder, folder_id, worker, epoch=epoch, durable=self._durable)

        self._infos: dict[int, FileInfo] = {}
        self._unannounced: list[FileInfo] = []  # closed, but not all of it is synced yet
        self._open_files: dict[int, File] = {}
        self._end = Position(end.file, end.position, end.sequence + 1, epoch)
        if end.closed and end.first_sequence > end.sequence:
            # The newest file has no envelope yet, so it may be gone after a power cut: nothing may rest on it.
            last = end.closed[-1]
            self._end = Position(last.number, last.bytes, end.sequence + 1, epoch)
        if end.file:
            # What was found after `durable` may be in the page cache only: the next sync must cover its files too.
            # Of a file without envelopes nothing is known.
            for info in end.closed:
                if info.last_sequence <= end.durable and info.first_sequence <= info.last_sequence:
                    self._infos[info.number] = info
                else:
                    self._unannounced.append(info)
                    self._open_files[info.number] = files.open(folder / file_name(info.number))
                    self._syncer.begun(self._open_files[info.number])
            file = files.open(folder / file_name(end.file), write=True)
            self._begin_file(end.file, file, file.size(), end.first_sequence, end.position)
        else:
            file, limit = self._stock.make(1, end.sequence + 1, FILE_HEADER_BYTES)
            self._begin_file(1, file, limit, end.sequence + 1, FILE_HEADER_BYTES)
            self._end = Position(1, FILE_HEADER_BYTES, end.sequence + 1, epoch)

    def _begin_file(self, number: int, file: File, limit: int, first_sequence: int, position: int) -> None:
        self._number = number
        self._file = file
        self._limit = limit
        self._first_sequence = first_sequence
        self._position = position
        self._salt = file_salt(self._folder_id, number)
        self._prepared = position + 2 * PREPARE_BYTES  # for who writes little there is nothing to prepare
        self._open_files[number] = file
        self._syncer.begun(file)
        settings = self._settings
        jitter = settings.roll_jitter * self._rng.uniform(-1, 1) if self._rng is not None else 0.0
        self._begun_ms = self._clock.now_ms()
        self._roll_at_ms = self._begun_ms + int((settings.roll_ms or _NEVER_MS) * (1 + jitter))

    # -- what is there

    @property
    def state(self) -> JournalState:
        return self._condition.state

    @property
    def reason(self) -> str:
        """A sentence, while the state is not OK."""
        return self._condition.reason

    @property
    def accepts_messages(self) -> bool:
        return self._condition.state is JournalState.OK and not self._closed

    @property
    def waits_for_room(self) -> bool:
        """Envelopes were appended that are in no file yet."""
        return bool(self._pending)

    @property
    def free_bytes(self) -> int:
        """On its disk, at the last poll."""
        return self._condition.free_bytes

    def tail(self) -> int:
        return self._tail

    def durable(self) -> int:
        """The newest sequence known to be synced."""
        return self._durable

    def end(self) -> Position:
        """The spot after the newest envelope. The next one is there, or is the first of the file after."""
        return self._end

    def closed_files(self) -> list[FileInfo]:
        """The files that are closed, wholly synced and not released, in order."""
        return list(self._infos.values())

    def file(self, number: int) -> File:
        """A journal file, for reading."""
        try:
            return self._open_files[number]
        except KeyError:
            if number not in self._infos:
                raise NotFoundError(f"there is no journal file {number}") from None
        file = self._open_files[number] = self._files.open(self._folder / file_name(number))
        return file

    def read(self, sequence: int) -> bytes:
        """One whole envelope. Looks through its file: for the rare reader, not for consumers."""
        for one in self._pending:
            if one.ticket.sequence == sequence:
                return b"".join(one.buffers)
        current = FileInfo(self._number, self._first_sequence, self._tail, self._position)
        for info in (*self._infos.values(), *self._unannounced, current):
            if info.first_sequence and info.first_sequence <= sequence <= info.last_sequence:
                return self._read(info, sequence)
        raise NotFoundError(f"envelope {sequence} is not in the journal")

    def _read(self, info: FileInfo, sequence: int) -> bytes:
        file = self.file(info.number)
        data = file.map()
        position = FILE_HEADER_BYTES
        try:
            header = read_header(data, position)
            while header.sequence < sequence:
                position += header.length
                header = read_header(data, position)
            check(data, position, file_salt(self._folder_id, info.number))
        except FormatError as error:
            raise DamageError(str(file.path), position, f"{error}.", ADVICE) from None
        return bytes(data[position : position + header.length])

    @property
    def current(self) -> int:
        """The number of the file that is written to now."""
        return self._number

    @property
    def age_ms(self) -> int:
        """How long that file has been written to."""
        return self._clock.now_ms() - self._begun_ms

    def roll_soon(self) -> None:
        """Somebody wants what the current file holds to be settled: it is closed at the next poll."""
        self._roll_at_ms = self._begun_ms

    # -- append

    def append(self, sequence: int, builder: EnvelopeBuilder, ticket: Ticket) -> None:
        if sequence != self._tail + 1:
            ticket.resolve(Outcome.CONFLICT)
            return
        if self._closed or self._condition.failed:
            ticket.resolve(Outcome.UNKNOWN)
            return
        now_ms = self._clock.now_ms()
        length = builder.length
        if self._position + length > self._limit and self._may_roll(now_ms):
            self._roll(length)
        position = self._position
        buffers = builder.finish(
            shard=self._shard,
            epoch=self.epoch,
            sequence=sequence,
            durable=self._durable,
            time_ms=now_ms,
            salt=self._salt,
        )
        ticket.sequence = self._tail = sequence
        ticket.file = self._number
        ticket.position = position
        self._position = position + length
        self._end = Position(self._number, self._position, sequence + 1, self.epoch)
        if ticket.strict is None:
            ticket.strict = self._sync_mode
        if ticket.strict or self._waiting or self._pending:
            ticket.ask_sync = functools.partial(self._ask_sync, sequence)
            if ticket.sync:
                self._wanted = sequence
        if self._pending:
            self._pending.append(_Pending(ticket, self._file, buffers))
            return
        try:
            self._file.write(buffers, position)
        except OSError as error:
            self._pending.append(_Pending(ticket, self._file, buffers))
            self._write_failed(error)
            return
        self._wrote(ticket, now_ms)
        if self._position > self._prepared - PREPARE_BYTES:
            self._prepare()
        if self._wanted > self._durable:
            self._sync_if_wanted()
        if self._unannounced:
            self._announce()

    def _wrote(self, ticket: Ticket, now_ms: int) -> None:
        self._syncer.touched(self._file)
        if self._written == self._durable:
            self._unsynced_since_ms = now_ms
        self._written = ticket.sequence
        if ticket.strict or self._waiting:  # what need not be synced is not told before what must be
            self._waiting.append(ticket)
            ticket.set_written()
        else:
            ticket.resolve(Outcome.DURABLE)

    def _prepare(self) -> None:
        """See that memory for what comes next is there before it is written to.

        To find new memory for a page costs several times what it costs to fill it: another thread does that.
        """
        start = max(self._prepared, self._position)
        self._prepared = min(self._position + 2 * PREPARE_BYTES, self._limit)
        if start < self._prepared:
            job = functools.partial(self._file.prepare, self._prepared - start, start)
            self._worker.submit(job, lambda result, error: None)

    def _write_failed(self, error: OSError) -> None:
        if error.errno in NO_ROOM:
            self._condition.refresh(pending=True)
        else:
            self._fail(f"Writing to {self._file.path} failed: {error.strerror or error}.")

    def _retry_pending(self, now_ms: int) -> None:
        """Write what waits for room, in order. No file is begun meanwhile, so all of it is for the current one."""
        while self._pending:
            one = self._pending[0]
            try:
                one.file.write(one.buffers, one.ticket.position)
            except OSError as error:
                self._write_failed(error)
                return
            self._pending.popleft()
            self._wrote(one.ticket, now_ms)

    # -- sync

    def when_synced(self, sequence: int, callback: Callable[[Outcome], None]) -> None:
        """Call back once everything up to the sequence is synced, whatever the durability in force."""
        if sequence <= self._durable:
            callback(Outcome.DURABLE)
        elif self._closed or self._condition.failed:
            callback(Outcome.UNKNOWN)
        else:
            self._synced_waiters.append((sequence, callback))
            self._ask_sync(sequence)

    def sync_start(self) -> None:
        """Before anybody is served: what a start has written lasts, on the caller's thread. OSError if it may not.

        Else what was cut off at this start could be whole again after a power cut, and its epoch given twice.
        """
        if self._written > self._durable and not self._pending:
            self._syncer.finish(self._written, clean=False)
            self._settle(self._written)

    def _ask_sync(self, sequence: int) -> None:
        self._wanted = max(self._wanted, sequence)
        self._sync_if_wanted()

    def _sync_if_wanted(self) -> None:
        if self._wanted > self._durable and self._written > self._durable:
            self._start_sync()

    def _start_sync(self) -> None:
        if self._syncer.busy or self._closed or self._condition.failed:
            return
        self._unsynced_since_ms = self._clock.now_ms()
        self._syncer.start(self._written, self._synced)

    def _synced(self, sequence: int, error: BaseException | None) -> None:
        if self._closed or self._condition.failed:
            return
        if error is not None:
            # Never tried again: after a failed sync the system may have dropped the bytes and call the next one good.
            what = error.strerror if isinstance(error, OSError) and error.strerror else error
            self._fail(f"Syncing the journal in {self._folder} failed: {what}.")
            return
        self._settle(sequence)
        self._sync_if_wanted()

    def _settle(self, sequence: int) -> None:
        """Everything up to the sequence is durable."""
        self._durable = sequence
        waiting = self._waiting
        while waiting and (waiting[0].sequence <= sequence or not waiting[0].strict):
            waiting.popleft().resolve(Outcome.DURABLE)
        waiters = self._synced_waiters
        while waiters and waiters[0][0] <= sequence:
            waiters.popleft()[1](Outcome.DURABLE)
        self._announce()

    def _announce(self) -> None:
        """Closed files of which everything is synced now belong to the owner."""
        while self._unannounced and self._unannounced[0].last_sequence <= self._durable:
            info = self._unannounced.pop(0)
            self._infos[info.number] = info
            if self.on_roll is not None:
                self.on_roll(info.number)

    # -- files

    def _may_roll(self, now_ms: int) -> bool:
        """Not while anything waits for room; not too soon after a failure; and no file is left without an envelope."""
        return not self._pending and now_ms >= self._condition.retry_ms and self._tail >= self._first_sequence

    def _roll(self, least_bytes: int) -> None:
        """Begin the next file. If that cannot be had, go on in this one, past its size."""
        number, first_sequence = self._number + 1, self._tail + 1
        try:
            file, limit = self._stock.make(number, first_sequence, FILE_HEADER_BYTES + least_bytes)
        except OSError:
            self._condition.no_new_file(self._clock.now_ms())
            return
        self._unannounced.append(FileInfo(self._number, self._first_sequence, self._tail, self._position))
        self._wanted = max(self._wanted, self._tail)  # so that it is soon announced
        self._begin_file(number, file, limit, first_sequence, FILE_HEADER_BYTES)

    def release(self, number: int) -> None:
        """The owner no longer needs a closed file, in whatever order; no error if it is gone already."""
        if self._infos.pop(number, None) is None or self._closed:
            return
        file = self._open_files.pop(number, None)
        reader = ref(file) if file is not None else None
        del file
        self._stock.take_back(number, reader)

    def trim(self, sequence: int) -> None:
        """Release all closed files that hold nothing but envelopes before the sequence."""
        for info in self.closed_files():
            if info.last_sequence < sequence:
                self.release(info.number)

    # -- now and then

    def poll(self) -> None:
        """Whatever is due: retries, the flush, the roll by age, the spare file, a look at the disk's room."""
        if self._closed or self._condition.failed:
            return
        try:
            free = self._files.free_bytes(self._folder)
            there = self._files.exists(self._file.path)
        except OSError as error:
            self._fail(f"The journal folder {self._folder} cannot be reached: {error.strerror or error}.")
            return
        if not there:  # what is written to a file without a name is lost, however well it is synced
            self._fail(f"The journal file {self._file.path} has vanished.")
            return
        now_ms = self._clock.now_ms()
        self._retry_pending(now_ms)
        if self.state is JournalState.FAILED:
            return
        self._condition.look_after_room(free, now_ms)
        settings = self._settings
        if now_ms >= self._roll_at_ms and self._may_roll(now_ms):
            self._roll(0)
        if self._written > self._durable and now_ms - self._unsynced_since_ms >= settings.flush_ms:
            self._start_sync()
        self._sync_if_wanted()
        self._announce()
        self._condition.refresh(pending=bool(self._pending))

    def _fail(self, what: str) -> None:
        self._condition.fail(what)
        self._give_up()

    def _give_up(self) -> None:
        waiting = [*self._waiting, *(one.ticket for one in self._pending)]
        self._waiting.clear()
        self._pending.clear()
        for ticket in waiting:
            ticket.resolve(Outcome.UNKNOWN)
        while self._synced_waiters:
            self._synced_waiters.popleft()[1](Outcome.UNKNOWN)

    def close(self) -> None:
        """Sync everything, resolve every ticket, leave the mark of a clean end. On the caller's thread."""
        if self._closed:
            return
        self._retry_pending(self._clock.now_ms())
        if not self._condition.failed:
            try:
                self._syncer.finish(self._written, clean=not self._pending)
            except OSError as error:
                self._fail(f"Syncing the journal in {self._folder} failed: {error.strerror or error}.")
            else:
                self._settle(self._written)
        self._closed = True
        self._give_up()
        self._open_files.clear()
        if not self._syncer.busy:  # else they go with the last who has them
            self._syncer.close()
            self._file.close()
