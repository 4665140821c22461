"""Consuming: whose turn it is, how much at a time, what becomes of answers, and of those who go without one."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import BODY, NO_LIMIT, OVERHEAD_BYTES, FrameReader
from interlog.faces.amqp.wire import Method
from tests.playbooks.amqp.play import Client, Content, Play, content


def fill(client: Client, count: int, queue: str = "q") -> None:
    for number in range(count):
        client.publish(b"%d" % number, queue)


def numbers(messages: list[Content]) -> list[int]:
    return [int(message.body) for message in messages]


def tags(messages: list[Content]) -> list[int]:
    return [message.delivery_tag for message in messages]


def by_consumer(messages: list[Content]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for message in messages:
        found.setdefault(message.consumer_tag, []).append(int(message.body))
    return found


# -- consume and cancel


def test_deliveries_tell_all(client: Client) -> None:
    client.queue()
    client.bind("q", "amq.topic", "a.#")
    client.publish(b"body", "a.b", "amq.topic", content_type="text/plain", headers={"h": [1, "x", None]})
    client.consume(tag="me")
    (message,) = client.messages()
    assert message.method == m.BasicDeliver("me", 1, False, "amq.topic", "a.b")
    assert message.properties.content_type == "text/plain" and message.headers == {"h": [1, "x", None]}
    assert message.body == b"body"


def test_tags_by_the_broker(client: Client) -> None:
    client.queue()
    first = client.ask(m.BasicConsume("q"), m.BasicConsumeOk).consumer_tag
    second = client.ask(m.BasicConsume("q"), m.BasicConsumeOk).consumer_tag
    assert first != second and first.startswith("amq.ctag-")


def test_tags_are_a_channels_own(client: Client) -> None:
    client.queue()
    client.open(2)
    client.consume(tag="c")
    client.consume(tag="c", channel=2)
    client.fatal(
        m.BasicConsume("q", "c"), code=ReplyCode.NOT_ALLOWED, text="attempt to reuse consumer tag 'c'", channel=1
    )


def test_without_an_answer(client: Client) -> None:
    client.queue()
    fill(client, 1)
    client.send(m.BasicConsume("q", "c", nowait=True))
    assert client.bodies() == [b"0"]
    client.send(m.BasicCancel("c", nowait=True))
    fill(client, 1)
    client.silence()


def test_cancelling_keeps_what_is_held(client: Client) -> None:
    client.queue()
    fill(client, 3)
    client.qos(2)
    client.consume()
    assert client.bodies() == [b"0", b"1"]
    client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    client.ask(m.BasicCancel("nobody"), m.BasicCancelOk)
    client.send(m.BasicAck(1), m.BasicNack(2))
    client.silence()
    assert client.drain() == [b"1", b"2"]


@pytest.mark.parametrize(
    ("kind", "argument", "value", "why"),
    [
        ("classic", "x-priority", "a", ': "expected integer, got longstr"'),
        ("quorum", "x-priority", True, ': "expected integer, got bool"'),
        ("classic", "x-cancel-on-ha-failover", 1, ": {unacceptable_type,signedint}"),
        ("classic", "x-consumer-timeout", -1, ": {value_negative,-1}"),
        ("stream", "x-consumer-timeout", "x", ': "expected integer, got longstr"'),
        ("stream", "x-stream-match-unfiltered", 1, ": {unacceptable_type,signedint}"),
        ("classic", "x-stream-offset", "first", " of queue type rabbit_classic_queue"),
        ("classic", "x-stream-filter", "a", " of queue type rabbit_classic_queue"),
        ("quorum", "x-stream-offset", 0, " of queue type rabbit_quorum_queue"),
        ("quorum", "x-cancel-on-ha-failover", True, " of queue type rabbit_quorum_queue"),
        ("stream", "x-priority", 5, " of queue type rabbit_stream_queue"),
    ],
)
def test_arguments_of_consumers_that_cannot_be(client: Client, kind: str, argument: str, value: Any, why: str) -> None:
    client.queue(durable=True, x_queue_type=kind)
    client.qos(5)
    client.refused(
        m.BasicConsume("q", "c", arguments={argument: value}),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"invalid arg '{argument}' for queue 'q' in vhost '/'{why}",
    )


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_arguments_of_consumers_that_nobody_knows_say_nothing(client: Client, kind: str) -> None:
    client.queue(durable=True, x_queue_type=kind)
    client.qos(5)
    more: dict[str, Any] = {"x_cancel_on_ha_failover": True} if kind == "classic" else {}
    client.consume(x_mine={"a": [1]}, **more)
    client.publish(b"a")
    assert client.bodies() == [b"a"]


def test_exclusive_consumers(play: Play, client: Client) -> None:
    text = "queue 'q' in vhost '/' in exclusive use"
    other = play.connect()
    client.queue()
    client.consume(exclusive=True)
    other.refused(m.BasicConsume("q", "c"), code=ReplyCode.ACCESS_REFUSED, text=text)
    other.refused(m.BasicConsume("q", "c", exclusive=True), code=ReplyCode.ACCESS_REFUSED, text=text)
    client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    other.consume()
    client.refused(m.BasicConsume("q", "c", exclusive=True), code=ReplyCode.ACCESS_REFUSED, text=text)


# -- get


def test_get(client: Client) -> None:
    client.queue()
    assert client.get() is None
    fill(client, 3)
    client.send(m.BasicGet("q"))
    (got,) = client.messages()
    assert got.method == m.BasicGetOk(1, False, "", "q", 2) and got.body == b"0"
    client.send(m.BasicGet("q", no_ack=True))
    (got,) = client.messages()
    assert got.method == m.BasicGetOk(2, False, "", "q", 1)
    client.send(m.BasicNack(1))
    client.send(m.BasicGet("q"))
    (got,) = client.messages()
    assert got.method == m.BasicGetOk(3, True, "", "q", 1) and got.body == b"0"


def test_what_was_got_without_ack_cannot_be_acknowledged(client: Client) -> None:
    client.queue()
    fill(client, 1)
    client.get()
    client.refused(m.BasicAck(1), code=ReplyCode.PRECONDITION_FAILED, text="unknown delivery tag 1")


def test_get_is_not_held_back_by_qos(client: Client) -> None:
    client.queue()
    fill(client, 3)
    client.qos(1)
    client.qos(1, shared=True)
    client.consume()
    assert client.bodies() == [b"0"]
    assert [message.body for _ in range(2) if (message := client.get(no_ack=False))] == [b"1", b"2"]


# -- qos


def test_prefetch_is_of_each_consumer_to_come(client: Client) -> None:
    client.queue()
    fill(client, 10)
    client.qos(2)
    client.consume(tag="two")
    assert by_consumer(client.messages()) == {"two": [0, 1]}
    client.qos(3)
    client.consume(tag="three")
    assert by_consumer(client.messages()) == {"three": [2, 3, 4]}
    client.qos(0)
    client.consume(tag="all")
    assert by_consumer(client.messages()) == {"all": [5, 6, 7, 8, 9]}


def test_prefetch_moves_on_with_each_answer(client: Client) -> None:
    client.queue()
    fill(client, 9)
    client.qos(3)
    client.consume()
    assert numbers(client.messages()) == [0, 1, 2]
    client.send(m.BasicAck(2))
    assert numbers(client.messages()) == [3]
    client.send(m.BasicAck(4, True))
    assert numbers(client.messages()) == [4, 5, 6]
    client.send(m.BasicReject(5, False))
    assert numbers(client.messages()) == [7]
    client.send(m.BasicNack(0, True, False))
    assert numbers(client.messages()) == [8]


def test_prefetch_of_all_together(client: Client) -> None:
    client.queue()
    fill(client, 10)
    client.qos(3, shared=True)
    client.qos(2)
    client.consume(tag="a")
    client.consume(tag="b")
    first = client.messages()
    assert len(first) == 3 and max(len(found) for found in by_consumer(first).values()) == 2
    client.send(m.BasicAck(0, True))
    assert len(client.messages()) == 3
    client.send(m.BasicQos(prefetch_count=5, global_=True))
    assert len(client.listen()) == 2  # one more: each has no more than two
    client.open(2)
    client.consume(tag="other", channel=2)
    assert len(client.messages(2)) == 3


def test_those_who_need_not_acknowledge_are_not_held_back(client: Client) -> None:
    client.queue()
    fill(client, 5)
    client.qos(1)
    client.qos(1, shared=True)
    client.consume(no_ack=True)
    assert len(client.messages()) == 5
    assert client.queue().message_count == 0


def test_qos_raised_later_is_seen_at_once(client: Client) -> None:
    client.queue()
    fill(client, 5)
    client.qos(1, shared=True)
    client.consume()
    assert len(client.messages()) == 1
    client.send(m.BasicQos(prefetch_count=0, global_=True))
    heard = client.listen()
    assert heard[0] == m.BasicQosOk() and len(heard) == 5


# -- whose turn


def test_in_turn(play: Play, client: Client) -> None:
    others = [client, play.connect(), play.connect()]
    client.queue()
    for at, one in enumerate(others):
        one.consume(tag=f"c{at}")
    found: list[list[bytes]] = [[], [], []]
    for number in range(9):
        client.publish(b"%d" % number)
        for at, one in enumerate(others):
            found[at] += one.bodies()
    assert found == [[b"0", b"3", b"6"], [b"1", b"4", b"7"], [b"2", b"5", b"8"]]


@pytest.mark.parametrize("backlog", [True, False])
def test_fair_under_prefetch(play: Play, client: Client, backlog: bool) -> None:
    client.queue()
    others = [play.connect() for _ in range(3)]
    if backlog:
        fill(client, 300)
    for one in others:
        one.qos(10)
        one.consume()
    if not backlog:
        fill(client, 300)
    counts = [0, 0, 0]
    while sum(counts) < 300:
        for at, one in enumerate(others):
            messages = one.messages()
            assert len(messages) <= 10
            counts[at] += len(messages)
            if messages:
                one.send(m.BasicAck(messages[-1].delivery_tag, True))
    assert max(counts) - min(counts) <= 20


def test_who_is_slow_gets_no_more_than_it_can_take(play: Play, client: Client) -> None:
    slow, fast = play.connect(), play.connect()
    client.queue()
    for one in (slow, fast):
        one.qos(1)
        one.consume()
    fill(client, 20)
    assert len(slow.messages()) == 1
    count = 0
    while messages := fast.messages():
        count += len(messages)
        fast.send(m.BasicAck(0, True))
    assert count == 19


def test_consumer_priorities(client: Client) -> None:
    client.queue()
    client.qos(2)
    client.consume(tag="low", x_priority=-1)
    client.consume(tag="high", x_priority=10)
    client.consume(tag="middle")
    fill(client, 5)
    assert by_consumer(client.messages()) == {"high": [0, 1], "middle": [2, 3], "low": [4]}
    client.send(m.BasicAck(1))
    fill(client, 2)
    assert by_consumer(client.messages()) == {"high": [0], "low": [1]}


def test_single_active_consumer(play: Play, client: Client) -> None:
    second, third = play.connect(), play.connect()
    client.queue(x_single_active_consumer=True)
    for one in (client, second, third):
        one.qos(5)
        one.consume()
    fill(client, 6)
    assert numbers(client.messages()) == [0, 1, 2, 3, 4]
    second.silence()
    third.silence()
    client.drop()
    play.turn()
    messages = second.messages()
    assert numbers(messages) == [0, 1, 2, 3, 4] and all(message.redelivered for message in messages)
    third.silence()
    second.ask(m.BasicCancel("c"), m.BasicCancelOk)
    assert numbers(third.messages()) == [5]
    second.send(m.BasicNack(0, True))
    third.send(m.BasicAck(0, True))
    assert numbers(third.messages()) == [0, 1, 2, 3, 4]


# -- answers


def test_ack_one_many_and_all(client: Client) -> None:
    client.queue()
    fill(client, 6)
    client.consume()
    assert tags(client.messages()) == [1, 2, 3, 4, 5, 6]
    client.send(m.BasicAck(2), m.BasicAck(4, True))
    client.refused(m.BasicAck(3), code=ReplyCode.PRECONDITION_FAILED, text="unknown delivery tag 3")
    client.consume()
    messages = client.messages()
    assert numbers(messages) == [4, 5] and tags(messages) == [1, 2]  # a channel counts anew
    client.send(m.BasicAck(0, True))
    client.silence()
    client.send(m.BasicAck(0, True))  # all of nothing
    client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    assert client.drain() == []


@pytest.mark.parametrize(
    "said", [m.BasicAck(1), m.BasicAck(1, True), m.BasicNack(1), m.BasicNack(1, True, False), m.BasicReject(1, False)]
)
def test_answered_twice(client: Client, said: Method) -> None:
    client.queue()
    fill(client, 1)
    client.get(no_ack=False)
    client.send(m.BasicAck(1))
    client.refused(said, code=ReplyCode.PRECONDITION_FAILED, text="unknown delivery tag 1")


def test_tags_are_not_for_other_channels(client: Client) -> None:
    client.queue()
    fill(client, 1)
    client.open(2)
    client.get(no_ack=False)
    client.refused(m.BasicAck(1), code=ReplyCode.PRECONDITION_FAILED, text="unknown delivery tag 1", channel=2)
    client.send(m.BasicAck(1))
    client.silence()


ORDER: list[tuple[str, list[Method]]] = [
    ("nack one by one", [m.BasicNack(3), m.BasicNack(1), m.BasicNack(2)]),
    ("nack many", [m.BasicNack(3, True)]),
    ("nack all", [m.BasicNack(0, True)]),
    ("reject", [m.BasicReject(2), m.BasicReject(3), m.BasicReject(1)]),
    ("recover", [m.BasicRecover(True)]),
    ("recover without an answer", [m.BasicRecoverAsync(True)]),
]


@pytest.mark.parametrize("said", [one[1] for one in ORDER], ids=[one[0] for one in ORDER])
def test_back_where_they_stood(client: Client, said: list[Method]) -> None:
    client.queue()
    fill(client, 5)
    for _ in range(3):
        client.get(no_ack=False)
    client.send(*said)
    heard = client.listen()
    assert heard == ([m.BasicRecoverOk()] if isinstance(said[0], m.BasicRecover) else [])
    client.consume()
    messages = client.messages()
    assert numbers(messages) == [0, 1, 2, 3, 4]
    assert [message.redelivered for message in messages] == [True, True, True, False, False]


@pytest.mark.parametrize("how", ["channel", "close", "drop", "cancel and drop"])
def test_who_goes_gives_back_in_order(play: Play, client: Client, how: str) -> None:
    other = play.connect()
    client.queue()
    fill(client, 5)
    client.qos(3)
    client.consume()
    client.send(m.BasicAck(2))
    assert len(client.messages()) == 4
    if how == "channel":
        client.ask(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk)
    elif how == "close":
        client.send(m.ConnectionClose(200, "", 0, 0))
        client.expect(m.ConnectionCloseOk())
    else:
        if how == "cancel and drop":
            client.ask(m.BasicCancel("c"), m.BasicCancelOk)
        client.drop()
    other.consume()
    messages = other.messages()
    assert numbers(messages) == [0, 2, 3, 4]
    assert [message.redelivered for message in messages] == [True, True, True, False]


def test_redelivered_after_a_kill(play: Play, client: Client) -> None:
    client.queue(durable=True)
    for number in range(3):
        client.publish(b"%d" % number, delivery_mode=2)
    client.qos(1)
    client.consume()
    assert len(client.messages()) == 1
    client.publish(b"3", delivery_mode=2)
    client.silence()
    play.restart()
    client = play.connect()
    client.consume()
    messages = client.messages()
    assert numbers(messages) == [0, 1, 2, 3]
    assert [message.redelivered for message in messages] == [True, False, False, False]


def test_acknowledged_is_gone_after_a_kill(play: Play, client: Client) -> None:
    client.queue(durable=True)
    for number in range(3):
        client.publish(b"%d" % number, delivery_mode=2)
    client.consume()
    client.messages()
    client.send(m.BasicAck(2))
    client.silence()
    play.restart()
    assert play.connect().drain() == [b"0", b"2"]


def test_rejected_messages_are_gone(client: Client) -> None:
    client.queue()
    fill(client, 4)
    client.consume()
    client.messages()
    client.send(m.BasicReject(1, False), m.BasicNack(3, True, False))
    client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    client.send(m.BasicNack(4))
    assert client.drain() == [b"3"]


def test_a_consumer_gets_back_what_it_returned(client: Client) -> None:
    client.queue()
    fill(client, 2)
    client.qos(1)
    client.consume()
    for tag in range(1, 4):
        (message,) = client.messages()
        assert (message.delivery_tag, message.body, message.redelivered) == (tag, b"0", tag > 1)
        client.send(m.BasicNack(tag))


def test_answers_for_a_queue_that_is_gone(client: Client) -> None:
    client.queue()
    fill(client, 3)
    client.consume()
    client.messages()
    client.send(m.QueueDelete("q"))
    client.expect(m.QueueDeleteOk(0), m.BasicCancel("c", True))
    client.queue()
    client.publish(b"new")
    client.send(m.BasicAck(1), m.BasicNack(2), m.BasicReject(3, False))
    client.silence()
    assert client.drain() == [b"new"]


# -- bodies and frames


@pytest.mark.parametrize("size", [0, 1, 8_183, 8_184, 8_185, 100_000])
def test_bodies_fit_the_frames_agreed(play: Play, size: int) -> None:
    client, small = play.connect(), play.connect(frame_max=8_192)
    client.queue()
    client.publish(b"x" * size)
    small.consume()
    (message,) = small.messages()
    assert message.body == b"x" * size
    sent = FrameReader(NO_LIMIT)
    sent.feed(small.raw)
    sizes = [end - start for kind, _, start, end in sent.frames() if kind == BODY]
    assert sum(sizes) == size and max(sizes, default=0) <= 8_192 - OVERHEAD_BYTES
    assert len(sizes) == -(-size // 8_184)


# -- those who do not read


def test_who_does_not_read_holds_little(play: Play, client: Client) -> None:
    other = play.connect()
    client.queue()
    for _ in range(40):
        client.publish(b"x" * 50_000)
    other.send(m.BasicConsume("q", "c", no_ack=True))
    other.face.pause()
    play.core.commit()
    assert other.face.out_bytes == 0
    other.face.resume()
    count = 0
    while messages := [one for one in other.listen() if isinstance(one, Content)]:
        count += len(messages)
    assert count == 40


def test_flow_stops_one_channel(client: Client) -> None:
    client.queue()
    client.open(2)
    client.consume(tag="one")
    client.consume(tag="two", channel=2)
    client.ask(m.ChannelFlow(False), m.ChannelFlowOk)
    fill(client, 4)
    assert {message.consumer_tag for message in client.messages()} == {"two"}
    assert client.queue(passive=True).message_count == 0


def test_streams_are_not_got(client: Client) -> None:
    client.queue(durable=True, x_queue_type="stream")
    client.fatal(
        m.BasicGet("q"),
        code=ReplyCode.NOT_IMPLEMENTED,
        text="basic.get not supported by stream queues queue 'q' in vhost '/'",
    )


# -- permissions

DENIED: list[tuple[Method, str, str]] = [
    (m.QueueDeclare("no"), "configure", "queue 'no'"),
    (m.QueueDelete("no"), "configure", "queue 'no'"),
    (m.QueuePurge("no"), "read", "queue 'no'"),
    (m.QueueBind("no", "amq.fanout", ""), "write", "queue 'no'"),
    (m.QueueBind("yes", "no", ""), "read", "exchange 'no'"),
    (m.QueueUnbind("no", "amq.fanout", ""), "write", "queue 'no'"),
    (m.BasicConsume("no", "c"), "read", "queue 'no'"),
    (m.BasicGet("no"), "read", "queue 'no'"),
    (m.ExchangeDeclare("no", "fanout"), "configure", "exchange 'no'"),
    (m.ExchangeDelete("no"), "configure", "exchange 'no'"),
    (m.ExchangeBind("no", "yes", ""), "write", "exchange 'no'"),
    (m.ExchangeBind("yes", "no", ""), "read", "exchange 'no'"),
    (
        m.ExchangeDeclare("yes2", "fanout", arguments={"alternate-exchange": "no"}),
        "write",
        "exchange 'no'",
    ),
    (m.BasicPublish("no", ""), "write", "exchange 'no'"),
    (m.BasicPublish("", "q"), "write", "exchange 'amq.default'"),
    (m.BasicPublish("nothing", "q"), "write", "exchange 'nothing'"),
]


@pytest.mark.parametrize(("said", "permission", "what"), DENIED, ids=[f"{one[0]!r}"[:50] for one in DENIED])
def test_permissions(play: Play, client: Client, said: Method, permission: str, what: str) -> None:
    play.core.access.add_user("eve", "secret")
    play.core.access.set_permissions("/", "eve", "^yes", "^yes", "^yes|^amq\\.fanout$")
    client.queue("no")
    client.queue("yes")
    client.exchange("no", "fanout")
    client.exchange("yes", "fanout")
    eve = play.connect("eve", "secret")
    parts: list[Any] = [said, *([content(b"x")] if isinstance(said, m.BasicPublish) else [])]
    eve.refused(
        *parts, code=ReplyCode.ACCESS_REFUSED, text=f"{permission} access to {what} in vhost '/' refused for user 'eve'"
    )


def test_permissions_that_change_hold_at_once(play: Play) -> None:
    play.core.access.add_user("eve", "secret")
    play.core.access.set_permissions("/", "eve", ".*", ".*", ".*")
    eve = play.connect("eve", "secret")
    eve.queue()
    eve.publish(b"a")
    play.core.access.set_permissions("/", "eve", ".*", "", ".*")
    eve.publish(b"b")
    (close,) = eve.listen()
    assert isinstance(close, m.ChannelClose) and close.reply_code == ReplyCode.ACCESS_REFUSED


def test_topic_permissions(play: Play, client: Client) -> None:
    play.core.access.add_user("eve", "secret")
    play.core.access.set_permissions("/", "eve", ".*", ".*", ".*")
    play.core.access.set_topic_permissions("/", "eve", "amq.topic", "^w\\.", "^r\\.")
    eve = play.connect("eve", "secret")
    eve.queue()
    eve.bind("q", "amq.topic", "r.#")
    eve.publish(b"a", "w.x", "amq.topic")
    eve.silence()
    for said, permission, key in (
        (m.QueueBind("q", "amq.topic", "x.#"), "read", "x.#"),
        (m.BasicPublish("amq.topic", "x"), "write", "x"),
    ):
        eve.refused(
            said,
            *([content(b"x")] if isinstance(said, m.BasicPublish) else []),
            code=ReplyCode.ACCESS_REFUSED,
            text=f"{permission} access to topic '{key}' in exchange 'amq.topic' in vhost '/' refused for user 'eve'",
        )


def test_the_limit_of_a_channel_goes_round_among_its_queues(client: Client) -> None:
    for queue in "abc":
        client.queue(queue)
        client.consume(queue, queue)
    client.qos(1, shared=True)
    for number in range(30):
        client.publish(b"%d" % number, "abc"[number % 3])
    served = []
    for _ in range(9):
        (message,) = client.messages()
        served.append(message.consumer_tag)
        client.send(m.BasicAck(message.delivery_tag))
    assert sorted(served.count(queue) for queue in "abc") >= [2, 3, 3], served


def test_who_need_not_acknowledge_waits_while_the_channel_has_enough(client: Client) -> None:
    client.queue("a")
    client.queue("b")
    client.qos(1, shared=True)
    client.consume("a", "a")
    client.consume("b", "b", no_ack=True)
    client.publish(b"1", "a")
    (message,) = client.messages()
    client.publish(b"2", "b")
    client.publish(b"3", "b")
    client.silence()
    client.send(m.BasicAck(message.delivery_tag))
    assert client.bodies() == [b"2", b"3"]
