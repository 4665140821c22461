"""Whether the journal accepts messages, and a sentence that says why not; and the room on the disk.

In comes what went wrong and how many bytes are free; out comes OK, FULL (which passes by itself) or FAILED (which lasts
until the next start).
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

from interlog.journal.journal_file import Spare, Stock

# How long after a failed attempt to make a file the next one waits.
_RETRY_MS = 1000


@dataclass(frozen=True, slots=True)
class JournalSettings:
    file_bytes: int = 256 << 20
    roll_ms: int = 3_600_000  # 0: never by age
    roll_jitter: float = 0.1  # of roll_ms, either way
    durability: Literal["sync", "os"] = "sync"
    flush_ms: int = 1000
    min_free_bytes: int = 50_000_000


class JournalState(Enum):
    OK = "ok"
    FULL = "full"  # no room: goes back to OK by itself
    FAILED = "failed"  # a write or a sync failed: nothing more is written until the next start


class Condition:
    def __init__(self, folder: Path, settings: JournalSettings, stock: Stock) -> None:
        self.state = JournalState.OK
        self.reason = ""  # a sentence, while the state is not OK
        self.retry_ms = 0  # no new file is tried for before
        self.free_bytes = 0  # when the room was last looked after
        self._folder = folder
        self._settings = settings
        self._stock = stock
        self._pending = False
        self._room_trouble = ""

    @property
    def failed(self) -> bool:
        return self.state is JournalState.FAILED

    def fail(self, what: str) -> None:
        self.state = JournalState.FAILED
        self.reason = f"{what} The journal no longer accepts writes. Check the disk, then start the broker again."

    def no_new_file(self, now_ms: int) -> None:
        """An attempt to make a file failed; the stock knows why."""
        self.retry_ms = now_ms + _RETRY_MS
        self.refresh(pending=self._pending)

    def look_after_room(self, free: int, now_ms: int) -> None:
        """Keep a spare file ready as long as that leaves the reserve free."""
        reserve = self._settings.min_free_bytes
        self.free_bytes = free
        self._room_trouble = ""
        if free < reserve:
            self._room_trouble = f"{free} bytes are free and {reserve} are kept in reserve"
        elif self._stock.spare is Spare.NONE:
            if free < reserve + self._settings.file_bytes:
                self._room_trouble = f"{free} bytes are free, too few for the next journal file and the reserve"
            elif now_ms >= self.retry_ms:
                if self._stock.trouble:
                    self.retry_ms = now_ms + _RETRY_MS
                self._stock.want_spare(self._spare_changed)

    def _spare_changed(self) -> None:
        if self._stock.spare is Spare.READY:
            self.retry_ms = 0
        self.refresh(pending=self._pending)

    def refresh(self, *, pending: bool) -> None:
        """Work out the state anew; `pending`: envelopes wait for room."""
        self._pending = pending
        if self.failed:
            return
        if pending:
            self.reason = f"The disk of {self._folder} is full. Messages are refused until there is room."
        elif self._room_trouble:
            self.reason = (
                f"The disk of {self._folder} is full: {self._room_trouble}. Messages are refused until there is room."
            )
        elif self._stock.trouble:
            self.reason = f"{self._stock.trouble} Messages are refused until it can."
        else:
            self.reason = ""
        self.state = JournalState.FULL if self.reason else JournalState.OK
