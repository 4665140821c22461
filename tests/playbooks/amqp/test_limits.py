"""What a queue does not keep: time to live, length limits with every overflow, and where the dead go."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import HEADER, frame
from interlog.faces.amqp.properties import header_payload
from interlog.faces.amqp.values import Int64, Timestamp
from tests.playbooks.amqp.play import Client, Content, Play


def nack(tag: int) -> m.BasicNack:
    return m.BasicNack(tag)


def dead(client: Client, queue: str = "dead") -> Content:
    """The one message in it."""
    client.silence()
    message = client.get(queue)
    assert message is not None and client.get(queue) is None
    return message


def deaths(message: Content) -> list[tuple[Any, ...]]:
    return [(one["queue"], one["reason"], one["count"]) for one in message.headers["x-death"]]


@pytest.fixture
def graveyard(client: Client) -> Client:
    """A queue dead, to which the exchange dlx leads."""
    client.queue("dead")
    client.exchange("dlx", "fanout")
    client.bind("dead", "dlx")
    return client


# -- time to live


def test_ttl_of_the_queue(play: Play, client: Client) -> None:
    client.queue(x_message_ttl=1_000)
    client.publish(b"a")
    play.later(500)
    client.publish(b"b")
    play.later(499)
    assert client.ready() == 2
    play.later(1)
    assert client.drain() == [b"b"]


def test_ttl_of_the_message(play: Play, client: Client) -> None:
    client.queue()
    client.publish(b"a", expiration="1000")
    client.publish(b"b")
    client.publish(b"c", expiration="500")
    play.later(999)
    assert client.ready() == 3  # c is dead, and not in front
    play.later(1)
    assert client.drain() == [b"b"]
    assert client.ready() == 0


def test_the_shorter_time_holds(play: Play, client: Client) -> None:
    client.queue(x_message_ttl=1_000)
    client.publish(b"a", expiration="500")
    client.publish(b"b", expiration="2000")
    play.later(500)
    assert client.ready() == 1
    play.later(500)
    assert client.ready() == 0


@pytest.mark.parametrize("how", ["queue", "message"])
def test_no_time_at_all(client: Client, how: str) -> None:
    said: dict[str, Any] = {"expiration": "0"} if how == "message" else {}
    arguments: dict[str, Any] = {"x_message_ttl": 0} if how == "queue" else {}
    client.queue(**arguments)
    client.publish(b"nobody is there", **said)
    client.silence()
    assert client.ready() == 0
    client.consume()
    client.publish(b"somebody is", **said)
    assert client.bodies() == [b"somebody is"]


def test_who_holds_a_message_keeps_it(play: Play, client: Client) -> None:
    client.queue(x_message_ttl=1_000)
    client.publish(b"a")
    client.consume()
    (message,) = client.messages()
    play.later(5_000)
    client.send(m.BasicAck(message.delivery_tag))
    client.silence()


@pytest.mark.parametrize(
    ("expiration", "why"),
    [
        ("", "no_integer"),
        ("soon", "no_integer"),
        (" 1", "no_integer"),
        ("-1", "{value_negative,-1}"),
        ("1.5", '{leftover_string,".5"}'),
        ("315360000001", "{value_too_large,315360000001}"),
        ("9" * 40, "{value_too_large," + "9" * 40 + "}"),
    ],
)
def test_expiration_that_is_none(client: Client, expiration: str, why: str) -> None:
    client.queue()
    client.open(2)
    client.publish(b"a", channel=2, expiration=expiration)
    (close,) = client.listen()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_code == ReplyCode.PRECONDITION_FAILED
    assert close.reply_text == f"PRECONDITION_FAILED - invalid expiration '{expiration}': {why}"


# -- length


def test_max_length_drops_the_oldest(client: Client) -> None:
    client.queue(x_max_length=2)
    client.confirms()
    for number, body in enumerate((b"a", b"b", b"c", b"d")):
        client.publish(body)
        client.expect(m.BasicAck(number + 1))
    assert client.drain() == [b"c", b"d"]


def test_max_length_bytes_drops_the_oldest(client: Client) -> None:
    client.queue(x_max_length_bytes=10)
    for size in (4, 4, 4):
        client.publish(b"x" * size)
    assert client.ready() == 2
    client.publish(b"y" * 11)  # larger than all there may be
    assert client.drain() == []


def test_max_length_counts_what_is_ready(client: Client) -> None:
    client.queue(x_max_length=1)
    client.consume()
    for body in (b"a", b"b", b"c"):
        client.publish(body)
        assert client.bodies() == [body]
    assert client.queue(passive=True).message_count == 0
    client.send(m.BasicNack(0, True))
    client.send(m.BasicCancel("c"))
    client.listen()
    assert client.ready() <= 1


def test_max_length_zero(client: Client) -> None:
    client.queue(x_max_length=0)
    client.publish(b"a")
    client.silence()
    assert client.ready() == 0
    client.consume()
    client.publish(b"b")
    assert client.bodies() == [b"b"]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_reject_publish(client: Client, kind: str) -> None:
    client.queue(durable=True, x_queue_type=kind, x_max_length=2, x_overflow="reject-publish")
    client.open(2)
    client.confirms(2)
    client.publish(b"a")
    for body in (b"b", b"c", b"d"):
        client.publish(body, channel=2)
    client.expect(m.BasicAck(1), nack(2), nack(3))
    client.publish(b"unconfirmed")
    client.silence()
    assert client.drain() == [b"a", b"b"]
    client.publish(b"e", channel=2)
    client.expect(m.BasicAck(4))


def test_reject_publish_by_bytes(client: Client) -> None:
    client.queue(x_max_length_bytes=10, x_overflow="reject-publish")
    client.confirms()
    client.publish(b"x" * 8)
    client.expect(m.BasicAck(1))
    client.publish(b"y" * 8)
    client.expect(nack(2))
    client.publish(b"z")
    client.expect(m.BasicAck(3))


def test_a_full_queue_does_not_keep_others_from_it(client: Client) -> None:
    client.queue("full", x_max_length=0, x_overflow="reject-publish")
    client.queue("free")
    client.bind("full", "amq.fanout")
    client.bind("free", "amq.fanout")
    client.confirms()
    client.publish(b"a", "", "amq.fanout", mandatory=True)
    client.expect(nack(1))
    assert client.drain("free") == [b"a"]


def test_reject_publish_dlx(graveyard: Client) -> None:
    client = graveyard
    client.queue(x_max_length=1, x_overflow="reject-publish-dlx", x_dead_letter_exchange="dlx")
    client.confirms()
    client.publish(b"a")
    client.publish(b"b")
    client.expect(m.BasicAck(1), nack(2))
    message = dead(client)
    assert message.body == b"b" and deaths(message) == [("q", "maxlen", 1)]
    assert client.drain() == [b"a"]


# -- the dead


@pytest.mark.parametrize("reason", ["rejected", "expired", "maxlen", "delivery_limit"])
def test_dead_letters_tell_why(play: Play, graveyard: Client, reason: str) -> None:
    client = graveyard
    arguments: dict[str, Any] = {"maxlen": {"x_max_length": 1}, "expired": {"x_message_ttl": 1_000}}.get(reason, {})
    if reason == "delivery_limit":
        arguments = {"x_queue_type": "quorum", "x_delivery_limit": 1}
    client.queue(durable=True, x_dead_letter_exchange="dlx", **arguments)
    client.exchange("x", "topic")
    client.bind("q", "x", "k.#")
    now = play.clock.now_ms() // 1_000
    client.publish(b"a", "k.l", "x", headers={"mine": 1}, message_id="1", priority=3)
    if reason == "rejected":
        message = client.get(no_ack=False)
        assert message is not None
        client.send(m.BasicReject(message.delivery_tag, False))
    elif reason == "maxlen":
        client.publish(b"b")
    elif reason == "expired":
        play.later(1_000)
        now += 1
    else:
        for _ in range(2):
            message = client.get(no_ack=False)
            assert message is not None
            client.send(m.BasicNack(message.delivery_tag))
    message = dead(client)
    assert (message.body, message.exchange, message.routing_key, message.redelivered) == (b"a", "dlx", "k.l", False)
    assert message.properties.message_id == "1" and message.properties.priority == 3
    told = dict(message.headers)
    assert told == {
        "mine": 1,
        "x-death": [
            {
                "count": 1,
                "reason": reason,
                "queue": "q",
                "time": now,
                "exchange": "x",
                "routing-keys": ["k.l"],
            }
        ],
        **{
            f"x-{which}-death-{what}": value
            for which in ("first", "last")
            for what, value in (("reason", reason), ("queue", "q"), ("exchange", "x"))
        },
    }
    assert isinstance(told["x-death"][0]["count"], Int64) and isinstance(told["x-death"][0]["time"], Timestamp)


def test_dead_letter_routing_key(graveyard: Client) -> None:
    client = graveyard
    client.queue(x_max_length=0, x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    client.publish(b"a", headers={"CC": ["other"]})
    message = dead(client)
    assert (message.exchange, message.routing_key) == ("", "dead")
    assert message.headers["x-death"][0]["routing-keys"] == ["q", "other"]
    assert "CC" not in message.headers


def test_dead_letters_keep_their_keys(client: Client) -> None:
    client.queue(x_max_length=0, x_dead_letter_exchange="amq.direct")
    for name in ("k", "l", "m"):
        client.queue(name)
        client.bind(name, "amq.direct", name)
    client.bind("q", "amq.topic", "k")
    client.publish(b"a", "k", "amq.topic", headers={"CC": ["l"], "BCC": ["m"]})
    client.silence()
    found = {name: client.get(name) for name in ("k", "l", "m")}
    assert [message is not None for message in found.values()] == [True] * 3
    assert found["k"] is not None and found["k"].headers["CC"] == ["l"]
    assert found["k"].headers["x-death"][0]["routing-keys"] == ["k", "l"]  # those of BCC are nobody's business


def test_expiration_is_taken_off_the_dead(play: Play, graveyard: Client) -> None:
    client = graveyard
    client.queue(x_dead_letter_exchange="dlx")
    client.publish(b"a", expiration="1000")
    play.later(1_000)
    message = dead(client)
    assert message.properties.expiration is None
    assert message.headers["x-death"][0]["original-expiration"] == "1000"
    client.publish(b"b", expiration="1000")
    play.later(1_000)
    play.later(10_000)
    assert client.ready("dead") == 1


def test_a_message_dies_more_than_once(play: Play, client: Client) -> None:
    client.queue("first", x_message_ttl=10, x_dead_letter_exchange="", x_dead_letter_routing_key="second")
    client.queue("second", x_message_ttl=10, x_dead_letter_exchange="", x_dead_letter_routing_key="third")
    client.queue("third")
    client.publish(b"a", "first")
    for _ in range(3):
        play.later(10)
    message = client.get("third", no_ack=False)
    assert message is not None
    assert deaths(message) == [("second", "expired", 1), ("first", "expired", 1)]
    assert message.headers["x-first-death-queue"] == "first" and message.headers["x-last-death-queue"] == "second"


def test_the_same_death_is_counted(play: Play, client: Client) -> None:
    client.queue("work", x_dead_letter_exchange="", x_dead_letter_routing_key="wait")
    client.queue("wait", x_message_ttl=100, x_dead_letter_exchange="", x_dead_letter_routing_key="work")
    client.publish(b"a", "work")
    for tries in range(1, 4):
        message = client.get("work", no_ack=False)
        assert message is not None
        client.send(m.BasicReject(message.delivery_tag, False))
        client.silence()
        play.later(100)
        again = client.get("work", no_ack=False)
        assert again is not None
        assert deaths(again) == [("wait", "expired", tries), ("work", "rejected", tries)]
        assert again.headers["x-first-death-queue"] == "work" and again.headers["x-first-death-reason"] == "rejected"
        client.send(m.BasicNack(again.delivery_tag))


@pytest.mark.parametrize("through", [(), ("b",), ("b", "c")])
def test_circles_without_a_reject_are_cut(play: Play, client: Client, through: tuple[str, ...]) -> None:
    names = ["a", *through]
    for name, following in zip(names, [*names[1:], "a"], strict=True):
        client.queue(name, x_message_ttl=10, x_dead_letter_exchange="", x_dead_letter_routing_key=following)
    client.publish(b"m", "a")
    for _ in range(10):
        play.later(10)
    assert [client.ready(name) for name in names] == [0] * len(names)


def test_a_queue_without_room_and_itself_as_its_dead_letters(client: Client) -> None:
    client.queue(x_max_length=1, x_dead_letter_exchange="", x_dead_letter_routing_key="q")
    for body in (b"a", b"b", b"c"):
        client.publish(body)
    client.silence()
    assert client.drain() == [b"c"]


def test_an_exchange_that_is_not_there_buries_nothing(client: Client) -> None:
    client.queue(x_max_length=1, x_dead_letter_exchange="nope")
    client.publish(b"a")
    client.publish(b"b")
    client.silence()
    assert client.drain() == [b"b"]


def test_dead_letters_may_go_to_internal_exchanges(client: Client) -> None:
    client.queue("dead")
    client.exchange("in", "fanout", internal=True)
    client.bind("dead", "in")
    client.queue(x_max_length=0, x_dead_letter_exchange="in")
    client.publish(b"a")
    assert dead(client).body == b"a"


def test_dead_letters_last(play: Play, client: Client) -> None:
    client.queue("dead", durable=True)
    client.queue(durable=True, x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    client.confirms()
    client.publish(b"a", delivery_mode=2)
    client.expect(m.BasicAck(1))
    message = client.get(no_ack=False)
    assert message is not None
    client.send(m.BasicReject(message.delivery_tag, False))
    client.silence()
    play.restart()
    client = play.connect()
    assert client.ready() == 0
    assert deaths(dead(client)) == [("q", "rejected", 1)]


def test_purged_and_deleted_messages_are_not_dead_letters(graveyard: Client) -> None:
    client = graveyard
    client.queue(x_dead_letter_exchange="dlx")
    client.publish(b"a")
    client.ask(m.QueuePurge("q"), m.QueuePurgeOk)
    client.publish(b"b")
    client.ask(m.QueueDelete("q"), m.QueueDeleteOk)
    assert client.ready("dead") == 0


def test_dead_letters_need_permission(play: Play) -> None:
    play.core.access.add_user("eve", "secret")
    play.core.access.set_permissions("/", "eve", ".*", "^q", "^q")
    eve = play.connect("eve", "secret")
    eve.refused(
        m.QueueDeclare("q", arguments={"x-dead-letter-exchange": "amq.fanout"}),
        code=ReplyCode.ACCESS_REFUSED,
        text="write access to exchange 'amq.fanout' in vhost '/' refused for user 'eve'",
    )
    eve.queue("q", x_dead_letter_exchange="q.dead")


# -- counted deliveries


def test_delivery_limit_without_dead_letters(client: Client) -> None:
    client.queue(durable=True, x_queue_type="quorum", x_delivery_limit=2)
    client.publish(b"a")
    counts = []
    for _ in range(3):
        message = client.get(no_ack=False)
        assert message is not None
        counts.append((message.headers.get("x-delivery-count"), message.redelivered))
        client.send(m.BasicReject(message.delivery_tag))
    assert counts == [(0, False), (1, True), (2, True)]  # who asks is told of the first time, too
    assert client.get() is None


def test_counts_survive_a_kill(play: Play, client: Client) -> None:
    client.queue(durable=True, x_queue_type="quorum", x_delivery_limit=2)
    client.publish(b"a")
    message = client.get(no_ack=False)
    assert message is not None
    client.send(m.BasicReject(message.delivery_tag))
    client.silence()
    play.restart()
    client = play.connect()
    again = client.get(no_ack=False)
    assert again is not None and again.redelivered and again.headers["x-delivery-count"] == 1
    client.drop()
    client = play.connect()
    third = client.get(no_ack=False)
    assert third is not None and third.headers["x-delivery-count"] == 2
    client.send(m.BasicReject(third.delivery_tag))
    assert client.get() is None


# -- priorities


def test_priorities(client: Client) -> None:
    client.queue(x_max_priority=5)
    for body, priority in ((b"none", None), (b"3", 3), (b"5", 5), (b"3 too", 3), (b"0", 0), (b"9", 9), (b"1", 1)):
        client.publish(body, priority=priority)
    client.consume()
    assert client.bodies() == [b"5", b"9", b"3", b"3 too", b"1", b"none", b"0"]


def test_priorities_over_a_kill_and_back(play: Play, client: Client) -> None:
    client.queue(durable=True, x_max_priority=3)
    for priority in (1, 3, 2, 3):
        client.publish(b"%d" % priority, priority=priority, delivery_mode=2)
    client.silence()
    play.restart()
    client = play.connect()
    client.qos(2)
    client.consume()
    assert client.bodies() == [b"3", b"3"]
    client.send(m.BasicNack(1))
    assert client.bodies() == [b"3"]
    client.drop()
    assert play.connect().drain() == [b"3", b"3", b"2", b"1"]


def test_priorities_and_length(client: Client) -> None:
    client.queue(x_max_priority=3, x_max_length=2)
    for priority in (1, 3, 2):
        client.publish(b"%d" % priority, priority=priority)
    assert len(client.drain()) == 2


# -- how long a message may be held


def test_consumer_timeout_of_streams(play: Play, client: Client) -> None:
    client.queue(durable=True, x_queue_type="stream")
    client.qos(5)
    client.consume(x_consumer_timeout=5_000)
    client.publish(b"a")
    assert client.bodies() == [b"a"]
    play.later(7_000, step=1_000)
    client.expect(m.ChannelClose)


@pytest.mark.parametrize("how", ["got", "cancelled"])
def test_consumer_timeout_without_a_consumer(play: Play, client: Client, how: str) -> None:
    client.queue(x_consumer_timeout=5_000)
    client.publish(b"a")
    if how == "got":
        assert client.get(no_ack=False) is not None
    else:
        client.consume()
        assert client.bodies() == [b"a"]
        client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    play.later(7_000, step=1_000)
    client.expect(m.ChannelClose)


@pytest.mark.parametrize("how", ["queue", "policy", "consumer", "broker"])
def test_consumer_timeout(tmp_path: Any, how: str) -> None:
    timeout: dict[str, Any] = {"x_consumer_timeout": 5_000}
    face: dict[str, Any] = {"consumer_timeout_ms": 5_000}
    play = Play(tmp_path / "other", **(face if how == "broker" else {}))
    client = play.connect(channels=(1, 2))
    client.queue(**(timeout if how == "queue" else {}))
    if how == "policy":
        play.core.policies.put("/", "p", "", {"consumer_timeout_ms": 5_000})
    client.consume(**(timeout if how == "consumer" else {}))
    client.publish(b"a")
    assert client.bodies() == [b"a"]
    play.later(5_000, step=1_000)
    client.silence()
    play.later(2_000, step=1_000)
    client.expect(
        m.ChannelClose(
            406,
            "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 5000 ms. "
            "This timeout value can be configured, see consumers doc guide to learn more",
            0,
            0,
        )
    )
    message = client.get(channel=2)
    assert message is not None and message.redelivered
    play.close()


def test_no_timeout_for_who_acknowledges(play: Play, client: Client) -> None:
    client.queue(x_consumer_timeout=5_000)
    client.consume()
    for tag in range(1, 6):
        client.publish(b"a")
        client.bodies()
        play.later(4_000, step=1_000)
        client.send(m.BasicAck(tag))
    client.silence()


def test_too_large_messages_are_told_at_once(client: Client) -> None:
    client.queue()
    limit = client.face.settings.max_message_bytes
    client.refused(
        m.BasicPublish("", "q"),
        frame(HEADER, 1, header_payload(limit + 1, b"\0\0")),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"message size {limit + 1} is larger than configured max size {limit}",
    )
