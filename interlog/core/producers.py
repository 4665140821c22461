"""Producers: what each partition remembers of those who number their batches, so that none is stored twice.

Comes in: headers of batches, before they are appended (`check`) and after (`take`, live and in replay). Goes out: the
earlier place of a batch that came before, ProducerError for one that does not follow, how far a partition is
stable, and the ranges of it that were aborted.

A producer's state in a partition follows from the batches there and outlives them. It goes when the producer has not
been seen for a while, as an entry says: time is cut into periods, each begun by an entry, and a producer belongs
to the period it was last seen in. So nothing but the order of the entries decides who is forgotten.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple, Protocol

from interlog.base.clock import Clock
from interlog.base.errors import FormatError, InterlogError, InvalidError
from interlog.core.markers import Marker
from interlog.core.transaction_entries import Forget, Period, ProducerIds, encode
from interlog.journal.batch import CONTROL, TRANSACTIONAL, BatchHeader
from interlog.journal.envelope import EntryKind
from interlog.journal.partition import Partition
from interlog.journal.section import Changes, Row, Section, Table

EXPIRATION_MS: Final = 86_400_000
MAX_PRODUCERS: Final = 200_000  # of all partitions: half a KiB each
MAX_SEQUENCE: Final = (1 << 31) - 1  # the next one is 0
REMEMBERED: Final = 5  # batches of a producer in a partition

_PERIOD_MS: Final = 600_000
_FORGOTTEN_AT_ONCE: Final = 1_000  # when there are too many
_MOST_HELD_BACK: Final = 10_000  # producers whose first batch was refused for now
_BATCH: Final = struct.Struct("<qiiq")  # offset, first and last sequence, time
_OLDER: Final = -(REMEMBERED - 1) * _BATCH.size


class Refusal(Enum):
    """Why a batch, or a step of a transaction, is refused."""

    OUT_OF_ORDER = "out of order"  # its sequence does not follow
    STALE_EPOCH = "stale epoch"  # of a batch: a newer one of its producer was seen
    NOT_OPEN = "not open"  # no transaction that this could be part of, or the end of
    NOT_INCLUDED = "not included"  # the transaction is there, and this is no part of it: it can only be aborted
    UNKNOWN_PRODUCER = "unknown producer"  # the producer id is not this transaction's
    FENCED = "fenced"  # another has taken over
    BAD_TIMEOUT = "bad timeout"
    STALE_COORDINATOR = "stale coordinator"
    NO_SUCH_TRANSACTION = "no such transaction"
    TOO_MANY = "too many"


class ProducerError(InterlogError):
    def __init__(self, refusal: Refusal, message: str) -> None:
        self.refusal = refusal
        super().__init__(message)


class Storage(Protocol):
    def add(self, kind: int, target: int, payload: bytes) -> None: ...
    def partition(self, partition: int) -> Partition: ...


class Before(NamedTuple):
    """Where a batch that comes again was stored."""

    base: int
    last: int
    timestamp_ms: int


# Whether a batch of (producer, epoch, partition) is part of an open transaction; if not, why.
Belongs = Callable[[int, int, int], Refusal | None]


def _to_none(producer_id: int, epoch: int, partition: int) -> Refusal | None:
    return Refusal.NOT_OPEN


def last_sequence(first: int, count: int) -> int:
    return (first + count - 1) & MAX_SEQUENCE


class Producer:
    """One producer in one partition."""

    __slots__ = (
        "batches",
        "changed",
        "coordinator_epoch",
        "epoch",
        "id",
        "open_since",
        "partition",
        "period_ms",
        "timestamp_ms",
    )

    def __init__(self, partition: int, id: int) -> None:
        self.partition = partition
        self.id = id
        self.epoch = -1
        self.coordinator_epoch = -1  # of its last marker
        self.timestamp_ms = -1
        self.open_since = -1  # the first offset of its transaction
        self.period_ms = 0  # the beginning of the period it was last seen in
        self.batches = b""  # of this epoch, the newest last
        self.changed = False

    @property
    def last_sequence(self) -> int:
        return _BATCH.unpack_from(self.batches, len(self.batches) - _BATCH.size)[2] if self.batches else -1

    def find(self, first: int, last: int) -> Before | None:
        for offset, one, other, timestamp_ms in _BATCH.iter_unpack(self.batches):
            if one == first and other == last:
                return Before(offset, offset + ((last - first) & MAX_SEQUENCE), timestamp_ms)
        return None

    def row(self) -> Row:
        numbers = self.epoch, self.coordinator_epoch, self.timestamp_ms, self.open_since, self.period_ms
        return self.partition, self.id, *numbers, self.batches


class _Log:
    """The producers of one partition."""

    __slots__ = ("firsts", "ids", "lasts", "open", "producers", "stables", "unsaved")

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self.open: dict[int, int] = {}  # producer → first offset of its transaction, rising
        # Of aborted transactions, in the order of their ends: producer, first offset, offset of the marker, and up to
        # where the log was stable then.
        self.ids = array("q")
        self.firsts = array("q")
        self.lasts = array("q")
        self.stables = array("q")
        self.unsaved = 0  # the last so many are not in the checkpoint

    def abort(self, id: int, first: int, last: int, stable: int) -> None:
        self.ids.append(id)
        self.firsts.append(first)
        self.lasts.append(last)
        self.stables.append(stable)

    def trim(self, log_start: int) -> list[int]:
        """Forget what was aborted before the log's start; where the markers of those were."""
        count = bisect_left(self.lasts, log_start)
        gone = list(self.lasts[:count])
        for column in (self.ids, self.firsts, self.lasts, self.stables):
            del column[:count]
        self.unsaved = min(self.unsaved, len(self.lasts))
        return gone


class Producers:
    """All producers of a shard."""

    def __init__(
        self, storage: Storage, clock: Clock, expiration_ms: int = EXPIRATION_MS, most: int = MAX_PRODUCERS
    ) -> None:
        self.belongs: Belongs = _to_none
        self._storage = storage
        self._clock = clock
        self._expiration_ms = expiration_ms
        self._length_ms = max(1, min(_PERIOD_MS, expiration_ms // 10))
        self._most = most
        self._logs: dict[int, _Log] = {}
        self._count = 0
        self._next_id = 0
        self._period_ms = 0
        self._seen: dict[int, dict[Producer, None]] = {}  # by period
        self._changed: list[Producer] = []
        self._removed: list[Row] = []
        self._aborted_changed: dict[int, None] = {}
        self._aborted_removed: list[Row] = []
        self._marks_changed = False
        self._held_back: dict[tuple[int, int, int], int] = {}  # partition, id, epoch: sequence of what was to be first

    def __len__(self) -> int:
        return self._count

    @property
    def sections(self) -> tuple[Section, ...]:
        return _ProducerRows(self), _AbortedRows(self), _Marks(self)

    # -- asked

    def of(self, partition: int) -> list[Producer]:
        """Those known to a partition."""
        log = self._logs.get(partition)
        return [] if log is None else list(log.producers.values())

    def find(self, partition: int, producer_id: int) -> Producer | None:
        log = self._logs.get(partition)
        return None if log is None else log.producers.get(producer_id)

    def last_stable(self, partition: int) -> int:
        """The offset before which no transaction is open; the log's end if none is."""
        stored = self._storage.partition(partition)
        log = self._logs.get(partition)
        if log is None or not log.open:
            return stored.log_end
        return max(stored.log_start, min(next(iter(log.open.values())), stored.log_end))

    def aborted(self, partition: int, start: int, end: int) -> list[tuple[int, int]]:
        """Producer and first offset of aborted transactions that have anything from start on and before end."""
        log = self._logs.get(partition)
        if log is None or not log.lasts:
            return []
        found = []
        for at in range(bisect_left(log.lasts, start), len(log.lasts)):
            if log.firsts[at] < end:
                found.append((log.ids[at], log.firsts[at]))
            if log.stables[at] >= end:
                break
        return found

    def aborted_ranges(self, partition: int) -> list[tuple[int, int, int]]:
        """Producer, first offset and offset of the marker of each aborted transaction, in the order of their ends."""
        log = self._logs.get(partition)
        return [] if log is None else list(zip(log.ids, log.firsts, log.lasts, strict=True))

    # -- live

    def new_id(self) -> int:
        """A producer id that nobody ever had."""
        id = self._next_id
        self._write(ProducerIds(id + 1))
        return id

    def check(self, partition: int, header: BatchHeader) -> Before | None:
        """Whether a batch with a producer may be appended now. If it is there already: where."""
        id, epoch, first = header.producer_id, header.producer_epoch, header.base_sequence
        attributes = header.attributes
        if attributes & CONTROL:
            raise InvalidError("only the broker writes control batches")
        if id < 0 or epoch < 0 or first < 0 or header.last_offset_delta != header.record_count - 1:
            raise InvalidError(f"a batch of producer {id} with epoch {epoch} and sequence {first} is impossible")
        producer = self.find(partition, id)
        if producer is not None and producer.epoch == epoch:
            before = producer.find(first, last_sequence(first, header.record_count))
            if before is not None:
                return before
        if attributes & TRANSACTIONAL:
            refusal = self.belongs(id, epoch, partition)
            if refusal is not None:
                raise ProducerError(refusal, f"a batch of producer {id} is part of no open transaction")
        if producer is None:
            # Its batches may be long gone: it goes on wherever it was. But not with its second one before its first.
            expected = self._held_back.get((partition, id, epoch), first)
            if first != expected:
                raise ProducerError(
                    Refusal.OUT_OF_ORDER, f"sequence {first} of producer {id} cannot come before {expected}"
                )
            self._make_room()
            return None
        if epoch < producer.epoch:
            raise ProducerError(
                Refusal.STALE_EPOCH, f"epoch {epoch} of producer {id} is before {producer.epoch}, the last one seen"
            )
        last = producer.last_sequence if epoch == producer.epoch else -1
        if first != (last + 1) & MAX_SEQUENCE:
            raise ProducerError(
                Refusal.OUT_OF_ORDER, f"sequence {first} of producer {id} in epoch {epoch} does not follow {last}"
            )
        if producer.open_since >= 0 and not attributes & TRANSACTIONAL:
            raise ProducerError(Refusal.NOT_OPEN, f"producer {id} is in a transaction, and this batch is not")
        return None

    def hold_back(self, partition: int, id: int, epoch: int, first: int) -> None:
        """A batch is refused for now, and is to come again: those that were sent behind it may not come before it.

        Of a producer that is known its sequences see to that. This is kept in memory alone, and not of everybody.
        """
        producer = self.find(partition, id)
        if producer is None:
            self._held_back.setdefault((partition, id, epoch), first)
            if len(self._held_back) > _MOST_HELD_BACK:
                del self._held_back[next(iter(self._held_back))]

    def poll(self, now_ms: int) -> None:
        """Begin a new period when it is time, and forget who was last seen long ago."""
        if self._count:
            self._keep_time(now_ms)

    def expect(self) -> None:
        """A producer that is not known may be taken next: it must be seen in the present period."""
        self._keep_time(self._clock.now_ms())

    def _make_room(self) -> None:
        self.expect()
        if self._count < self._most:
            return
        seen = (producer for period in sorted(self._seen) for producer in self._seen[period])
        idle = ((producer.partition, producer.id) for producer in seen if producer.open_since < 0)
        oldest = tuple(islice(idle, min(_FORGOTTEN_AT_ONCE, self._most // 2 + 1)))
        if not oldest:
            raise ProducerError(
                Refusal.TOO_MANY, f"{self._count} producers are in transactions, as many as there may be"
            )
        self._write(Forget(oldest))

    def _keep_time(self, now_ms: int) -> None:
        if now_ms - self._period_ms >= self._length_ms:
            self._write(Period(now_ms, now_ms - self._expiration_ms - self._length_ms))

    def _write(self, entry: ProducerIds | Period | Forget) -> None:
        self._storage.add(EntryKind.TRANSACTION, 0, encode(entry))
        self.apply(entry)

    # -- live and replay

    def take(self, partition: int, header: BatchHeader, base: int, timestamp_ms: int, marker: Marker | None) -> None:
        """A producer's batch was stored from offset base on. A control batch that is no marker changes nothing."""
        if header.is_control and marker is None:
            return
        log = self._logs.get(partition)
        if log is None:
            log = self._logs[partition] = _Log()
        producer = log.producers.get(header.producer_id)
        if producer is None:
            self._held_back.pop((partition, header.producer_id, header.producer_epoch), None)
            producer = log.producers[header.producer_id] = Producer(partition, header.producer_id)
            producer.period_ms = self._period_ms
            self._seen.setdefault(self._period_ms, {})[producer] = None
            self._count += 1
        elif producer.period_ms != self._period_ms:
            self._see(producer)
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches = b""
        producer.timestamp_ms = timestamp_ms
        if not producer.changed:
            producer.changed = True
            self._changed.append(producer)
        if marker is not None:
            producer.coordinator_epoch = marker.coordinator_epoch
            self._end(log, producer, base, marker)
            return
        first = header.base_sequence
        packed = _BATCH.pack(base, first, last_sequence(first, header.last_offset_delta + 1), timestamp_ms)
        producer.batches = producer.batches[_OLDER:] + packed
        if header.is_transactional and producer.open_since < 0:
            producer.open_since = log.open[producer.id] = base

    def _end(self, log: _Log, producer: Producer, offset: int, marker: Marker) -> None:
        first, producer.open_since = producer.open_since, -1
        if first < 0:
            return
        del log.open[producer.id]
        if not marker.committed:
            self._trim(producer.partition, log)
            log.abort(producer.id, first, offset, next(iter(log.open.values()), offset + 1))
            log.unsaved += 1
            self._aborted_changed[producer.partition] = None

    def _trim(self, partition: int, log: _Log) -> None:
        for last in log.trim(self._storage.partition(partition).log_start):
            self._aborted_removed.append((partition, last))

    def _see(self, producer: Producer) -> None:
        before = self._seen[producer.period_ms]
        del before[producer]
        if not before:
            del self._seen[producer.period_ms]
        producer.period_ms = self._period_ms
        self._seen.setdefault(self._period_ms, {})[producer] = None

    def apply(self, entry: ProducerIds | Period | Forget) -> None:
        if isinstance(entry, ProducerIds):
            self._next_id = max(self._next_id, entry.next)
        elif isinstance(entry, Period):
            self._period_ms = entry.began_ms
            for period in sorted(self._seen):
                if period < min(entry.forget_before_ms, self._period_ms):
                    for producer in list(self._seen[period]):
                        if producer.open_since < 0:
                            self._forget(producer)
                        else:
                            self._see(producer)
                            self._change(producer)
        else:
            for partition, id in entry.producers:
                found = self.find(partition, id)
                if found is not None:
                    self._forget(found)
        self._marks_changed = True

    def _change(self, producer: Producer) -> None:
        if not producer.changed:
            producer.changed = True
            self._changed.append(producer)

    def _forget(self, producer: Producer) -> None:
        self._unsee(producer)
        log = self._logs[producer.partition]
        del log.producers[producer.id]
        log.open.pop(producer.id, None)
        self._removed.append((producer.partition, producer.id))
        if not log.producers and not log.lasts:
            del self._logs[producer.partition]

    def _unsee(self, producer: Producer) -> None:
        seen = self._seen[producer.period_ms]
        del seen[producer]
        if not seen:
            del self._seen[producer.period_ms]
        self._count -= 1

    def drop_partition(self, partition: int) -> None:
        """The partition is gone, as an entry of the catalog says."""
        log = self._logs.pop(partition, None)
        if log is not None:
            for producer in log.producers.values():
                self._unsee(producer)
            self._removed.append((partition,))
            self._aborted_removed.append((partition,))
            self._aborted_changed.pop(partition, None)

    # -- looking, for tests and people

    def snapshot(self) -> dict[str, object]:
        """Everything that survives, for comparing."""
        for partition, log in self._logs.items():
            self._trim(partition, log)
        rows = sorted(producer.row() for log in self._logs.values() for producer in log.producers.values())
        return {
            "next": self._next_id,
            "period": self._period_ms,
            "producers": rows,
            "open": {partition: list(log.open.items()) for partition, log in sorted(self._logs.items()) if log.open},
            "aborted": {
                partition: list(zip(log.ids, log.firsts, log.lasts, log.stables, strict=True))
                for partition, log in sorted(self._logs.items())
                if log.lasts
            },
        }


class _ProducerRows:
    table = Table(
        "producers",
        (
            ("partition", "INTEGER"),
            ("producer_id", "INTEGER"),
            ("epoch", "INTEGER"),
            ("coordinator_epoch", "INTEGER"),
            ("timestamp_ms", "INTEGER"),
            ("open_since", "INTEGER"),
            ("period_ms", "INTEGER"),
            ("batches", "BLOB"),
        ),
        keys=2,
    )

    def __init__(self, producers: Producers) -> None:
        self._producers = producers

    def take_changes(self) -> Changes:
        producers = self._producers
        changes = Changes(removals=producers._removed)
        producers._removed = []
        changed, producers._changed = producers._changed, []
        for producer in changed:
            producer.changed = False
            if producers.find(producer.partition, producer.id) is producer:
                changes.rows.append(producer.row())
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        producers = self._producers
        for row in rows:
            *numbers, batches = row
            partition, id, epoch, coordinator_epoch, timestamp_ms, open_since, period_ms = _whole(numbers)
            if not isinstance(batches, bytes) or len(batches) % _BATCH.size:
                raise FormatError(f"the row of producer {id} in partition {partition} holds no batches")
            producer = Producer(partition, id)
            producer.epoch, producer.coordinator_epoch, producer.timestamp_ms = epoch, coordinator_epoch, timestamp_ms
            producer.open_since, producer.period_ms, producer.batches = open_since, period_ms, batches
            log = producers._logs.setdefault(partition, _Log())
            log.producers[id] = producer
            if open_since >= 0:
                log.open[id] = open_since
            producers._seen.setdefault(period_ms, {})[producer] = None
            producers._count += 1
        for log in producers._logs.values():
            if len(log.open) > 1:
                log.open = dict(sorted(log.open.items(), key=lambda item: item[1]))


class _AbortedRows:
    table = Table(
        "aborted",
        (
            ("partition", "INTEGER"),
            ("last_offset", "INTEGER"),
            ("producer_id", "INTEGER"),
            ("first_offset", "INTEGER"),
            ("stable_offset", "INTEGER"),
        ),
        keys=2,
    )

    def __init__(self, producers: Producers) -> None:
        self._producers = producers

    def take_changes(self) -> Changes:
        producers = self._producers
        changes = Changes()
        for partition in producers._aborted_changed:
            log = producers._logs.get(partition)
            if log is None:
                continue
            producers._trim(partition, log)
            for at in range(len(log.lasts) - log.unsaved, len(log.lasts)):
                changes.rows.append((partition, log.lasts[at], log.ids[at], log.firsts[at], log.stables[at]))
            log.unsaved = 0
        producers._aborted_changed.clear()
        changes.removals, producers._aborted_removed = producers._aborted_removed, []
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for row in rows:
            partition, last, id, first, stable = _whole(row)
            self._producers._logs.setdefault(partition, _Log()).abort(id, first, last, stable)


class _Marks:
    table = Table("producer_marks", (("name", "TEXT"), ("value", "INTEGER")))

    def __init__(self, producers: Producers) -> None:
        self._producers = producers

    def take_changes(self) -> Changes:
        producers = self._producers
        if not producers._marks_changed:
            return Changes()
        producers._marks_changed = False
        return Changes(rows=[("next_id", producers._next_id), ("period_ms", producers._period_ms)])

    def load(self, rows: Iterable[Row]) -> None:
        marks = {name: value for name, value in rows if isinstance(value, int)}
        if marks:
            self._producers._next_id, self._producers._period_ms = marks["next_id"], marks["period_ms"]


def _whole(values: Iterable[object]) -> Iterator[int]:
    for value in values:
        if not isinstance(value, int):
            raise FormatError("a row of producers holds no number where one must be")
        yield value
