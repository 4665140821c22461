"""Share groups of confluent-kafka: members read a topic together; what nobody is done with comes again."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import confluent_kafka as ck
import pytest

from interlog.core.group_settings import EARLIEST, keep_settings
from interlog.testing import RunningBroker
from tests.interop.confluent import QUICK, create, produce, until

ACCEPT, RELEASE, REJECT = ck.AcknowledgeType.ACCEPT, ck.AcknowledgeType.RELEASE, ck.AcknowledgeType.REJECT

Named = Callable[[str], str]


@pytest.fixture
def address(shared_broker: RunningBroker) -> str:
    return shared_broker.kafka_address


@pytest.fixture
def topic(address: str, named: Named) -> str:
    create(address, named("topic"))
    return named("topic")


@pytest.fixture
def group(shared_broker: RunningBroker, named: Named) -> str:
    """One that reads from the start, and whose members hold records for a second."""
    name = named("group")
    settings = {"share_start": EARLIEST, "share_lock_ms": 1_000}
    shared_broker.call(lambda core: keep_settings(core.catalog, shared_broker.vhost, name, settings))
    return name


@contextmanager
def member(address: str, group: str, topic: str, *, explicit: bool = False) -> Iterator[ck.ShareConsumer]:
    mode = {"share.acknowledgement.mode": "explicit" if explicit else "implicit"}
    consumer = ck.ShareConsumer({"bootstrap.servers": address, "group.id": group, **QUICK, **mode})
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def polled(consumer: ck.ShareConsumer, seconds: float = 0.1) -> list[tuple[bytes, ck.Message]]:
    """Messages with their values."""
    found = []
    for message in consumer.poll(seconds):
        assert message.error() is None, message.error()
        found.append((message.value() or b"", message))
    return found


def sent(address: str, topic: str, count: int) -> set[bytes]:
    values = [b"%d" % number for number in range(count)]
    produce(address, topic, [{"value": value} for value in values])
    return set(values)


def test_members_read_a_topic_together(address: str, topic: str, group: str) -> None:
    values = sent(address, topic, 500)
    seen: Counter[bytes] = Counter()
    with (
        member(address, group, topic) as first,
        member(address, group, topic) as second,
        member(address, group, topic) as third,
    ):

        def all_came() -> bool:
            for one in (first, second, third):
                seen.update(value for value, _ in polled(one))
            return seen.keys() == values

        until(all_came, "records are missing")
        for one in (first, second, third):
            assert not any(one.commit_sync().values())
    assert set(seen.values()) == {1}
    with member(address, group, topic) as late:
        assert polled(late, 1.0) == [], "all were done with"


def test_what_is_released_comes_again_and_what_is_rejected_does_not(address: str, topic: str, group: str) -> None:
    values = sent(address, topic, 10)
    seen: Counter[bytes] = Counter()
    with member(address, group, topic, explicit=True) as consumer:

        def enough() -> bool:
            for value, message in polled(consumer):
                seen[value] += 1
                verdict = {b"3": RELEASE, b"5": REJECT}.get(value, ACCEPT)
                if value == b"7" and seen[b"7"] == 1:
                    verdict = RELEASE
                consumer.acknowledge(message, verdict)
            assert not any(consumer.commit_sync().values())
            return seen[b"3"] == 5 and seen[b"7"] == 2 and seen.keys() == values

        until(enough, "records are missing")
        assert polled(consumer, 1.0) == [], "five times is enough"
    assert seen == Counter(dict.fromkeys(values, 1)) + Counter({b"3": 4, b"7": 1})


def test_who_keeps_silent_loses_what_it_holds(address: str, topic: str, group: str) -> None:
    values = sent(address, topic, 10)
    with member(address, group, topic, explicit=True) as silent, member(address, group, topic) as other:
        held: set[bytes] = set()

        def holds_all() -> bool:
            held.update(value for value, _ in polled(silent))
            return held == values

        until(holds_all, "records are missing")
        found: set[bytes] = set()

        def has_all() -> bool:
            found.update(value for value, _ in polled(other))
            return found == values

        until(has_all, "what was held too long did not come")
