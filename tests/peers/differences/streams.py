"""Streams: where to begin, what is not for them, what comes with a message."""

from typing import Any

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.values import Int64, Timestamp
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Line, Talk


def _stream(client: Line, bodies: str = "abcde") -> None:
    client.do(m.QueueDeclare("s", durable=True, arguments={"x-queue-type": "stream"}), first=4.0)
    client.confirms()
    for body in bodies:
        client.publish(body, "s")
        client.hear()


@conversation()
def begin_anywhere(talk: Talk) -> None:
    client = talk.client()
    _stream(client)
    starts: list[Any] = ["first", 0, 2, Int64(4), 99, "next", "1h", Timestamp(1), Timestamp(1 << 33), "last", "5", "1x"]
    for start in starts:
        client.qos(10)
        client.do(m.BasicConsume("s", "c", arguments={"x-stream-offset": start}))
        client.do(m.BasicCancel("c"))
    client.qos(10)
    client.do(m.BasicConsume("s", "c"))
    client.publish("new", "s")
    client.hear()


COUNTED = "who deletes a stream is told how many messages it held; RabbitMQ says none"


@conversation(COUNTED)
def not_for_streams(talk: Talk) -> None:
    client = talk.client()
    _stream(client, "ab")
    for said in (
        [m.BasicGet("s")],
        [m.QueuePurge("s")],
        [m.BasicConsume("s", "c")],
        [m.BasicQos(prefetch_count=5), m.BasicConsume("s", "c", no_ack=True)],
        [m.BasicQos(prefetch_count=5), m.BasicConsume("s", "c", exclusive=True)],
        [m.BasicQos(prefetch_count=5, global_=True), m.BasicConsume("s", "c")],
        [m.QueueDeclare("s", passive=True)],
        [m.QueueDelete("s", if_empty=True)],
        [m.QueueDelete("s", if_unused=True)],
    ):
        client.do(*said)


@conversation("basic.nack and basic.reject make room as basic.ack does; RabbitMQ refuses them for streams")
def credit_by_acknowledging(talk: Talk) -> None:
    client = talk.client()
    _stream(client, "abcdefgh")
    client.qos(3)
    client.do(m.BasicConsume("s", "c", arguments={"x-stream-offset": "first"}))
    client.do(m.BasicAck(1), first=0.5)
    client.do(m.BasicAck(3, True), first=0.5)
    client.do(m.BasicNack(4, False, True), first=0.5)
    client.do(m.BasicReject(5, False), first=0.5)
    client.do(m.BasicAck(99))


@conversation("a stream keeps headers of every type; RabbitMQ 3.10 drops arrays and tables")
def what_a_stream_keeps(talk: Talk) -> None:
    client = talk.client()
    _stream(client, "")
    client.publish("a", "s", headers={"a": 1, "b": "x"}, message_id="m", content_type="t", priority=3, delivery_mode=1)
    client.publish("b", "s", correlation_id="c", expiration="10", user_id="guest", timestamp=5, type="t", app_id="a")
    client.bind("s", "amq.topic", "#")
    client.publish("c", "some.key", "amq.topic", headers={"CC": ["x"], "deep": {"a": [1]}})
    client.hear()
    client.qos(10)
    client.do(m.BasicConsume("s", "c", arguments={"x-stream-offset": "first"}))


@conversation(COUNTED)
def stream_deleted_under_a_consumer(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    _stream(client, "a")
    client.qos(10)
    client.do(m.BasicConsume("s", "c", arguments={"x-stream-offset": "first"}))
    client.do(m.QueueDelete("s"), channel=2)
    client.hear(first=0.5)


@conversation()
def streams_and_transactions(talk: Talk) -> None:
    client = talk.client()
    _stream(client, "")
    client.do(m.ChannelClose(200, "", 0, 0))
    client.do(m.ChannelOpen())
    client.do(m.TxSelect())
    client.publish("a", "s")
    client.do(m.TxCommit(), first=2.0)
