"""Topics: partitions that are read by offset.

Comes in: records, or batches that are ready, for one partition of a topic. Goes out: their offsets at once, batches
stamped with offset and epoch into the tick, slices of what was written, and a call to those who wait for more.

Offsets are given when a message is appended; it can be read once its tick is committed. Records appended one by one
are gathered, and become one batch a partition in `flush`, before the commit; `committed`, after it, calls those who
wait. Which partition a record belongs to is the caller's business.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from interlog.base.clock import Clock
from interlog.base.errors import InvalidError, LimitError, NotFoundError, OffsetOutOfRangeError, TimestampError
from interlog.core import markers
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, ObjectItem, Settings, TopicItem, What
from interlog.core.committed import Committed
from interlog.core.policies import Policies
from interlog.core.producers import Producers
from interlog.core.retention import Retention
from interlog.core.topic_defaults import KIND as DEFAULTS
from interlog.core.topic_defaults import all_defaults
from interlog.core.topic_settings import TopicSettings, check_settings, settings_of
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec
from interlog.journal.files import Buffer
from interlog.journal.partition import Partition, Slice
from interlog.journal.record import Record

GATHER_RECORDS: Final = 10_000  # one batch of gathered records holds at most so many,
GATHER_BYTES: Final = 1 << 20  # and about so many bytes
_RECORD_OVERHEAD: Final = 40  # the most that lengths and deltas take beside a record's bytes, and per header
_MAX_OFFSET: Final = (1 << 63) - 1
_SPECIAL: Final = batches.TRANSACTIONAL | batches.CONTROL

Wake = Callable[[], None]


class Storage(Protocol):
    @property
    def epoch(self) -> int: ...
    def partition(self, partition: int) -> Partition: ...
    def add_batch(
        self,
        partition: int,
        batch: bytes,
        base: int,
        last: int,
        max_timestamp_ms: int,
        *,
        strict: bool | None = None,
    ) -> None: ...
    def set_log_start(self, partition: int, offset: int) -> None: ...
    def read_records(
        self, partition: int, offset: int, max_bytes: int, wants: Callable[[batches.BatchHeader], bool]
    ) -> Iterator[tuple[int, Record]]: ...


@dataclass(frozen=True, slots=True)
class Appended:
    base: int
    last: int
    append_time_ms: int  # -1 where records keep the time they came with


class Watch:
    """One who waits for a partition to grow. Called once, or never if it is cancelled before."""

    __slots__ = ("_log", "wake")

    def __init__(self, log: "_Log", wake: Wake) -> None:
        self._log = log
        self.wake = wake

    def cancel(self) -> None:
        self._log.watches.pop(self, None)


class _Log:
    """What one partition needs beside what the storage knows of it."""

    __slots__ = ("append_time_ms", "bytes", "codec", "next", "partition", "records", "strict", "watches")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.next = partition.log_end  # ahead of the log's end by what the tick under way appends
        self.records: list[Record] = []  # gathered: the last ones before `next`
        self.bytes = 0
        self.append_time_ms = -1  # of the gathered ones, where the broker's time counts
        self.codec = Codec.NONE  # that they will be packed with
        self.strict: bool | None = None  # whether they last only once they are synced; None: as the broker's do
        self.watches: dict[Watch, None] = {}


class Topic:
    """One topic, as long as it is there; what it is called and set to is in `item`."""

    __slots__ = ("_logs", "_topics", "item", "settings")

    def __init__(self, topics: "Topics", item: TopicItem) -> None:
        self._topics = topics
        self._logs: list[_Log] = []
        self.change(item)

    def change(self, item: TopicItem) -> None:
        self.item = item
        self.settings: TopicSettings = settings_of(
            item.settings, None, all_defaults(self._topics.catalog, item.namespace)
        )
        for partition in item.partitions[len(self._logs) :]:
            self._logs.append(_Log(self._topics.storage.partition(partition)))

    def __len__(self) -> int:
        return len(self._logs)

    def _log(self, index: int) -> _Log:
        if not 0 <= index < len(self._logs):
            raise NotFoundError(f"topic {self.item.name} has {len(self._logs)} partitions, and none of number {index}")
        return self._logs[index]

    # -- writing

    def append_batch(self, index: int, batch: Buffer) -> Appended:
        """Append one ready batch, which is checked and not unpacked. FormatError or LimitError if it is refused."""
        log = self._log(index)
        header = batches.check(batch, 0, self.settings.max_message_bytes)
        if header.length != len(batch):
            raise InvalidError(f"one batch of {header.length} bytes was expected; there are {len(batch)}")
        if not header.record_count:
            raise InvalidError("a batch without records cannot be appended")
        topics = self._topics
        producer = header.producer_id >= 0
        if producer or header.attributes & _SPECIAL:
            before = topics.producers.check(log.partition.id, header)
            if before is not None:
                return Appended(before.base, before.last, before.timestamp_ms if self.settings.append_time else -1)
        if log.records:
            topics.write(log)
        base = log.next
        last = base + header.last_offset_delta
        newest_ms, append_time_ms = header.max_timestamp_ms, -1
        if last >= _MAX_OFFSET:
            raise LimitError(f"the offsets of topic {self.item.name} are used up")
        settings = self.settings
        if settings.append_time:
            newest_ms = append_time_ms = topics.clock.now_ms()
            batch = batches.set_log_append_time(batch, append_time_ms)
        elif header.log_append_time:
            raise InvalidError("a batch cannot come with the broker's time: this topic keeps the time of its records")
        elif not settings.in_time(header.base_timestamp_ms, newest_ms, topics.clock.now_ms()):
            raise TimestampError(
                f"records from {header.base_timestamp_ms} to {newest_ms} (milliseconds since 1970) are too far from "
                f"the broker's time for topic {self.item.name}, which takes what is at most {settings.past_ms} ms old "
                f"and {settings.future_ms} ms ahead"
            )
        if settings.codec is not None:
            batch = batches.repack(batch, settings.codec)
        storage = topics.storage
        stamped = batches.stamp(batch, base, storage.epoch)
        storage.add_batch(log.partition.id, stamped, base, last, newest_ms, strict=settings.strict)
        if producer:
            topics.producers.take(log.partition.id, header, base, newest_ms, None)
        log.next = last + 1
        topics.grown[log] = None
        return Appended(base, last, append_time_ms)

    def append_marker(self, index: int, batch: bytes) -> None:
        """Append the end of a transaction, made by `markers.encode`."""
        log = self._log(index)
        topics = self._topics
        if log.records:
            topics.write(log)
        header = batches.read_header(batch)
        base, partition = log.next, log.partition.id
        topics.producers.expect()
        stamped = batches.stamp(batch, base, topics.storage.epoch)
        topics.storage.add_batch(partition, stamped, base, base, header.max_timestamp_ms)
        topics.producers.take(partition, header, base, header.max_timestamp_ms, markers.read(batch))
        log.next = base + 1
        topics.grown[log] = None

    def append(self, index: int, records: Sequence[Record]) -> Appended:
        """Append records; they share a batch with others of the tick. LimitError if one alone is too large."""
        log = self._log(index)
        if not records:
            raise InvalidError("there is no record to append")
        topics, settings = self._topics, self.settings
        sizes = [_size(record) for record in records]
        room = settings.max_message_bytes - batches.HEADER_BYTES
        if max(sizes) > room:
            raise LimitError(f"a record of {max(sizes)} bytes does not fit in {settings.max_message_bytes}, the limit")
        base = log.next
        if base + len(records) >= _MAX_OFFSET:
            raise LimitError(f"the offsets of topic {self.item.name} are used up")
        room = min(room, GATHER_BYTES)
        for record, size in zip(records, sizes, strict=True):
            if log.records and (log.bytes + size > room or len(log.records) >= GATHER_RECORDS):
                topics.write(log)
            if not log.records:
                log.append_time_ms = topics.clock.now_ms() if settings.append_time else -1
                log.codec = settings.codec or Codec.NONE
                log.strict = settings.strict
            log.records.append(record)
            log.bytes += size
            log.next += 1
        topics.gathering[log] = None
        return Appended(base, log.next - 1, log.append_time_ms)

    def delete_records(self, index: int, before: int) -> int:
        """Drop what lies before an offset; with -1, all there is. The new log start, which never goes back."""
        log = self._log(index)
        partition = log.partition
        if before == -1:
            before = partition.log_end
        if not 0 <= before <= partition.log_end:
            raise OffsetOutOfRangeError(before, partition.log_start, partition.log_end)
        if before > partition.log_start:
            self._topics.storage.set_log_start(partition.id, before)
            self._topics.retention.look_at(partition.id)
        return partition.log_start

    # -- reading

    def log_start(self, index: int) -> int:
        return self._log(index).partition.log_start

    def log_end(self, index: int) -> int:
        return self._log(index).partition.log_end

    def read(self, index: int, offset: int, max_bytes: int, *, at_least_one: bool = True) -> list[Slice]:
        return self._log(index).partition.read(offset, max_bytes, at_least_one=at_least_one)

    def records(self, index: int, offset: int, max_bytes: int) -> tuple[list[tuple[int, Record]], int]:
        """Those that are committed, out of about so many bytes of batches, and the offset to read on from."""
        topics, partition = self._topics, self._log(index).partition.id
        committed = Committed(topics.producers, partition, offset)
        if not committed.may_read:
            return [], offset
        return list(topics.storage.read_records(partition, offset, max_bytes, committed.wants)), committed.next

    def offset_for_time(self, index: int, timestamp_ms: int) -> tuple[int, int] | None:
        return self._log(index).partition.offset_for_time(timestamp_ms)

    def end_offset_for_epoch(self, index: int, epoch: int) -> tuple[int, int] | None:
        return self._log(index).partition.end_offset_for_epoch(epoch)

    def watch(self, index: int, wake: Wake) -> Watch:
        """Call back once, when the partition has grown and can be read, or when the topic is gone."""
        log = self._log(index)
        watch = Watch(log, wake)
        log.watches[watch] = None
        return watch

    def close(self) -> None:
        """The topic is gone: what it gathered is not written, and nobody waits any longer."""
        for log in self._logs:
            self._topics.gathering.pop(log, None)
            self._topics.grown.pop(log, None)
        logs, self._logs = self._logs, []
        for log in logs:
            _wake(log)


class Topics:
    """All topics of a shard. Follows the catalog: it knows a topic as long as the catalog does.

    Topics are asked for once the journal is replayed: where a log ends must be known by then.
    """

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        clock: Clock,
        producers: Producers,
        policies: Policies | None = None,
    ) -> None:
        self.storage = storage
        self.clock = clock
        self.producers = producers
        self.retention = Retention(storage, catalog, Policies(catalog) if policies is None else policies)
        self.gathering: dict[_Log, None] = {}  # those that have gathered records in this tick
        self.grown: dict[_Log, None] = {}  # those that have got batches in this tick
        self.catalog = catalog
        self._topics: dict[tuple[str, str], Topic] = {}  # those that somebody asked for
        catalog.observe(self._changed)

    def create(self, namespace: str, name: str, partitions: int = 1, settings: Settings | None = None) -> Topic:
        self.catalog.create_topic(namespace, name, partitions, check_settings(settings or {}))
        return self.get(namespace, name)

    def get(self, namespace: str, name: str) -> Topic:
        key = (namespace, name)
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = Topic(self, self.catalog.topic(namespace, name))
        return topic

    def all(self, namespace: str | None = None) -> Iterator[Topic]:
        """The topics of one namespace, or of all, in order of their names."""
        return (self.get(item.namespace, item.name) for item in self.catalog.topics(namespace))

    def alter(self, namespace: str, name: str, settings: dict[str, Any]) -> Topic:
        """Put other settings in place of all those a topic has."""
        topic = self.get(namespace, name)
        self.catalog.alter(namespace, name, check_settings(settings))
        return topic

    def grow(self, namespace: str, name: str, partitions: int) -> Topic:
        self.catalog.grow_topic(namespace, name, partitions)
        return self.get(namespace, name)

    def delete(self, namespace: str, name: str) -> None:
        self.catalog.topic(namespace, name)
        self.catalog.remove(namespace, name)

    def append_marker(self, partition: int, batch: bytes) -> None:
        """Append the end of a transaction to a partition of a topic."""
        item = self.catalog.owner(partition)
        if not isinstance(item, TopicItem):
            raise NotFoundError(f"there is no partition {partition} of a topic")
        self.get(item.namespace, item.name).append_marker(item.partitions.index(partition), batch)

    def _changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, ObjectItem) and item.kind == DEFAULTS:
            for one in self._topics.values():
                if one.item.namespace == item.namespace:
                    one.change(one.item)
        if not isinstance(item, TopicItem):
            return
        key = (item.namespace, item.name)
        if change.what is What.REMOVED:
            topic = self._topics.pop(key, None)
            if topic is not None:
                topic.close()
        elif key in self._topics:
            self._topics[key].change(item)

    # -- the tick

    def flush(self) -> None:
        """Put what was gathered into the tick. Before the commit."""
        gathering, self.gathering = self.gathering, {}
        for log in gathering:
            if log.records:
                self.write(log)

    def write(self, log: _Log) -> None:
        """One batch of what a partition has gathered."""
        records, log.records, log.bytes = log.records, [], 0
        last = log.next - 1
        base = log.next - len(records)
        epoch = self.storage.epoch
        batch = batches.encode(records, base_offset=base, leader_epoch=epoch, codec=log.codec)
        newest_ms = max(record.timestamp_ms for record in records)
        if log.append_time_ms >= 0:
            newest_ms = log.append_time_ms
            batch = batches.set_log_append_time(batch, newest_ms)
        self.storage.add_batch(log.partition.id, batch, base, last, newest_ms, strict=log.strict)
        self.grown[log] = None

    def committed(self) -> None:
        """The tick can be read: call those who waited for it. After the commit."""
        grown, self.grown = self.grown, {}
        for log in grown:
            self.retention.look_at(log.partition.id)
            _wake(log)

    def retain(self, now_ms: int) -> int:
        """Move the log starts that retention lets move; how many they were."""
        return self.retention.retain(now_ms)


def _wake(log: _Log) -> None:
    watches, log.watches = log.watches, {}
    for watch in watches:
        watch.wake()


def _size(record: Record) -> int:
    """At least the bytes that a record takes in a batch."""
    size = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    for key, value in record.headers:
        size += _RECORD_OVERHEAD + len(key) + len(value or b"")
    return size
