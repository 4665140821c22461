"""A journal in a folder, a worker that runs when told to, and what was promised of each envelope: for unit tests."""

import random
from pathlib import Path

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.journal.envelope import EntryKind, EnvelopeBuilder, entries
from interlog.journal.files import DiskFiles, Files
from interlog.journal.journal import Outcome, Ticket
from interlog.journal.journal_file import file_name
from interlog.journal.local import JournalSettings, LocalJournal
from interlog.journal.scan import Position, Scan, ScanResult, cut

ID = bytes(range(16))
SMALL = JournalSettings(file_bytes=16 << 10, min_free_bytes=0)


class Rig:
    """`payloads` is what a scan found and what was appended since; `outcomes` what the tickets said, in order."""

    def __init__(self, path: Path, files: Files | None = None, settings: JournalSettings = SMALL) -> None:
        self.folder = path / "journal"
        self.files = files if files is not None else DiskFiles()
        self.settings = settings
        self.clock = ManualClock()
        self.worker = ManualWorker()
        self.rolled: list[int] = []
        self.outcomes: list[tuple[int, Outcome]] = []
        self.payloads: dict[int, bytes] = {}
        self.start: Position | None = None
        self.journal: LocalJournal

    def scan(self, start: Position | None = None, known_durable: int = 0) -> ScanResult:
        scan = Scan(self.files, self.folder, ID, start, known_durable)
        self.payloads = {}
        for header, _, _, data in scan:
            (entry,) = entries(data, 0, header)
            self.payloads[header.sequence] = bytes(entry.payload)
        return scan.result()

    def open(self, start: Position | None = None) -> ScanResult:
        """A start: scan, cut, open with a new epoch."""
        result = self.scan(start)
        cut(self.files, self.folder, result)
        self.worker = ManualWorker()
        self.outcomes = []
        self.rolled = []
        self.journal = LocalJournal(
            self.files,
            self.folder,
            ID,
            self.clock,
            self.worker,
            self.settings,
            end=result.end,
            epoch=result.highest_epoch + 1,
            rng=random.Random(1),
            on_roll=self.rolled.append,
        )
        return result

    def append(self, payload: bytes, *, wait: bool = True) -> Ticket:
        builder, ticket = EnvelopeBuilder(), Ticket()
        builder.add(EntryKind.BATCH, 1, payload)
        sequence = self.journal.tail() + 1
        self.payloads[sequence] = payload
        if wait:
            ticket.when_durable(lambda outcome: self.outcomes.append((sequence, outcome)))
        self.journal.append(sequence, builder, ticket)
        return ticket

    def fill(self, count: int, size: int = 100, *, sync: bool = True) -> list[Ticket]:
        tickets = [self.append(bytes([self.journal.tail() % 256]) * size, wait=sync) for _ in range(count)]
        if sync:
            self.worker.run()
        return tickets

    def poll(self, ms: int = 100) -> None:
        self.clock.advance(ms)
        self.journal.poll()

    def path(self, number: int) -> Path:
        return self.folder / file_name(number)

    def durable(self) -> list[int]:
        return [sequence for sequence, outcome in self.outcomes if outcome is Outcome.DURABLE]
