"""kafka-python: records, groups in threads, transactions, and the widest administrator of the Python clients."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import kafka
import kafka.errors
import pytest
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

PATIENCE_SECONDS = 15
QUICK = {"session_timeout_ms": 1_000, "heartbeat_interval_ms": 100, "fetch_max_wait_ms": 100, "retry_backoff_ms": 20}
PARTITION = kafka.TopicPartition("log", 0)


@pytest.fixture
def admin(address: str) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
        yield admin


@contextmanager
def producer_of(address: str, **settings: Any) -> Iterator[kafka.KafkaProducer]:
    producer = kafka.KafkaProducer(bootstrap_servers=address, retry_backoff_ms=20, **settings)
    try:
        yield producer
    finally:
        producer.close(timeout=1)


@contextmanager
def consumer_of(address: str, *topics: str, group: str | None = "g", **settings: Any) -> Iterator[kafka.KafkaConsumer]:
    more = {"auto_offset_reset": "earliest", "consumer_timeout_ms": PATIENCE_SECONDS * 1_000, **QUICK, **settings}
    consumer = kafka.KafkaConsumer(*topics, bootstrap_servers=address, group_id=group, **more)
    try:
        yield consumer
    finally:
        consumer.close(autocommit=False)


def take(consumer: kafka.KafkaConsumer, count: int) -> list[Any]:
    found = []
    for message in consumer:
        found.append(message)
        if len(found) == count:
            break
    assert len(found) == count, f"{len(found)} of {count} came"
    return found


def send(producer: kafka.KafkaProducer, topic: str, values: list[bytes], **more: Any) -> None:
    for sent in [producer.send(topic, value, **more) for value in values]:
        sent.get(PATIENCE_SECONDS)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_records_come_back_as_they_were(
    address: str, admin: KafkaAdminClient, codec: str | None, idempotent: bool
) -> None:
    admin.create_topics([NewTopic("log", 2, 1, topic_configs={"max.message.bytes": "3000000"})])
    large = bytes(range(256)) * 8_000
    records: list[dict[str, Any]] = [
        {"value": b"v", "key": b"k", "timestamp_ms": 1_700_000_000_000},
        {"value": None, "key": b"gone"},
        {"value": b"", "key": b"h", "headers": [("a", b"1"), ("a", b"\xff")]},
        {"value": large, "key": b"large"},
    ]
    settings = {"compression_type": codec, "enable_idempotence": idempotent, "max_request_size": 3_000_000}
    with producer_of(address, **settings) as producer:
        for offset, record in enumerate(records):
            assert producer.send("log", partition=1, **record).get(PATIENCE_SECONDS).offset == offset
    with consumer_of(address, group=None) as consumer:
        partition = kafka.TopicPartition("log", 1)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found = take(consumer, len(records))
    assert [(one.key, one.value, list(one.headers)) for one in found] == [
        (record["key"], record["value"], record.get("headers", [])) for record in records
    ]
    assert found[0].timestamp == 1_700_000_000_000


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, StickyPartitionAssignor])
def test_a_group_of_threads(address: str, admin: KafkaAdminClient, assignor: type) -> None:
    """Three members, of which one leaves in the middle; positions are committed as they go."""
    admin.create_topics([NewTopic("log", 6, 1)])
    count = 600
    done: Counter[int] = Counter()
    shares: dict[int, int] = {}
    lock, stop, leave = threading.Lock(), threading.Event(), threading.Event()

    def work(number: int) -> None:
        settings: dict[str, Any] = {"partition_assignment_strategy": [assignor], "enable_auto_commit": False}
        with consumer_of(address, "log", **settings) as consumer:
            while not stop.is_set() and not (number == 0 and leave.is_set()):
                # A poll that ends while the member joins can leave this client without heartbeats: give it time.
                batches = consumer.poll(timeout_ms=500)
                with lock:
                    shares[number] = len(consumer.assignment())
                    for messages in batches.values():
                        done.update(int(message.value) for message in messages)
                if batches:
                    try:
                        consumer.commit()
                    except kafka.errors.CommitFailedError:
                        pass  # they come again, to another
            with lock:
                shares[number] = 0

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: sorted(shares.values()) == [2, 2, 2], "three share")
        with producer_of(address, linger_ms=2) as producer:
            for number in range(count // 2):
                producer.send("log", b"%d" % number, partition=number % 6)
            producer.flush(PATIENCE_SECONDS)
            until(lambda: len(done) == count // 2, "the first half comes")
            leave.set()
            until(lambda: sorted(shares.values()) == [0, 3, 3], "two share")
            for number in range(count // 2, count):
                producer.send("log", b"%d" % number, partition=number % 6)
            producer.flush(PATIENCE_SECONDS)
            until(lambda: len(done) == count, "the second half comes")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert done == Counter(range(count))


def test_places_to_read_from(address: str, admin: KafkaAdminClient) -> None:
    admin.create_topics([NewTopic("log", 1, 1)])
    at_ms = 1_700_000_000_000
    with producer_of(address) as producer:
        for number in range(10):
            producer.send("log", b"%d" % number, timestamp_ms=at_ms + number * 1_000).get(PATIENCE_SECONDS)
    with consumer_of(address, enable_auto_commit=False) as consumer:
        consumer.assign([PARTITION])
        assert consumer.beginning_offsets([PARTITION]) == {PARTITION: 0}
        assert consumer.end_offsets([PARTITION]) == {PARTITION: 10}
        found = consumer.offsets_for_times({PARTITION: at_ms + 4_500})[PARTITION]
        assert (found.offset, found.timestamp) == (5, at_ms + 5_000)
        consumer.seek(PARTITION, 7)
        assert [message.offset for message in take(consumer, 3)] == [7, 8, 9]
        consumer.pause(PARTITION)
        consumer.seek(PARTITION, 0)
        assert consumer.poll(timeout_ms=200) == {}
        consumer.resume(PARTITION)
        assert [message.offset for message in take(consumer, 2)] == [0, 1]
        consumer.commit({PARTITION: kafka.structs.OffsetAndMetadata(4, "half way", -1)})
        assert consumer.committed(PARTITION) == 4
        assert consumer.committed(PARTITION, metadata=True).metadata == "half way"
    with consumer_of(address, "log", group="nobody", auto_offset_reset="none") as consumer:
        with pytest.raises(kafka.errors.NoOffsetForPartitionError):
            take(consumer, 1)


def test_transactions(address: str, admin: KafkaAdminClient) -> None:
    """All or nothing, positions included; a zombie is fenced."""
    admin.create_topics([NewTopic("source", 1, 1), NewTopic("target", 2, 1)])
    with producer_of(address) as producer:
        send(producer, "source", [b"%d" % number for number in range(20)])
    with (
        producer_of(address, transactional_id="t") as zombie,
        producer_of(address, transactional_id="t") as producer,
        consumer_of(address, "source", enable_auto_commit=False, max_poll_records=6) as consumer,
    ):
        zombie.init_transactions()
        zombie.begin_transaction()
        send(zombie, "target", [b"of the zombie"])
        producer.init_transactions()
        with pytest.raises(kafka.errors.KafkaError):
            zombie.commit_transaction()
        done = turn = 0
        while done < 20:
            batches = consumer.poll(timeout_ms=100)
            if not batches:
                continue
            turn += 1
            (messages,) = batches.values()
            producer.begin_transaction()
            for message in messages:
                producer.send("target", b"%d" % int(message.value) ** 2)
            source = kafka.TopicPartition("source", 0)
            positions = {source: kafka.structs.OffsetAndMetadata(messages[-1].offset + 1, "", -1)}
            producer.send_offsets_to_transaction(positions, consumer.group_metadata())
            if turn == 2:
                producer.abort_transaction()
                consumer.seek(source, messages[0].offset)
            else:
                producer.commit_transaction()
                done += len(messages)
    with consumer_of(address, "target", group="check", isolation_level="read_committed") as consumer:
        assert sorted(int(message.value) for message in take(consumer, 20)) == [n**2 for n in range(20)]
        assert consumer.poll(timeout_ms=200) == {}


def test_an_administrator_and_topics(address: str, admin: KafkaAdminClient) -> None:
    admin.create_topics([NewTopic("log", 2, 1, topic_configs={"retention.ms": "1234567"})])
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        admin.create_topics([NewTopic("log", 2, 1)])
    with pytest.raises(kafka.errors.InvalidTopicError):
        admin.create_topics([NewTopic("no/such name", 2, 1)])
    admin.create_partitions({"log": NewPartitions(5)})
    (described,) = admin.describe_topics(["log"])
    assert len(described["partitions"]) == 5
    resource = ConfigResource(ConfigResourceType.TOPIC, "log")
    assert admin.describe_configs([resource])["topic"]["log"]["retention.ms"]["value"] == "1234567"
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "log", {"max.message.bytes": "5000"})])
    assert admin.describe_configs([resource])["topic"]["log"]["max.message.bytes"]["value"] == "5000"
    with producer_of(address) as producer:
        send(producer, "log", [b"x"] * 10, partition=0)
        with pytest.raises(kafka.errors.MessageSizeTooLargeError):
            producer.send("log", bytes(9_000), partition=0).get(PATIENCE_SECONDS)
    admin.delete_records({PARTITION: 4})
    for spec, offset in ((OffsetSpec.EARLIEST, 4), (OffsetSpec.LATEST, 10)):
        assert admin.list_partition_offsets({PARTITION: spec})[PARTITION].offset == offset
    admin.delete_topics(["log"])
    assert admin.list_topics() == []
    with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["log"])


def test_an_administrator_and_groups(address: str, admin: KafkaAdminClient) -> None:
    with producer_of(address) as producer:
        send(producer, "log", [b"x"] * 10)
    with consumer_of(address, "log", client_id="reader") as consumer:
        take(consumer, 10)
        consumer.commit()
        assert [(group["group_id"], group["group_state"]) for group in admin.list_groups()] == [("g", "Stable")]
        described = admin.describe_groups(["g"])["g"]
        assert (described["group_state"], described["members"][0]["client_id"]) == ("Stable", "reader")
        ((_, refusal),) = admin.delete_groups(["g"]).items()
        assert "NonEmptyGroup" in str(refusal)
    assert admin.list_group_offsets({"g": None})["g"][PARTITION].offset == 10
    admin.alter_group_offsets("g", {PARTITION: kafka.structs.OffsetAndMetadata(3, "", -1)})
    assert admin.list_group_offsets({"g": None})["g"][PARTITION].offset == 3
    admin.reset_group_offsets("g", {PARTITION: OffsetSpec.EARLIEST})
    assert admin.list_group_offsets({"g": None})["g"][PARTITION].offset == 0
    admin.delete_groups(["g"])
    assert admin.list_groups() == []


def test_an_administrator_and_transactions(address: str, admin: KafkaAdminClient) -> None:
    with producer_of(address, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        send(producer, "log", [b"x"])
        ((listing,),) = admin.list_transactions().values()
        assert listing.transactional_id == "t"
        described = admin.describe_transactions(["t"])["t"]
        assert str(described.state).endswith("ONGOING") or "ngoing" in str(described.state)
        assert len(admin.describe_producers([PARTITION])[PARTITION].active_producers) == 1
        producer.abort_transaction()


def test_an_administrator_and_the_cluster(address: str, admin: KafkaAdminClient) -> None:
    cluster = admin.describe_cluster()
    assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == [address]
    assert admin.describe_log_dirs()
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("anna", ScramMechanism.SCRAM_SHA_256, "secret")])
    found = admin.describe_user_scram_credentials(["anna"])["anna"]["credential_infos"]
    assert [one["mechanism"] for one in found] == [ScramMechanism.SCRAM_SHA_256]
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("anna", ScramMechanism.SCRAM_SHA_256)])
