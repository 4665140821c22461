"""Exchanges: declared, bound to each other, and where each kind sends a message."""

from typing import Any

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.values import Int8, Int64
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Line, Talk


@conversation()
def exchanges_declared(talk: Talk) -> None:
    client = talk.client()
    for name, kind in (
        ("x", "direct"),
        ("x", "direct"),
        ("x", "fanout"),
        ("", "direct"),
        ("amq.direct", "direct"),
        ("amq.topic", "topic"),
        ("amq.topic", "direct"),
        ("amq.mine", "direct"),
        ("y", "nonsense"),
        ("y", "x-nonsense"),
        ("a" * 255, "headers"),
        ("ü", "fanout"),
        ("a\nb", "fanout"),
        ("z", "DIRECT"),
    ):
        client.do(m.ExchangeDeclare(name, kind))
    for flags in ({"durable": True}, {"auto_delete": True}, {"internal": True}, {"arguments": {"a": 1}}):
        client.do(m.ExchangeDeclare("x", "direct", **flags))
    client.do(m.ExchangeDeclare("", "direct", passive=True))
    client.do(m.ExchangeDeclare("x", "fanout", passive=True))
    client.do(m.ExchangeDeclare("amq.none", "fanout", passive=True))
    client.do(m.ExchangeDeclare("amq.direct", "direct", durable=True))
    client.do(m.ExchangeDeclare("amq.rabbitmq.trace", "topic", durable=True, internal=True))
    client.do(m.ExchangeDeclare("amq.rabbitmq.trace", "topic", passive=True))
    client.do(m.ExchangeDeclare("amq.match", "headers", passive=True))
    client.do(m.ExchangeDeclare("amq.headers", "headers", passive=True))


@conversation()
def exchange_arguments_compared(talk: Talk) -> None:
    client = talk.client()
    client.exchange("x", alternate_exchange="alt")
    client.exchange("x", alternate_exchange="other")
    client.exchange("x")
    client.exchange("y")
    client.exchange("y", alternate_exchange="alt")
    client.exchange("z", alternate_exchange=5)
    client.exchange("w", alternate_exchange="")
    client.exchange("v", x_unknown=1)
    client.exchange("v", x_unknown=2)
    client.exchange("v")


@conversation()
def exchanges_deleted(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.do(m.ExchangeDelete(""))
    client.do(m.ExchangeDelete("amq.direct"))
    client.do(m.ExchangeDelete("amq.nothing"))
    client.do(m.ExchangeDelete("amq.rabbitmq.trace"))
    client.exchange("x")
    client.exchange("y", "fanout")
    client.bind("q", "x", "k")
    client.do(m.ExchangeDelete("x", if_unused=True))
    client.do(m.ExchangeBind("x", "y", ""))
    client.do(m.QueueUnbind("q", "x", "k"))
    client.do(m.ExchangeDelete("x", if_unused=True))
    client.do(m.ExchangeDelete("y", if_unused=True))
    client.publish("to nobody", "k", "x", mandatory=True)
    client.hear()


@conversation()
def auto_delete_exchanges(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.exchange("x", auto_delete=True)
    client.do(m.ExchangeDeclare("x", "direct", passive=True))
    client.bind("q", "x", "a")
    client.bind("q", "x", "b")
    client.do(m.QueueUnbind("q", "x", "a"))
    client.do(m.ExchangeDeclare("x", "direct", passive=True))
    client.do(m.QueueUnbind("q", "x", "b"))
    client.do(m.ExchangeDeclare("x", "direct", passive=True))
    client.exchange("source", auto_delete=True)
    client.exchange("end", auto_delete=True)
    client.do(m.ExchangeBind("end", "source", "k"))
    client.bind("q", "end", "k")
    client.do(m.QueueDelete("q"))
    client.do(m.ExchangeDeclare("end", "direct", passive=True))
    client.do(m.ExchangeDeclare("source", "direct", passive=True))


@conversation()
def default_exchange(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    for method in (
        m.ExchangeDeclare("", "direct"),
        m.ExchangeDeclare("", "direct", passive=True),
        m.ExchangeDelete(""),
        m.QueueBind("q", "", "k"),
        m.QueueUnbind("q", "", "q"),
        m.ExchangeBind("", "amq.direct", "k"),
        m.ExchangeBind("amq.direct", "", "k"),
        m.ExchangeUnbind("", "amq.direct", "k"),
        m.ExchangeUnbind("amq.direct", "", "k"),
    ):
        client.do(method)
    client.publish("a", "q")
    client.publish("b", "none", mandatory=True)
    client.hear()
    client.drain()


@conversation()
def internal_exchanges(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.exchange("in", "fanout", internal=True)
    client.exchange("out", "direct")
    client.bind("q", "in")
    client.publish("a", "k", "in")
    client.hear()
    client.do(m.ExchangeBind("in", "out", "k"))
    client.publish("b", "k", "out")
    client.drain()
    client.publish("c", "k", "amq.rabbitmq.trace")
    client.hear()


def _keys(client: Line, exchange: str, keys: list[str]) -> None:
    for key in keys:
        client.publish(key, key, exchange, mandatory=True)
    client.hear()
    client.drain()


@conversation()
def topic_keys(talk: Talk) -> None:
    client = talk.client()
    keys = ["", "a", "a.b", "a.b.c", "b", ".", "a.", ".a", "a..b", "a.*", "a.#", "#", "*", "A.b"]
    for at, pattern in enumerate(("a.*", "a.#", "#", "*", "#.b", "a.*.c", "*.#.*", "#.#", "", "a", "a.", ".a", "a..b")):
        queue = f"t{at}"
        client.queue(queue)
        client.exchange(queue, "topic")
        client.bind(queue, queue, pattern)
        for key in keys:
            client.publish(key, key, queue)
        client.hear(first=0.1)
        client.drain(queue)


@conversation()
def headers_exchanges(talk: Talk) -> None:
    client = talk.client()
    bindings: list[dict[str, Any]] = [
        {"x-match": "all", "a": 1, "b": "x"},
        {"x-match": "any", "a": 1, "b": "x"},
        {"a": 1},
        {},
        {"x-match": "any"},
        {"x-match": "all-with-x", "x-a": 1},
        {"x-match": "any-with-x", "x-a": 1, "b": "x"},
        {"x-match": "all", "x-a": 1},
        {"x-match": "any", "a": None},
        {"x-match": "all", "a": Int8(1)},
        {"x-match": "all", "a": True},
        {"x-match": "all", "a": "1"},
        {"x-match": "all", "a": 1.0},
    ]
    for at, arguments in enumerate(bindings):
        client.queue(f"h{at}")
        client.bind(f"h{at}", "amq.headers", "", arguments)
    sent: list[dict[str, Any]] = [
        {},
        {"a": 1},
        {"a": 1, "b": "x"},
        {"a": Int64(1)},
        {"a": Int8(1), "b": "y"},
        {"a": "1"},
        {"a": True},
        {"a": 1.0},
        {"a": None},
        {"b": "x"},
        {"x-a": 1},
        {"x-a": 1, "b": "x"},
        {"a": [1]},
    ]
    for at, headers in enumerate(sent):
        client.publish(str(at), "", "amq.headers", headers=headers)
    client.publish("none", "", "amq.headers")
    client.hear(first=0.1)
    for at in range(len(bindings)):
        client.drain(f"h{at}")


@conversation()
def bad_header_bindings(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    for wrong in ("some", "", 5, True, None, "ALL"):
        client.bind("q", "amq.headers", "", {"x-match": wrong})


@conversation()
def exchange_to_exchange(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.exchange("a", "topic")
    client.exchange("b", "direct")
    client.do(m.ExchangeBind("b", "a", "k.#"))
    client.do(m.ExchangeBind("a", "b", "k.x"))
    client.bind("q", "b", "k.x")
    client.bind("q", "a", "#")
    client.publish("once", "k.x", "a")
    client.drain()
    client.do(m.ExchangeBind("a", "a", "#"))
    client.publish("self", "z", "a")
    client.drain()
    client.do(m.ExchangeUnbind("b", "a", "k.#"))
    client.publish("only a", "k.x", "a")
    client.drain()
    client.do(m.ExchangeDelete("a"))
    client.publish("b alone", "k.x", "b")
    client.drain()


@conversation()
def alternate_exchanges(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.exchange("alt", "fanout")
    client.exchange("x", alternate_exchange="alt")
    client.bind("q", "alt")
    client.publish("a", "none", "x", mandatory=True)
    client.hear(first=0.3)
    client.drain()
    client.exchange("loop1", alternate_exchange="loop2")
    client.exchange("loop2", alternate_exchange="loop1")
    client.publish("round", "none", "loop1", mandatory=True)
    client.hear()
    client.exchange("away", alternate_exchange="nowhere")
    client.publish("lost", "none", "away", mandatory=True)
    client.hear()
    client.exchange("plain")
    talk.policy("alt", "^plain$", {"alternate-exchange": "alt"}, **{"apply-to": "exchanges"})
    client.publish("by policy", "none", "plain", mandatory=True)
    client.hear(first=0.3)
    client.drain()


@conversation()
def more_keys_by_header(talk: Talk) -> None:
    client = talk.client()
    for name in "abc":
        client.queue(name)
    client.publish("1", "a", headers={"CC": ["b"], "BCC": ["c"]})
    client.publish("2", "none", headers={"CC": ["b", "none"], "other": 1})
    client.publish("3", "a", headers={"CC": ["a"]})
    client.publish("4", "a", headers={"CC": "b"})
    client.hear()
    client.publish("5", "a", headers={"BCC": 5})
    client.hear()
    client.publish("6", "a", headers={"CC": [5]})
    client.hear()
    client.publish("7", "a", headers={"CC": []})
    client.hear(first=0.3)
    client.publish("8", "none", headers={"BCC": ["none"]}, mandatory=True)
    client.hear(first=0.5)
    for name in "abc":
        client.drain(name)


@conversation()
def hashed(talk: Talk) -> None:
    client = talk.client()
    client.exchange("x", "x-consistent-hash")
    client.queue()
    for weight in ("1", "0", "-1", "x", "", "1.5", "1000"):
        client.bind("q", "x", weight)
    client.publish("a", "any", "x")
    client.drain()
    client.exchange("both", "x-consistent-hash", hash_header="a", hash_property="message_id")
    client.exchange("odd", "x-consistent-hash", hash_property="nonsense")


@conversation()
def exchange_declared_by_another_kind_of_argument(talk: Talk) -> None:
    client = talk.client()
    client.do(m.ExchangeDeclare("x", "direct", durable=True))
    client.do(m.ExchangeDeclare("x", "direct", durable=False))
    client.do(m.ExchangeDeclare("x", "topic", durable=False))
    client.do(m.ExchangeDeclare("x", "direct", durable=True, auto_delete=True))
    client.do(m.ExchangeDeclare("x", "direct", durable=True, internal=True))
    client.do(m.ExchangeDeclare("x", "nonsense", durable=True))
