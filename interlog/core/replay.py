"""Replay: what each kind of entry does to the state, in the order in which it was written.

The live code changes the same objects and writes the entry; here the entry is all there is. No clock, no chance: the
same envelopes always give the same state.
"""

from collections.abc import Callable

from interlog.base.errors import FormatError, NotFoundError
from interlog.core import markers
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import QueueItem
from interlog.core.cursors import Cursors
from interlog.core.delays import PARTITION as DELAYS
from interlog.core.producers import Producers
from interlog.core.queue_state import QueuesSection
from interlog.core.seen_keys import Memories
from interlog.core.share_partitions import SharePartitions
from interlog.core.timers import Timers, timers_in
from interlog.core.transaction_entries import Forget, Period, ProducerIds, decode
from interlog.core.transactions import Transactions
from interlog.journal.envelope import Entry, EntryKind, entries
from interlog.journal.scan import Found
from interlog.journal.storage import Storage


class Replay:
    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        queues: QueuesSection,
        cursors: Cursors,
        share_partitions: SharePartitions,
        timers: Timers,
        producers: Producers,
        transactions: Transactions,
        memories: Memories,
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._queues = queues
        self._cursors = cursors
        self._timers = timers
        self._producers = producers
        self._transactions = transactions
        self._appliers: dict[int, Callable[[Entry, Found], None]] = {
            EntryKind.START: self._start,
            EntryKind.BATCH: self._batch,
            EntryKind.LEASE: self._lease,
            EntryKind.CURSOR: lambda entry, _: cursors.apply(entry.payload),
            EntryKind.CATALOG: lambda entry, _: catalog.apply(entry.payload),
            EntryKind.TIMER: self._timer,
            EntryKind.LOG_START: lambda entry, _: storage.replay_log_start(entry),
            EntryKind.TRANSACTION: self._transaction,
            EntryKind.SHARE: lambda entry, _: share_partitions.apply(entry.payload),
            EntryKind.SEEN: lambda entry, _: memories.apply(entry.payload),
        }
        self.last_time_ms = 0

    def apply(self, found: Found) -> None:
        """Take in one envelope; FormatError if it holds what this version does not know."""
        appliers, storage = self._appliers, self._storage
        storage.bytes_since_checkpoint += found.header.length
        storage.entries_since_checkpoint += 1
        try:
            for entry in entries(found.data, 0, found.header):
                storage.entries_since_checkpoint += 1
                applier = appliers.get(entry.kind)
                if applier is None:
                    raise FormatError(f"an entry of kind {entry.kind} is not known")
                applier(entry, found)
        except NotFoundError as error:
            raise FormatError(str(error)) from None
        self.last_time_ms = max(self.last_time_ms, found.header.time_ms)

    def _start(self, entry: Entry, found: Found) -> None:
        """A start is told for those who read the journal; it changes nothing."""

    def _batch(self, entry: Entry, found: Found) -> None:
        header = self._storage.replay_batch(entry, found.file, found.position)
        if self._is_queue(entry.target):
            self._queues.state(entry.target).apply_batch(header.base_offset, header.last_offset)
        elif header.producer_id >= 0:
            marker = markers.read(entry.payload) if header.is_control else None
            self._producers.take(entry.target, header, header.base_offset, header.max_timestamp_ms, marker)

    def _transaction(self, entry: Entry, found: Found) -> None:
        told = decode(entry.payload)
        if isinstance(told, ProducerIds | Period | Forget):
            self._producers.apply(told)
        else:
            self._transactions.apply(told)

    def _lease(self, entry: Entry, found: Found) -> None:
        if not self._is_queue(entry.target):
            raise FormatError(f"a lease entry is for partition {entry.target}, which is no queue's")
        self._queues.state(entry.target).apply_lease(entry.payload)

    def _timer(self, entry: Entry, found: Found) -> None:
        self._timers.apply(entry.payload)
        for timer in timers_in(entry.payload):
            partition = self._storage.partitions.get(timer.partition)
            if partition is not None:
                partition.advance(timer.offset + 1)

    def _is_queue(self, partition: int) -> bool:
        return partition == DELAYS or isinstance(self._catalog.owner(partition), QueueItem)
