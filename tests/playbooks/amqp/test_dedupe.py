"""The same message only once: in a queue, as long as another one of its key is there; and through an exchange."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.values import Int64
from tests.playbooks.amqp.play import Client, Play


def send(client: Client, body: bytes, key: Any = "k", to: str = "q", exchange: str = "", **more: Any) -> None:
    headers = more.pop("headers", {})
    client.publish(body, to, exchange, headers={"x-deduplication-header": key, **headers}, **more)


def dedupe(client: Client, name: str = "q", **more: Any) -> None:
    client.queue(name, x_message_deduplication=True, **more)


# -- queues


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_holds_one_of_a_key(client: Client, kind: str) -> None:
    dedupe(client, durable=True, x_queue_type=kind)
    client.confirms()
    send(client, b"a")
    send(client, b"again", mandatory=True)
    send(client, b"b", "other")
    client.publish(b"plain")
    client.publish(b"plain")
    client.listen()
    message = client.get()
    assert message is not None and message.headers["x-deduplication-header"] == "k"
    assert client.drain() == [b"b", b"plain", b"plain"]


def test_duplicates_are_confirmed_and_nobody_hears_of_them(client: Client) -> None:
    dedupe(client, durable=True)
    client.confirms()
    for number in range(1, 4):
        send(client, b"a", mandatory=True, delivery_mode=2)
        client.expect(m.BasicAck(number))
    assert client.ready() == 1


def test_queues_that_were_not_asked_to_hold_all(client: Client) -> None:
    client.queue()
    send(client, b"a")
    send(client, b"b")
    assert client.drain() == [b"a", b"b"]


KEYS: list[tuple[Any, Any, bool]] = [
    ("1", 1, False),
    (1, Int64(1), True),
    (1, True, False),
    (1, 1.0, False),
    (None, None, True),
    (None, "None", False),
    (b"\xff", b"\xff", True),
    ("", "", True),
    ([1], [1], False),  # no key at all
    ({}, {}, False),
]


@pytest.mark.parametrize(("first", "second", "same"), KEYS)
def test_keys_are_the_same_with_their_type(client: Client, first: Any, second: Any, same: bool) -> None:
    dedupe(client)
    send(client, b"a", first)
    send(client, b"b", second)
    assert client.drain() == ([b"a"] if same else [b"a", b"b"])


LEAVES = ["ack", "ack many", "reject", "get", "no ack", "purge", "expires", "ttl", "maxlen", "tx"]


@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("durable", [True, False])
def test_a_key_is_free_when_its_message_has_left(play: Play, client: Client, how: str, durable: bool) -> None:
    arguments: dict[str, Any] = {"ttl": {"x_message_ttl": 1_000}, "maxlen": {"x_max_length": 1}}.get(how, {})
    dedupe(client, durable=durable, **arguments)
    said: dict[str, Any] = {"delivery_mode": 2, "expiration": "1000" if how == "expires" else None}
    send(client, b"a", **said)
    if how in ("ack", "ack many", "reject", "tx"):
        if how == "tx":
            client.ask(m.TxSelect(), m.TxSelectOk)
        message = client.get(no_ack=False)
        assert message is not None
        if how != "tx":
            send(client, b"held", **said)
            client.silence()
            assert client.ready() == 0
        answer = m.BasicReject(1, False) if how == "reject" else m.BasicAck(1, how == "ack many")
        client.send(answer)
        if how == "tx":
            client.ask(m.TxCommit(), m.TxCommitOk)
            client.ask(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk)
            client.open(1)
    elif how == "get":
        client.get()
    elif how == "no ack":
        client.consume(no_ack=True)
        client.bodies()
        client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    elif how == "purge":
        client.silence()
        client.ask(m.QueuePurge("q"), m.QueuePurgeOk)
    elif how == "maxlen":
        send(client, b"other", "other", **said)
        client.silence()
    else:
        play.later(1_000)
    send(client, b"b", **said)
    client.silence()
    assert client.drain() == [b"b"]


def test_a_key_stays_with_what_comes_back(play: Play, client: Client) -> None:
    dedupe(client)
    send(client, b"a")
    client.get(no_ack=False)
    client.ask(m.QueuePurge("q"), m.QueuePurgeOk)
    send(client, b"held")
    client.drop()
    client = play.connect()
    send(client, b"back")
    assert client.drain() == [b"a"]


def test_a_full_queue_refuses_and_remembers_nothing(client: Client) -> None:
    dedupe(client, x_max_length=1, x_overflow="reject-publish")
    client.confirms()
    send(client, b"a")
    client.expect(m.BasicAck(1))
    send(client, b"b", "other")
    client.expect(m.BasicNack(2))
    client.drain()
    send(client, b"b", "other")
    client.expect(m.BasicAck(3))
    assert client.drain() == [b"b"]


@pytest.mark.parametrize("kill", [True, False])
def test_keys_after_a_restart(play: Play, client: Client, kill: bool) -> None:
    dedupe(client, durable=True, x_max_priority=2)
    for number in range(50):
        send(client, b"%d" % number, number, delivery_mode=2, priority=number % 3)
    send(client, b"transient", "t")
    client.silence()
    client.consume()
    assert len(client.messages()) == 51
    for tag in range(1, 11):
        client.send(m.BasicAck(tag))
    client.silence()
    play.restart(kill=kill)
    client = play.connect()
    for number in range(50):
        send(client, b"again", number, delivery_mode=2)
    send(client, b"transient again", "t")
    client.silence()
    bodies = client.drain()
    assert bodies.count(b"again") == 10 and len(bodies) == 51 and b"transient again" in bodies
    send(client, b"last", 3)
    assert client.drain() == [b"last"]


def test_keys_of_dead_letters(play: Play, client: Client) -> None:
    dedupe(client, "dead")
    client.queue(x_dead_letter_exchange="", x_dead_letter_routing_key="dead", x_message_ttl=10)
    send(client, b"a")
    send(client, b"b")
    play.later(20)
    assert client.drain("dead") == [b"a"]


def test_declared_otherwise(client: Client) -> None:
    dedupe(client)
    client.refused(
        m.QueueDeclare("q"),
        code=ReplyCode.PRECONDITION_FAILED,
        text="inequivalent arg 'x-message-deduplication' for queue 'q' in vhost '/': "
        "received none but current is the value 'true' of type 'bool'",
    )


# -- exchanges


@pytest.fixture
def filtered(client: Client) -> Client:
    """An exchange x that remembers three keys for ten seconds, and leads to q."""
    client.exchange("x", "x-message-deduplication", x_cache_size=3, x_cache_ttl=10_000)
    client.queue()
    client.bind("q", "x", "whatever")
    return client


def routed(client: Client, key: Any, **headers: Any) -> bool:
    send(client, b"m", key, "any", "x", headers={name.replace("_", "-"): value for name, value in headers.items()})
    return client.drain() == [b"m"]


def test_an_exchange_lets_a_key_through_once(filtered: Client) -> None:
    client = filtered
    assert [routed(client, key) for key in ("a", "b", "a", "b", "c")] == [True, True, False, False, True]
    client.publish(b"plain", "", "x")
    client.publish(b"plain", "", "x")
    assert client.drain() == [b"plain", b"plain"]


def test_what_an_exchange_has_seen_is_not_routed(filtered: Client) -> None:
    client = filtered
    client.confirms()
    for number, heard in ((1, 1), (2, 2)):
        send(client, b"m", "a", "any", "x", mandatory=True)
        assert len(client.listen()) == heard, number  # the second one is returned, and confirmed
    client.exchange("y", "x-message-deduplication", x_cache_size=1, alternate_exchange="amq.fanout")
    client.bind("q", "y")
    client.queue("spare")
    client.bind("spare", "amq.fanout")
    client.drain()
    for _ in range(2):
        send(client, b"m", "a", "any", "y")
    client.listen()
    assert client.drain() == [b"m"] and client.drain("spare") == [b"m"]


def test_an_exchange_remembers_for_a_time(play: Play, filtered: Client) -> None:
    client = filtered
    assert routed(client, "a") and routed(client, "short", x_cache_ttl=1_000)
    play.later(999)
    assert not routed(client, "short")
    play.later(1)
    assert routed(client, "short") and not routed(client, "a")
    play.later(8_999)
    assert not routed(client, "a")
    play.later(1)
    assert routed(client, "a")


def test_an_exchange_remembers_so_many(filtered: Client) -> None:
    client = filtered
    assert [routed(client, key) for key in "abcd"] == [True] * 4
    assert not routed(client, "b") and not routed(client, "c") and not routed(client, "d")
    assert routed(client, "a")


def test_memory_goes_with_the_exchange_and_not_with_others(play: Play, filtered: Client) -> None:
    client = filtered
    assert routed(client, "a")
    play.core.create_namespace("other")
    client.exchange("y", "x-message-deduplication", x_cache_size=3)
    client.ask(m.ExchangeDelete("y"), m.ExchangeDeleteOk)
    assert not routed(client, "a")
    client.ask(m.ExchangeDelete("x"), m.ExchangeDeleteOk)
    client.exchange("x", "x-message-deduplication", x_cache_size="3")
    client.bind("q", "x")
    assert routed(client, "a")


LASTING = {"durable": True, "x_cache_size": 3, "x_cache_ttl": 60_000, "x_cache_persistence": "disk"}


@pytest.fixture(params=["memory", "disk"])
def restarted(request: pytest.FixtureRequest, client: Client) -> str:
    """An exchange x that lasts, and leads to q."""
    client.exchange("x", "x-message-deduplication", **(LASTING | {"x_cache_persistence": request.param}))
    client.queue(durable=True)
    client.bind("q", "x")
    kept: str = request.param
    return kept


@pytest.mark.parametrize("end", ["kill", "stop", "checkpoint"])
def test_what_is_on_disk_outlasts_the_broker(play: Play, client: Client, restarted: str, end: str) -> None:
    """The oldest goes first and each has its time, also after two restarts."""
    assert [routed(client, key) for key in "abcd"] == [True] * 4  # a has gone
    assert routed(client, "short", x_cache_ttl=5_000)  # and b
    if end == "checkpoint":
        play.later(5_000, step=1_000)
    lasts = restarted == "disk"
    for _ in range(2):
        play.restart(kill=end != "stop")
        client = play.connect()
        if lasts:
            assert [routed(client, key) for key in "cd"] == [False, False]
    assert routed(client, "short") is (not lasts or end == "checkpoint")
    play.later(5_000)
    assert routed(client, "b") and routed(client, "e")  # c and d go
    play.restart()
    client = play.connect()
    assert routed(client, "b") is not lasts
    assert routed(client, "c")
    play.later(61_000)
    play.restart()
    client = play.connect()
    assert routed(client, "b")


@pytest.mark.parametrize("end", ["kill", "stop", "checkpoint"])
def test_a_lasting_memory_goes_with_its_exchange(play: Play, client: Client, end: str) -> None:
    client.queue(durable=True)
    for name in ("x", "y"):
        client.exchange(name, "x-message-deduplication", **LASTING)
        client.bind("q", name)
        send(client, b"m", "a", "", name)
    if end == "checkpoint":
        play.later(5_000, step=1_000)
    client.ask(m.ExchangeDelete("x"), m.ExchangeDeleteOk)
    client.exchange("x", "x-message-deduplication", **LASTING)
    client.bind("q", "x")
    client.drain()
    play.restart(kill=end != "stop")
    client = play.connect()
    assert routed(client, "a")
    send(client, b"m", "a", "", "y")
    assert client.drain() == []
    play.later(5_000, step=1_000)
    play.restart()
    client = play.connect()
    assert not routed(client, "a")


def test_a_key_lasts_with_its_message(play: Play, client: Client) -> None:
    client.exchange("x", "x-message-deduplication", **LASTING)
    client.queue(durable=True)
    client.bind("q", "x")
    client.confirms()
    send(client, b"m", "a", "", "x", delivery_mode=2)
    client.expect(m.BasicAck(1))
    play.restart()
    client = play.connect()
    send(client, b"again", "a", "", "x", delivery_mode=2)
    assert client.drain() == [b"m"]


def test_declared_to_last_or_not(client: Client) -> None:
    client.exchange("x", "x-message-deduplication", **LASTING)
    arguments = {"x-cache-size": 3, "x-cache-ttl": 60_000, "x-cache-persistence": "memory"}
    client.refused(
        m.ExchangeDeclare("x", "x-message-deduplication", durable=True, arguments=arguments),
        code=ReplyCode.PRECONDITION_FAILED,
        text="inequivalent arg 'x-cache-persistence' for exchange 'x' in vhost '/': "
        "received 'memory' but current is 'disk'",
    )


def test_transactions_are_seen_when_they_are_committed(filtered: Client) -> None:
    client = filtered
    client.ask(m.TxSelect(), m.TxSelectOk)
    send(client, b"a", "k", "", "x")
    client.ask(m.TxRollback(), m.TxRollbackOk)
    send(client, b"b", "k", "", "x")
    send(client, b"c", "k", "", "x")
    client.ask(m.TxCommit(), m.TxCommitOk)
    assert client.drain() == [b"b"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"),
    ({"x-cache-size": 0}, "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"),
    ({"x-cache-size": "many"}, "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"),
    ({"x-cache-size": 1 << 40}, "exchange setting cache_size is a whole number from 1 to 10000000, not 1099511627776"),
    ({"x-cache-size": 1, "x-cache-ttl": -1}, "Invalid argument, 'x-cache-ttl' must be an integer greater than 0"),
    (
        {"x-cache-size": 1, "x-cache-persistence": "tape"},
        "Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'",
    ),
    (
        {"x-cache-size": 1_000_001, "x-cache-persistence": "disk"},
        "exchange setting cache_size is a whole number from 1 to 1000000, not 1000001",
    ),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_exchanges_that_cannot_be(client: Client, arguments: dict[str, Any], text: str) -> None:
    client.refused(
        m.ExchangeDeclare("x", "x-message-deduplication", arguments=arguments),
        code=ReplyCode.PRECONDITION_FAILED,
        text=text,
    )


def test_an_exchange_declared_otherwise(filtered: Client) -> None:
    filtered.refused(
        m.ExchangeDeclare("x", "x-message-deduplication", arguments={"x-cache-size": 4, "x-cache-ttl": 10_000}),
        code=ReplyCode.PRECONDITION_FAILED,
        text="inequivalent arg 'x-cache-size' for exchange 'x' in vhost '/': received '4' but current is '3'",
    )
