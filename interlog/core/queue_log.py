"""A queue's side of the storage: its partition, and its part of the tick.

In come the queue's records and LEASE payloads; out go entries of the tick's envelope. A queue that is not durable has
no partition in the journal and writes nothing.
"""

from collections.abc import Iterable, Sequence

from interlog.journal import batch as batches
from interlog.journal.envelope import EntryKind
from interlog.journal.record import Record
from interlog.journal.storage import Storage


class QueueLog:
    """The log of a durable queue."""

    __slots__ = ("_partition", "_storage")

    def __init__(self, storage: Storage, partition: int) -> None:
        self._storage = storage
        self._partition = partition

    def add_batch(self, records: Sequence[Record], base: int, last: int, offsets: Sequence[int] | None) -> None:
        storage = self._storage
        data = batches.encode(records, base_offset=base, leader_epoch=storage.epoch, offsets=offsets)
        newest_ms = max([record.timestamp_ms for record in records])
        storage.add_batch(self._partition, data, base, last, newest_ms)

    def add_lease(self, payload: bytes) -> None:
        self._storage.add(EntryKind.LEASE, self._partition, payload)

    def read(self, offset: int, max_bytes: int) -> Iterable[tuple[int, Record]]:
        return self._storage.read_records(self._partition, offset, max_bytes)

    @property
    def log_end(self) -> int:
        return self._storage.partition(self._partition).log_end


class NoLog:
    """The log of a queue that is not durable: it holds nothing and is given nothing."""

    log_end = 0

    def add_batch(self, records: Sequence[Record], base: int, last: int, offsets: Sequence[int] | None) -> None:
        raise AssertionError("a queue that is not durable has nothing to store")

    def add_lease(self, payload: bytes) -> None:
        raise AssertionError("a queue that is not durable has nothing to store")

    def read(self, offset: int, max_bytes: int) -> Iterable[tuple[int, Record]]:
        return ()
