"""confluent-kafka in few words, for tests that are about something else than its calls."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

PATIENCE_SECONDS = 15.0  # never waited for when all is well

# Nothing waits where the clients would rather save a request.
QUICK: Mapping[str, Any] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "topic.metadata.propagation.max.ms": 200,
    "retry.backoff.ms": 20,
}


def told(address: str, more: Mapping[str, Any] = {}) -> dict[str, Any]:
    return {"bootstrap.servers": address, **QUICK, **more}


def admin_of(address: str, more: Mapping[str, Any] = {}) -> AdminClient:
    return AdminClient(told(address, more))


def create(
    address: str, topic: str, partitions: int = 1, config: Mapping[str, str] = {}, more: Mapping[str, Any] = {}
) -> None:
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config))
    admin = admin_of(address, more)
    admin.create_topics([new])[topic].result(PATIENCE_SECONDS)


def grow(address: str, topic: str, partitions: int) -> None:
    admin = admin_of(address)
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(PATIENCE_SECONDS)


def empty(address: str) -> None:
    """Delete all there is of topics and of groups that nobody is in."""
    admin = admin_of(address)
    groups = [one.group_id for one in admin.list_consumer_groups().result(PATIENCE_SECONDS).valid]
    topics = [name for name in admin.list_topics(timeout=PATIENCE_SECONDS).topics if not name.startswith("__")]
    for futures in (
        admin.delete_topics(topics) if topics else {},
        admin.delete_consumer_groups(groups) if groups else {},
    ):
        for future in futures.values():
            future.exception(PATIENCE_SECONDS)  # a group with members stays


def produce(address: str, topic: str, records: Iterable[Mapping[str, Any]], **settings: Any) -> list[ck.Message]:
    """Each record is what `Producer.produce` takes. The records as they were acknowledged, in that order."""
    done: list[ck.Message] = []

    def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
        assert error is None, error
        done.append(message)

    producer = ck.Producer(told(address, {"linger.ms": 5, **settings}))
    for record in records:
        producer.produce(topic, on_delivery=delivered, **record)
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0, "it was not acknowledged"
    return done


@contextmanager
def consumer_of(address: str, group: str, **settings: Any) -> Iterator[ck.Consumer]:
    """Settings with _ for their dots."""
    more = {name.replace("_", "."): value for name, value in settings.items()}
    config = {"group.id": group, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100, **more}
    consumer = ck.Consumer(told(address, config))
    try:
        yield consumer
    finally:
        consumer.close()


def take(consumer: ck.Consumer, count: int) -> list[ck.Message]:
    """So many messages, and no errors among them."""
    found: list[ck.Message] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count:
        message = consumer.poll(0.5)
        if message is None:
            assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
            continue
        assert message.error() is None, message.error()
        found.append(message)
    return found


def read(
    address: str, topic: str, count: int, *, partitions: Sequence[int] = (0,), group: str = "readers", **settings: Any
) -> list[ck.Message]:
    """From the start of the partitions, as nobody's member."""
    with consumer_of(address, group, enable_auto_commit=False, **settings) as consumer:
        consumer.assign([ck.TopicPartition(topic, index, ck.OFFSET_BEGINNING) for index in partitions])
        return take(consumer, count)


def until(condition: Callable[[], bool], what: str, *consumers: ck.Consumer) -> list[ck.Message]:
    """Poll the consumers until it holds; what they got meanwhile."""
    found = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        for consumer in consumers:
            message = consumer.poll(0.02)
            if message is not None:
                assert message.error() is None, message.error()
                found.append(message)
        if not consumers:
            time.sleep(0.01)
    return found
