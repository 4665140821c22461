"""aiokafka: many tasks at once, groups that change while they read, transactions, and an administrator."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    NoOffsetForPartitionError,
    ProducerFenced,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

PATIENCE_SECONDS = 20
QUICK = {"session_timeout_ms": 1_000, "heartbeat_interval_ms": 100, "fetch_max_wait_ms": 100}


def run(work: Coroutine[Any, Any, None]) -> None:
    async def patient() -> None:
        await asyncio.wait_for(work, PATIENCE_SECONDS)

    asyncio.run(patient())


@asynccontextmanager
async def admin_of(address: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def create(address: str, topic: str, partitions: int = 1, **config: str) -> None:
    async with admin_of(address) as admin:
        await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])


@asynccontextmanager
async def producer_of(address: str, **settings: Any) -> AsyncIterator[aiokafka.AIOKafkaProducer]:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, retry_backoff_ms=20, **settings) as producer:
        yield producer


def consumer_of(address: str, *topics: str, group: str | None = "g", **settings: Any) -> aiokafka.AIOKafkaConsumer:
    more = {"auto_offset_reset": "earliest", **QUICK, **settings}
    return aiokafka.AIOKafkaConsumer(*topics, bootstrap_servers=address, group_id=group, retry_backoff_ms=20, **more)


async def take(consumer: aiokafka.AIOKafkaConsumer, count: int) -> list[Any]:
    return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were(address: str, codec: str | None) -> None:
    async def work() -> None:
        await create(address, "log", 2, **{"max.message.bytes": "3000000"})
        large = bytes(range(256)) * 8_000
        records: list[dict[str, Any]] = [
            {"value": b"v", "key": b"k", "timestamp_ms": 1_700_000_000_000},
            {"value": None, "key": b"gone"},
            {"value": b"", "headers": [("a", b"1"), ("a", b"\xff")]},
            {"value": large},
        ]
        async with producer_of(address, compression_type=codec, max_request_size=3_000_000) as producer:
            for record in records:
                await producer.send_and_wait("log", partition=1, **record)
        async with consumer_of(address, group=None) as consumer:
            partition = aiokafka.TopicPartition("log", 1)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            found = await take(consumer, len(records))
        for offset, (record, message) in enumerate(zip(records, found, strict=True)):
            assert (message.partition, message.offset) == (1, offset)
            assert (message.key, message.value) == (record.get("key"), record["value"])
            assert list(message.headers) == record.get("headers", [])
        assert found[0].timestamp == 1_700_000_000_000

    run(work())


def test_two_thousand_at_once(address: str) -> None:
    """Twenty tasks send, three consumers of a group read; each message is somebody's, once."""

    async def work() -> None:
        await create(address, "wide", 9)
        done: Counter[int] = Counter()
        all_done = asyncio.Event()

        async def read(consumer: aiokafka.AIOKafkaConsumer) -> None:
            async for message in consumer:
                done[int(message.value)] += 1
                if done.total() >= 2_000:
                    all_done.set()

        async with producer_of(address, linger_ms=2, enable_idempotence=True) as producer:

            async def send(first: int) -> None:
                for number in range(first, first + 100):
                    await producer.send_and_wait("wide", b"%d" % number, key=b"%d" % number)

            consumers = [consumer_of(address, "wide") for _ in range(3)]
            async with consumers[0], consumers[1], consumers[2]:
                tasks = [asyncio.create_task(read(consumer)) for consumer in consumers]
                await asyncio.gather(*(send(n * 100) for n in range(20)))
                await all_done.wait()
                shares = [len(consumer.assignment()) for consumer in consumers]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(shares) == 9 and done == Counter(range(2_000))

    run(work())


def test_members_come_and_go(address: str) -> None:
    class Commits(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def __init__(self, consumer: aiokafka.AIOKafkaConsumer) -> None:
            self.consumer = consumer

        async def on_partitions_revoked(self, revoked: Any) -> None:
            if revoked:
                await self.consumer.commit()

        async def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    async def work() -> None:
        await create(address, "log", 4)
        done: Counter[int] = Counter()

        async def read_some(*consumers: aiokafka.AIOKafkaConsumer) -> None:
            for consumer in consumers:
                for messages in (await consumer.getmany(timeout_ms=50)).values():
                    done.update(int(message.value) for message in messages)

        async with producer_of(address) as producer:

            async def send(first: int) -> None:
                for number in range(first, first + 40):
                    await producer.send_and_wait("log", b"%d" % number, partition=number % 4)

            await send(0)
            first = consumer_of(address, enable_auto_commit=False)
            first.subscribe(["log"], listener=Commits(first))
            async with first:
                while done.total() < 40:
                    await read_some(first)
                second = consumer_of(address, enable_auto_commit=False)
                second.subscribe(["log"], listener=Commits(second))
                async with second:
                    while not len(first.assignment()) == len(second.assignment()) == 2:
                        await read_some(first, second)
                    await send(40)
                    while done.total() < 80:
                        await read_some(first, second)
                    await second.commit()
                while len(first.assignment()) < 4:
                    await read_some(first)
                await send(80)
                while done.total() < 120:
                    await read_some(first)
        assert done == Counter(range(120))

    run(work())


def test_places_to_read_from(address: str) -> None:
    async def work() -> None:
        await create(address, "log")
        at_ms = 1_700_000_000_000
        async with producer_of(address) as producer:
            for number in range(10):
                await producer.send_and_wait("log", b"%d" % number, timestamp_ms=at_ms + number * 1_000)
        partition = aiokafka.TopicPartition("log", 0)
        async with consumer_of(address, enable_auto_commit=False) as consumer:
            consumer.assign([partition])
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            found = await consumer.offsets_for_times({partition: at_ms + 4_500})
            assert (found[partition].offset, found[partition].timestamp) == (5, at_ms + 5_000)
            consumer.seek(partition, 7)
            assert [message.offset for message in await take(consumer, 3)] == [7, 8, 9]
            consumer.pause(partition)
            consumer.seek(partition, 0)
            assert await consumer.getmany(timeout_ms=200) == {}
            consumer.resume(partition)
            assert [message.offset for message in await take(consumer, 2)] == [0, 1]
            await consumer.commit({partition: aiokafka.OffsetAndMetadata(4, "half way")})
            assert await consumer.committed(partition) == 4
        async with consumer_of(address, "log", group="nobody", auto_offset_reset="none") as consumer:
            with pytest.raises(NoOffsetForPartitionError):
                await consumer.getone()

    run(work())


def test_who_stalls_loses_its_partitions(address: str) -> None:
    async def work() -> None:
        await create(address, "log", 2)
        lazy = consumer_of(address, "log", max_poll_interval_ms=500, enable_auto_commit=False)
        async with producer_of(address) as producer, lazy:
            await producer.send_and_wait("log", b"x", partition=0)
            message = await lazy.getone()
            async with consumer_of(address, "log") as other:
                while len(other.assignment()) < 2:
                    await other.getmany(timeout_ms=50)
                with pytest.raises((CommitFailedError, IllegalStateError)):
                    await lazy.commit({aiokafka.TopicPartition("log", 0): message.offset + 1})

    run(work())


def test_transactions(address: str) -> None:
    """All or nothing, positions included, and a zombie."""

    async def work() -> None:
        for topic in ("source", "target"):
            await create(address, topic, 2)
        async with producer_of(address) as producer:
            for number in range(20):
                await producer.send_and_wait("source", b"%d" % number, partition=number % 2)
        zombie = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id="t")
        await zombie.start()
        await zombie.begin_transaction()
        await zombie.send_and_wait("target", b"of the zombie")
        async with producer_of(address, transactional_id="t") as producer:
            with pytest.raises(ProducerFenced):
                await zombie.commit_transaction()
            await zombie.stop()
            async with consumer_of(address, "source", enable_auto_commit=False, max_poll_records=6) as consumer:
                done = turn = 0
                while done < 20:
                    batches = await consumer.getmany(timeout_ms=100)
                    if not batches:
                        continue
                    turn += 1
                    positions = {}
                    await producer.begin_transaction()
                    for partition, messages in batches.items():
                        for message in messages:
                            await producer.send("target", b"%d" % int(message.value) ** 2)
                        positions[partition] = messages[-1].offset + 1
                    await producer.send_offsets_to_transaction(positions, "g")
                    if turn == 2:
                        await producer.abort_transaction()
                        for partition, messages in batches.items():
                            consumer.seek(partition, messages[0].offset)
                    else:
                        await producer.commit_transaction()
                        done += sum(map(len, batches.values()))
        async with consumer_of(address, "target", group="check", isolation_level="read_committed") as consumer:
            assert sorted([int(message.value) for message in await take(consumer, 20)]) == [n**2 for n in range(20)]
            assert await consumer.getmany(timeout_ms=200) == {}

    run(work())


def test_an_administrator(address: str) -> None:
    async def work() -> None:
        async with admin_of(address) as admin:
            await admin.create_topics([NewTopic("orders", 2, 1, topic_configs={"retention.ms": "1234567"})])
            with pytest.raises(TopicAlreadyExistsError):
                await _raised(admin.create_topics([NewTopic("orders", 2, 1)]))
            assert await admin.list_topics() == ["orders"]
            await admin.create_partitions({"orders": NewPartitions(5)})
            (described,) = await admin.describe_topics(["orders"])
            assert len(described["partitions"]) == 5
            asked = ConfigResource(ConfigResourceType.TOPIC, "orders", {"retention.ms": ""})
            (answer,) = await admin.describe_configs([asked])
            assert "1234567" in str(answer)
            cluster = await admin.describe_cluster()
            assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == [address]
            async with producer_of(address) as producer, consumer_of(address, "orders") as consumer:
                await producer.send_and_wait("orders", b"x")
                await consumer.getone()
                await consumer.commit()
                assert await admin.list_consumer_groups() == [("g", "consumer")]
                offsets = await admin.list_consumer_group_offsets("g")
                assert sum(max(found.offset, 0) for found in offsets.values()) == 1
            await admin.delete_topics(["orders"])
            with pytest.raises(UnknownTopicOrPartitionError):
                await _raised(admin.delete_topics(["orders"]))

    run(work())


async def _raised(work: Coroutine[Any, Any, Any]) -> None:
    """Some answers hold errors that the client does not raise."""
    from aiokafka.errors import for_code

    answer = await work
    for one in getattr(answer, "topic_errors", None) or answer.topic_error_codes:
        if one[1]:
            raise for_code(one[1])
