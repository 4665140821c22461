"""Consumer groups of confluent-kafka: members that join, leave, die and stall, with all three ways to share out."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from interlog.testing import RunningBroker, running
from tests.interop.confluent import PATIENCE_SECONDS, QUICK, admin_of, consumer_of, create, produce, take, until

PARTITIONS = 6
SESSION_MS = 1_000

EAGER = {"partition_assignment_strategy": "range"}
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}
BALANCED: dict[str, Any] = {"group_protocol": "consumer"}  # the broker shares out
CLASSIC_TIMES = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 100}

PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {**EAGER, **CLASSIC_TIMES},
    "cooperative": {**COOPERATIVE, **CLASSIC_TIMES},
    "balanced": BALANCED,
}
every_protocol = pytest.mark.parametrize("settings", PROTOCOLS.values(), ids=PROTOCOLS.keys())

Named = Callable[[str], str]


@pytest.fixture(scope="module")
def quick() -> Iterator[RunningBroker]:
    """One whose newer groups notice the dead soon."""
    with running(kafka_group_session_ms=SESSION_MS, kafka_group_heartbeat_ms=100) as broker:
        yield broker


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("INTEROP_KAFKA")
    if given:
        return given
    quick: RunningBroker = request.getfixturevalue("quick")
    return quick.kafka_address


@pytest.fixture
def topic(address: str, named: Named) -> str:
    name = named("topic").replace("[", "-").replace("]", "-")
    create(address, name, PARTITIONS)
    return name


def held(consumer: ck.Consumer) -> set[int]:
    return {part.partition for part in consumer.assignment()}


def shared_out(*consumers: ck.Consumer) -> bool:
    """Each partition is somebody's, none is two's, and all have about as many."""
    parts = [held(consumer) for consumer in consumers]
    sizes = [len(part) for part in parts]
    return sum(sizes) == PARTITIONS == len(set().union(*parts)) and max(sizes) - min(sizes) <= 1


@contextmanager
def member_process(address: str, topic: str, settings: dict[str, Any]) -> Iterator["subprocess.Popen[str]"]:
    config = {**QUICK, **{name.replace("_", "."): value for name, value in settings.items()}}
    words = [sys.executable, str(Path(__file__).with_name("group_member.py")), address, topic, json.dumps(config)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@every_protocol
def test_members_come_and_go_and_nothing_is_read_twice(address: str, topic: str, settings: dict[str, Any]) -> None:
    """One, then three, then one again; positions are committed when partitions are given up."""
    group = topic
    found: Counter[int] = Counter()

    def count(messages: list[ck.Message]) -> None:
        found.update(int(message.value() or b"") for message in messages)

    def send(first: int) -> None:
        produce(address, topic, ({"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(first, first + 60)))

    def give_up(consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        positions = [part for part in consumer.position(partitions) if part.offset >= 0]
        if positions:
            consumer.commit(offsets=positions, asynchronous=False)

    settings = {**settings, "enable_auto_commit": False}
    with ExitStack() as stack:
        consumers = [stack.enter_context(consumer_of(address, group, **settings)) for _ in range(3)]
        first, *others = consumers
        first.subscribe([topic], on_revoke=give_up)
        send(0)
        count(until(lambda: shared_out(first), "it has them all", first))
        count(take(first, 60 - found.total()))
        for consumer in others:
            consumer.subscribe([topic], on_revoke=give_up)
        count(until(lambda: shared_out(*consumers), "three share", *consumers))
        send(60)
        while found.total() < 120:
            for consumer in consumers:
                message = consumer.poll(0.02)
                if message is not None:
                    assert message.error() is None, message.error()
                    count([message])
        for consumer in others:
            consumer.unsubscribe()
        count(until(lambda: shared_out(first), "the first has them all again", first, *others))
        send(120)
        count(take(first, 180 - found.total()))
    assert found == Counter(range(180))


@every_protocol
def test_who_dies_without_a_word_is_missed_and_replaced(address: str, topic: str, settings: dict[str, Any]) -> None:
    group = topic
    with (
        consumer_of(address, group, **settings) as living,
        member_process(address, topic, {**settings, "group.id": group}) as dying,
    ):
        living.subscribe([topic])
        until(lambda: len(held(living)) == PARTITIONS // 2, "two share", living)
        dying.kill()
        until(lambda: shared_out(living), "the living one takes over", living)


@every_protocol
def test_who_stalls_is_left_out_and_comes_back(address: str, topic: str, settings: dict[str, Any]) -> None:
    """No poll for longer than max.poll.interval.ms: the others go on with its partitions."""
    group = topic
    stalling = {**settings, "max_poll_interval_ms": SESSION_MS}
    with consumer_of(address, group, **settings) as living, consumer_of(address, group, **stalling) as lazy:
        for consumer in (living, lazy):
            consumer.subscribe([topic])
        until(lambda: shared_out(living, lazy), "two share", living, lazy)
        until(lambda: shared_out(living), "the other one takes over", living)
        message = lazy.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None and error.code() == ck.KafkaError._MAX_POLL_EXCEEDED
        until(lambda: shared_out(living, lazy), "two share again", living, lazy)


@pytest.mark.parametrize("settings", [PROTOCOLS["cooperative"], BALANCED], ids=["cooperative", "balanced"])
def test_who_stays_keeps_what_it_has(address: str, topic: str, settings: dict[str, Any]) -> None:
    """Only what moves is revoked, when a second member joins; nothing when a member leaves."""
    revoked: list[int] = []
    assigned: list[int] = []
    with consumer_of(address, topic, **settings) as first:
        first.subscribe(
            [topic],
            on_assign=lambda _, parts: assigned.extend(part.partition for part in parts),
            on_revoke=lambda _, parts: revoked.extend(part.partition for part in parts),
        )
        until(lambda: shared_out(first), "it has them all", first)
        with consumer_of(address, topic, **settings) as second:
            second.subscribe([topic])
            until(lambda: shared_out(first, second), "two share", first, second)
            assert len(revoked) == PARTITIONS // 2
            moved = set(revoked)
        until(lambda: shared_out(first), "it has them all again", first)
    assert set(assigned[PARTITIONS:]) == moved


@every_protocol
def test_a_static_member_comes_back_to_its_own_partitions(address: str, topic: str, settings: dict[str, Any]) -> None:
    """Gone for a moment and back under its name: the other one notices nothing."""
    moved: list[int] = []
    settings = {**settings, "session_timeout_ms": 6_000} if "session_timeout_ms" in settings else settings
    with consumer_of(address, topic, **settings, group_instance_id="one") as one:
        one.subscribe([topic], on_revoke=lambda _, parts: moved.extend(part.partition for part in parts))
        with consumer_of(address, topic, **settings, group_instance_id="two") as two:
            two.subscribe([topic])
            until(lambda: shared_out(one, two), "two share", one, two)
            before = held(two)
            moved.clear()
        with consumer_of(address, topic, **settings, group_instance_id="two") as two:
            two.subscribe([topic])
            until(lambda: shared_out(one, two), "it is back", one, two)
            assert held(two) == before and not moved


def test_two_of_the_same_static_name_are_not_both_members(address: str, topic: str) -> None:
    settings = {**PROTOCOLS["eager"], "group_instance_id": "only"}
    with consumer_of(address, topic, **settings) as old, consumer_of(address, topic, **settings) as new:
        old.subscribe([topic])
        until(lambda: shared_out(old), "it has them all", old)
        new.subscribe([topic])
        until(lambda: shared_out(new), "the new one has them all", new)
        message = old.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None and error.code() == ck.KafkaError._FATAL and "group.instance.id" in error.str()
        assert shared_out(new)


@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_the_broker_shares_out_as_it_is_asked_to(address: str, topic: str, assignor: str) -> None:
    settings = {**BALANCED, "group_remote_assignor": assignor}
    with consumer_of(address, topic, **settings) as one, consumer_of(address, topic, **settings) as two:
        for consumer in (one, two):
            consumer.subscribe([topic])
        until(lambda: shared_out(one, two), "two share", one, two)
        if assignor == "range":
            assert sorted(map(sorted, (held(one), held(two)))) == [[0, 1, 2], [3, 4, 5]]


def test_an_assignor_that_nobody_knows_is_refused(address: str, topic: str) -> None:
    with consumer_of(address, topic, **BALANCED, group_remote_assignor="by-moonlight") as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None and error.code() == ck.KafkaError._FATAL and "assignor" in error.str()


@every_protocol
def test_a_member_that_is_no_longer_one_cannot_commit(address: str, topic: str, settings: dict[str, Any]) -> None:
    """Its partitions are another's since it stalled: what it commits then does not count."""
    produce(address, topic, ({"value": b"x", "partition": n} for n in range(PARTITIONS)))
    stalling = {**settings, "max_poll_interval_ms": SESSION_MS, "enable_auto_commit": False}
    with consumer_of(address, topic, **stalling) as lazy, consumer_of(address, topic, **settings) as other:
        lazy.subscribe([topic])
        message = take(lazy, 1)[0]
        other.subscribe([topic])
        until(lambda: shared_out(other), "the other one takes over", other)
        with pytest.raises(ck.KafkaException) as caught:
            lazy.commit(message=message, asynchronous=False)
        codes = (
            ck.KafkaError.UNKNOWN_MEMBER_ID,
            ck.KafkaError.ILLEGAL_GENERATION,
            ck.KafkaError.STALE_MEMBER_EPOCH,
            ck.KafkaError._NO_OFFSET,
            ck.KafkaError._ASSIGNMENT_LOST,
        )
        assert caught.value.args[0].code() in codes


def test_a_group_changes_over_to_the_newer_protocol(address: str, topic: str) -> None:
    """Classic members leave, newer ones come: the group goes on where it was."""
    produce(address, topic, ({"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(12)))
    with consumer_of(address, topic, **PROTOCOLS["eager"]) as classic:
        classic.subscribe([topic])
        take(classic, 12)
        classic.commit(asynchronous=False)
    produce(address, topic, ({"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(12, 18)))
    with consumer_of(address, topic, **BALANCED) as newer:
        newer.subscribe([topic])
        assert sorted(int(one.value() or b"") for one in take(newer, 6)) == list(range(12, 18))
        admin = admin_of(address)
        described = admin.describe_consumer_groups([topic])[topic].result(PATIENCE_SECONDS)
        assert described.type.name == "CONSUMER" and len(described.members) == 1


@pytest.mark.parametrize("classic", ["eager", "cooperative"])
def test_a_group_moves_to_the_newer_kind_and_back_one_by_one(address: str, topic: str, classic: str) -> None:
    """As when clients are restarted one after another with another setting: nothing is left out, little comes twice."""
    found: Counter[int] = Counter()
    sent = 0

    def send() -> None:
        nonlocal sent
        produce(address, topic, ({"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(sent, sent + 60)))
        sent += 60

    def give_up(consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        positions = [part for part in consumer.position(partitions) if part.offset >= 0]
        if positions:
            consumer.commit(offsets=positions, asynchronous=False)

    @contextmanager
    def member(settings: dict[str, Any]) -> Iterator[ck.Consumer]:
        with consumer_of(address, topic, **settings, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic], on_revoke=give_up)
            yield consumer

    def share(*consumers: ck.Consumer) -> None:
        """They read what is new, and each partition is one's."""
        send()
        for message in until(lambda: shared_out(*consumers), "they share", *consumers):
            found[int(message.value() or b"")] += 1
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found) < sent and time.monotonic() < deadline:
            for consumer in consumers:
                got = consumer.poll(0.02)
                if got is not None:
                    assert got.error() is None, got.error()
                    found[int(got.value() or b"")] += 1
        assert len(found) == sent

    old, new = PROTOCOLS[classic], PROTOCOLS["balanced"]
    with ExitStack() as back:
        with ExitStack() as there:
            with member(old) as first, member(old) as second:
                share(first, second)
                third = there.enter_context(member(new))
                share(first, second, third)
                assert _kind(address, topic) == ("CONSUMER", 3)
            fourth = there.enter_context(member(new))
            share(third, fourth)
            fifth = back.enter_context(member(old))
            share(third, fourth, fifth)
        share(fifth)
        assert _kind(address, topic) == ("CLASSIC", 1)
    assert sorted(found) == list(range(sent))
    assert found.total() <= sent + sent // 10


def _kind(address: str, group: str) -> tuple[str, int]:
    admin = admin_of(address)
    (future,) = admin.describe_consumer_groups([group]).values()
    described = future.result(PATIENCE_SECONDS)
    return described.type.name, len(described.members)
