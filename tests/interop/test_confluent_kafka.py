"""confluent-kafka: records of every kind, places to read from, topics that forget, and the work of an administrator."""

import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from interlog.testing import RunningBroker, running
from tests.interop.confluent import (
    PATIENCE_SECONDS,
    admin_of,
    consumer_of,
    create,
    grow,
    produce,
    read,
    take,
    told,
    until,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def admin(address: str) -> AdminClient:
    return admin_of(address)


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_kind_come_back_as_they_were(address: str, codec: str) -> None:
    """Keys, headers, times, tombstones, nothing at all, and three megabytes at once."""
    at_ms = 1_700_000_000_000
    large = bytes(range(256)) * 12_288
    records: list[dict[str, Any]] = [
        {"key": b"k", "value": b"v", "timestamp": at_ms},
        {"key": b"k", "value": None, "timestamp": at_ms + 1},
        {"key": None, "value": b"", "timestamp": at_ms + 2},
        {"key": b"", "value": b"x", "timestamp": at_ms + 3, "headers": [("a", b"1"), ("a", b""), ("b", None)]},
        {"key": "ключ".encode(), "value": b"\x00\xff" * 100, "timestamp": at_ms + 4, "headers": [("имя", b"\x00\xff")]},
        {"key": b"large", "value": large, "timestamp": at_ms + 5},
    ]
    create(address, codec, 3, {"max.message.bytes": "4000000"})
    sent = produce(
        address,
        codec,
        [{**record, "partition": 1} for record in records],
        **{"compression.type": codec, "message.max.bytes": 4_000_000},
    )
    assert [message.offset() for message in sent] == list(range(len(records)))
    found = read(address, codec, len(records), partitions=[1])
    for offset, (record, message) in enumerate(zip(records, found, strict=True)):
        assert (message.partition(), message.offset()) == (1, offset)
        assert (message.key(), message.value()) == (record["key"], record["value"])
        assert message.timestamp() == (ck.TIMESTAMP_CREATE_TIME, record["timestamp"])
        assert (message.headers() or []) == record.get("headers", [])


def test_what_is_too_large_is_refused_and_what_follows_is_not(address: str) -> None:
    create(address, "small", config={"max.message.bytes": "2000"})
    refused: list[int] = []
    producer = ck.Producer(told(address))

    def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is not None:
            refused.append(error.code())

    producer.produce("small", bytes(5_000), on_delivery=delivered)
    assert producer.flush(PATIENCE_SECONDS) == 0
    producer.produce("small", b"fits", on_delivery=delivered)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert refused == [ck.KafkaError.MSG_SIZE_TOO_LARGE]
    assert [message.value() for message in read(address, "small", 1)] == [b"fits"]


def test_a_message_of_twenty_megabytes_beside_small_ones(address: str) -> None:
    large = bytes(range(256)) * (20 << 12)
    create(address, "large", config={"max.message.bytes": str(30 << 20)})
    values = [b"before", large, b"after"]
    produce(address, "large", ({"value": value} for value in values), **{"message.max.bytes": 30 << 20, "linger.ms": 0})
    settings: dict[str, Any] = {"fetch_max_bytes": 40 << 20, "receive_message_max_bytes": 60 << 20}
    assert [one.value() for one in read(address, "large", 3, **settings)] == values


def test_many_partitions_keep_the_order_of_each_key(address: str) -> None:
    create(address, "wide", 50)
    produce(address, "wide", ({"key": b"key-%d" % (n % 200), "value": b"%d" % n} for n in range(5_000)))
    found = read(address, "wide", 5_000, partitions=range(50))
    assert sorted(int(message.value() or b"") for message in found) == list(range(5_000))
    by_key: dict[bytes | None, list[int]] = {}
    where: dict[bytes | None, set[int | None]] = {}
    for message in found:
        by_key.setdefault(message.key(), []).append(int(message.value() or b""))
        where.setdefault(message.key(), set()).add(message.partition())
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    assert all(len(partitions) == 1 for partitions in where.values())


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_acknowledgements(address: str, acks: str, idempotent: bool) -> None:
    if idempotent and acks != "all":
        pytest.skip("librdkafka asks for all of them then")
    topic = f"acks-{acks}"
    settings = {"acks": acks, "enable.idempotence": idempotent, "max.in.flight": 5}
    produce(address, topic, ({"value": b"%d" % n} for n in range(1_000)), **settings)
    assert [int(one.value() or b"") for one in read(address, topic, 1_000)] == list(range(1_000))


def test_where_reading_begins(address: str) -> None:
    """earliest, latest, an offset that is gone, no reset at all, a time."""
    create(address, "log", config={"message.timestamp.type": "CreateTime"})
    at_ms = 1_700_000_000_000
    produce(address, "log", ({"value": b"%d" % n, "timestamp": at_ms + n * 1_000} for n in range(10)))
    with consumer_of(address, "earliest", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["log"])
        assert [one.value() for one in take(consumer, 10)] == [b"%d" % n for n in range(10)]
    with consumer_of(address, "latest", auto_offset_reset="latest", enable_partition_eof=True) as consumer:
        consumer.subscribe(["log"])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None and (error.code(), message.offset()) == (ck.KafkaError._PARTITION_EOF, 10)
        produce(address, "log", [{"value": b"new", "timestamp": at_ms + 10_000}])
        assert [one.value() for one in take(consumer, 1)] == [b"new"]
    with consumer_of(address, "none", auto_offset_reset="error") as consumer:
        consumer.subscribe(["log"])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == ck.KafkaError._AUTO_OFFSET_RESET
    with consumer_of(address, "times") as consumer:
        asked = [ck.TopicPartition("log", 0, at_ms + wanted) for wanted in (0, 4_500, 10_000, 99_000_000)]
        found = [consumer.offsets_for_times([one], PATIENCE_SECONDS)[0].offset for one in asked]
        assert found == [0, 5, 10, ck.OFFSET_END]
        consumer.assign([ck.TopicPartition("log", 0, 5)])
        assert [one.value() for one in take(consumer, 2)] == [b"5", b"6"]
        assert consumer.get_watermark_offsets(ck.TopicPartition("log", 0), PATIENCE_SECONDS) == (0, 11)


def test_pause_resume_seek_and_commit_by_hand(address: str) -> None:
    create(address, "log", 2)
    produce(address, "log", ({"value": b"%d" % n, "partition": n % 2} for n in range(20)))
    zero, one = ck.TopicPartition("log", 0), ck.TopicPartition("log", 1)
    with consumer_of(address, "g", enable_auto_commit=False) as consumer:
        consumer.assign([ck.TopicPartition("log", 0, 0), ck.TopicPartition("log", 1, 0)])
        consumer.pause([one])
        assert [message.partition() for message in take(consumer, 10)] == [0] * 10
        assert consumer.poll(0.2) is None
        consumer.resume([one])
        assert [message.partition() for message in take(consumer, 10)] == [1] * 10
        consumer.seek(ck.TopicPartition("log", 0, 7))
        assert [message.offset() for message in take(consumer, 3)] == [7, 8, 9]
        done = consumer.commit(
            offsets=[ck.TopicPartition("log", 0, 8, metadata="half way"), ck.TopicPartition("log", 1, 3)],
            asynchronous=False,
        )
        assert [part.error for part in done] == [None, None]
    with consumer_of(address, "g", enable_auto_commit=False) as consumer:
        committed = consumer.committed([zero, one], PATIENCE_SECONDS)
        assert [(part.offset, part.metadata) for part in committed] == [(8, "half way"), (3, None)]
        consumer.subscribe(["log"])
        found = take(consumer, 9)
        assert sorted((message.partition(), message.offset()) for message in found) == [
            *((0, offset) for offset in (8, 9)),
            *((1, offset) for offset in range(3, 10)),
        ]


def test_topics_by_a_pattern_and_one_that_is_made_later(address: str) -> None:
    produce(address, "logs.web", [{"value": b"web"}])
    produce(address, "other", [{"value": b"other"}])
    with consumer_of(address, "g", topic_metadata_refresh_interval_ms=200) as consumer:
        consumer.subscribe(["^logs\\..*"])
        assert [one.value() for one in take(consumer, 1)] == [b"web"]
        produce(address, "logs.db", [{"value": b"db"}])
        assert [one.value() for one in take(consumer, 1)] == [b"db"]


@pytest.fixture(scope="module")
def forgetful() -> Iterator[RunningBroker]:
    """One whose journal files are small and closed soon."""
    with running(journal_file_bytes="1MiB", journal_roll_ms="1s") as broker:
        yield broker


def test_compaction_as_a_consumer_sees_it(forgetful: RunningBroker) -> None:
    """The last of each key stays, with its offset; what was deleted goes, tombstone and all."""
    address = forgetful.kafka_address
    settings = {
        "cleanup.policy": "compact",
        "segment.ms": "1",
        "segment.bytes": "100000",
        "min.cleanable.dirty.ratio": "0",
        "delete.retention.ms": "0",
    }
    create(address, "table", config=settings)
    rounds = 5
    for turn in range(rounds):
        produce(address, "table", ({"key": b"%d" % n, "value": b"%d" % turn + bytes(5_000)} for n in range(100)))
    produce(address, "table", ({"key": b"%d" % n, "value": None} for n in range(50)))

    def compacted() -> bool:
        produce(address, "table", [{"key": b"filler", "value": bytes(100_000)}] * 3)
        forgetful.call(lambda core: setattr(core._housekeeper, "_look_due_ms", 0))  # else it looks every ten seconds
        messages = _all(address, "table")
        alive = [message for message in messages if message.key() != b"filler"]
        return len(alive) < 100

    until(compacted, "the old values go")
    messages = [message for message in _all(address, "table") if message.key() != b"filler"]
    assert {int(message.key() or b""): (message.value() or b"")[:1] for message in messages} == dict.fromkeys(
        range(50, 100), b"4"
    )
    assert [message.offset() for message in messages] == [(rounds - 1) * 100 + n for n in range(50, 100)]


def test_retention_as_a_consumer_sees_it(forgetful: RunningBroker) -> None:
    address = forgetful.kafka_address
    settings = {"retention.bytes": "200000", "segment.bytes": "100000", "segment.ms": "1000"}
    create(address, "brief", config=settings)
    with consumer_of(address, "watch") as consumer:
        partition = ck.TopicPartition("brief", 0)

        def retained() -> bool:
            produce(address, "brief", ({"value": bytes(10_000)} for _ in range(50)))
            return consumer.get_watermark_offsets(partition, PATIENCE_SECONDS)[0] > 0

        until(retained, "the oldest go")
        low, high = consumer.get_watermark_offsets(partition, PATIENCE_SECONDS)
        assert high % 50 == 0 and low < high
        consumer.assign([ck.TopicPartition("brief", 0, 0)])  # out of range: auto.offset.reset decides
        assert (take(consumer, 1)[0].offset() or 0) >= low


def _all(address: str, topic: str) -> list[ck.Message]:
    """All that can be read now, from the only partition."""
    found: list[ck.Message] = []
    with consumer_of(address, "all", enable_partition_eof=True) as consumer:
        consumer.assign([ck.TopicPartition(topic, 0, ck.OFFSET_BEGINNING)])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                assert error.code() == ck.KafkaError._PARTITION_EOF
                return found
            found.append(message)
    raise AssertionError("the end never came")


def test_an_administrator_and_topics(address: str, admin: AdminClient) -> None:
    create(address, "orders", 3, {"retention.ms": "3600000"})
    with pytest.raises(ck.KafkaException) as caught:
        create(address, "orders")
    assert caught.value.args[0].code() == ck.KafkaError.TOPIC_ALREADY_EXISTS
    with pytest.raises(ck.KafkaException) as caught:
        create(address, "bad", config={"cleanup.policy": "burn"})
    assert caught.value.args[0].code() == ck.KafkaError.INVALID_CONFIG
    with pytest.raises(ck.KafkaException) as caught:
        create(address, "no/such name")
    assert caught.value.args[0].code() == ck.KafkaError.TOPIC_EXCEPTION

    described = admin.describe_topics(ck.TopicCollection(["orders"]))["orders"].result(PATIENCE_SECONDS)
    assert described.name == "orders" and not described.is_internal and len(described.partitions) == 3
    assert {(one.leader.id, len(one.replicas), len(one.isr)) for one in described.partitions} == {(0, 1, 1)}
    grow(address, "orders", 5)
    metadata = admin.list_topics("orders", PATIENCE_SECONDS)
    assert len(metadata.topics["orders"].partitions) == 5
    with pytest.raises(ck.KafkaException) as caught:
        grow(address, "orders", 2)
    assert caught.value.args[0].code() == ck.KafkaError.INVALID_PARTITIONS

    admin.delete_topics(["orders"])["orders"].result(PATIENCE_SECONDS)
    assert "orders" not in admin.list_topics(timeout=PATIENCE_SECONDS).topics
    with pytest.raises(ck.KafkaException) as caught:
        admin.delete_topics(["orders"])["orders"].result(PATIENCE_SECONDS)
    assert caught.value.args[0].code() == ck.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_an_administrator_and_settings(address: str, admin: AdminClient) -> None:
    create(address, "orders", 1, {"retention.ms": "3600000"})
    resource = ConfigResource(ResourceType.TOPIC, "orders")

    def configs() -> dict[str, str]:
        (future,) = admin.describe_configs([resource]).values()
        return {name: entry.value for name, entry in future.result(PATIENCE_SECONDS).items()}

    assert configs()["retention.ms"] == "3600000" and configs()["cleanup.policy"] == "delete"
    change = ConfigResource(
        ResourceType.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry("max.message.bytes", "5000", incremental_operation=AlterConfigOpType.SET),
        ],
    )
    (future,) = admin.incremental_alter_configs([change]).values()
    future.result(PATIENCE_SECONDS)
    now = configs()
    assert (now["cleanup.policy"], now["max.message.bytes"]) == ("delete,compact", "5000")
    assert now["retention.ms"] == "604800000"
    (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]).values()
    assert future.result(PATIENCE_SECONDS)["auto.create.topics.enable"].value == "true"


def test_an_administrator_and_what_is_in_topics(address: str, admin: AdminClient) -> None:
    produce(address, "log", ({"value": b"%d" % n, "timestamp": 1_700_000_000_000 + n} for n in range(10)))
    partition = ck.TopicPartition("log", 0)

    def offset(spec: OffsetSpec) -> int:
        (future,) = admin.list_offsets({partition: spec}).values()
        found: int = future.result(PATIENCE_SECONDS).offset
        return found

    specs = [OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.for_timestamp(1_700_000_000_003)]
    assert [offset(spec) for spec in [*specs, OffsetSpec.max_timestamp()]] == [0, 10, 3, 9]
    (future,) = admin.delete_records([ck.TopicPartition("log", 0, 4)]).values()
    assert future.result(PATIENCE_SECONDS).low_watermark == 4
    assert offset(OffsetSpec.earliest()) == 4
    assert [one.value() for one in read(address, "log", 6)] == [b"%d" % n for n in range(4, 10)]


def test_an_administrator_and_groups(address: str, admin: AdminClient) -> None:
    produce(address, "log", [{"value": b"x"}] * 10)
    with consumer_of(address, "readers", client_id="reader-1") as consumer:
        consumer.subscribe(["log"])
        take(consumer, 10)
        consumer.commit(asynchronous=False)
        listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
        assert [(group.group_id, group.state.name) for group in listed.valid] == [("readers", "STABLE")]
        described = admin.describe_consumer_groups(["readers"])["readers"].result(PATIENCE_SECONDS)
        (member,) = described.members
        assert (described.state.name, member.client_id, member.host) == ("STABLE", "reader-1", "/127.0.0.1")
        assert [(one.topic, one.partition) for one in member.assignment.topic_partitions] == [("log", 0)]
        with pytest.raises(ck.KafkaException) as caught:
            admin.delete_consumer_groups(["readers"])["readers"].result(PATIENCE_SECONDS)
        assert caught.value.args[0].code() == ck.KafkaError.NON_EMPTY_GROUP

    def committed() -> list[tuple[str, int, int]]:
        asked = [ConsumerGroupTopicPartitions("readers")]
        found = admin.list_consumer_group_offsets(asked)["readers"].result(PATIENCE_SECONDS)
        return [(one.topic, one.partition, one.offset) for one in found.topic_partitions]

    assert committed() == [("log", 0, 10)]
    change = ConsumerGroupTopicPartitions("readers", [ck.TopicPartition("log", 0, 3)])
    admin.alter_consumer_group_offsets([change])["readers"].result(PATIENCE_SECONDS)
    assert committed() == [("log", 0, 3)]
    admin.delete_consumer_groups(["readers"])["readers"].result(PATIENCE_SECONDS)
    assert admin.list_consumer_groups().result(PATIENCE_SECONDS).valid == []


def test_an_administrator_and_the_cluster(address: str, admin: AdminClient) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_SECONDS)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [address]
    assert cluster.controller.id == cluster.nodes[0].id and cluster.cluster_id
