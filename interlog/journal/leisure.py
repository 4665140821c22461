"""Whether moving a closed journal file's batches to segments may wait for a quiet moment.

In: how many bytes the broker has moved so far, and what the file holds. Out: yes or no. Moving costs as much again as
writing did, and what waits is read from the journal file meanwhile, as sound and almost as fast. So under load a file
that would be moved nearly whole waits. One that is mostly free room does not, for its room is wanted; nor does one of
small batches, of which each costs memory until it is in a segment.
"""

from collections.abc import Callable, Iterable
from typing import Final

from interlog.journal.journal_file import FileInfo
from interlog.journal.partition import Partition
from interlog.journal.settle import Wanted, WantedRange

BUSY_BYTES: Final = 64 << 20  # moved in a second: then it is no quiet moment
MOST_WAITING: Final = 16  # files
SMALL_BATCH_BYTES: Final = 16 << 10  # on the average
_LOOK_MS: Final = 1_000
_ROOM_SHARE: Final = 4  # what waits takes no more than this part of what is free


class Leisure:
    """Owner's thread. `look` is to be called now and then, at least a few times a second."""

    def __init__(self, moved: Callable[[], int], now_ms: int) -> None:
        self._moved = moved
        self._since_ms = now_ms
        self._moved_then = moved()
        self._busy = False
        self._judged: tuple[int, bool] | None = None  # file, and what was said of it since `_since_ms`

    def look(self, now_ms: int) -> None:
        moved = self._moved() - self._moved_then
        if moved >= BUSY_BYTES:
            self._busy = True
        if now_ms - self._since_ms >= _LOOK_MS:
            self._busy = moved * _LOOK_MS >= BUSY_BYTES * (now_ms - self._since_ms)
            self._since_ms = now_ms
            self._moved_then += moved
            self._judged = None

    def may_wait(
        self, info: FileInfo, waiting: int, free_bytes: int, partitions: Iterable[Partition], ask: WantedRange
    ) -> bool:
        """The oldest file that is not settled, of so many: those after it wait for it."""
        if not self._busy or waiting > MOST_WAITING or waiting * info.bytes * _ROOM_SHARE > free_bytes:
            return False
        if self._judged is None or self._judged[0] != info.number:
            self._judged = info.number, _is_for_later(info, partitions, ask)
        return self._judged[1]


def _is_for_later(info: FileInfo, partitions: Iterable[Partition], ask: WantedRange) -> bool:
    """Whether most of the file is wanted, in batches that are not small."""
    wanted_bytes = count = 0
    for partition in partitions:
        for window in partition.windows:
            if window.file != info.number:
                break
            verdict = ask(partition.id, max(window.base, partition.log_start), window.last)
            if verdict is not Wanted.NONE:
                wanted_bytes += window.bytes if verdict is Wanted.ALL else window.bytes // 2
                count += len(window)
    return 2 * wanted_bytes >= info.bytes and wanted_bytes >= count * SMALL_BATCH_BYTES
