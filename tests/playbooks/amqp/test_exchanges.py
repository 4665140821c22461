"""Exchanges: declared, deleted, bound; what each type does with a message; what each refuses."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.wire import Method
from tests.playbooks.amqp.play import Client, Play, content

BUILT_IN = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}
DEFAULT = "operation not permitted on the default exchange"
NO_X = "no exchange 'x' in vhost '/'"
NOPE = "no exchange 'nope' in vhost '/'"


def routed(client: Client, exchange: str, key: str = "", *queues: str, **properties: Any) -> list[str]:
    """Which of the queues a message reaches; all are emptied."""
    client.publish(b"m", key, exchange, **properties)
    return [queue for queue in queues for _ in client.drain(queue)]


@pytest.fixture
def bound(client: Client) -> Client:
    """Queues a, b and c."""
    for name in "abc":
        client.queue(name)
    return client


# -- declared and deleted


@pytest.mark.parametrize(("name", "type"), BUILT_IN.items())
def test_built_in_exchanges_are_there(client: Client, name: str, type: str) -> None:
    client.exchange(name, type, durable=True)
    client.exchange(name, passive=True)


def test_declared_without_an_answer(client: Client) -> None:
    client.send(m.ExchangeDeclare("x", "fanout", nowait=True), m.ExchangeDeclare("x", "", passive=True, nowait=True))
    client.silence()
    client.exchange("x", "fanout")
    client.queue("q")
    client.send(m.QueueBind("q", "x", "", nowait=True), m.ExchangeDeclare("y", "fanout", nowait=True))
    client.send(m.ExchangeBind("x", "y", "", nowait=True))
    client.silence()
    assert routed(client, "y", "", "q") == ["q"]
    client.send(m.ExchangeUnbind("x", "y", "", nowait=True))
    client.silence()
    assert routed(client, "y", "", "q") == []
    client.send(m.ExchangeDelete("x", nowait=True))
    client.silence()
    client.refused(m.ExchangeDeclare("x", "", passive=True), code=ReplyCode.NOT_FOUND, text=NO_X)


def test_declaring_again_as_it_is(client: Client) -> None:
    for _ in range(2):
        client.exchange("x", "topic", durable=True, auto_delete=True, internal=True, alternate_exchange="amq.fanout")


X = {"durable": True, "auto_delete": True, "internal": True}
INEQUIVALENT: list[tuple[dict[str, Any], str, str, str]] = [
    ({"type": "fanout"}, "type", "'fanout'", "'direct'"),
    ({"durable": False}, "durable", "'false'", "'true'"),
    ({"auto_delete": False}, "auto_delete", "'false'", "'true'"),
    ({"internal": False}, "internal", "'false'", "'true'"),
    ({"arguments": {}}, "alternate-exchange", "none", "the value 'ae' of type 'longstr'"),
    ({"arguments": {"alternate-exchange": "other"}}, "alternate-exchange", "'other'", "'ae'"),
]


@pytest.mark.parametrize(("change", "what", "received", "current"), INEQUIVALENT, ids=[str(i[0]) for i in INEQUIVALENT])
def test_declared_otherwise(client: Client, change: dict[str, Any], what: str, received: str, current: str) -> None:
    declared: dict[str, Any] = {"type": "direct", **X, "arguments": {"alternate-exchange": "ae"}}
    client.ask(m.ExchangeDeclare("x", **declared), m.ExchangeDeclareOk)
    client.refused(
        m.ExchangeDeclare("x", **(declared | change)),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"inequivalent arg '{what}' for exchange 'x' in vhost '/': received {received} but current is {current}",
    )


def test_delayed_ones_are_told_by_their_own_type(client: Client) -> None:
    client.exchange("x", "x-delayed-message", x_delayed_type="direct")
    client.exchange("x", "x-delayed-message", x_delayed_type="direct")
    client.refused(
        m.ExchangeDeclare("x", "direct"),
        code=ReplyCode.PRECONDITION_FAILED,
        text="inequivalent arg 'type' for exchange 'x' in vhost '/': "
        "received 'direct' but current is 'x-delayed-message'",
    )


REFUSED: list[tuple[str, Method, ReplyCode, str]] = [
    ("declare the default", m.ExchangeDeclare("", "direct"), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("delete the default", m.ExchangeDelete(""), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("bind the default", m.ExchangeBind("amq.fanout", "", "k"), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("bind to the default", m.ExchangeBind("", "amq.fanout", "k"), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("unbind the default", m.ExchangeUnbind("amq.fanout", "", "k"), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("queue to the default", m.QueueBind("q", "", "k"), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("queue from the default", m.QueueUnbind("q", "", "k"), ReplyCode.ACCESS_REFUSED, DEFAULT),
    ("passive", m.ExchangeDeclare("nope", "direct", passive=True), ReplyCode.NOT_FOUND, NOPE),
    ("bind from nothing", m.ExchangeBind("amq.fanout", "nope", "k"), ReplyCode.NOT_FOUND, NOPE),
    ("bind to nothing", m.ExchangeBind("nope", "amq.fanout", "k"), ReplyCode.NOT_FOUND, NOPE),
    ("queue to nothing", m.QueueBind("q", "nope", "k"), ReplyCode.NOT_FOUND, NOPE),
    (
        "reserved",
        m.ExchangeDeclare("amq.mine", "direct"),
        ReplyCode.ACCESS_REFUSED,
        "exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    (
        "built-in goes",
        m.ExchangeDelete("amq.direct"),
        ReplyCode.ACCESS_REFUSED,
        "deletion of system exchange 'amq.direct' in vhost '/' not allowed",
    ),
    (
        "alternate that is no name",
        m.ExchangeDeclare("x", "direct", arguments={"alternate-exchange": 5}),
        ReplyCode.PRECONDITION_FAILED,
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'",
    ),
    (
        "delayed by nothing",
        m.ExchangeDeclare("x", "x-delayed-message"),
        ReplyCode.PRECONDITION_FAILED,
        "Invalid argument, 'x-delayed-type' must be an existing exchange type",
    ),
    (
        "delayed by no type",
        m.ExchangeDeclare("x", "x-delayed-message", arguments={"x-delayed-type": "nokind"}),
        ReplyCode.PRECONDITION_FAILED,
        "Invalid argument, 'x-delayed-type' must be an existing exchange type",
    ),
    (
        "hash of two things",
        m.ExchangeDeclare("x", "x-consistent-hash", arguments={"hash-header": "h", "hash-property": "message_id"}),
        ReplyCode.PRECONDITION_FAILED,
        "hash-header and hash-property are mutually exclusive",
    ),
    (
        "headers by no rule",
        m.QueueBind("q", "amq.headers", "", arguments={"x-match": "some"}),
        ReplyCode.PRECONDITION_FAILED,
        'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x',
    ),
    (
        "headers by a number",
        m.QueueBind("q", "amq.headers", "", arguments={"x-match": 5}),
        ReplyCode.PRECONDITION_FAILED,
        "Invalid x-match field type signedint (value 5); expected longstr",
    ),
    (
        "delete of a reserved name",
        m.ExchangeDelete("amq.nothing"),
        ReplyCode.ACCESS_REFUSED,
        "deletion of system exchange 'amq.nothing' in vhost '/' not allowed",
    ),
    (
        "both ends missing",
        m.QueueBind("none", "nothing", "k"),
        ReplyCode.NOT_FOUND,
        "no exchange 'nothing' in vhost '/'",
    ),
]


@pytest.mark.parametrize(("said", "code", "text"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_refused(client: Client, said: Method, code: ReplyCode, text: str) -> None:
    client.queue()
    client.refused(said, code=code, text=text)


def test_taking_off_what_is_not_there_is_no_error(client: Client) -> None:
    client.queue()
    client.ask(m.ExchangeDelete("nope"), m.ExchangeDeleteOk)
    client.ask(m.ExchangeUnbind("amq.fanout", "amq.direct", "k"), m.ExchangeUnbindOk)
    client.ask(m.ExchangeUnbind("nope", "amq.direct", "k"), m.ExchangeUnbindOk)
    client.ask(m.QueueUnbind("q", "amq.direct", "never"), m.QueueUnbindOk)
    client.ask(m.QueueUnbind("nope", "amq.direct", "k"), m.QueueUnbindOk)


def test_delete_if_unused(client: Client) -> None:
    client.exchange("x")
    client.queue()
    client.bind("q", "x", "k")
    client.refused(
        m.ExchangeDelete("x", if_unused=True),
        code=ReplyCode.PRECONDITION_FAILED,
        text="exchange 'x' in vhost '/' in use",
    )
    client.ask(m.QueueUnbind("q", "x", "k"), m.QueueUnbindOk)
    client.ask(m.ExchangeDelete("x", if_unused=True), m.ExchangeDeleteOk)
    client.refused(m.ExchangeDeclare("x", "", passive=True), code=ReplyCode.NOT_FOUND, text=NO_X)


def test_auto_delete_goes_with_its_last_binding(client: Client) -> None:
    client.exchange("x", "fanout", auto_delete=True)
    client.queue("a")
    client.queue("b")
    client.bind("a", "x")
    client.bind("b", "x")
    client.ask(m.QueueUnbind("a", "x"), m.QueueUnbindOk)
    client.exchange("x", passive=True)
    client.ask(m.QueueDelete("b"), m.QueueDeleteOk)
    client.refused(m.ExchangeDeclare("x", "", passive=True), code=ReplyCode.NOT_FOUND, text=NO_X)


def test_internal_ones_are_not_for_clients(bound: Client) -> None:
    client = bound
    client.exchange("in", "fanout", internal=True)
    client.exchange("x", "fanout")
    client.bind("a", "in")
    client.ask(m.ExchangeBind("in", "x"), m.ExchangeBindOk)
    assert routed(client, "x", "", "a") == ["a"]
    client.refused(
        m.BasicPublish("in", ""),
        content(b""),
        code=ReplyCode.ACCESS_REFUSED,
        text="cannot publish to internal exchange 'in' in vhost '/'",
    )


def test_what_lasts_is_there_after_a_kill(play: Play) -> None:
    client = play.connect()
    client.queue("kept", durable=True)
    client.queue("gone")
    client.exchange("lasts", "topic", durable=True, alternate_exchange="amq.fanout")
    client.exchange("passes", "topic")
    client.bind("kept", "lasts", "#.a", {"x": [1, {"y": b"z"}]})
    client.bind("kept", "passes", "#")
    client.bind("gone", "lasts", "#")
    play.restart()
    client = play.connect()
    client.exchange("lasts", "topic", durable=True, alternate_exchange="amq.fanout")
    client.refused(
        m.ExchangeDeclare("passes", "", passive=True),
        code=ReplyCode.NOT_FOUND,
        text="no exchange 'passes' in vhost '/'",
    )
    assert routed(client, "lasts", "b.a", "kept") == ["kept"]
    client.ask(m.QueueUnbind("kept", "lasts", "#.a", arguments={"x": [1, {"y": b"z"}]}), m.QueueUnbindOk)
    assert routed(client, "lasts", "b.a", "kept") == []


# -- types


def test_direct(bound: Client) -> None:
    client = bound
    client.exchange("x", "direct")
    for queue, key in (("a", "k"), ("b", "k"), ("b", "l"), ("c", "")):
        client.bind(queue, "x", key)
    assert routed(client, "x", "k", *"abc") == ["a", "b"]
    assert routed(client, "x", "l", *"abc") == ["b"]
    assert routed(client, "x", "", *"abc") == ["c"]
    assert routed(client, "x", "K", *"abc") == []


def test_fanout(bound: Client) -> None:
    client = bound
    client.exchange("x", "fanout")
    client.bind("a", "x", "k")
    client.bind("a", "x", "l")
    client.bind("b", "x")
    assert routed(client, "x", "whatever", *"abc") == ["a", "b"]


TOPICS = [
    ("aaa", "aaa", True),
    ("aaa.bbb", "aaa.bbb", True),
    ("aaa.bbb", "aaa.bbb.ccc", False),
    ("aaa.bbb", "aaa.ccc", False),
    ("aaa.bbb.ccc", "aaa.bbb.ccc", True),
    ("aaa.*", "aaa.bbb", True),
    ("aaa.*.bbb", "aaa.bbb.ccc", False),
    ("*.aaa.bbb", "aaa.bbb", False),
    ("#", "aaa.bbb.ccc", True),
    ("aaa.#", "aaa.bbb", True),
    ("aaa.#", "aaa.bbb.ccc", True),
    ("aaa.#.ccc", "aaa.ccc", True),
    ("aaa.#.ccc", "aaa.bbb.ccc", True),
    ("aaa.#.ccc", "aaa.aaa.bbb.ccc", True),
    ("#.ccc", "ccc", True),
    ("#.ccc", "aaa.bbb.ccc", True),
]


@pytest.mark.parametrize("type", ["topic", "x-delayed-message"])
def test_topic(bound: Client, type: str) -> None:
    client = bound
    for binding, key, matches in TOPICS:
        client.ask(
            m.ExchangeDeclare("x", type, arguments={"x-delayed-type": "topic"} if type != "topic" else {}),
            m.ExchangeDeclareOk,
        )
        client.bind("a", "x", binding)
        assert routed(client, "x", key, "a") == ["a"] * matches, (binding, key)
        client.ask(m.ExchangeDelete("x"), m.ExchangeDeleteOk)


def test_a_message_reaches_a_queue_once(bound: Client) -> None:
    client = bound
    client.exchange("x", "topic")
    client.exchange("y", "fanout")
    for key in ("a.b", "a.*", "#", "*.b", "a.#"):
        client.bind("a", "x", key)
        client.ask(m.ExchangeBind("y", "x", key), m.ExchangeBindOk)
    client.bind("a", "y")
    client.ask(m.ExchangeBind("x", "y"), m.ExchangeBindOk)  # a circle
    assert routed(client, "x", "a.b", *"abc", headers={"CC": ["a.c", "a.b"]}) == ["a"]


HEADERS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {"a": 1}, True),
    ({"a": 1}, {}, False),
    ({"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": 2}, True),
    ({"a": 1, "b": "x"}, {"a": 1}, False),
    ({"x-match": "all", "a": 1}, {"a": 2}, False),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 3}, False),
    ({"a": None}, {"a": "anything"}, True),
    ({"a": None}, {"b": 1}, False),
    ({"a": "1"}, {"a": 1}, False),
    ({"a": True}, {"a": True}, True),
    ({"a": True}, {"a": 1}, False),
    ({"x-match": "all", "x-a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "all-with-x", "x-a": 1, "b": 2}, {"b": 2}, False),
    ({"x-match": "all-with-x", "x-a": 1, "b": 2}, {"b": 2, "x-a": 1}, True),
    ({"x-match": "any", "x-a": 1, "b": 2}, {"x-a": 1}, False),
    ({"x-match": "any-with-x", "x-a": 1, "b": 2}, {"x-a": 1}, True),
]


@pytest.mark.parametrize(("wanted", "said", "matches"), HEADERS)
def test_headers(bound: Client, wanted: dict[str, Any], said: dict[str, Any], matches: bool) -> None:
    bound.bind("a", "amq.headers", "ignored", wanted)
    assert routed(bound, "amq.headers", "other", "a", headers=said) == ["a"] * matches


def test_headers_of_a_message_without_any(bound: Client) -> None:
    bound.bind("a", "amq.match", "", {})
    bound.bind("b", "amq.match", "", {"x": 1})
    assert routed(bound, "amq.match", "", *"abc") == ["a"]


def test_consistent_hash(bound: Client) -> None:
    client = bound
    client.exchange("x", "x-consistent-hash")
    for queue, weight in (("a", "10"), ("b", "10"), ("c", "20")):
        client.bind(queue, "x", weight)
    found: dict[str, list[str]] = {}
    for number in range(400):
        client.publish(b"k%d" % number, f"k{number}", "x")
    counts = {queue: client.drain(queue) for queue in "abc"}
    assert sum(map(len, counts.values())) == 400 and all(len(bodies) > 60 for bodies in counts.values())
    for queue in "abc":
        for body in counts[queue][:5]:
            found.setdefault(queue, []).extend(routed(client, "x", body.decode(), *"abc"))
    assert found == {queue: [queue] * 5 for queue in "abc"}
    client.refused(
        m.QueueBind("a", "x", "heavy"),
        code=ReplyCode.PRECONDITION_FAILED,
        text='The binding key must be an integer: <<"heavy">>',
    )


@pytest.mark.parametrize("arguments", [{"hash-header": "h"}, {"hash-property": "message_id"}])
def test_consistent_hash_of_something_else(bound: Client, arguments: dict[str, Any]) -> None:
    client = bound
    client.ask(m.ExchangeDeclare("x", "x-consistent-hash", arguments=arguments), m.ExchangeDeclareOk)
    for queue in "abc":
        client.bind(queue, "x", "1")
    reached = set()
    for value in "0123456789":
        said: dict[str, Any] = {"headers": {"h": value}} if "hash-header" in arguments else {"message_id": value}
        first = routed(client, "x", "one", *"abc", **said)
        assert len(first) == 1 and routed(client, "x", "other", *"abc", **said) == first
        reached.update(first)
    assert reached == set("abc")


def test_exchange_to_exchange(bound: Client) -> None:
    client = bound
    client.exchange("in", "direct")
    client.exchange("out", "topic")
    client.ask(m.ExchangeBind("out", "in", "k.l"), m.ExchangeBindOk)
    client.bind("a", "out", "k.*")
    client.bind("b", "in", "k.l")
    assert routed(client, "in", "k.l", *"abc") == ["a", "b"]
    assert routed(client, "in", "k.m", *"abc") == []
    client.ask(m.ExchangeUnbind("out", "in", "k.l"), m.ExchangeUnbindOk)
    assert routed(client, "in", "k.l", *"abc") == ["b"]
    client.ask(m.ExchangeBind("out", "in", "k.l"), m.ExchangeBindOk)
    client.ask(m.ExchangeDelete("out"), m.ExchangeDeleteOk)
    assert routed(client, "in", "k.l", *"abc") == ["b"]


def test_alternate_exchange(bound: Client) -> None:
    client = bound
    client.exchange("spare", "fanout")
    client.exchange("x", "direct", alternate_exchange="spare")
    client.bind("a", "x", "k")
    client.bind("b", "spare")
    assert routed(client, "x", "k", *"abc") == ["a"]
    assert routed(client, "x", "other", *"abc") == ["b"]
    client.publish(b"m", "other", "x", mandatory=True)
    assert client.bodies() == [] and client.drain("b") == [b"m"]
    client.exchange("y", "direct", alternate_exchange="nothing")
    client.publish(b"m", "other", "y", mandatory=True)
    assert client.bodies() == [b"m"]


def test_alternate_exchange_by_policy(play: Play, bound: Client) -> None:
    client = bound
    client.exchange("x", "direct")
    client.bind("b", "amq.fanout")
    assert routed(client, "x", "k", *"abc") == []
    play.core.policies.put("/", "spare", pattern="^x$", apply_to="exchanges", definition={"alternate": "amq.fanout"})
    assert routed(client, "x", "k", *"abc") == ["b"]
    play.core.policies.remove("/", "spare")
    assert routed(client, "x", "k", *"abc") == []


# -- later


def test_delayed(play: Play, bound: Client) -> None:
    client = bound
    client.exchange("x", "x-delayed-message", x_delayed_type="direct")
    client.bind("a", "x", "k")
    client.publish(b"now", "k", "x")
    client.publish(b"late", "k", "x", headers={"x-delay": 5_000})
    client.publish(b"soon", "k", "x", headers={"x-delay": 1_000})
    client.publish(b"past", "k", "x", headers={"x-delay": -1})
    client.publish(b"odd", "k", "x", headers={"x-delay": "soon"})
    assert client.drain("a") == [b"now", b"past", b"odd"]
    play.later(999)
    assert client.drain("a") == []
    play.later(1)
    message = client.get("a")
    assert message is not None and message.body == b"soon"
    assert (message.exchange, message.routing_key) == ("x", "k")
    client.queue("late")
    client.bind("late", "x", "k")
    play.later(4_000)
    assert client.drain("a") == client.drain("late") == [b"late"]  # by the bindings there are then


def test_delayed_over_a_kill(play: Play) -> None:
    client = play.connect()
    client.queue(durable=True)
    client.exchange("x", "x-delayed-message", durable=True, x_delayed_type="fanout")
    client.bind("q", "x")
    client.confirms()
    client.publish(b"late", "k", "x", headers={"x-delay": 5_000}, delivery_mode=2, expiration="10000")
    client.expect(m.BasicAck(1))
    play.restart()
    client = play.connect()
    play.later(4_999)
    assert client.ready() == 0
    play.later(1)
    assert client.ready() == 1
    play.later(9_999)
    assert client.ready() == 1  # its own time begins when it is there
    play.later(1)
    assert client.ready() == 0


@pytest.mark.parametrize("type", ["x-local-random", "x-random"])
def test_one_of_all(bound: Client, type: str) -> None:
    client = bound
    client.exchange("x", type)
    assert routed(client, "x", "k", *"abc") == []
    for queue in "aabc":
        client.bind(queue, "x", queue)
    reached = [routed(client, "x", "k", *"abc") for _ in range(30)]
    assert all(len(one) == 1 for one in reached)
    assert {queue: reached.count([queue]) for queue in "abc"} == dict.fromkeys("abc", 10)


def test_one_by_its_key(bound: Client) -> None:
    client = bound
    client.exchange("x", "x-modulus-hash")
    assert routed(client, "x", "k", *"abc") == []
    for queue in "abc":
        client.bind(queue, "x", "")
    reached = [routed(client, "x", str(number), *"abc") for number in range(30)]
    assert reached == [routed(client, "x", str(number), *"abc") for number in range(30)]
    assert all(len(one) == 1 for one in reached) and all([queue] in reached for queue in "abc")


def test_arguments_of_other_types_of_exchange_say_nothing(client: Client) -> None:
    arguments = {"hash-header": "a", "hash-property": "b", "x-cache-size": -1}
    client.ask(m.ExchangeDeclare("x", "direct", arguments=arguments), m.ExchangeDeclareOk)
