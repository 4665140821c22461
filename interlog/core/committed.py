"""Which batches of a partition count for those who read committed transactions only.

In go headers of batches, in their order; out come yes or no, and where to read on. Markers say nothing to readers, what
was aborted is passed over, and where a transaction is still open reading ends for now.
"""

from interlog.core.producers import Producers
from interlog.journal.batch import BatchHeader


class Committed:
    __slots__ = ("_aborted", "_partition", "_producers", "_stable", "next")

    def __init__(self, producers: Producers, partition: int, offset: int) -> None:
        self.next = offset  # behind all that was decided about
        self._producers = producers
        self._partition = partition
        self._stable = producers.last_stable(partition)
        self._aborted: list[tuple[int, int, int]] | None = None  # looked up when the first transaction is met

    @property
    def may_read(self) -> bool:
        return self.next < self._stable

    def wants(self, header: BatchHeader) -> bool:
        if header.base_offset >= self._stable:
            return False
        self.next = header.next_offset
        return not header.is_control and not (header.is_transactional and self._is_aborted(header))

    def _is_aborted(self, header: BatchHeader) -> bool:
        if self._aborted is None:
            self._aborted = self._producers.aborted_ranges(self._partition)
        return any(
            id == header.producer_id and first <= header.base_offset < marker for id, first, marker in self._aborted
        )
