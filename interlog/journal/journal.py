"""The journal as an interface: what a tick is appended to, wherever it is kept.

A position in the journal is a sequence: the number of an envelope. An appender names the sequence it means to
write; if another has written it, the answer is CONFLICT and the appender must stop. UNKNOWN means that the write
may or may not have lasted; nobody may be told that it did.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from interlog.journal.envelope import EnvelopeBuilder


class Outcome(Enum):
    DURABLE = "durable"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


class Ticket:
    """One append, and those who wait for it. Callbacks run in the order they were added, tickets in sequence."""

    __slots__ = (
        "_on_durable",
        "_on_written",
        "ask_sync",
        "file",
        "outcome",
        "position",
        "sequence",
        "strict",
        "sync",
        "written",
    )

    def __init__(self) -> None:
        self.sequence = 0
        self.file = 0  # the number of the journal file, and where in it the envelope begins: set by append
        self.position = 0
        self.sync = False  # someone waits for durability
        # Whether it lasts only once it is synced; None: as the journal's durability says.
        self.strict: bool | None = None
        self.ask_sync: Callable[[], None] | None = None  # set by append: how to ask for a sync that comes later
        self.written = False
        self.outcome: Outcome | None = None
        self._on_written: list[Callable[[], None]] = []
        self._on_durable: list[Callable[[Outcome], None]] = []

    def when_written(self, callback: Callable[[], None]) -> None:
        """Call back once the bytes have been handed to the operating system (or the append has failed)."""
        if self.written or self.outcome is not None:
            callback()
        else:
            self._on_written.append(callback)

    def when_durable(self, callback: Callable[[Outcome], None]) -> None:
        """Call back once it is known whether the append lasts; asks for a sync."""
        if self.outcome is not None:
            callback(self.outcome)
        else:
            self._on_durable.append(callback)
            if not self.sync:
                self.sync = True
                if self.ask_sync is not None:
                    self.ask_sync()

    def set_written(self) -> None:
        self.written = True
        callbacks, self._on_written = self._on_written, []
        for callback in callbacks:
            callback()

    def resolve(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if not self.written:
            self.set_written()
        callbacks, self._on_durable = self._on_durable, []
        for callback in callbacks:
            callback(outcome)


class Journal(Protocol):
    def append(self, sequence: int, builder: EnvelopeBuilder, ticket: Ticket) -> None:
        """Append what the builder gathered as envelope `sequence`. The ticket tells how it ended."""
        ...

    def read(self, sequence: int) -> bytes:
        """One whole envelope; NotFoundError if it was trimmed or never written."""
        ...

    def tail(self) -> int:
        """The newest sequence appended; 0 before the first."""
        ...

    def trim(self, sequence: int) -> None:
        """Envelopes before sequence are no longer needed."""
        ...
