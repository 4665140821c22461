"""Publishing: returns, confirms, transactions, properties, replies without a queue."""

from typing import Any

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.frames import BODY, HEADER, frame, method_frame
from interlog.faces.amqp.properties import NO_PROPERTIES, Properties, header_payload
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Talk

REPLY_TO = "amq.rabbitmq.reply-to"
_CONTENT = frame(HEADER, 1, header_payload(0, NO_PROPERTIES))


@conversation()
def returned_messages(talk: Talk) -> None:
    client = talk.client()
    client.publish("a", "none", mandatory=True, content_type="text/plain", headers={"h": 1}, message_id="m")
    client.hear()
    client.publish("", "none", "amq.direct", mandatory=True)
    client.hear()
    client.publish("x" * 20_000, "none", "amq.topic", mandatory=True)
    client.hear()
    client.publish("unroutable, not mandatory", "none")
    client.hear(first=0.3)
    client.confirms()
    client.publish("b", "none", mandatory=True)
    client.hear(in_order=True)
    client.publish("c", "none")
    client.hear()


@conversation()
def immediate(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.do(method_frame(1, m.BasicPublish("", "q", immediate=True).encode()) + _CONTENT)


@conversation()
def publish_to_no_exchange(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.queue()
    client.publish("a", "k", "none")
    client.hear()
    client.publish("b", "q", "")
    client.confirms()
    client.publish("a", "k", "none")
    client.publish("after", "q")
    client.hear()
    client.publish("other channel", "q", channel=2)
    client.hear(first=0.2)
    client.drain()


@conversation()
def confirmed(talk: Talk) -> None:
    client = talk.client()
    client.do(m.ConfirmSelect())
    client.do(m.ConfirmSelect())
    client.queue("q", durable=True)
    client.publish("1")
    client.hear()
    client.publish("2", delivery_mode=2)
    client.hear()
    client.publish("3", "none")
    client.hear()
    client.do(m.TxSelect())
    client.publish("4")
    client.hear(first=0.4)
    client.do(m.TxSelect())
    client.do(m.ConfirmSelect())
    client.do(m.TxCommit())
    client.do(m.TxRollback())


@conversation()
def refused_by_full_queues(talk: Talk) -> None:
    client = talk.client()
    client.confirms()
    limits: tuple[dict[str, Any], ...] = (
        {"x_max_length": 2, "x_overflow": "reject-publish"},
        {"x_max_length": 2, "x_overflow": "drop-head"},
        {"x_max_length": 2},
        {"x_max_length_bytes": 3, "x_overflow": "reject-publish"},
        {"x_max_length_bytes": 3},
        {"x_max_length": 0, "x_overflow": "reject-publish"},
        {"x_max_length": 0},
        {"x_max_length_bytes": 0},
    )
    for at, arguments in enumerate(limits):
        client.queue(f"q{at}", **arguments)
        for body in ("a", "bb", "c", "dd"):
            client.publish(body, f"q{at}")
            client.hear()
        client.count(f"q{at}")
        client.drain(f"q{at}")


@conversation()
def full_with_consumers(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.confirms()
    client.queue("q", x_max_length=1, x_overflow="reject-publish")
    client.qos(1, channel=2)
    client.consume(channel=2)
    for body in ("held", "waiting", "too much"):
        client.publish(body)
        client.hear()
    client.do(m.BasicAck(1), channel=2)
    client.publish("one more")
    client.hear()
    client.count()


@conversation()
def one_full_of_two(talk: Talk) -> None:
    client = talk.client()
    client.confirms()
    client.queue("full", x_max_length=1, x_overflow="reject-publish")
    client.queue("free")
    for queue in ("full", "free"):
        client.bind(queue, "amq.fanout")
    for body in ("a", "b"):
        client.publish(body, "", "amq.fanout")
        client.hear()
    client.drain("full")
    client.drain("free")


@conversation()
def tx_publishes(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    client.queue()
    client.do(m.TxCommit())
    client.do(m.TxRollback())
    client.do(m.TxSelect())
    client.do(m.TxSelect())
    client.publish("a")
    client.publish("nobody", "none", mandatory=True)
    client.hear(first=0.4)
    other.count()
    client.do(m.TxCommit(), in_order=True)
    other.count()
    client.publish("b")
    client.do(m.TxRollback())
    client.do(m.TxCommit())
    other.drain()
    client.publish("c", "k", "no-exchange")
    client.hear()


@conversation()
def tx_acknowledgements(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    client.queue()
    for body in "abcd":
        client.publish(body)
    client.do(m.TxSelect())
    for _ in range(3):
        client.get(no_ack=False)
    client.do(m.BasicAck(1), m.BasicReject(2, True), first=0.3)
    other.count()
    client.do(m.TxRollback())
    client.do(m.BasicAck(1), first=0.3)
    client.do(m.TxCommit())
    client.do(m.BasicNack(2, False, False), first=0.3)
    client.do(m.TxCommit())
    client.do(m.BasicAck(2), first=0.3)
    client.get(no_ack=False)
    client.do(m.TxSelect())
    client.get(no_ack=False)
    client.do(m.BasicAck(1), first=0.3)
    client.do(m.ChannelClose(200, "bye", 0, 0))
    talk.sleep(0.2)
    other.drain()


@conversation()
def tx_unknown_tag(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.do(m.TxSelect())
    client.do(m.BasicAck(5))
    client.do(m.TxSelect())
    client.publish("a", expiration="nonsense")
    client.hear(first=0.5)
    client.do(m.TxCommit())


@conversation()
def all_properties(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.publish(
        "a",
        content_type="text/plain",
        content_encoding="gzip",
        headers={"a": 1, "b": None, "c": [1, "x"], "d": {"e": True}},
        delivery_mode=2,
        priority=200,
        correlation_id="c",
        reply_to="r",
        expiration="100000",
        message_id="m",
        timestamp=1 << 40,
        type="t",
        user_id="guest",
        app_id="app",
        cluster_id="cl",
    )
    client.publish("d", priority=0, headers={})
    client.hear(first=0.2)
    client.drain()


@conversation()
def wrong_properties(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    for expiration in ("", "x", "-1", "1.5", " 1", "1 ", "4294967295", "4294967296", "99999999999999999999", "0"):
        client.publish("a", expiration=expiration)
        client.hear(first=0.4)
    client.drain()
    client.publish("b", user_id="nobody")
    client.hear()
    client.publish("c", user_id="")
    client.hear()
    client.publish("d", reply_to=REPLY_TO)
    client.hear()


@conversation("a reply that arrives is not returned as unroutable; replies are numbered like all deliveries")
def direct_replies(talk: Talk) -> None:
    asker, answerer = talk.client("asker"), talk.client("answerer")
    answerer.queue("service")
    asker.do(m.QueueDeclare(REPLY_TO, passive=True))
    asker.do(m.QueueDeclare(REPLY_TO))
    asker.do(m.BasicConsume(REPLY_TO, "r"))
    asker.do(m.BasicGet(REPLY_TO))
    asker.do(m.BasicConsume(REPLY_TO, "r", no_ack=True))
    asker.do(m.BasicConsume(REPLY_TO, "r2", no_ack=True))
    asker.do(m.BasicConsume(REPLY_TO, "r", no_ack=True))
    asker.do(m.QueueDeclare(REPLY_TO))
    asker.publish("ask", "service", reply_to=REPLY_TO, correlation_id="1", mandatory=True)
    asker.hear(first=0.3)
    heard = answerer.get("service")
    address = heard[0][2].reply_to
    assert address is not None and address.startswith(REPLY_TO + ".")
    for method in (
        m.QueueDeclare(address, passive=True),
        m.QueueDeclare(address),
        m.QueueDelete(address),
        m.QueuePurge(address),
        m.QueueBind(address, "amq.fanout", ""),
        m.BasicGet(address),
        m.BasicConsume(address, "c"),
    ):
        answerer.do(method)
    answerer.publish("answer", address, correlation_id="1", delivery_mode=2, mandatory=True)
    answerer.hear(first=0.3)
    asker.hear()
    answerer.confirms()
    answerer.publish("twice", address)
    answerer.hear()
    asker.hear()
    answerer.publish("by an exchange", address, "amq.direct", mandatory=True)
    answerer.hear()
    asker.hear(first=0.3)
    asker.do(m.BasicCancel("r"))
    answerer.publish("late", address, mandatory=True)
    answerer.hear()
    asker.hear(first=0.3)
    asker.publish("ask again", "service", reply_to=REPLY_TO)
    asker.hear()
    answerer.do(m.QueueDeclare(address, passive=True))
    answerer.publish("nobody", REPLY_TO + ".made-up", mandatory=True)
    answerer.hear()
    answerer.publish("nobody", REPLY_TO, mandatory=True)
    answerer.hear()
    answerer.do(m.QueueDelete(REPLY_TO))


@conversation()
def replies_when_the_asker_has_gone(talk: Talk) -> None:
    asker, answerer = talk.client("asker"), talk.client("answerer")
    answerer.queue("service")
    asker.do(m.BasicConsume(REPLY_TO, "", no_ack=True))
    asker.publish("ask", "service", reply_to=REPLY_TO)
    asker.hear(first=0.2)
    address = answerer.get("service")[0][2].reply_to
    asker.do(m.ChannelClose(200, "bye", 0, 0))
    answerer.publish("late", address, mandatory=True)
    answerer.hear()
    answerer.do(m.QueueDeclare(address, passive=True))


@conversation()
def bodies_in_parts(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.publish("abcdef", part=1)
    client.publish("")
    client.say(method_frame(1, m.BasicPublish("", "q").encode()) + frame(HEADER, 1, header_payload(3, NO_PROPERTIES)))
    client.say(frame(BODY, 1, b""), frame(BODY, 1, b"abc"))
    client.hear(first=0.3)
    client.drain()


@conversation("it says what is wrong in more words, and never hangs up without a word")
def contents_that_do_not_fit(talk: Talk) -> None:
    publish = method_frame(1, m.BasicPublish("", "q").encode())
    header = frame(HEADER, 1, header_payload(3, NO_PROPERTIES))
    for said in (
        [publish, frame(BODY, 1, b"abc")],
        [publish, publish],
        [publish, method_frame(1, m.QueueDeclare("q2").encode())],
        [publish, header, publish],
        [publish, header, header],
        [publish, header, frame(BODY, 1, b"abcd")],
        [publish, header, method_frame(1, m.BasicAck(1).encode())],
        [header],
        [frame(BODY, 1, b"abc")],
        [publish, frame(HEADER, 1, header_payload(3, NO_PROPERTIES)[:8])],
        [publish, frame(HEADER, 1, b"\x00\x0a" + header_payload(3, NO_PROPERTIES)[2:])],
        [publish, frame(HEADER, 1, b"\x00\x3c\x00\x05" + header_payload(3, NO_PROPERTIES)[4:]), frame(BODY, 1, b"abc")],
        [publish, frame(HEADER, 1, header_payload(0, b"\x80\x00\x05ab"))],
        [publish, frame(HEADER, 1, header_payload(0, b"\x80\x00\x02abxx"))],
        [publish, frame(HEADER, 1, header_payload(0, b"\x20\x00\x00\x00\x00\x05ab"))],
        [publish, frame(HEADER, 1, header_payload(0, b"\x20\x00\x00\x00\x00\x04\x01a?\x01"))],
        [publish, frame(HEADER, 1, header_payload(0, b"\x00\x01\x00\x00"))],
        [publish, header, frame(8, 0, b""), frame(BODY, 1, b"abc")],
        [publish, method_frame(1, m.ChannelClose(200, "", 0, 0).encode())],
        [publish, method_frame(0, m.ConnectionClose(200, "", 0, 0).encode())],
        [publish, header, method_frame(1, m.ChannelClose(200, "", 0, 0).encode())],
    ):
        client = talk.client()
        client.queue()
        client.say(*said)
        client.hear(first=0.4)
        client.cut()


@conversation()
def after_an_error_in_a_publish(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.queue()
    big = Properties().encode()
    client.say(method_frame(1, m.BasicPublish("none", "q").encode()))
    client.hear()
    client.say(frame(HEADER, 1, header_payload(3, big)), frame(BODY, 1, b"abc"))
    client.hear(first=0.5)
    client.publish("other", channel=2)
    client.hear(first=0.2)


@conversation()
def routes_that_change(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    client.queue()
    client.exchange("x")
    client.bind("q", "x", "k")
    for at in range(3):
        client.publish(f"{at}", "k", "x", mandatory=True)
    client.hear(first=0.2)
    other.do(m.QueueUnbind("q", "x", "k"))
    client.publish("unbound", "k", "x", mandatory=True)
    client.hear()
    other.bind("q", "x", "k")
    client.publish("bound", "k", "x", mandatory=True)
    client.hear(first=0.2)
    other.do(m.QueueDelete("q"))
    client.publish("no queue", "k", "x", mandatory=True)
    client.publish("no queue", "q", mandatory=True)
    client.hear()
    other.queue("q", x_max_length=1)
    client.publish("one", "q", mandatory=True)
    client.publish("two", "q", mandatory=True)
    client.publish("not bound any more", "k", "x", mandatory=True)
    client.hear()
    other.drain()
    other.do(m.ExchangeDelete("x"))
    client.publish("no exchange", "k", "x", mandatory=True)
    client.hear()
    other.exchange("x", "fanout")
    other.bind("q", "x")
    client.publish("another kind", "k", "x", mandatory=True)
    client.hear(first=0.2)
    other.drain()


@conversation()
def large_messages(talk: Talk) -> None:
    for frame_max in (4096, 131_072):
        client = talk.client(f"c{frame_max}", frame_max=frame_max)
        client.queue("q", durable=True)
        client.confirms()
        for size in (frame_max - 9, frame_max - 8, frame_max - 7, 1_000_000):
            client.publish("x" * size, part=frame_max - 8, delivery_mode=2)
            client.hear()
        client.drain()
