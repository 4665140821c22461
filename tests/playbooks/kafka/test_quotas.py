"""Quotas: set, shown, refused; which one counts; who waits, for how long, and who does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.base.clock import ManualClock
from interlog.faces.face import Peer
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.quota_rules import Key
from interlog.faces.kafka.schema import alter_client_quotas as aq
from interlog.faces.kafka.schema import create_partitions as cp
from interlog.faces.kafka.schema import delete_topics as dt
from interlog.faces.kafka.schema import describe_client_quotas as dq
from interlog.faces.kafka.schema import fetch, produce
from interlog.faces.kafka.schema.api_versions import ApiVersionsRequest
from interlog.faces.kafka.schema.metadata import MetadataRequest, MetadataRequestTopic
from interlog.journal import batch as batches
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import Client, Play, playing

EXACT, DEFAULT, ANY = range(3)
Names = dict[str, str | None]


def alter(client: Client, entity: Names, /, **values: Any) -> int:
    """Set these for an entity, or take away what is None; the error."""
    validate_only, version = values.pop("validate_only", False), values.pop("version", 1)
    ops = [aq.OpData(key, value or 0.0, value is None) for key, value in values.items()]
    entry = aq.RequestEntryData([aq.RequestEntityData(*part) for part in entity.items()], ops)
    (result,) = client.ask(aq.AlterClientQuotasRequest([entry], validate_only), version).entries
    assert {one.entity_type: one.entity_name for one in result.entity} == entity
    assert (result.error_message is None) == (result.error_code == 0)
    return int(result.error_code)


def put(client: Client, entity: Names, /, **values: float) -> None:
    assert alter(client, entity, **values) == 0


def shown(client: Client, *filter: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """(entity, values) of all that fit."""
    components = [dq.ComponentData(*one) for one in filter]
    answer = client.ask(dq.DescribeClientQuotasRequest(components, strict), version)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code
    return [
        ({one.entity_type: one.entity_name for one in entry.entity}, {one.key: one.value for one in entry.values})
        for entry in answer.entries
    ]


def send(client: Client, size: int = 1_000, client_id: str = "play", acks: int = -1) -> Any:
    """Produce so much; the answer."""
    record = Record(None, b"x" * size, (), client.play.clock.now_ms())
    batch = batches.encode([record], base_offset=0, leader_epoch=-1)
    data = produce.TopicProduceData("t", partition_data=[produce.PartitionProduceData(0, batch)])
    client.send(produce.ProduceRequest(None, acks, 1_000, [data]), 11, answered=acks != 0, client_id=client_id)
    heard = client.listen()
    assert len(heard) == (acks != 0)
    return heard[0] if heard else None


def is_muted(client: Client) -> bool:
    """Whether a request is not looked at; it is, in the end."""
    client.send(ApiVersionsRequest(), 0)
    heard = client.listen()
    if heard:
        return False
    client.play.clock.advance(500_000)
    client.play.advance(1)
    assert client.listen()
    return True


@pytest.fixture(autouse=True)
def topic(client: Client) -> None:
    assert a.create(client, "t").error_code == 0


# -- set and shown


@pytest.mark.parametrize("version", range(2))
def test_what_is_set_is_shown_and_taken_away(client: Client, version: int) -> None:
    ann: Names = {"user": "ann"}
    assert alter(client, ann, producer_byte_rate=100, request_percentage=12.5, version=version) == 0
    assert shown(client, version=version) == [(ann, {"producer_byte_rate": 100, "request_percentage": 12.5})]
    assert alter(client, ann, producer_byte_rate=None, consumer_byte_rate=7, version=version) == 0
    assert shown(client, version=version) == [(ann, {"consumer_byte_rate": 7, "request_percentage": 12.5})]
    assert alter(client, ann, consumer_byte_rate=None, request_percentage=None, version=version) == 0
    assert alter(client, ann, consumer_byte_rate=None, version=version) == 0
    assert shown(client, version=version) == []
    assert not client.play.service.quotas.active


def test_what_is_only_checked_is_not_kept(client: Client) -> None:
    assert alter(client, {"user": "ann"}, validate_only=True, producer_byte_rate=1) == 0
    assert shown(client) == []


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({}, {"producer_byte_rate": 1}),
        ({"user": ""}, {"producer_byte_rate": 1}),
        ({"group": "g"}, {"producer_byte_rate": 1}),
        ({"user": "u" * 301}, {"producer_byte_rate": 1}),
        ({"user": "a"}, {"no_such_rate": 1}),
        ({"user": "a"}, {"connection_creation_rate": 1}),
        ({"user": "a"}, {"producer_byte_rate": 0.5}),
        ({"user": "a"}, {"producer_byte_rate": 1e19}),
        ({"user": "a"}, {"request_percentage": float("nan")}),
        ({"user": "a"}, {"request_percentage": float("inf")}),
        ({"user": "a"}, {"consumer_byte_rate": -1}),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1}),
        ({"ip": "nowhere"}, {"connection_creation_rate": 1}),
        ({"ip": "10.0.0.1", "user": "a"}, {"connection_creation_rate": 1}),
    ],
)
def test_what_cannot_be_is_refused(client: Client, entity: Names, values: dict[str, float]) -> None:
    assert alter(client, entity, **values) == ErrorCode.INVALID_REQUEST
    assert shown(client) == []


def test_one_entity_twice_is_refused_and_the_others_are_not(client: Client) -> None:
    ops = [aq.OpData("producer_byte_rate", 5.0)]
    entries = [aq.RequestEntryData([aq.RequestEntityData("user", name)], ops) for name in "aab"]
    entries.append(aq.RequestEntryData([aq.RequestEntityData("user", "c")], ops * 2))
    answer = client.ask(aq.AlterClientQuotasRequest(entries), 1)
    invalid = ErrorCode.INVALID_REQUEST
    assert [one.error_code for one in answer.entries] == [invalid, invalid, 0, invalid]
    assert shown(client) == [({"user": "b"}, {"producer_byte_rate": 5})]


def test_a_filter_finds_what_fits(client: Client) -> None:
    entities: list[Names] = [
        {"user": "a"},
        {"user": None},
        {"client-id": "c", "user": "a"},
        {"client-id": None, "user": "a"},
        {"client-id": "c"},
    ]
    for entity in entities:
        put(client, entity, producer_byte_rate=1)
    put(client, {"ip": None}, connection_creation_rate=1_000)

    def found(*filter: tuple[str, int, str | None], strict: bool = False) -> list[Names]:
        return [entity for entity, _ in shown(client, *filter, strict=strict)]

    assert len(found()) == 6
    assert found(strict=True) == []
    assert found(("user", EXACT, "a")) == [entities[0], entities[2], entities[3]]
    assert found(("user", EXACT, "a"), strict=True) == [entities[0]]
    assert found(("user", DEFAULT, None)) == [entities[1]]
    assert found(("user", ANY, None), ("client-id", DEFAULT, None), strict=True) == [entities[3]]
    assert found(("client-id", ANY, None)) == [entities[2], entities[3], entities[4]]
    assert found(("ip", ANY, None)) == [{"ip": None}]


@pytest.mark.parametrize(
    ("filter", "error"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("ip", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense(client: Client, filter: Any, error: ErrorCode) -> None:
    assert shown(client, *filter) == error


def test_quotas_are_the_business_of_administrators(tmp_path: Path) -> None:
    for play in a.closed(tmp_path / "closed", eve=(".*", ".*", ".*")):
        eve = a.login(play, "eve")
        assert alter(eve, {"user": "eve"}, producer_byte_rate=1e9) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert shown(eve) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_quotas_outlive_the_broker(play: Play, client: Client) -> None:
    put(client, {"user": "a", "client-id": None}, producer_byte_rate=5)
    play.restart()
    assert shown(play.connect()) == [({"user": "a", "client-id": None}, {"producer_byte_rate": 5})]
    assert play.service.quotas.active


# -- which one counts

ORDER: list[Names] = [
    {"user": "ann", "client-id": "app"},
    {"user": "ann", "client-id": None},
    {"user": "ann"},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
]


def test_the_closest_rule_counts(client: Client) -> None:
    quotas = client.play.service.quotas
    for number in reversed(range(len(ORDER))):
        put(client, ORDER[number], producer_byte_rate=number + 1)
        assert quotas._limits_of("ann", "app")[Key.PRODUCE].most == number + 1
    assert quotas._limits_of("bob", "app")[Key.PRODUCE].most == 4
    assert quotas._limits_of("ann", "other")[Key.PRODUCE].most == 2
    put(client, {"client-id": None}, consumer_byte_rate=9)
    assert quotas._limits_of("ann", "app")[Key.FETCH].most == 9  # each key for itself


def test_clients_are_counted_together_where_one_rule_is_for_both(client: Client) -> None:
    quotas = client.play.service.quotas

    def meter(user: str, client_id: str) -> object:
        return quotas._limits_of(user, client_id)[Key.PRODUCE].meter

    put(client, {"user": None}, producer_byte_rate=1)
    assert meter("ann", "one") is meter("ann", "two")
    assert meter("ann", "one") is not meter("bob", "one")
    put(client, {"user": None, "client-id": None}, producer_byte_rate=1)
    assert meter("ann", "one") is not meter("ann", "two")


# -- who waits


def test_a_producer_that_sends_too_much_waits_and_is_told_how_long(play: Play, client: Client) -> None:
    put(client, {"client-id": "play"}, producer_byte_rate=1_000)
    assert send(client, 9_000).throttle_time_ms == 0
    assert not is_muted(client)
    throttle_ms = send(client, 9_000).throttle_time_ms
    assert 8_000 < throttle_ms < 9_000  # about 18,000 bytes where there may be 10,000: for 8 seconds and a bit
    client.send(MetadataRequest(), 12)
    play.advance(throttle_ms - 10)
    client.silence()
    play.advance(20)
    assert len(client.listen()) == 1
    other = play.connect()
    assert send(other, 9_000, client_id="other").throttle_time_ms == 0


def test_connections_of_one_client_share_what_it_may_send(play: Play, client: Client) -> None:
    put(client, {"user": "ANONYMOUS"}, producer_byte_rate=1_000)
    assert send(client, 9_000, client_id="one").throttle_time_ms == 0
    assert send(play.connect(), 9_000, client_id="two").throttle_time_ms > 0


def test_a_producer_that_wants_no_answer_waits_too(client: Client) -> None:
    put(client, {"client-id": "play"}, producer_byte_rate=1_000)
    send(client, 20_000, acks=0)
    assert is_muted(client)


def test_requests_that_come_with_one_that_is_too_much_wait(play: Play, client: Client) -> None:
    put(client, {"client-id": "play"}, producer_byte_rate=1_000)
    record = Record(None, b"x" * 20_000, (), play.clock.now_ms())
    batch = batches.encode([record], base_offset=0, leader_epoch=-1)
    data = produce.TopicProduceData("t", partition_data=[produce.PartitionProduceData(0, batch)])
    for _ in range(3):
        client.send(produce.ProduceRequest(None, -1, 1_000, [data]), 11)
    assert len(client.listen()) == 1
    for _ in range(2):
        play.clock.advance(500_000)
        play.advance(1)
        assert len(client.listen()) == 1


def test_a_consumer_that_fetches_too_much_waits(play: Play, client: Client) -> None:
    for _ in range(40):
        send(client, 1_000)
    put(client, {"client-id": "play"}, consumer_byte_rate=1_000)
    asked = fetch.FetchTopic("t", partitions=[fetch.FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)])
    request = fetch.FetchRequest(topics=[asked])
    first = client.ask(request, 11)
    assert first.throttle_time_ms == 0
    size = len(first.responses[0].partitions[0].records)
    assert 5_000 < size <= 10_000  # no more than the windows allow
    second = client.ask(request, 11)
    assert 5_000 < second.throttle_time_ms < 10_000
    assert len(second.responses[0].partitions[0].records) == size
    assert is_muted(client)


def test_a_batch_that_is_larger_than_all_windows_allow_comes_all_the_same(client: Client) -> None:
    send(client, 100_000)
    put(client, {"client-id": "play"}, consumer_byte_rate=1_000)
    assert len(a.fetched(client).records) > 100_000
    assert is_muted(client)
    assert len(a.fetched(client).records) > 100_000


class SlowClock(ManualClock):
    """Each look at it takes 100 ms, so that requests take time."""

    slow = False

    def monotonic(self) -> float:
        if self.slow:
            self.advance(100)
        return super().monotonic()


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    monkeypatch.setattr("tests.playbooks.kafka.play.ManualClock", SlowClock)
    yield from playing(tmp_path / "slow")


def test_a_client_that_keeps_the_broker_busy_waits_a_second_at_most(slow: Play) -> None:
    client = slow.connect()
    put(client, {"client-id": "play"}, request_percentage=0.1)
    clock = slow.clock
    assert isinstance(clock, SlowClock)
    clock.slow = True
    client.send(MetadataRequest(), 12)
    clock.slow = False
    (answer,) = client.listen()
    assert answer.throttle_time_ms == 1_000
    client.send(MetadataRequest(), 12)
    client.silence()
    slow.advance(1_100)
    assert len(client.listen()) == 1


# -- changes of topics


def test_newer_clients_that_change_too_much_are_told_to_come_again(play: Play, client: Client) -> None:
    put(client, {"client-id": "play"}, controller_mutation_rate=1)
    assert a.create(client, "many", 20).error_code == 0  # 11 may be made at once, and some that are lent
    refused = a.create(client, "more", 1)
    assert refused.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    play.advance(10_000)
    assert a.create(client, "more", 1).error_code == 0
    grown = client.ask(cp.CreatePartitionsRequest([cp.CreatePartitionsTopic("more", 30, None)]), 3)
    assert grown.results[0].error_code == 0
    deleted = client.ask(dt.DeleteTopicsRequest([dt.DeleteTopicState("many")]), 6)
    assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 20_000 < deleted.throttle_time_ms <= 30_000
    assert a.offset(play.connect(), a.LATEST, "many") == 0


def test_older_clients_that_change_too_much_wait(client: Client) -> None:
    put(client, {"client-id": "play"}, controller_mutation_rate=1)
    assert a.create(client, "many", 20, version=5).error_code == 0
    assert is_muted(client)
    assert a.create(client, "more", 20, version=5).error_code == 0
    assert is_muted(client)


def test_topics_that_are_made_for_the_asking_count_too(play: Play, client: Client) -> None:
    put(client, {"client-id": "play"}, controller_mutation_rate=1)
    assert a.create(client, "many", 20).error_code == 0
    wanted = MetadataRequest([MetadataRequestTopic(name="asked-for")])
    refused = client.ask(wanted, 12)
    assert refused.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused.throttle_time_ms > 0
    play.advance(10_000)
    assert client.ask(wanted, 12).topics[0].error_code == 0


def test_what_is_only_checked_costs_nothing(client: Client) -> None:
    put(client, {"client-id": "play"}, controller_mutation_rate=1)
    for _ in range(3):
        assert a.create(client, "many", 100, validate_only=True).error_code == 0


# -- connections


def test_an_address_that_connects_too_often_waits(play: Play, client: Client) -> None:
    put(client, {"ip": "10.0.0.1"}, connection_creation_rate=1)
    peers = [Peer(host=host, local_host="127.0.0.1", local_port=9092) for host in ("10.0.0.1", "10.0.0.2")]
    assert not any(is_muted(play.connect(peers[0])) for _ in range(10))
    assert is_muted(play.connect(peers[0])) is True
    assert not any(is_muted(play.connect(peers[1])) for _ in range(20))
