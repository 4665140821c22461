"""The journal room's door: what a tick writes, and where partitions are read.

In comes what the core decided (`add`, `add_batch`, `create_partition`, …), gathered into the tick's envelope; `commit`
appends it and hands back the ticket that those who must wait have parked on. Out go slices of partitions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from interlog.base.clock import Clock
from interlog.base.errors import NotFoundError
from interlog.journal import batch as batches
from interlog.journal.envelope import Entry, EntryKind, EnvelopeBuilder
from interlog.journal.files import File, Files
from interlog.journal.journal import Outcome, Ticket
from interlog.journal.local import LocalJournal
from interlog.journal.partition import Partition, slice_bytes
from interlog.journal.record import Record
from interlog.journal.segment import Readers
from interlog.journal.store import Garbage, SegmentStore
from interlog.journal.tail import Tail


@dataclass(slots=True)
class _Placing:
    """A batch of the tick under way: where it will be is known when the tick is appended."""

    partition: int
    batch: bytes
    base: int
    last: int
    max_timestamp_ms: int
    position: int


class Storage:
    """Partitions and the tick under way. One owner's thread; background work is the housekeeper's."""

    def __init__(
        self, files: Files, folder: Path, clock: Clock, store: SegmentStore, tail: Tail, decode_limit_bytes: int
    ) -> None:
        self.files = files
        self.folder = folder
        self.clock = clock
        self.store = store
        self.tail = tail
        self.readers = Readers(store)
        self.partitions: dict[int, Partition] = {}
        self.garbage: Garbage = []  # segments of partitions that are gone
        self.dropped: list[int] = []  # partitions that are gone, their folders still there
        self.epoch = 0
        self.bytes_since_checkpoint = 0
        self.entries_since_checkpoint = 0  # an envelope counts as one more: small ones cost a replay as much
        self._decode_limit_bytes = decode_limit_bytes
        self._journal: LocalJournal | None = None
        self._builder = EnvelopeBuilder()
        self._ticket = Ticket()
        self._last = Ticket()
        self._last.resolve(Outcome.DURABLE)
        self._placing: list[_Placing] = []
        # Whether the tick under way holds what goes by the journal's durability, and what asks for less.
        self._usual = self._lax = False

    @property
    def journal(self) -> LocalJournal:
        assert self._journal is not None, "the journal is attached once the folder is recovered"
        return self._journal

    def attach(self, journal: LocalJournal, epoch: int) -> None:
        """Recovery is done: ticks may be written from here on."""
        self._journal = journal
        self.epoch = epoch

    # -- the tick under way

    @property
    def ticket(self) -> Ticket:
        """The ticket of the tick under way: park on it what must wait."""
        return self._ticket

    @property
    def recovered(self) -> bool:
        """False while the journal is replayed."""
        return self._journal is not None

    @property
    def has_entries(self) -> bool:
        """Whether the tick under way has anything to write so far."""
        return self._builder.entries > 0

    @property
    def pending_bytes(self) -> int:
        return self._builder.length

    def add(self, kind: int, target: int, payload: bytes) -> None:
        self._builder.add(kind, target, payload)
        self._usual = True

    def add_batch(
        self,
        partition: int,
        batch: bytes,
        base: int,
        last: int,
        max_timestamp_ms: int,
        *,
        strict: bool | None = None,
    ) -> None:
        """A stamped RecordBatch for a partition. Readable once the tick is committed.

        `strict`: whether it lasts only once it is synced, where that is not as the journal's durability says. A tick
        is as strict as the strictest that is in it.
        """
        if strict is None:
            self._usual = True
        elif strict:
            self._ticket.strict = True
        else:
            self._lax = True
        position = self._builder.add(EntryKind.BATCH, partition, batch)
        self._placing.append(_Placing(partition, batch, base, last, max_timestamp_ms, position))

    def commit(self) -> Ticket:
        """Append the tick. Its ticket, or with nothing to write, one that resolves when all before it has."""
        ticket, self._ticket = self._ticket, Ticket()
        if self.tail.holding and not self.journal.waits_for_room:
            self.tail.release()
        if not self._builder.entries:
            if self._last.outcome is not None:
                ticket.resolve(self._last.outcome)
            elif ticket.sync:
                self._last.when_durable(ticket.resolve)
            else:
                self._last.when_written(ticket.set_written)
            return ticket
        if self._lax and not self._usual and ticket.strict is None:
            ticket.strict = False
        self._usual = self._lax = False
        builder, self._builder = self._builder, EnvelopeBuilder()
        placing, self._placing = self._placing, []
        journal = self.journal
        self._last = ticket
        self.bytes_since_checkpoint += builder.length
        self.entries_since_checkpoint += builder.entries + 1
        journal.append(journal.tail() + 1, builder, ticket)
        if journal.waits_for_room:
            self.tail.hold()
        for one in placing:
            partition = self.partitions.get(one.partition)
            if partition is not None:
                position = ticket.position + one.position
                partition.add(one.batch, one.base, one.last, one.max_timestamp_ms, ticket.file, position)
        return ticket

    # -- partitions

    def partition(self, partition: int) -> Partition:
        try:
            return self.partitions[partition]
        except KeyError:
            raise NotFoundError(f"there is no partition {partition}") from None

    def create_partition(self, partition: int) -> None:
        """Not an entry of its own: it follows from the catalog's entry, live and in replay."""
        self.partitions[partition] = self.make_partition(partition)

    def make_partition(self, partition: int) -> Partition:
        return Partition(partition, readers=self.readers, tail=self.tail, journal_file=self._journal_file)

    def _journal_file(self, number: int) -> File:
        return self.journal.file(number)

    def drop_partition(self, partition: int) -> None:
        gone = self.partitions.pop(partition, None)
        if gone is not None:
            self.garbage += gone.drop()
            self.dropped.append(partition)

    def set_log_start(self, partition: int, offset: int) -> None:
        """Move a log's start forward, as an entry of the tick."""
        self.add(EntryKind.LOG_START, partition, offset.to_bytes(8, "little"))
        self.partition(partition).set_log_start(offset)

    def read_records(
        self, partition: int, offset: int, max_bytes: int, wants: Callable[[batches.BatchHeader], bool] | None = None
    ) -> Iterator[tuple[int, Record]]:
        """Records from offset on, out of batches of about max_bytes in all; at least one batch if there is one.

        Batches that are not wanted are not unpacked.
        """
        for part in self.partition(partition).read(offset, max_bytes):
            data = slice_bytes(part)
            for position, header in batches.batches(data):
                if wants is not None and not wants(header):
                    continue
                for at, record in batches.decode(data, position, limit_bytes=self._decode_limit_bytes, verify=False):
                    if at >= offset:
                        yield at, record

    # -- replay

    def replay_batch(self, entry: Entry, file: int, envelope_position: int) -> batches.BatchHeader:
        """Take a batch entry of the journal back in; its header, for those who count records."""
        header = batches.read_header(entry.payload)
        partition = self.partition(entry.target)
        partition.add(
            entry.payload,
            header.base_offset,
            header.last_offset,
            header.max_timestamp_ms,
            file,
            envelope_position + entry.position,
        )
        return header

    def replay_log_start(self, entry: Entry) -> None:
        self.partition(entry.target).set_log_start(int.from_bytes(entry.payload, "little"))
