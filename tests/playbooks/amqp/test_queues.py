"""Queues: declared, purged, deleted; whose they are; every argument, and what each refuses."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.wire import Method
from tests.playbooks.amqp.play import Client, Play

NO_Q = "no queue 'q' in vhost '/'"
LOCKED = (
    "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another "
    "connection or the exclusive property value does not match that of the original declaration."
)


def declare(name: str = "q", **more: Any) -> m.QueueDeclare:
    return m.QueueDeclare(name, **more)


def gone(client: Client, name: str = "q") -> None:
    client.refused(declare(name, passive=True), code=ReplyCode.NOT_FOUND, text=f"no queue '{name}' in vhost '/'")


def test_declared_counts(client: Client) -> None:
    assert client.queue() == m.QueueDeclareOk("q", 0, 0)
    client.publish(b"a")
    client.publish(b"b")
    assert client.queue() == m.QueueDeclareOk("q", 2, 0)
    client.consume(tag="x")
    client.bodies()
    assert client.queue(passive=True) == m.QueueDeclareOk("q", 0, 1)


def test_names_by_the_broker(client: Client) -> None:
    first, second = client.queue("").queue, client.queue("", exclusive=True).queue
    assert first != second and first.startswith("amq.gen-") and second.startswith("amq.gen-")
    client.publish(b"a", second)
    client.send(m.QueueBind("", "amq.fanout", ""))  # the last one declared on this channel
    client.expect(m.QueueBindOk())
    client.publish(b"b", "", "amq.fanout")
    assert client.drain("") == [b"a", b"b"]
    client.ask(m.QueueDelete(""), m.QueueDeleteOk)
    client.queue(first, passive=True)


def test_an_empty_key_and_queue_mean_the_last_queue(client: Client) -> None:
    client.queue("mine")
    client.ask(m.QueueBind("", "amq.direct", ""), m.QueueBindOk)
    client.publish(b"a", "mine", "amq.direct")
    assert client.drain("mine") == [b"a"]


def test_names_by_the_broker_are_not_for_clients(client: Client) -> None:
    name = client.queue("").queue
    client.refused(
        declare(name), code=ReplyCode.ACCESS_REFUSED, text=f"queue name '{name}' contains reserved prefix 'amq.*'"
    )
    assert client.queue(name, passive=True).queue == name


def test_names_are_declared_without_ends_of_lines(client: Client) -> None:
    assert client.queue("a\nb\r\n").queue == "ab"
    client.exchange("x\ny\r")
    client.bind("ab", "xy", "k")


def test_an_exclusive_queue_is_not_durable_whatever_is_asked(client: Client) -> None:
    for durable in (True, False):
        client.queue(exclusive=True, durable=durable)


def test_who_may_not_kill_may_declare_what_is_there(play: Play, client: Client) -> None:
    client.queue(x_dead_letter_exchange="no")
    play.core.access.add_user("eve", "secret")
    play.core.access.set_permissions("/", "eve", ".*", "^$", "^$")
    play.connect("eve", "secret").queue(x_dead_letter_exchange="no")


def test_without_an_answer(client: Client) -> None:
    client.send(
        m.QueueDeclare("q", nowait=True),
        m.QueueBind("q", "amq.fanout", "", nowait=True),
        m.QueuePurge("q", nowait=True),
    )
    client.silence()
    client.publish(b"a", "", "amq.fanout")
    assert client.drain() == [b"a"]
    client.send(m.QueueDelete("q", nowait=True))
    client.silence()
    gone(client)


INEQUIVALENT: list[tuple[dict[str, Any], str, str, str]] = [
    ({"durable": False}, "durable", "'false'", "'true'"),
    ({"auto_delete": True}, "auto_delete", "'true'", "'false'"),
    ({"arguments": {"x-message-ttl": 2}}, "x-message-ttl", "'2'", "'1'"),
    ({"arguments": {}}, "x-message-ttl", "none", "the value '1' of type 'signedint'"),
    (
        {"arguments": {"x-message-ttl": 1, "x-max-length": 9}},
        "x-max-length",
        "the value '9' of type 'signedint'",
        "none",
    ),
    (
        {"arguments": {"x-message-ttl": 1, "x-overflow": "drop-head"}},
        "x-overflow",
        "the value 'drop-head' of type 'longstr'",
        "none",
    ),
    (
        {"arguments": {"x-message-ttl": 1, "x-queue-mode": "lazy"}},
        "x-queue-mode",
        "the value 'lazy' of type 'longstr'",
        "none",
    ),
    (
        {"arguments": {"x-queue-type": "quorum"}},
        "x-queue-type",
        "the value 'quorum' of type 'longstr'",
        "none",
    ),
    (
        {"arguments": {"x-queue-type": "stream"}},
        "x-queue-type",
        "the value 'stream' of type 'longstr'",
        "none",
    ),
]


@pytest.mark.parametrize(("change", "what", "received", "current"), INEQUIVALENT, ids=[str(i[0]) for i in INEQUIVALENT])
def test_declared_otherwise(client: Client, change: dict[str, Any], what: str, received: str, current: str) -> None:
    declared: dict[str, Any] = {"durable": True, "arguments": {"x-message-ttl": 1}}
    client.ask(declare(**declared), m.QueueDeclareOk)
    client.ask(declare(**declared), m.QueueDeclareOk)
    client.refused(
        declare(**(declared | change)),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"inequivalent arg '{what}' for queue 'q' in vhost '/': received {received} but current is {current}",
    )


WRONG: list[tuple[str, Any, str]] = [
    ("x-message-ttl", -1, "{value_negative,-1}"),
    ("x-message-ttl", "soon", '"expected integer, got longstr"'),
    ("x-expires", 0, "{value_zero,0}"),
    ("x-expires", -5, "{value_negative,-5}"),
    ("x-max-length", -1, "{value_negative,-1}"),
    ("x-max-length-bytes", True, '"expected integer, got bool"'),
    ("x-overflow", "spill", "invalid_overflow"),
    ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    ("x-max-priority", 256, "{max_value_exceeded,256}"),
    ("x-max-priority", -1, "{value_negative,-1}"),
    ("x-single-active-consumer", "yes", "{unacceptable_type,longstr}"),
    ("x-queue-type", "fast", "\"unsupported queue type 'fast'\""),
    ("x-queue-mode", "busy", "\"unsupported queue mode 'busy'\""),
    ("x-consumer-timeout", -1, "{value_negative,-1}"),
    ("x-queue-version", 3, "\"unsupported queue version '3'\""),
    ("x-queue-leader-locator", "nearest", "invalid_queue_locator_arg"),
    ("x-queue-leader-locator", 1, "{unacceptable_type,signedint}"),
    ("x-dead-letter-routing-key", 1, "{unacceptable_type,signedint}"),
    ("x-message-ttl", 315_360_000_001, "{value_too_large,315360000001}"),
    ("x-message-deduplication", "yes", "{unacceptable_type,longstr}"),
]


@pytest.mark.parametrize(("argument", "value", "why"), WRONG, ids=[f"{one[0]}={one[1]}" for one in WRONG])
def test_arguments_that_cannot_be(client: Client, argument: str, value: Any, why: str) -> None:
    client.refused(
        declare(arguments={argument: value}),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"invalid arg '{argument}' for queue 'q' in vhost '/': {why}",
    )
    gone(client)


@pytest.mark.parametrize(
    ("argument", "value", "why"),
    [
        ("x-delivery-limit", "x", '"expected integer, got longstr"'),
        ("x-dead-letter-strategy", "never", "invalid_dlx_strategy"),
        ("x-max-in-memory-length", -1, "{value_negative,-1}"),
        ("x-max-in-memory-bytes", -1, "{value_negative,-1}"),
        ("x-quorum-initial-group-size", 0, "{value_zero,0}"),
        ("x-quorum-target-group-size", 0, "{value_zero,0}"),
    ],
)
def test_arguments_that_quorum_queues_cannot_have_so(client: Client, argument: str, value: Any, why: str) -> None:
    client.refused(
        declare(durable=True, arguments={"x-queue-type": "quorum", argument: value}),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"invalid arg '{argument}' for queue 'q' in vhost '/': {why}",
    )


def test_arguments_without_effect_on_one_node(client: Client) -> None:
    client.queue(x_queue_mode="lazy", x_queue_version=2, x_queue_master_locator="min-masters")
    client.queue(
        "quorum",
        durable=True,
        x_queue_type="quorum",
        x_queue_leader_locator="balanced",
        x_dead_letter_strategy="at-least-once",
        x_max_in_memory_length=5,
        x_max_in_memory_bytes=0,
        x_quorum_initial_group_size=3,
        x_quorum_target_group_size=5,
    )
    client.queue(
        "stream",
        durable=True,
        x_queue_type="stream",
        x_queue_leader_locator="client-local",
        x_initial_cluster_size=3,
        x_stream_filter_size_bytes=32,
    )


def test_arguments_of_the_wrong_type(client: Client) -> None:
    client.refused(
        declare(arguments={"x-dead-letter-exchange": 5}),
        code=ReplyCode.PRECONDITION_FAILED,
        text="invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'",
    )


def test_arguments_that_nobody_knows_are_kept(client: Client) -> None:
    for _ in range(2):
        client.queue(x_mine={"a": [1]}, x_queue_mode="lazy", x_queue_version=2, x_queue_master_locator="min-masters")


REPLICATED: list[tuple[str, dict[str, Any], str]] = [
    (kind, flags, f"invalid property '{what}' for queue 'q' in vhost '/'")
    for kind in ("quorum", "stream")
    for flags, what in (
        ({"durable": False}, "non-durable"),
        ({"exclusive": True}, "exclusive-owner"),
        ({"auto_delete": True}, "auto-delete"),
    )
]


@pytest.mark.parametrize(("kind", "flags", "text"), REPLICATED)
def test_what_quorum_queues_and_streams_cannot_be(client: Client, kind: str, flags: dict[str, Any], text: str) -> None:
    declared = {"durable": True} | flags
    client.refused(declare(arguments={"x-queue-type": kind}, **declared), code=ReplyCode.PRECONDITION_FAILED, text=text)


@pytest.mark.parametrize(
    ("kind", "argument", "value"),
    [
        ("classic", "x-delivery-limit", 5),
        ("classic", "x-max-in-memory-length", 5),
        ("classic", "x-quorum-initial-group-size", 3),
        ("classic", "x-dead-letter-strategy", "at-least-once"),
        ("classic", "x-max-age", "7D"),
        ("classic", "x-stream-max-segment-size-bytes", 1_000_000),
        ("classic", "x-initial-cluster-size", 1),
        ("quorum", "x-queue-version", 2),
        ("quorum", "x-queue-master-locator", "random"),
        ("quorum", "x-max-age", "7D"),
        ("stream", "x-delivery-limit", 5),
        ("stream", "x-queue-mode", "lazy"),
        ("stream", "x-consumer-timeout", 60_000),
        ("stream", "x-message-deduplication", True),
        ("quorum", "x-max-priority", 5),
        ("quorum", "x-queue-mode", "lazy"),
        ("quorum", "x-max-age", "1D"),
        ("classic", "x-max-age", "1D"),
        ("stream", "x-expires", 5),
        ("stream", "x-message-ttl", 5),
        ("stream", "x-max-length", 5),
        ("stream", "x-max-priority", 5),
        ("stream", "x-overflow", "drop-head"),
        ("stream", "x-dead-letter-exchange", ""),
        ("stream", "x-single-active-consumer", True),
    ],
)
def test_arguments_of_other_types_of_queue(client: Client, kind: str, argument: str, value: Any) -> None:
    client.refused(
        declare(durable=True, arguments={"x-queue-type": kind, argument: value}),
        code=ReplyCode.PRECONDITION_FAILED,
        text=f"invalid arg '{argument}' for queue 'q' in vhost '/' of queue type rabbit_{kind}_queue",
    )


def test_the_vhost_says_what_queues_are_that_do_not(play: Play, client: Client) -> None:
    play.core.catalog.alter_namespace("/", {"default_queue_type": "quorum"})
    for _ in range(2):
        client.queue(durable=True)
    assert play.core.work_queues.get("/", "q").settings.kind == "quorum"
    assert play.core.work_queues.get("/", "q").item.settings["declared"] == {"x-queue-type": "quorum"}
    client.queue("passing")
    client.queue("mine", durable=True, exclusive=True)
    client.queue("short", durable=True, auto_delete=True)
    client.queue("told", durable=True, x_queue_type="classic")
    kinds = {queue.name: queue.settings.kind for queue in play.core.work_queues.all("/")}
    assert kinds == {"q": "quorum"} | dict.fromkeys(("passing", "mine", "short", "told"), "classic")


REFUSED: list[tuple[Method, ReplyCode, str]] = [
    (declare("amq.mine"), ReplyCode.ACCESS_REFUSED, "queue name 'amq.mine' contains reserved prefix 'amq.*'"),
    (declare("q", passive=True), ReplyCode.NOT_FOUND, NO_Q),
    (declare("", passive=True), ReplyCode.NOT_FOUND, "no queue '' in vhost '/'"),
    (m.QueuePurge(""), ReplyCode.NOT_FOUND, "no previously declared queue"),
    (m.QueueDelete(""), ReplyCode.NOT_FOUND, "no previously declared queue"),
    (m.QueueBind("", "amq.fanout", ""), ReplyCode.NOT_FOUND, "no previously declared queue"),
    (m.BasicGet(""), ReplyCode.NOT_FOUND, "no previously declared queue"),
]


@pytest.mark.parametrize(("said", "code", "text"), REFUSED, ids=[repr(one[0])[:40] for one in REFUSED])
def test_refused(client: Client, said: Method, code: ReplyCode, text: str) -> None:
    client.refused(said, code=code, text=text)


def test_names_of_255_bytes(client: Client) -> None:
    name = "é" * 127 + "x"
    assert client.queue(name).queue == name
    client.publish(b"a", name)
    client.exchange(name, "fanout")
    client.bind(name, name, name)
    client.publish(b"b", name, name)
    client.consume(name, name, no_ack=True)
    first, second = client.messages()
    assert (first.body, second.body) == (b"a", b"b")
    assert (second.exchange, second.routing_key, second.consumer_tag) == (name, name, name)


# -- purged and deleted


def test_purge_takes_what_is_ready(client: Client) -> None:
    client.queue()
    for body in (b"a", b"b", b"c"):
        client.publish(body)
    held = client.get(no_ack=False)
    assert held is not None
    assert client.ask(m.QueuePurge("q"), m.QueuePurgeOk).message_count == 2
    client.send(m.BasicNack(held.delivery_tag))
    assert client.drain() == [b"a"]


def test_delete_tells_how_many_went(client: Client) -> None:
    client.queue()
    client.publish(b"a")
    assert client.ask(m.QueueDelete("q"), m.QueueDeleteOk).message_count == 1
    assert client.ask(m.QueueDelete("q"), m.QueueDeleteOk).message_count == 0
    assert client.queue().message_count == 0


def test_delete_with_conditions(client: Client) -> None:
    client.queue()
    client.consume()
    client.refused(
        m.QueueDelete("q", if_unused=True), code=ReplyCode.PRECONDITION_FAILED, text="queue 'q' in vhost '/' in use"
    )
    client.publish(b"a")
    client.refused(
        m.QueueDelete("q", if_empty=True), code=ReplyCode.PRECONDITION_FAILED, text="queue 'q' in vhost '/' not empty"
    )
    client.drain()
    client.ask(m.QueueDelete("q", if_unused=True, if_empty=True), m.QueueDeleteOk)
    gone(client)


def test_consumers_of_a_deleted_queue_are_told(play: Play, client: Client) -> None:
    other, old = play.connect(), play.connect(capabilities={})
    client.queue()
    other.consume("q", "theirs")
    old.consume("q", "old's")
    client.consume("q", "mine")
    client.send(m.QueueDelete("q"))
    client.expect(m.QueueDeleteOk(0), m.BasicCancel("mine", True))
    other.expect(m.BasicCancel("theirs", True))
    old.silence()
    other.send(m.BasicCancelOk("theirs"))
    other.silence()


def test_auto_delete_goes_with_its_last_consumer(client: Client) -> None:
    client.queue(auto_delete=True)
    client.publish(b"a")
    client.open(2)
    client.consume("q", "a")
    client.consume("q", "b", channel=2)
    client.bodies()
    client.ask(m.BasicCancel("a"), m.BasicCancelOk)
    client.queue(auto_delete=True)
    client.ask(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk, channel=2)
    gone(client)


# -- whose they are


@pytest.mark.parametrize(
    "said",
    [
        declare(),
        declare(exclusive=True),
        declare(passive=True),
        m.QueueBind("q", "amq.fanout", ""),
        m.QueueUnbind("q", "amq.fanout", ""),
        m.QueuePurge("q"),
        m.QueueDelete("q"),
        m.BasicConsume("q", "c"),
        m.BasicGet("q"),
    ],
    ids=lambda said: type(said).__name__ + str(getattr(said, "exclusive", "")) + str(getattr(said, "passive", "")),
)
def test_exclusive_queues_are_one_connections(play: Play, client: Client, said: Method) -> None:
    other = play.connect()
    client.queue(exclusive=True)
    other.refused(said, code=ReplyCode.RESOURCE_LOCKED, text=LOCKED)
    other.publish(b"a")  # to publish is not to use
    client.open(2)
    assert client.queue(exclusive=True, channel=2).message_count == 1


def test_exclusive_and_not(client: Client) -> None:
    client.queue()
    client.refused(declare(exclusive=True), code=ReplyCode.RESOURCE_LOCKED, text=LOCKED)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("how", ["close", "drop", "kill"])
def test_exclusive_queues_go_with_their_connection(play: Play, client: Client, how: str, durable: bool) -> None:
    client.queue(exclusive=True, durable=durable)
    client.bind("q", "amq.fanout")
    if how == "close":
        client.send(m.ConnectionClose(200, "", 0, 0))
        client.expect(m.ConnectionCloseOk())
    elif how == "drop":
        client.drop()
    else:
        play.restart()
    other = play.connect()
    gone(other)
    other.publish(b"", "", "amq.fanout", mandatory=True)
    assert len(other.messages()) == 1


def test_durable_queues_and_messages(play: Play, client: Client) -> None:
    for name, durable in (("stays", True), ("goes", False)):
        client.queue(name, durable=durable, x_max_length=9)
        client.publish(b"persistent", name, delivery_mode=2)
        client.publish(b"transient", name, delivery_mode=1)
    play.turn()
    play.restart()
    client = play.connect()
    gone(client, "goes")
    assert client.queue("stays", durable=True, x_max_length=9).message_count == 1
    assert client.drain("stays") == [b"persistent"]


def test_quorum_queues_keep_everything(play: Play, client: Client) -> None:
    client.queue(durable=True, x_queue_type="quorum")
    client.confirms()
    client.publish(b"a", delivery_mode=1)
    client.expect(m.BasicAck(1))
    play.restart()
    assert play.connect().drain() == [b"a"]


# -- time


def test_expires_when_nobody_uses_it(play: Play, client: Client) -> None:
    client.queue(x_expires=1_000)
    client.publish(b"a")
    play.later(900)
    client.queue(x_expires=1_000)  # that is a use
    play.later(900)
    client.get(no_ack=False)  # and that
    play.later(900)
    client.consume()
    play.later(5_000)
    client.ask(m.BasicCancel("c"), m.BasicCancelOk)
    play.later(999)
    assert play.core.work_queues.find("/", "q") is not None
    client.publish(b"b")  # that is none
    play.later(1)
    gone(client)


def test_expires_after_a_restart(play: Play, client: Client) -> None:
    client.queue(durable=True, x_expires=1_000)
    play.later(900)
    play.restart()
    play.later(900)
    client = play.connect()
    assert play.core.work_queues.find("/", "q") is not None
    play.later(100)
    gone(client)


# -- by policy


def test_policies_come_change_and_go(play: Play, client: Client) -> None:
    client.queue("q.a", x_max_length=5)
    for number in range(5):
        client.publish(b"%d" % number, "q.a")
    put = play.core.policies.put
    put("/", "short", pattern="^q\\.", definition={"max_length": 3})
    assert client.drain("q.a") == [b"2", b"3", b"4"]
    put("/", "short", pattern="^q\\.", definition={"max_length": 9})
    for number in range(9):
        client.publish(b"%d" % number, "q.a")
    assert client.ready("q.a") == 5  # the lower limit holds
    put("/", "short", pattern="^q\\.", definition={"message_ttl_ms": 1_000})
    play.later(1_001)
    assert client.ready("q.a") == 0
    put("/", "short", pattern="^q\\.", definition={"expires_ms": 500})
    play.later(500)
    gone(client, "q.a")
    client.queue("q.b")
    play.core.policies.remove("/", "short")
    play.later(500)
    client.queue("q.b", passive=True)


def test_policies_say_where_the_dead_go(play: Play, client: Client) -> None:
    client.queue("dead")
    client.queue("q", x_max_length=1)
    play.core.policies.put("/", "p", pattern="^q$", definition={"dead_letter_exchange": "", "dead_letter_key": "dead"})
    client.publish(b"a")
    client.publish(b"b")
    client.silence()
    assert client.drain("dead") == [b"a"]
    play.core.policies.put("/", "p", pattern="^q$", definition={"overflow": "reject-publish"})
    client.confirms()
    client.publish(b"c")
    client.expect(m.BasicNack(1))
    assert client.drain() == [b"b"] and client.drain("dead") == []
