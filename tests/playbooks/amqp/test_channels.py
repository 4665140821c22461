"""Channels: independent of one another, closed and opened again; frames in the wrong place; what each error closes."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import BODY, HEADER, METHOD, frame, method_frame
from interlog.faces.amqp.properties import header_payload
from interlog.faces.amqp.wire import Method
from tests.playbooks.amqp.play import Client, Play, content

NO_QUEUE = "no queue 'nope' in vhost '/'"


def test_an_error_closes_its_channel_and_no_other(client: Client) -> None:
    client.open(2)
    client.queue()
    client.consume("q", "c", channel=2)
    client.send(m.QueueDeclare("nope", passive=True))
    client.expect(m.ChannelClose(404, f"NOT_FOUND - {NO_QUEUE}", 50, 10))
    client.send(m.QueueDeclare("more"), m.BasicGet("q"), m.BasicAck(9))  # nobody listens until it is agreed
    client.publish(b"lost")
    client.silence()
    client.publish(b"kept", channel=2)
    assert client.bodies() == [b"kept"]
    client.send(m.ChannelCloseOk())
    client.open(1)
    client.queue()


def test_both_sides_may_close_at_once(client: Client) -> None:
    client.send(m.BasicAck(1), m.ChannelClose(200, "bye", 0, 0))
    client.expect(m.ChannelClose, m.ChannelCloseOk())
    client.send(m.ChannelCloseOk())
    client.silence()
    client.open(1)


def test_closing_gives_back_and_forgets(client: Client) -> None:
    client.queue()
    client.publish(b"a")
    client.consume()
    client.bodies()
    client.ask(m.ChannelClose(200, "bye", 0, 0), m.ChannelCloseOk)
    client.open(1)
    got = client.get()
    assert got is not None and got.redelivered and client.queue().consumer_count == 0


def test_as_many_channels_as_agreed(play: Play) -> None:
    client = play.connect(channels=(), channel_max=3)
    for channel in (3, 1, 2):
        client.open(channel)
    client.fatal(
        m.ChannelOpen(),
        channel=4,
        code=ReplyCode.NOT_ALLOWED,
        text="number of channels opened (3) has reached the negotiated channel_max (3)",
    )


def test_flow(client: Client) -> None:
    client.queue()
    client.consume(no_ack=True)
    client.ask(m.ChannelFlow(False), m.ChannelFlowOk)
    client.publish(b"a")
    client.silence()
    client.send(m.ChannelFlow(True))
    flow, message = client.listen()
    assert flow == m.ChannelFlowOk(True) and getattr(message, "body", None) == b"a"
    client.send(m.ChannelFlowOk(True))  # an answer to nothing
    client.silence()


def test_access_request_of_old_clients(client: Client) -> None:
    client.send(m.AccessRequest("/data"))
    client.expect(m.AccessRequestOk(1))


# -- what ends the connection

NOT_OPEN = (ReplyCode.CHANNEL_ERROR, "expected 'channel.open'")
NO_HEADER = (
    ReplyCode.UNEXPECTED_FRAME,
    "expected content header for class 60, got non content header frame instead",
)
NO_BODY = (ReplyCode.UNEXPECTED_FRAME, "expected content body, got non content body frame instead")
NO_METHOD = (ReplyCode.UNEXPECTED_FRAME, "expected method frame, got non method frame instead")
PUBLISH = m.BasicPublish("", "q")
HEAD = frame(HEADER, 1, header_payload(3, b"\0\0"))

FATAL: list[tuple[str, list[Method | bytes], int | None, tuple[ReplyCode, str]]] = [
    ("method of a channel that is not open", [m.BasicQos()], 9, NOT_OPEN),
    ("header on a channel that is not open", [frame(HEADER, 9, header_payload(0, b"\0\0"))], 9, NOT_OPEN),
    ("body on a channel that is not open", [frame(BODY, 9, b"x")], 9, NOT_OPEN),
    ("open twice", [m.ChannelOpen()], 1, (ReplyCode.CHANNEL_ERROR, "second 'channel.open' seen")),
    (
        "a channel's method on channel 0",
        [m.QueueDeclare("q")],
        0,
        (ReplyCode.CHANNEL_ERROR, "unexpected method in connection state running"),
    ),
    (
        "open the connection again",
        [m.ConnectionOpen("/")],
        0,
        (ReplyCode.CHANNEL_ERROR, "unexpected method in connection state running"),
    ),
    (
        "connection's method on a channel",
        [m.ConnectionOpen("/")],
        1,
        (ReplyCode.COMMAND_INVALID, "unimplemented method (class 10, method 40)"),
    ),
    (
        "a server's method",
        [m.BasicQosOk()],
        1,
        (ReplyCode.COMMAND_INVALID, "unimplemented method (class 60, method 11)"),
    ),
    (
        "a method that is none",
        [frame(METHOD, 1, b"\0\x63\0\x07")],
        1,
        (ReplyCode.COMMAND_INVALID, "unimplemented method (class 99, method 7)"),
    ),
    (
        "a method that is none, on channel 0",
        [frame(METHOD, 0, b"\0\x63\0\x07")],
        0,
        (ReplyCode.COMMAND_INVALID, "unimplemented method (class 99, method 7)"),
    ),
    ("method instead of a header", [PUBLISH, method_frame(1, m.BasicQos().encode())], 1, NO_HEADER),
    ("publish instead of a header", [PUBLISH, PUBLISH], 1, NO_HEADER),
    ("body instead of a header", [PUBLISH, frame(BODY, 1, b"abc")], 1, NO_HEADER),
    ("method instead of a body", [PUBLISH, HEAD, method_frame(1, m.BasicQos().encode())], 1, NO_BODY),
    ("header instead of a body", [PUBLISH, HEAD, HEAD], 1, NO_BODY),
    ("body without a method", [frame(BODY, 1, b"abc")], 1, NO_METHOD),
    ("header without a method", [HEAD], 1, NO_METHOD),
    ("body on channel 0", [frame(BODY, 0, b"xx")], 0, (ReplyCode.UNEXPECTED_FRAME, 'type 3, all octets = <<"xx">>')),
    (
        "content of another class",
        [PUBLISH, frame(HEADER, 1, b"\0\x32\0\0" + bytes(8) + b"\0\0")],
        1,
        (ReplyCode.UNEXPECTED_FRAME, "expected content header for class 60, got one for class 50 instead"),
    ),
    (
        "body longer than its header says",
        [PUBLISH, HEAD, frame(BODY, 1, b"abcd")],
        1,
        (ReplyCode.FRAME_ERROR, "content body frame exceeds remaining content size"),
    ),
    (
        "frame of no type",
        [frame(9, 1, b"abc")],
        1,
        (ReplyCode.FRAME_ERROR, 'type 9, all octets = <<"abc">>: unknown_frame'),
    ),
    (
        "frame without its end",
        [b"\x01\0\x01\0\0\0\x01x\xcf"],
        1,
        (ReplyCode.FRAME_ERROR, 'type 1, all octets = <<"x">>: {invalid_frame_end_marker,207}'),
    ),
    (
        "method cut short",
        [frame(METHOD, 1, b"\0\x3c\0\x0a\0")],
        1,
        (ReplyCode.FRAME_ERROR, "cannot decode 'basic.qos'"),
    ),
    (
        "properties that are none",
        [PUBLISH, frame(HEADER, 1, header_payload(0, b"\x80\0\x09"))],
        1,
        (ReplyCode.SYNTAX_ERROR, "cannot decode content properties"),
    ),
    (
        "names that are no text",
        [frame(METHOD, 1, b"\0\x32\0\x0a\0\0\x02\xff\xfe\0\0\0\0\0")],
        1,
        (ReplyCode.FRAME_ERROR, "Malformed UTF-8 in shortstr"),
    ),
    (
        "method without ids",
        [frame(METHOD, 1, b"\0\x3c")],
        1,
        (ReplyCode.FRAME_ERROR, "type 1, all octets = <<0,60>>: unknown_frame"),
    ),
    (
        "content header with a weight",
        [PUBLISH, frame(HEADER, 1, b"\0\x3c\0\x05" + bytes(10))],
        1,
        (
            ReplyCode.UNEXPECTED_FRAME,
            "expected content header for class 60, got non content header frame instead",
        ),
    ),
    (
        "immediate",
        [m.BasicPublish("", "q", immediate=True), content(b"x")],
        1,
        (ReplyCode.NOT_IMPLEMENTED, "immediate=true"),
    ),
    ("prefetch size", [m.BasicQos(prefetch_size=1)], 1, (ReplyCode.NOT_IMPLEMENTED, "prefetch_size!=0 (1)")),
    ("recover without requeue", [m.BasicRecover(False)], 1, (ReplyCode.NOT_IMPLEMENTED, "requeue=false")),
    (
        "an exchange type that is none",
        [m.ExchangeDeclare("x", "nokind")],
        1,
        (ReplyCode.COMMAND_INVALID, "unknown exchange type 'nokind'"),
    ),
]


@pytest.mark.parametrize(("said", "channel", "why"), [one[1:] for one in FATAL], ids=[one[0] for one in FATAL])
def test_fatal(
    play: Play, client: Client, said: list[Method | bytes], channel: int | None, why: tuple[ReplyCode, str]
) -> None:
    other = play.connect()
    client.fatal(*said, channel=channel, code=why[0], text=why[1])
    other.queue()


def test_after_a_fatal_error_only_the_answer_is_heard(client: Client) -> None:
    client.send(m.BasicQos(prefetch_size=1))
    client.expect(m.ConnectionClose)
    client.send(m.QueueDeclare("q"), m.ChannelOpen(), channel=2)
    client.publish(b"x", channel=2)
    client.send(m.ConnectionClose(200, "", 0, 0))
    client.expect(m.ConnectionCloseOk())
    client.leave()


def test_a_stream_of_rubbish_after_an_error_is_not_kept(client: Client) -> None:
    client.send(b"\x09" * 100)
    client.expect(m.ConnectionClose)
    for _ in range(100):
        client.send(b"\x09" * 100_000)
    assert client.face._reader.pending_bytes < 1_000
    client.silence()
    client.send(m.ConnectionCloseOk())
    client.silence()
    assert client.hung_up


# -- what ends the channel

REFUSED: list[tuple[str, list[Method | bytes], tuple[ReplyCode, str]]] = [
    ("passive", [m.QueueDeclare("nope", passive=True)], (ReplyCode.NOT_FOUND, NO_QUEUE)),
    ("consume", [m.BasicConsume("nope", "c")], (ReplyCode.NOT_FOUND, NO_QUEUE)),
    ("get", [m.BasicGet("nope")], (ReplyCode.NOT_FOUND, NO_QUEUE)),
    ("purge", [m.QueuePurge("nope")], (ReplyCode.NOT_FOUND, NO_QUEUE)),
    ("bind", [m.QueueBind("nope", "amq.direct", "k")], (ReplyCode.NOT_FOUND, NO_QUEUE)),
    ("no queue yet", [m.BasicConsume("", "c")], (ReplyCode.NOT_FOUND, "no previously declared queue")),
    ("publish", [m.BasicPublish("nope", "k"), content(b"x")], (ReplyCode.NOT_FOUND, "no exchange 'nope' in vhost '/'")),
    ("ack", [m.BasicAck(1)], (ReplyCode.PRECONDITION_FAILED, "unknown delivery tag 1")),
    ("ack 0", [m.BasicAck(0)], (ReplyCode.PRECONDITION_FAILED, "unknown delivery tag 0")),
    ("nack", [m.BasicNack(7, True)], (ReplyCode.PRECONDITION_FAILED, "unknown delivery tag 7")),
    ("reject", [m.BasicReject(9)], (ReplyCode.PRECONDITION_FAILED, "unknown delivery tag 9")),
    ("commit", [m.TxCommit()], (ReplyCode.PRECONDITION_FAILED, "channel is not transactional")),
    ("rollback", [m.TxRollback()], (ReplyCode.PRECONDITION_FAILED, "channel is not transactional")),
]


@pytest.mark.parametrize(("said", "why"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_refused(client: Client, said: list[Any], why: tuple[ReplyCode, str]) -> None:
    client.refused(*said, code=why[0], text=why[1])
    client.queue()


def test_messages_that_are_too_large(play: Play) -> None:
    from interlog.faces.amqp.service import AmqpService, AmqpSettings

    service: AmqpService = play.service
    service.settings = AmqpSettings(max_message_bytes=1_000)
    client = play.connect()
    client.queue()
    client.refused(
        m.BasicPublish("", "q"),
        content(bytes(1_001)),
        code=ReplyCode.PRECONDITION_FAILED,
        text="message size 1001 is larger than configured max size 1000",
    )
    client.publish(bytes(1_000))
    assert client.ready() == 1


def test_half_messages_are_bounded(play: Play) -> None:
    from interlog.faces.amqp.service import AmqpSettings

    play.service.settings = AmqpSettings(max_message_bytes=10_000)
    client = play.connect(channels=range(1, 30))
    said: list[Method | bytes] = []
    for channel in range(1, 30):
        client.send(
            method_frame(channel, PUBLISH.encode())
            + frame(HEADER, channel, header_payload(10_000, b"\0\0"))
            + frame(BODY, channel, bytes(900))
        )
        said.clear()
    (close,) = client.listen()
    assert isinstance(close, m.ConnectionClose) and close.reply_code == ReplyCode.RESOURCE_ERROR
    assert client.face.gathered == 0


def test_bodies_in_any_pieces(client: Client) -> None:
    client.queue()
    body = bytes(range(256))
    for part in (1, 7, 255, 256):
        client.send(m.BasicPublish("", "q"), content(body, part=part))
    client.send(m.BasicPublish("", "q"), frame(HEADER, 1, header_payload(2, b"\0\0")))
    for payload in (b"", b"a", b"", b"b"):
        client.send(frame(BODY, 1, payload))
    client.publish(b"")
    assert client.drain() == [body] * 4 + [b"ab", b""] and client.face.gathered == 0


def test_a_conversation_cut_anywhere(play: Play) -> None:
    said = b"".join(
        method_frame(1, one.encode()) for one in (m.ChannelOpen(), m.QueueDeclare("q"), m.BasicPublish("", "q"))
    )
    said += content(b"abc") + method_frame(1, m.BasicGet("q", no_ack=True).encode())
    for cut in range(1, len(said)):
        client = play.connect(channels=())
        client.send(said[:cut])
        client.send(said[cut:])
        heard = client.listen()
        assert [type(one) for one in heard[:2]] == [m.ChannelOpenOk, m.QueueDeclareOk] and len(heard) == 3
        client.drop()
