"""Queues: declared, compared, owned, expired; what each argument may be."""

from typing import Any

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.values import Float32, Int8, Int16, Int64, Timestamp, UInt8, UInt16, UInt32
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Talk

ARGUMENTS: dict[str, list[Any]] = {
    "x-message-ttl": [0, 1, -1, "10", 1.5, True, 1 << 40, 1 << 62, None, Int8(5), UInt32(7), Int64(9), [], {}],
    "x-expires": [0, 1000, -1, "10", 1.5, 1 << 40, 1 << 62, Int16(2000), None],
    "x-max-length": [0, 5, -1, "5", True, 1 << 40, Int8(1), None],
    "x-max-length-bytes": [0, 5, -1, "5", 1 << 62, None],
    "x-overflow": ["drop-head", "reject-publish", "reject-publish-dlx", "other", 5, None],
    "x-dead-letter-exchange": ["", "nowhere"],
    "x-dead-letter-routing-key": ["k", 5],
    "x-max-priority": [0, 1, 10, 255, 256, -1, "5", 1 << 40, True, None],
    "x-single-active-consumer": [True, False, "true", 1, None],
    "x-queue-mode": ["lazy", "default", "other", 5],
    "x-queue-version": [1, 2, 3, "1"],
    "x-queue-type": ["classic", "quorum", "stream", "other", 5, True, None],
    "x-queue-master-locator": ["client-local", "min-masters"],
    "x-queue-leader-locator": ["client-local", "balanced", "other", 5],
    "x-delivery-limit": [0, 5, -1],
    "x-quorum-initial-group-size": [1, 0, "1"],
    "x-dead-letter-strategy": ["at-least-once", "at-most-once", "other", 5],
    "x-max-in-memory-length": [5, -1],
    "x-max-in-memory-bytes": [5, -1],
    "x-max-age": ["1D", "1X", 5],
    "x-stream-max-segment-size-bytes": [1_000_000, -1, "5"],
    "x-initial-cluster-size": [1, 0, "1"],
    "x-unknown": [1, "text"],
}


def _each_argument(talk: Talk, **declared: Any) -> None:
    client = talk.client()
    kind = declared.pop("kind", None)
    for argument, values in ARGUMENTS.items():
        if argument == ("x-queue-type" if kind else "x-queue-leader-locator"):
            continue  # classic queues have a locator since 3.12
        for at, value in enumerate(values):
            name = f"q-{argument}-{at}"
            arguments = {argument: value} | ({"x-queue-type": kind} if kind else {})
            client.do(m.QueueDeclare(name, arguments=arguments, **declared), quiet=0.02)


@conversation()
def arguments_of_classic_queues(talk: Talk) -> None:
    _each_argument(talk)


@conversation()
def arguments_of_quorum_queues(talk: Talk) -> None:
    _each_argument(talk, durable=True, kind="quorum")


@conversation()
def arguments_of_streams(talk: Talk) -> None:
    _each_argument(talk, durable=True, kind="stream")


EQUIVALENCE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"durable": True}, {"durable": False}),
    ({"durable": False}, {"durable": True}),
    ({"auto_delete": True}, {}),
    ({}, {"auto_delete": True}),
    ({}, {"exclusive": True}),
    ({"exclusive": True}, {}),
    ({"exclusive": True, "durable": True}, {"exclusive": True}),
    ({"arguments": {"x-message-ttl": 1000}}, {"arguments": {"x-message-ttl": 2000}}),
    ({"arguments": {"x-message-ttl": 1000}}, {}),
    ({}, {"arguments": {"x-message-ttl": 1000}}),
    ({"arguments": {"x-message-ttl": 1000}}, {"arguments": {"x-message-ttl": Int64(1000)}}),
    ({"arguments": {"x-message-ttl": 1000}}, {"arguments": {"x-message-ttl": UInt16(1000)}}),
    ({"arguments": {"x-max-length": 5}}, {"arguments": {"x-max-length": 6}}),
    ({"arguments": {"x-max-length": 5}}, {}),
    ({"arguments": {"x-max-length-bytes": 5}}, {"arguments": {"x-max-length-bytes": Int64(5)}}),
    ({"arguments": {"x-max-length-bytes": 5}}, {"arguments": {"x-max-length-bytes": 6}}),
    ({"arguments": {"x-overflow": "drop-head"}}, {}),
    ({"arguments": {"x-overflow": "drop-head"}}, {"arguments": {"x-overflow": "reject-publish"}}),
    ({"arguments": {"x-max-priority": 5}}, {"arguments": {"x-max-priority": 6}}),
    ({"arguments": {"x-max-priority": 5}}, {"arguments": {"x-max-priority": UInt8(5)}}),
    ({"arguments": {"x-max-priority": 5}}, {}),
    ({}, {"arguments": {"x-max-priority": 5}}),
    ({"arguments": {"x-dead-letter-exchange": "a"}}, {"arguments": {"x-dead-letter-exchange": "b"}}),
    ({"arguments": {"x-dead-letter-exchange": "a"}}, {}),
    (
        {"arguments": {"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "k"}},
        {"arguments": {"x-dead-letter-exchange": "a"}},
    ),
    ({"arguments": {"x-single-active-consumer": True}}, {}),
    ({"arguments": {"x-single-active-consumer": True}}, {"arguments": {"x-single-active-consumer": False}}),
    ({"arguments": {"x-single-active-consumer": False}}, {}),
    ({"arguments": {"x-expires": 60000}}, {"arguments": {"x-expires": 70000}}),
    ({"arguments": {"x-queue-mode": "lazy"}}, {}),
    ({"arguments": {"x-queue-mode": "lazy"}}, {"arguments": {"x-queue-mode": "default"}}),
    ({"arguments": {"x-unknown": 1}}, {"arguments": {"x-unknown": 2}}),
    ({"arguments": {"x-queue-type": "classic"}}, {}),
    ({}, {"arguments": {"x-queue-type": "classic"}}),
    ({"durable": True}, {"durable": True, "arguments": {"x-queue-type": "quorum"}}),
    ({"durable": True, "arguments": {"x-queue-type": "quorum"}}, {"durable": True}),
    (
        {"durable": True, "arguments": {"x-queue-type": "quorum"}},
        {"durable": True, "arguments": {"x-queue-type": "stream"}},
    ),
    (
        {"durable": True, "arguments": {"x-queue-type": "quorum"}},
        {"durable": True, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 3}},
    ),
    (
        {"durable": True, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 3}},
        {"durable": True, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 4}},
    ),
    (
        {"durable": True, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 3}},
        {"durable": True, "arguments": {"x-queue-type": "quorum"}},
    ),
    (
        {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-length-bytes": 1000}},
        {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-length-bytes": 2000}},
    ),
    (
        {"durable": True, "arguments": {"x-queue-type": "stream"}},
        {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-length-bytes": 2000}},
    ),
    (
        {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-length-bytes": 2000}},
        {"durable": True, "arguments": {"x-queue-type": "stream"}},
    ),
    ({"durable": True, "arguments": {"x-queue-type": "stream"}}, {"durable": True}),
    ({"durable": True}, {"durable": True, "arguments": {"x-queue-type": "stream"}}),
]


@conversation()
def declared_again_otherwise(talk: Talk) -> None:
    client = talk.client()
    for at, (first, second) in enumerate(EQUIVALENCE):
        client.do(m.QueueDeclare(f"q{at}", **first))
        client.do(m.QueueDeclare(f"q{at}", **second))


@conversation()
def flags_of_queue_types(talk: Talk) -> None:
    client = talk.client()
    for kind in ("quorum", "stream"):
        for flags in (
            {"durable": False},
            {"durable": True, "exclusive": True},
            {"durable": True, "auto_delete": True},
            {"durable": False, "exclusive": True, "auto_delete": True},
        ):
            client.do(m.QueueDeclare(f"{kind}", arguments={"x-queue-type": kind}, **flags))


@conversation()
def names_of_queues(talk: Talk) -> None:
    client = talk.client()
    for name in ("amq.mine", "amq.gen-abc", "amq", "AMQ.x", "a" * 255, "ü" * 100, "with space", "a/b%2f", "amq."):
        client.queue(name)
        client.do(m.QueueDeclare(name, passive=True))
        client.do(m.QueueDelete(name))
    client.do(m.QueueDeclare("amq.nothing", passive=True))
    client.do(m.QueueDeclare("", passive=True))
    client.do(m.QueueDeclare(""))
    client.do(m.QueueDeclare("", passive=True))
    client.do(m.QueueBind("", "amq.fanout", "k"))
    client.do(m.QueuePurge(""))
    client.do(m.BasicConsume("", "c"))
    client.do(m.BasicGet(""))
    client.do(m.QueueDelete(""))
    client.do(m.QueueDeclare("", passive=True))


@conversation()
def no_queue_was_declared(talk: Talk) -> None:
    client = talk.client()
    for method in (
        m.QueueDeclare("", passive=True),
        m.QueueBind("", "amq.fanout", "k"),
        m.QueueBind("", "amq.fanout", ""),
        m.QueueUnbind("", "amq.fanout", "k"),
        m.QueueUnbind("", "amq.fanout", ""),
        m.QueuePurge(""),
        m.QueueDelete(""),
        m.BasicConsume("", "c"),
        m.BasicGet(""),
    ):
        client.do(method)


@conversation()
def nothing_is_there(talk: Talk) -> None:
    client = talk.client()
    client.queue("q")
    for method in (
        m.QueueDeclare("none", passive=True),
        m.QueueBind("none", "amq.fanout", "k"),
        m.QueueBind("q", "none", "k"),
        m.QueueBind("none", "nothing", "k"),
        m.QueueBind("q", "", "k"),
        m.QueueUnbind("none", "amq.fanout", "k"),
        m.QueueUnbind("q", "none", "k"),
        m.QueueUnbind("q", "amq.fanout", "k"),
        m.QueueUnbind("q", "", "k"),
        m.QueueUnbind("q", "", "q"),
        m.QueuePurge("none"),
        m.QueueDelete("none"),
        m.QueueDelete("none", if_unused=True),
        m.BasicConsume("none", "c"),
        m.BasicGet("none"),
        m.BasicCancel("none"),
        m.ExchangeDeclare("none", "direct", passive=True),
        m.ExchangeDeclare("none", "nonsense", passive=True),
        m.ExchangeDelete("none"),
        m.ExchangeDelete("none", if_unused=True),
        m.ExchangeBind("amq.fanout", "none", "k"),
        m.ExchangeBind("none", "amq.fanout", "k"),
        m.ExchangeUnbind("amq.fanout", "none", "k"),
        m.ExchangeUnbind("none", "amq.fanout", "k"),
        m.ExchangeUnbind("amq.direct", "amq.fanout", "k"),
    ):
        client.do(method)


@conversation()
def exclusive_queues(talk: Talk) -> None:
    owner, other = talk.client("owner"), talk.client("other")
    owner.queue("q", exclusive=True)
    owner.publish("a")
    owner.bind("q", "amq.fanout", "k")
    for method in (
        m.QueueDeclare("q", passive=True),
        m.QueueDeclare("q"),
        m.QueueDeclare("q", exclusive=True),
        m.QueueBind("q", "amq.fanout", "k"),
        m.QueueUnbind("q", "amq.fanout", "k"),
        m.QueuePurge("q"),
        m.QueueDelete("q"),
        m.BasicConsume("q", "c"),
        m.BasicGet("q"),
    ):
        other.do(method)
    other.publish("from another")
    owner.count()
    owner.queue("q")
    owner.queue("q", exclusive=True)
    owner.drain()
    owner.do(m.ConnectionClose(200, "bye"))
    other.count()
    other.queue("q", exclusive=True, durable=True)


@conversation()
def exclusive_queue_of_a_lost_connection(talk: Talk) -> None:
    owner, other = talk.client("owner"), talk.client("other")
    owner.queue("q", exclusive=True, durable=True)
    other.do(m.QueueDeclare("q", passive=True))
    owner.cut()
    talk.sleep(0.5 * talk.pace)
    other.do(m.QueueDeclare("q", passive=True))


@conversation()
def auto_delete_queues(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.queue("q", auto_delete=True)
    client.publish("stays")
    client.count()
    client.consume(tag="c1", no_ack=False)
    client.consume(tag="c2", channel=2)
    client.do(m.BasicCancel("c1"))
    client.count()
    client.do(m.BasicCancel("c2"), channel=2)
    client.count()
    client.queue("q", auto_delete=True)
    client.do(m.BasicGet("q"))
    client.count()
    client.consume(channel=2)
    client.do(m.ChannelClose(200, "bye", 0, 0), channel=2)
    client.count()


def _delete_if(talk: Talk, kind: str) -> None:
    client = talk.client()
    client.queue("q", durable=True, x_queue_type=kind)
    client.publish("a")
    client.hear(first=0.3)
    client.do(m.QueueDelete("q", if_empty=True))
    client.do(m.QueueDelete("q", if_unused=True, if_empty=True))
    client.consume(no_ack=True)
    client.do(m.QueueDelete("q", if_unused=True))
    client.consume(no_ack=False)
    client.do(m.QueueDelete("q", if_unused=True))
    client.consume(no_ack=False)
    client.publish("b")
    client.hear()
    client.do(m.QueueDelete("q", if_empty=True))
    client.do(m.QueueDelete("q"))


@conversation()
def deleted_only_if(talk: Talk) -> None:
    _delete_if(talk, "classic")


@conversation("if-empty and if-unused are heeded of quorum queues, too, where RabbitMQ refuses them")
def quorum_queues_deleted_only_if(talk: Talk) -> None:
    _delete_if(talk, "quorum")


@conversation()
def deleted_under_consumers(talk: Talk) -> None:
    client, other = talk.client(channels=(1, 2)), talk.client("b", capabilities={})
    client.queue()
    client.consume(tag="c1")
    client.consume(tag="c2", channel=2)
    other.consume(tag="untold")
    client.publish("a")
    client.hear()
    other.hear(first=0.3)
    client.do(m.QueueDelete("q"))
    other.hear(first=0.3)
    client.do(m.BasicAck(1))
    client.do(m.BasicCancel("c1"))


@conversation()
def purged(talk: Talk) -> None:
    client = talk.client()
    for kind in ("classic", "quorum"):
        client.queue("q", durable=True, x_queue_type=kind)
        for body in "abc":
            client.publish(body)
        client.hear(first=0.3)
        client.get(no_ack=False)
        client.do(m.QueuePurge("q"))
        client.do(m.QueuePurge("q"))
        client.do(m.BasicRecover(True), first=0.3)
        client.drain()
        client.do(m.QueuePurge("q", nowait=True), first=0.3)
        client.do(m.QueueDelete("q"))


@conversation()
def without_an_answer(talk: Talk) -> None:
    client = talk.client()
    client.say(
        m.QueueDeclare("q", nowait=True),
        m.ExchangeDeclare("x", "topic", nowait=True),
        m.QueueBind("q", "x", "#", nowait=True),
        m.ExchangeDeclare("y", "fanout", nowait=True),
        m.ExchangeBind("x", "y", "", nowait=True),
        m.BasicConsume("q", "c", nowait=True),
        m.ConfirmSelect(nowait=True),
    )
    client.publish("a", "k", "y")
    client.hear()
    client.do(m.BasicCancel("c", nowait=True), first=0.3)
    client.do(m.ExchangeUnbind("x", "y", "", nowait=True), first=0.3)
    client.do(m.QueueDeclare("q", durable=True, nowait=True))
    client.do(m.QueueDeclare("none", passive=True, nowait=True))
    client.do(m.QueueDelete("q", nowait=True), first=0.3)
    client.do(m.ExchangeDelete("x", nowait=True), first=0.3)
    client.count()


@conversation()
def queue_expires(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", x_expires=600)
    talk.sleep(0.4)
    client.count()
    talk.sleep(0.4)
    client.count()
    client.consume()
    talk.sleep(1.0)
    client.do(m.BasicCancel("c"))
    talk.sleep(0.3)
    client.get()
    talk.sleep(0.4)
    client.count()
    talk.sleep(1.5)
    client.count()


def _counts(talk: Talk, kind: str) -> None:
    client = talk.client()
    client.queue("q", durable=True, x_queue_type=kind)
    for body in "abc":
        client.publish(body)
    client.hear(first=0.4)
    client.queue("q", durable=True, x_queue_type=kind)
    client.get(no_ack=False)
    client.count()
    client.consume(tag="x")
    client.count()
    client.do(m.QueueDelete("q"))


@conversation()
def counts_of_a_declaration(talk: Talk) -> None:
    _counts(talk, "classic")


@conversation("who got a message by asking is no consumer; RabbitMQ counts such of a quorum queue")
def counts_of_a_quorum_queue(talk: Talk) -> None:
    _counts(talk, "quorum")


@conversation()
def bindings_of_queues(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.bind("q", "amq.direct", "k")
    client.bind("q", "amq.direct", "k")
    client.publish("once", "k", "amq.direct")
    client.drain()
    client.bind("q", "amq.direct", "k", {"a": 1})
    client.publish("once still", "k", "amq.direct")
    client.drain()
    client.do(m.QueueUnbind("q", "amq.direct", "k"))
    client.publish("by the other", "k", "amq.direct")
    client.drain()
    client.do(m.QueueUnbind("q", "amq.direct", "k", {"a": 2}))
    client.do(m.QueueUnbind("q", "amq.direct", "k", {"a": 1}))
    client.publish("gone?", "k", "amq.direct")
    client.drain()
    client.do(m.QueueBind("", "amq.direct", ""))
    client.publish("key of the queue", "q", "amq.direct")
    client.drain()


@conversation()
def odd_arguments(talk: Talk) -> None:
    client = talk.client()
    odd = {
        "a": [1, [2, "x"], {"b": None}],
        "t": Timestamp(5),
        "f": Float32(1.5),
        "d": 2.5,
        "x": b"\x00\xff",
        "n": None,
        "deep": {"a": {"b": {"c": [True]}}},
    }
    client.do(m.QueueDeclare("q", arguments=odd))
    client.do(m.ExchangeDeclare("x", "fanout", arguments=odd))
    client.do(m.QueueBind("q", "x", "k", arguments=odd))
    client.publish("a", "k", "x", headers=odd)
    client.drain()
    client.do(m.QueueUnbind("q", "x", "k", arguments=odd))
    client.publish("b", "k", "x", mandatory=True)
    client.hear()


@conversation()
def names_of_the_broker_declared_again(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    name = client.queue("", auto_delete=True)[0][1].queue
    client.queue(name, auto_delete=True)
    client.queue(name)
    other.queue(name, auto_delete=True)
    other.do(m.QueueDelete(name))
    other.queue(name, auto_delete=True)


@conversation()
def consumers_of_queues_that_expire(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    client.queue("q", auto_delete=True)
    client.consume(tag="mine")
    other.consume(tag="theirs")
    client.do(m.ChannelClose(200, "", 0, 0))
    other.count()
    other.do(m.BasicCancel("theirs"))
    other.count()
