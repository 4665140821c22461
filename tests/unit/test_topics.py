import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.base import crc32c
from interlog.base.clock import ManualClock
from interlog.base.errors import (
    ExistsError,
    FormatError,
    InterlogError,
    InvalidError,
    LimitError,
    NotFoundError,
    OffsetOutOfRangeError,
    TimestampError,
)
from interlog.core.catalog import Catalog
from interlog.core.producers import Producers
from interlog.core.retention import GRACE_MS
from interlog.core.topic_settings import check_settings, compaction_of, settings_of
from interlog.core.topics import Appended, Topic, Topics
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec
from interlog.journal.files import DiskFiles
from interlog.journal.partition import Partition, slice_bytes
from interlog.journal.record import Record
from interlog.journal.retention import retain
from interlog.journal.segment import Readers
from interlog.journal.store import LocalStore
from interlog.journal.tail import Tail

NOW_MS = 1_700_000_000_000


class FakeStorage:
    """Partitions in memory: a tick's batches are placed by `commit`, as the journal would."""

    def __init__(self, folder: Path) -> None:
        self.epoch = 7
        self.readers = Readers(LocalStore(DiskFiles(), folder))
        self.tail = Tail(1 << 30)
        self.partitions: dict[int, Partition] = {}
        self.placing: list[tuple[int, bytes, int, int, int]] = []
        self.starts: list[tuple[int, int]] = []
        self.position = 64

    def add(self, kind: int, target: int, payload: bytes) -> None:
        pass

    def create_partition(self, partition: int) -> None:
        self.partitions[partition] = Partition(
            partition, readers=self.readers, tail=self.tail, journal_file=lambda number: pytest.fail("all in memory")
        )

    def drop_partition(self, partition: int) -> None:
        del self.partitions[partition]

    def partition(self, partition: int) -> Partition:
        return self.partitions[partition]

    def add_batch(
        self, partition: int, batch: bytes, base: int, last: int, max_timestamp_ms: int, *, strict: bool | None = None
    ) -> None:
        self.placing.append((partition, batch, base, last, max_timestamp_ms))

    def read_records(
        self, partition: int, offset: int, max_bytes: int, wants: Callable[[batches.BatchHeader], bool]
    ) -> Iterator[tuple[int, Record]]:
        raise NotImplementedError

    def set_log_start(self, partition: int, offset: int) -> None:
        self.starts.append((partition, offset))
        self.partitions[partition].set_log_start(offset)

    def commit(self) -> list[tuple[int, bytes, int, int, int]]:
        placing, self.placing = self.placing, []
        for partition, batch, base, last, max_timestamp_ms in placing:
            if partition in self.partitions:
                self.partitions[partition].add(batch, base, last, max_timestamp_ms, 1, self.position)
                self.position += len(batch)
        return placing


class Rig:
    def __init__(self, folder: Path) -> None:
        self.storage = FakeStorage(folder)
        self.clock = ManualClock(NOW_MS)
        self.catalog = Catalog(self.storage)
        self.producers = Producers(self.storage, self.clock)
        self.topics = Topics(self.storage, self.catalog, self.clock, self.producers)

    def tick(self) -> list[tuple[int, bytes, int, int, int]]:
        self.topics.flush()
        placed = self.storage.commit()
        self.topics.committed()
        return placed

    def values(self, topic: Topic, index: int, offset: int = 0) -> list[tuple[int, bytes | None]]:
        data = b"".join(slice_bytes(part) for part in topic.read(index, offset, 1 << 20))
        return [
            (at, record.value)
            for position, _ in batches.batches(data)
            for at, record in batches.decode(data, position)
            if at >= offset
        ]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def record(value: bytes, timestamp_ms: int = 1000) -> Record:
    return Record(None, value, (), timestamp_ms)


def ready(*values: bytes, **fields: Any) -> bytes:
    return batches.encode([record(value) for value in values], base_offset=0, **fields)


def test_ready_batches_are_stamped_and_read_after_the_commit(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 2)
    assert len(topic) == 2
    assert topic.append_batch(0, ready(b"a", b"b")) == Appended(0, 1, -1)
    assert topic.append_batch(0, ready(b"c")) == Appended(2, 2, -1)
    assert topic.append_batch(1, ready(b"x")) == Appended(0, 0, -1)
    assert topic.log_end(0) == 0
    rig.tick()
    assert (topic.log_start(0), topic.log_end(0), topic.log_end(1)) == (0, 3, 1)
    assert rig.values(topic, 0) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert rig.values(topic, 0, 2) == [(2, b"c")]
    header = batches.check(slice_bytes(topic.read(0, 2, 1)[0]))
    assert (header.base_offset, header.leader_epoch) == (2, 7)
    assert topic.end_offset_for_epoch(0, 7) == (7, 3)
    assert topic.offset_for_time(0, 1000) == (0, 1000)
    assert topic.offset_for_time(0, 1001) is None


def test_records_of_a_tick_become_one_batch_a_partition(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 2)
    assert topic.append(0, [record(b"a")]) == Appended(0, 0, -1)
    assert topic.append(0, [record(b"b", 5000), record(b"c")]) == Appended(1, 2, -1)
    assert topic.append(1, [record(b"x")]) == Appended(0, 0, -1)
    placed = rig.tick()
    assert [(base, last, newest) for _, _, base, last, newest in placed] == [(0, 2, 5000), (0, 0, 1000)]
    assert rig.values(topic, 0) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert rig.tick() == []


def test_records_and_ready_batches_keep_their_order(rig: Rig) -> None:
    topic = rig.topics.create("/", "t")
    topic.append(0, [record(b"a")])
    assert topic.append_batch(0, ready(b"b")).base == 1
    assert topic.append(0, [record(b"c")]).base == 2
    assert len(rig.tick()) == 3
    assert [value for _, value in rig.values(topic, 0)] == [b"a", b"b", b"c"]


def test_gathered_batches_stay_within_the_limit(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 1, {"max_message_bytes": 2000})
    topic.append(0, [record(b"x" * 700) for _ in range(5)])
    placed = rig.tick()
    assert len(placed) == 3
    assert all(len(batch) <= 2000 for _, batch, *_ in placed)
    assert topic.log_end(0) == 5
    with pytest.raises(LimitError, match="does not fit in 2000"):
        topic.append(0, [record(b"fits"), record(b"x" * 2000)])
    assert rig.tick() == []


@pytest.mark.parametrize(
    ("batch", "error", "says"),
    [
        (b"", FormatError, "cut short"),
        (ready(b"a")[:-1], FormatError, "cut short"),
        (ready(b"a")[:-1] + b"!", FormatError, "CRC"),
        (ready(b"a") + ready(b"b"), InvalidError, "one batch of"),
        (ready(b"x" * 3000), LimitError, "2000, the limit"),
        (batches.set_log_append_time(ready(b"a"), 5), InvalidError, "broker's time"),
    ],
)
def test_batches_that_cannot_be_accepted_change_nothing(
    rig: Rig, batch: bytes, error: type[InterlogError], says: str
) -> None:
    topic = rig.topics.create("/", "t", 1, {"max_message_bytes": 2000})
    with pytest.raises(error, match=says):
        topic.append_batch(0, batch)
    assert rig.tick() == []
    assert topic.append_batch(0, ready(b"ok")).base == 0


def test_append_time_is_the_brokers(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 1, {"timestamp": "append"})
    assert topic.append_batch(0, ready(b"a")).append_time_ms == NOW_MS
    assert topic.append(0, [record(b"b")]).append_time_ms == NOW_MS
    rig.clock.advance(5)
    assert topic.append(0, [record(b"c")]).append_time_ms == NOW_MS
    placed = rig.tick()
    assert [newest for *_, newest in placed] == [NOW_MS, NOW_MS]
    for _, batch, *_ in placed:
        assert batches.check(batch).log_append_time
        assert {found.timestamp_ms for _, found in batches.decode(batch)} == {NOW_MS}


def test_times_too_far_from_the_brokers_are_refused(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 1, {"past_ms": 1_000, "future_ms": 50})
    for oldest_ms, newest_ms in ((NOW_MS - 1_001, NOW_MS), (NOW_MS, NOW_MS + 51)):
        batch = batches.encode([record(b"a", oldest_ms), record(b"b", newest_ms)], base_offset=0)
        with pytest.raises(TimestampError, match="at most 1000 ms old and 50 ms ahead"):
            topic.append_batch(0, batch)
    batch = batches.encode([record(b"a", NOW_MS - 1_000), record(b"b", NOW_MS + 50)], base_offset=0)
    assert topic.append_batch(0, batch).last == 1
    assert topic.append_batch(0, batches.encode([record(b"no time", -1)], base_offset=0)).last == 2
    rig.topics.alter("/", "t", {"past_ms": 1_000, "timestamp": "append"})
    assert topic.append_batch(0, ready(b"the broker's time counts")).append_time_ms == NOW_MS


def test_a_topic_may_have_a_codec_of_its_own(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 1, {"compression": "gzip"})
    topic.append_batch(0, ready(b"a" * 100, codec=Codec.ZSTD, producer_id=5, producer_epoch=1, base_sequence=9))
    topic.append_batch(0, ready(b"b" * 100, codec=Codec.GZIP))
    topic.append(0, [record(b"c" * 100)])
    placed = rig.tick()
    headers = [batches.check(batch) for _, batch, *_ in placed]
    assert [header.codec for header in headers] == [Codec.GZIP] * 3
    assert (headers[0].producer_id, headers[0].producer_epoch, headers[0].base_sequence) == (5, 1, 9)
    assert placed[1][1][61:] == ready(b"b" * 100, codec=Codec.GZIP)[61:]
    assert rig.values(topic, 0) == [(0, b"a" * 100), (1, b"b" * 100), (2, b"c" * 100)]
    rig.topics.alter("/", "t", {"compression": "uncompressed"})
    topic.append_batch(0, ready(b"d", codec=Codec.LZ4))
    assert batches.check(rig.tick()[0][1]).codec == Codec.NONE
    rig.topics.alter("/", "t", {})
    topic.append_batch(0, ready(b"e", codec=Codec.LZ4))
    assert batches.check(rig.tick()[0][1]).codec == Codec.LZ4


def test_records_that_cannot_be_packed_anew_are_refused(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 1, {"compression": "zstd"})
    damaged = bytearray(ready(b"abc"))
    damaged[batches.HEADER_BYTES] ^= 0x40  # the first record's length
    damaged[17:21] = crc32c.crc32c(bytes(damaged[21:])).to_bytes(4, "big")
    with pytest.raises(FormatError, match="record"):
        topic.append_batch(0, damaged)
    assert rig.tick() == []
    rig.topics.alter("/", "t", {})
    assert topic.append_batch(0, damaged).base == 0  # nobody looked inside


def test_watches_are_called_once_after_the_commit(rig: Rig) -> None:
    topic = rig.topics.create("/", "t", 2)
    called: list[tuple[str, int]] = []

    def wake(name: str) -> Callable[[], None]:
        return lambda: called.append((name, topic.log_end(0)))

    topic.watch(0, wake("one"))
    topic.watch(0, wake("two")).cancel()
    topic.watch(1, wake("other"))
    topic.append_batch(0, ready(b"a"))
    topic.append(0, [record(b"b")])
    assert called == []
    rig.tick()
    assert called == [("one", 2)]
    topic.append_batch(0, ready(b"c"))
    rig.tick()
    assert called == [("one", 2)]


def test_who_waits_hears_when_the_topic_goes(rig: Rig) -> None:
    topic = rig.topics.create("/", "t")
    called: list[int] = []
    topic.watch(0, lambda: called.append(1))
    topic.append(0, [record(b"never written")])
    rig.topics.delete("/", "t")
    assert called == [1]
    assert rig.tick() == []
    with pytest.raises(NotFoundError, match="none of number 0"):
        topic.append_batch(0, ready(b"a"))
    with pytest.raises(NotFoundError, match="no topic t"):
        rig.topics.get("/", "t")
    again = rig.topics.create("/", "t")
    assert again is not topic
    assert again.append_batch(0, ready(b"a")).base == 0


def test_deleting_records_moves_the_start_and_never_back(rig: Rig) -> None:
    topic = rig.topics.create("/", "t")
    for value in (b"a", b"b", b"c"):
        topic.append_batch(0, ready(value))
    rig.tick()
    assert topic.delete_records(0, 2) == 2
    assert topic.delete_records(0, 1) == 2
    assert rig.storage.starts == [(1, 2)]
    with pytest.raises(OffsetOutOfRangeError):
        topic.read(0, 1, 100)
    for beyond in (4, -2):
        with pytest.raises(OffsetOutOfRangeError):
            topic.delete_records(0, beyond)
    assert topic.delete_records(0, -1) == 3
    assert (topic.log_start(0), topic.log_end(0)) == (3, 3)
    assert topic.append_batch(0, ready(b"d")).base == 3


def test_partitions_grow_and_settings_change_under_those_who_hold_the_topic(rig: Rig) -> None:
    topic = rig.topics.create("/", "t")
    topic.append_batch(0, ready(b"a"))
    assert rig.topics.grow("/", "t", 3) is topic
    assert topic.append_batch(0, ready(b"b")).base == 1
    assert topic.append_batch(2, ready(b"x")).base == 0
    rig.topics.alter("/", "t", {"max_message_bytes": 1024})
    assert topic.settings.max_message_bytes == 1024
    with pytest.raises(InvalidError, match="can only get more"):
        rig.topics.grow("/", "t", 2)
    with pytest.raises(InvalidError, match="is not a topic setting"):
        rig.topics.alter("/", "t", {"colour": 1})
    with pytest.raises(ExistsError):
        rig.topics.create("/", "t")
    rig.catalog.create_queue("/", "q")
    with pytest.raises(NotFoundError):
        rig.topics.delete("/", "q")
    assert [found.item.name for found in rig.topics.all()] == ["t"]
    for index in (-1, 3):
        with pytest.raises(NotFoundError, match="3 partitions"):
            topic.log_end(index)


def test_retention_moves_starts_unless_the_topic_only_compacts(rig: Rig) -> None:
    old = rig.topics.create("/", "old", 1, {"retention_ms": 1000})
    kept = rig.topics.create("/", "kept", 1, {"retention_ms": 1000, "cleanup": "compact"})
    for topic in (old, kept):
        topic.append_batch(0, ready(b"a"))
    rig.tick()
    rig.topics.retain(1500)
    assert (old.log_start(0), kept.log_start(0)) == (0, 0)
    assert rig.topics.retain(NOW_MS) == 1
    assert (old.log_start(0), kept.log_start(0)) == (1, 0)
    assert rig.topics.retain(NOW_MS) == 0


def test_what_comes_too_old_stays_for_a_while_unless_settings_change(rig: Rig) -> None:
    topics = [rig.topics.create("/", name, 1, {"retention_ms": 1000}) for name in ("waits", "altered")]
    rig.topics.retain(NOW_MS)
    for topic in topics:
        topic.append_batch(0, batches.encode([record(b"v", NOW_MS - 5_000)], base_offset=0))
    rig.tick()
    assert rig.topics.retain(NOW_MS) == 0
    for later_ms in (GRACE_MS // 2, GRACE_MS - 1):
        topics[0].append_batch(0, batches.encode([record(b"v", NOW_MS - 5_000)], base_offset=0))
        rig.tick()
        assert rig.topics.retain(NOW_MS + later_ms) == 0
    rig.topics.alter("/", "altered", {"retention_ms": 500})
    assert rig.topics.retain(NOW_MS + GRACE_MS - 1) == 1
    assert rig.topics.retain(NOW_MS + GRACE_MS) == 1
    assert [topic.log_start(0) for topic in topics] == [3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_retention_looks_where_there_is_something_to_do(rig: Rig, seed: int) -> None:
    rng = random.Random(seed)
    now_ms = 1_000
    rig.topics.retention.grace_ms = 0
    for number in range(4):
        settings = {"retention_ms": rng.choice((-1, 50, 400)), "retention_bytes": rng.choice((-1, 500, 9_000))}
        rig.topics.create("/", f"t{number}", 2, settings)
    for _ in range(150):
        topic, index = rig.topics.get("/", f"t{rng.randrange(4)}"), rng.randrange(2)
        match rng.randrange(6):
            case 0:
                rig.topics.alter("/", topic.item.name, {"retention_ms": rng.choice((-1, 20, 300))})
            case 1:
                topic.delete_records(index, rng.randint(topic.log_start(index), topic.log_end(index)))
            case 2:
                now_ms += rng.randrange(200)
            case _:
                for _ in range(rng.choice((1, 3, 100))):
                    topic.append_batch(index, batches.encode([record(b"v", now_ms - rng.randrange(90))], base_offset=0))
        rig.tick()
        rig.topics.retain(now_ms)
        for other in rig.topics.all():
            for partition in map(rig.storage.partition, other.item.partitions):
                # What looking at everything would find is done already.
                kept = other.settings.retention_ms, other.settings.retention_bytes
                assert retain(partition, now_ms, *kept) is None


def test_settings_have_defaults_and_only_what_was_given_is_kept() -> None:
    assert check_settings({}) == {}
    assert check_settings({"cleanup": "delete, compact", "retention_ms": -1}) == {
        "cleanup": "delete,compact",
        "retention_ms": -1,
    }
    settings = settings_of({"cleanup": "compact,delete", "durability": "os"})
    assert settings.deletes
    assert settings.compacts
    assert settings.durability == "os"
    assert settings.retention_ms == 7 * 86_400_000
    assert not settings_of({}).compacts
    assert compaction_of({}) is None
    compaction = compaction_of({"cleanup": "compact", "delete_retention_ms": 5})
    assert compaction is not None
    assert compaction.delete_retention_ms == 5


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"retention_ms": -2}, "from -1 to"),
        ({"segment_bytes": 10}, "from 14 to 2147483647, not 10"),
        ({"segment_ms": "5"}, "whole number"),
        ({"segment_ms": True}, "whole number"),
        ({"cleanup": "shred"}, "one of delete | compact | compact,delete | delete,compact | keep, not 'shred'"),
        ({"cleanup": 5}, "one of"),
        ({"timestamp": []}, "one of create | append"),
        ({"durability": "never"}, "default | sync | os"),
        ({"compression": "best"}, "producer | uncompressed | gzip"),
        ({"past_ms": -1}, "from 0 to"),
        ({"notes": ["a"]}, "at most 100 names"),
        ({"notes": {"a": 5}}, "a name and a text"),
        ({"notes": {"a": "b" * 1_000}}, "at most 1000 letters"),
        ({"x-mine": 1}, "'x-mine' is not a topic setting; there are retention_ms, "),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidError) as refused:
        check_settings(given)
    assert says in str(refused.value)
