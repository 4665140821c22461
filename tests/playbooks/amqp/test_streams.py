"""Streams: declared, read from any place, filtered, and never emptied by reading."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.values import Timestamp
from tests.playbooks.amqp.play import Client, Content, Play

LATER_MS = 10_000  # between two messages


@pytest.fixture
def stream(play: Play, client: Client) -> Client:
    """A stream s of ten messages, ten seconds apart; prefetch 100."""
    client.queue("s", durable=True, x_queue_type="stream")
    for number in range(10):
        client.publish(b"%d" % number, "s")
        play.later(LATER_MS)
    client.qos(100)
    return client


def offsets(messages: list[Content]) -> list[int]:
    assert [int(message.body) for message in messages] == [message.headers["x-stream-offset"] for message in messages]
    return [int(message.body) for message in messages]


def test_prefetch_is_required(client: Client) -> None:
    client.queue("s", durable=True, x_queue_type="stream")
    client.refused(
        m.BasicConsume("s", "c"),
        code=ReplyCode.PRECONDITION_FAILED,
        text="consumer prefetch count is not set for 'queue 's' in vhost '/''",
    )


def test_acknowledgements_are_required(stream: Client) -> None:
    stream.fatal(
        m.BasicConsume("s", "c", no_ack=True),
        code=ReplyCode.NOT_IMPLEMENTED,
        text="automatic acknowledgement not supported by stream queues queue 's' in vhost '/'",
    )


@pytest.mark.parametrize(
    ("offset", "first"),
    [
        ("first", 0),
        ("last", 9),
        ("next", 10),
        (None, 10),
        (0, 0),
        (4, 4),
        (10, 10),
        (1_000, 10),
        ("1m", 4),
        ("65s", 4),
        ("1h", 0),
        ("1D", 0),
        ("1M", 0),
        ("1Y", 0),
        ("999999999999Y", 0),
    ],
)
def test_offsets(stream: Client, offset: Any, first: int) -> None:
    stream.consume("s", **({} if offset is None else {"x_stream_offset": offset}))
    assert offsets(stream.messages()) == list(range(first, 10))
    stream.publish(b"10", "s")
    assert offsets(stream.messages()) == ([10] if offset != 1_000 else [])


def test_offset_by_time(play: Play, stream: Client) -> None:
    now_s = play.clock.now_ms() // 1_000
    stream.consume("s", "a", x_stream_offset=Timestamp(now_s - 35))
    assert offsets(stream.messages()) == [7, 8, 9]
    stream.consume("s", "b", x_stream_offset=Timestamp(now_s + 1_000))
    assert stream.messages() == []
    stream.consume("s", "c", x_stream_offset=Timestamp(0))
    assert len(stream.messages()) == 10


@pytest.mark.parametrize(
    ("offset", "told"),
    [
        ("soon", '{longstr,<<"soon">>}'),
        ("-1", '{longstr,<<"-1">>}'),
        ("5", '{longstr,<<"5">>}'),
        ("1w", '{longstr,<<"1w">>}'),
        (-1, "{signedint,-1}"),
        (True, "{bool,true}"),
        (1.5, "{double,1.5}"),
        ([1], "{array,[1]}"),
    ],
)
def test_offsets_that_are_none(stream: Client, offset: Any, told: str) -> None:
    stream.refused(
        m.BasicConsume("s", "c", arguments={"x-stream-offset": offset}),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"invalid arg 'x-stream-offset' for queue 's' in vhost '/': {{invalid_stream_offset_arg,{told}}}",
    )


def test_prefetch_and_acknowledgements(stream: Client) -> None:
    stream.qos(3)
    stream.consume("s", x_stream_offset="first")
    assert offsets(stream.messages()) == [0, 1, 2]
    stream.silence()
    stream.send(m.BasicAck(1))
    assert offsets(stream.messages()) == [3]
    stream.send(m.BasicAck(4, True))
    assert offsets(stream.messages()) == [4, 5, 6]
    stream.send(m.BasicNack(5), m.BasicReject(6, False))  # nothing comes back: it was never taken out
    assert offsets(stream.messages()) == [7, 8]


def test_reading_takes_nothing_out(play: Play, stream: Client) -> None:
    other = play.connect()
    other.qos(100)
    for client in (stream, other):
        client.consume("s", x_stream_offset="first")
        assert len(client.messages()) == 10
        client.send(m.BasicAck(0, True))
    assert stream.ready("s") == 10


def test_streams_over_a_kill(play: Play, stream: Client) -> None:
    stream.confirms()
    stream.publish(b"10", "s", delivery_mode=1)
    stream.expect(m.BasicAck(1))
    play.restart()
    client = play.connect()
    client.qos(100)
    client.consume("s", x_stream_offset=8)
    assert offsets(client.messages()) == [8, 9, 10]
    client.queue("s", durable=True, x_queue_type="stream")


def test_filters(stream: Client) -> None:
    for body, value in ((b"10", "a"), (b"11", "b"), (b"12", None), (b"13", "a"), (b"14", "c")):
        stream.publish(body, "s", headers={} if value is None else {"x-stream-filter-value": value})
    stream.consume("s", "a", x_stream_offset=10, x_stream_filter="a")
    assert [message.body for message in stream.messages()] == [b"10", b"13"]
    stream.consume("s", "many", x_stream_offset=10, x_stream_filter=["b", "c"])
    assert [message.body for message in stream.messages()] == [b"11", b"14"]
    stream.consume("s", "more", x_stream_offset=10, x_stream_filter=["b"], x_stream_match_unfiltered=True)
    assert [message.body for message in stream.messages()] == [b"11", b"12"]


def test_streams_are_not_purged(stream: Client) -> None:
    stream.fatal(
        m.QueuePurge("s"),
        code=ReplyCode.NOT_IMPLEMENTED,
        text="queue.purge not supported by stream queues queue 's' in vhost '/'",
    )


def test_consumers_of_a_deleted_stream_are_told(play: Play, stream: Client) -> None:
    other = play.connect()
    other.qos(10)
    other.consume("s", "theirs")
    stream.consume("s", "mine")
    stream.send(m.QueueDelete("s"))
    stream.expect(m.QueueDeleteOk(10), m.BasicCancel("mine", True))
    other.expect(m.BasicCancel("theirs", True))
    stream.refused(m.QueueDeclare("s", passive=True), code=ReplyCode.NOT_FOUND, text="no queue 's' in vhost '/'")


def test_streams_are_bound_like_queues(stream: Client) -> None:
    stream.bind("s", "amq.topic", "k.#")
    stream.queue("q")
    stream.bind("q", "amq.topic", "#")
    stream.consume("s", x_stream_offset="next")
    stream.publish(b"10", "k.l", "amq.topic", headers={"h": 1})
    (message,) = stream.messages()
    assert (message.exchange, message.routing_key) == ("amq.topic", "k.l")
    assert message.headers == {"h": 1, "x-stream-offset": 10}
    assert stream.drain("q") == [b"10"]


def test_cancelled_streams_are_silent(stream: Client) -> None:
    stream.consume("s")
    stream.ask(m.BasicCancel("c"), m.BasicCancelOk)
    stream.publish(b"10", "s")
    stream.silence()
    stream.open(2)
    stream.qos(5, channel=2)
    stream.consume("s", channel=2)
    stream.ask(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk, channel=2)
    stream.publish(b"11", "s")
    stream.silence()


@pytest.mark.parametrize("how", ["argument", "policy", "operator", "both"])
def test_retention_by_age(play: Play, client: Client, how: str) -> None:
    age = {"argument": "1h", "both": "30D"}.get(how)
    more: dict[str, Any] = {} if age is None else {"x_max_age": age}
    client.queue("s", durable=True, x_queue_type="stream", x_stream_max_segment_size_bytes=1 << 20, **more)
    if how != "argument":
        play.core.policies.put("/", "short", "^s", {"retention_ms": 3_600_000}, operator=how == "operator")
    client.qos(100)
    for number in range(3):
        for _ in range(3):
            client.publish(b"%d" % number + bytes(400_000), "s")
        play.later(1_000)
    play.later(3 * 3_600_000, step=60_000)
    client.publish(b"new", "s")
    play.later(10_000, step=1_000)
    client.consume("s", x_stream_offset="first")
    bodies = client.bodies()
    assert len(bodies) < 10 and bodies[-1] == b"new"


def test_policies_of_streams_come_and_go(play: Play, client: Client) -> None:
    client.queue("s", durable=True, x_queue_type="stream")

    def publish() -> int:
        """How many more there are then."""
        before = client.ready("s")
        for _ in range(300):
            client.publish(bytes(1_000), "s")
            play.later(100)
        return client.ready("s") - before

    assert publish() == 300
    play.core.policies.put("/", "p", "", {"retention_bytes": 100_000}, apply_to="streams")
    assert publish() < 100
    play.core.policies.remove("/", "p")
    assert publish() == 300


@pytest.mark.parametrize(
    ("argument", "value", "why"),
    [
        ("x-max-age", "1w", "invalid_max_age"),
        ("x-max-age", "soon", "invalid_max_age"),
        ("x-max-age", "0D", "invalid_max_age"),
        ("x-max-age", 7, "{unacceptable_type,signedint}"),
        ("x-stream-filter-size-bytes", 15, "{value_too_small,15}"),
        ("x-stream-filter-size-bytes", 256, "{value_too_large,256}"),
        ("x-initial-cluster-size", 0, "{value_zero,0}"),
        ("x-max-length-bytes", -1, "{value_negative,-1}"),
        ("x-stream-max-segment-size-bytes", 3_000_000_001, "{value_too_large,3000000001}"),
    ],
)
def test_arguments_that_cannot_be(client: Client, argument: str, value: Any, why: str) -> None:
    client.refused(
        m.QueueDeclare("s", durable=True, arguments={"x-queue-type": "stream", argument: value}),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"invalid arg '{argument}' for queue 's' in vhost '/': {why}",
    )


def test_declared_otherwise(client: Client) -> None:
    client.queue("s", durable=True, x_queue_type="stream", x_max_age="1h", x_max_length_bytes=1 << 30)
    client.queue("s", durable=True, x_queue_type="stream", x_max_age="60m", x_max_length_bytes=1 << 30)
    (close,) = said(client, {"x-queue-type": "stream", "x-max-age": "1h", "x-max-length-bytes": 1 << 20})
    assert "inequivalent arg 'x-max-length-bytes' for queue 's' in vhost '/'" in close
    (close,) = said(client, {"x-queue-type": "quorum"})
    assert "inequivalent arg 'x-queue-type' for queue 's' in vhost '/'" in close


def said(client: Client, arguments: dict[str, Any]) -> list[str]:
    """What a declaration is refused with; the channel is opened anew."""
    client.send(m.QueueDeclare("s", durable=True, arguments=arguments))
    heard = client.listen()
    client.send(m.ChannelCloseOk())
    client.open(1)
    return [one.reply_text for one in heard if isinstance(one, m.ChannelClose)]


def test_a_stream_without_some_of_its_arguments_is_another(client: Client) -> None:
    client.queue("s", durable=True, x_queue_type="stream", x_max_length_bytes=1 << 30)
    (close,) = said(client, {"x-queue-type": "stream"})
    assert "inequivalent arg 'x-max-length-bytes' for queue 's' in vhost '/'" in close


def test_many_partitions_are_read_in_turn(play: Play, client: Client) -> None:
    play.core.create_topic("/", "t", 3)
    for number in range(30):
        client.publish(b"%d" % number, f"k{number}", "")
        client.publish(b"%d" % number, "t")
    client.bind("t", "amq.topic", "#")
    for number in range(30):
        client.publish(b"%d" % number, f"k{number}", "amq.topic")
    client.qos(100)
    client.consume("t", x_stream_offset="first")
    assert sorted(int(body) for body in client.bodies()) == sorted([*range(30)] * 2)
