"""Consuming: order, prefetch, acknowledgements, what comes back and how, who is served first."""

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.values import Int8, Int64
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Line, Talk


def _fill(client: Line, bodies: str = "abcde", queue: str = "q") -> None:
    for body in bodies:
        client.publish(body, queue)
    client.hear(first=0.3)


@conversation()
def delivered_and_acknowledged(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client)
    client.consume()
    client.do(m.BasicAck(1), first=0.2)
    client.do(m.BasicAck(3, True), first=0.2)
    client.count()
    client.do(m.BasicAck(2))
    client.count()
    client.drain()


@conversation()
def unknown_tags(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client)
    for said in (
        [m.BasicAck(1)],
        [m.BasicAck(0)],
        [m.BasicAck(0, True)],
        [m.BasicAck(5, True)],
        [m.BasicNack(1)],
        [m.BasicNack(0, True)],
        [m.BasicNack(0)],
        [m.BasicReject(1)],
        [m.BasicReject(0)],
        [m.BasicAck(1 << 63)],
        [m.BasicGet("q"), m.BasicAck(1), m.BasicAck(1)],
        [m.BasicGet("q", no_ack=True), m.BasicAck(1)],
        [m.BasicGet("q"), m.BasicAck(1, True), m.BasicAck(1, True)],
        [m.BasicGet("q"), m.BasicAck(0, True), m.BasicAck(0, True)],
        [m.BasicGet("q"), m.BasicAck(2, True)],
        [m.BasicGet("q"), m.BasicGet("q"), m.BasicAck(2), m.BasicAck(2, True), m.BasicAck(1)],
    ):
        client.do(*said, first=0.5)
        client.do(m.QueuePurge("q"))
        _fill(client, "xyz")


def _come_back(talk: Talk, kind: str) -> None:
    client = talk.client(kind, channels=(1, 2))
    client.queue(kind, durable=True, x_queue_type=kind)
    _fill(client, queue=kind)
    for _ in range(4):
        client.get(kind, no_ack=False)
    client.do(m.BasicReject(2, True), first=0.4)
    client.get(kind, no_ack=False)
    client.do(m.BasicNack(3, True, True), first=0.4)
    client.get(kind, no_ack=False)
    client.get(kind, no_ack=False)
    client.do(m.ChannelClose(200, "", 0, 0))
    talk.sleep(0.3)
    client.say(m.ChannelOpen())
    client.hear()
    client.drain(kind)


@conversation()
def come_back_in_order(talk: Talk) -> None:
    _come_back(talk, "classic")


@conversation("what comes back stands where it stood; with RabbitMQ it goes to the end of a quorum queue")
def come_back_to_a_quorum_queue(talk: Talk) -> None:
    _come_back(talk, "quorum")


@conversation()
def recovered(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client, "abc")
    client.get(no_ack=False)
    client.get(no_ack=False)
    client.do(m.BasicRecover(True))
    client.get(no_ack=False)
    client.do(m.BasicRecoverAsync(True), first=0.3)
    client.get(no_ack=False)
    client.do(m.BasicRecover(False))
    client.get(no_ack=False)
    client.do(m.BasicRecoverAsync(False))
    client.consume(tag="c")
    client.do(m.BasicRecover(True))


@conversation()
def prefetch_of_each(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client, "abcdefgh")
    client.qos(2)
    client.consume(tag="c1")
    client.qos(1)
    client.consume(tag="c2")
    client.consume(tag="unlimited", no_ack=True)
    client.do(m.BasicAck(1), first=0.3)
    client.do(m.BasicAck(0, True), first=0.3)


@conversation("a channel's limit and its consumers' hold at once; RabbitMQ lets the latter go beyond the former")
def prefetch_of_all(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client, "abcdefgh")
    client.qos(3, shared=True)
    client.qos(2)
    client.consume(tag="c1")
    client.consume(tag="c2")
    client.get(no_ack=False)
    client.do(m.BasicAck(1), first=0.3)
    client.qos(4, shared=True)
    client.hear(first=0.3)
    client.qos(0, shared=True)
    client.hear(first=0.3)
    client.do(m.BasicAck(0, True), first=0.3)


@conversation()
def prefetch_lowered(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.qos(3, shared=True)
    client.consume(tag="c1")
    _fill(client, "abcd")
    client.qos(1, shared=True)
    client.do(m.BasicAck(1), first=0.3)
    client.do(m.BasicAck(2), first=0.3)
    client.do(m.BasicAck(3), first=0.3)
    client.do(m.BasicQos(prefetch_size=1))
    client.do(m.BasicQos(prefetch_size=1, prefetch_count=5, global_=True))


@conversation("quorum queues and streams heed the limit of a channel, where RabbitMQ refuses them")
def global_prefetch_of_quorum_queues(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", durable=True, x_queue_type="quorum")
    client.qos(3, shared=True)
    client.consume()


@conversation()
def consumer_tags(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.queue()
    client.consume(tag="c")
    client.consume(tag="c", channel=2)
    client.consume(tag="")
    client.consume(tag="ü" * 20)
    client.consume(tag="c")


@conversation()
def consumer_tag_twice_on_a_channel(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.queue("other")
    client.consume(tag="c")
    client.consume("other", tag="c")
    client.do(m.BasicCancel("c"))
    client.do(m.BasicCancel("c"))
    client.do(m.BasicCancel("never"))


@conversation()
def consume_exclusively(talk: Talk) -> None:
    client, other = talk.client("a", channels=(1, 2)), talk.client("b")
    client.queue()
    client.consume(tag="c1")
    other.consume(tag="c2", exclusive=True)
    other.do(m.BasicConsume("q", "c2", exclusive=True))
    client.do(m.BasicCancel("c1"))
    other.do(m.BasicConsume("q", "c2", exclusive=True))
    client.do(m.BasicConsume("q", "c1"))
    client.do(m.BasicConsume("q", "c1", exclusive=True))
    client.get()
    other.do(m.BasicCancel("c2"))
    client.do(m.BasicConsume("q", "c1"))


@conversation("an exclusive consumer of a quorum queue is its only one; RabbitMQ does not heed it")
def consume_exclusively_a_quorum_queue(talk: Talk) -> None:
    client = talk.client("a", channels=(1, 2))
    client.queue("q", durable=True, x_queue_type="quorum")
    client.do(m.BasicConsume("q", "c1"))
    client.do(m.BasicConsume("q", "c2", exclusive=True), channel=2)


@conversation()
def no_local(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.do(m.BasicConsume("q", "c", no_local=True))
    client.publish("own")
    client.hear()


@conversation()
def consume_arguments(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    for arguments in (
        {"x-priority": 5},
        {"x-priority": -5},
        {"x-priority": Int8(5)},
        {"x-priority": Int64(1 << 40)},
        {"x-priority": "5"},
        {"x-priority": 1.5},
        {"x-priority": True},
        {"x-priority": None},
        {"x-cancel-on-ha-failover": True},
        {"x-consumer-timeout": 100},
        {"x-stream-offset": "nonsense"},
        {"x-unknown": 1},
    ):
        client.do(m.BasicConsume("q", arguments=arguments))


@conversation()
def consumer_priorities(talk: Talk) -> None:
    client = talk.client(channels=(1, 2, 3))
    client.queue()
    client.qos(2)
    client.qos(1, channel=2)
    client.consume(tag="low", x_priority=-1)
    client.consume(tag="high", channel=2, x_priority=10)
    client.consume(tag="usual", channel=3)
    for body in "abcdefg":
        client.publish(body)
        client.hear(first=0.3)
    client.do(m.BasicAck(1), channel=2, first=0.3)
    client.publish("h")
    client.hear(first=0.3)


@conversation()
def in_turn(talk: Talk) -> None:
    client = talk.client(channels=(1, 2, 3))
    client.queue()
    for channel in (1, 2, 3):
        client.qos(10, channel=channel)
        client.consume(tag=f"c{channel}", channel=channel)
    for body in "abcdefg":
        client.publish(body)
        client.hear(first=0.3)


@conversation()
def a_single_active_consumer_of_a_quorum_queue(talk: Talk) -> None:
    _single_active(talk, "quorum")


@conversation("what waits is delivered when the next one becomes active; RabbitMQ 3.10 waits for another message")
def a_single_active_consumer(talk: Talk) -> None:
    _single_active(talk, "classic")


def _single_active(talk: Talk, kind: str) -> None:
    client, other = talk.client(f"a-{kind}", channels=(1, 2)), talk.client(f"b-{kind}")
    client.queue(kind, durable=True, x_single_active_consumer=True, x_queue_type=kind)
    client.qos(1)
    client.consume(kind, tag="first")
    client.consume(kind, tag="second", channel=2, x_priority=10)
    other.consume(kind, tag="third")
    for body in "abc":
        client.publish(body, kind)
        client.hear(first=0.3)
    client.do(m.BasicCancel("first"), first=0.4)
    client.do(m.BasicAck(1), first=0.4)
    client.do(m.ChannelClose(200, "", 0, 0), channel=2, first=0.4)
    other.hear(first=0.4)


@conversation("a client may stop deliveries with channel.flow; RabbitMQ refuses that")
def flow_of_a_channel(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    client.consume()
    client.do(m.ChannelFlow(True))
    client.do(m.ChannelFlow(False))


@conversation()
def got(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", durable=True)
    client.publish("a", "q", headers={"x": 1})
    client.publish("b", "k", "amq.direct")
    client.bind("q", "amq.direct", "k")
    client.publish("c", "k", "amq.direct")
    client.get(no_ack=False)
    client.get()
    client.get()
    client.get()
    client.do(m.BasicNack(1, False, True), first=0.2)
    client.get(no_ack=False)


@conversation()
def priorities(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", x_max_priority=5)
    for priority in (None, 0, 1, 5, 3, 200, 5, 1):
        client.publish(f"p{priority}", priority=priority)
    client.hear(first=0.3)
    client.get(no_ack=False)
    client.get(no_ack=False)
    client.do(m.BasicNack(2, True, True), first=0.3)
    client.drain()


@conversation()
def priorities_and_max_length(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", x_max_priority=5, x_max_length=3)
    for at, priority in enumerate((1, 5, 0, 3, 2)):
        client.publish(f"{at}-p{priority}", priority=priority)
        client.hear(first=0.2)
    client.drain()


@conversation()
def delivery_counts(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    client.queue("q", durable=True, x_queue_type="quorum")
    client.publish("a")
    client.hear(first=0.3)
    for _ in range(2):
        client.get(no_ack=False)
        client.do(m.BasicReject(client.tag, True), first=0.4)
        client.do(m.ChannelClose(200, "", 0, 0))
        client.do(m.ChannelOpen())
    other.get(no_ack=False)
    other.cut()
    talk.sleep(0.5)
    client.consume()
    client.do(m.BasicRecover(True))
    client.do(m.BasicNack(2, False, True))


@conversation()
def delivery_limits(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.queue("dead")
    client.queue(
        "q",
        durable=True,
        x_queue_type="quorum",
        x_delivery_limit=2,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key="dead",
    )
    client.publish("a")
    client.hear(first=0.3)
    client.consume(channel=2)
    for tag in range(1, 4):
        client.do(m.BasicNack(tag, False, True), channel=2, first=0.6)
    client.drain("dead")
    client.queue("zero", durable=True, x_queue_type="quorum", x_delivery_limit=0)
    client.publish("b", "zero")
    client.hear(first=0.3)
    client.get("zero", no_ack=False)
    client.do(m.BasicNack(client.tag, False, True), first=0.4)
    client.get("zero", no_ack=False)


@conversation()
def cancelled_with_messages_out(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client, "abc")
    client.qos(2)
    client.consume()
    client.do(m.BasicCancel("c"))
    client.count()
    client.do(m.BasicAck(1), first=0.2)
    client.do(m.BasicNack(2, False, True), first=0.2)
    client.drain()


@conversation()
def connection_lost_with_messages_out(talk: Talk) -> None:
    client, other = talk.client(), talk.client("b")
    client.queue()
    _fill(client, "abcd")
    client.qos(3)
    client.consume()
    client.do(m.BasicAck(2), first=0.2)
    client.cut()
    talk.sleep(0.5)
    other.drain()


@conversation()
def acknowledged_on_another_channel(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.queue()
    _fill(client, "ab")
    client.consume()
    client.do(m.BasicAck(1), channel=2)
    client.do(m.BasicAck(1), channel=1, first=0.3)


@conversation()
def consumer_timeout(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", durable=True, x_queue_type="quorum")
    client.get()


@conversation()
def policies_on_queues(talk: Talk) -> None:
    client = talk.client()
    client.queue("p")
    for body in "abcd":
        client.publish(body, "p")
    client.hear(first=0.2)
    talk.policy("limit", "^p$", {"max-length": 2}, **{"apply-to": "queues"})
    client.count("p")
    client.publish("e", "p")
    client.hear(first=0.2)
    client.drain("p")
    talk.no_policy("limit")
    talk.policy("ttl", "^p$", {"message-ttl": 300})
    client.publish("f", "p")
    client.hear(first=0.1)
    client.count("p")
    talk.sleep(0.6)
    client.count("p")
    client.queue("both", x_max_length=1)
    talk.policy("both", "^both$", {"max-length": 3})
    for body in "abcd":
        client.publish(body, "both")
    client.hear(first=0.2)
    client.count("both")
    talk.policy("low", "^b", {"max-length": 1, "overflow": "reject-publish"}, priority=-1)
    talk.policy("bad", "^b", {"max-length": -1})
    talk.policy("bad", "^b", {"no-such-thing": 1})
    talk.policy("bad", "^b(", {"max-length": 1})
    talk.policy("bad", "^b", {})
    client.queue("none")
    talk.policy("expires", "^none$", {"expires": 500})
    talk.sleep(1.5)
    client.count("none")


@conversation()
def rejected_to_the_same_consumer(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    _fill(client, "abc")
    client.qos(2)
    client.consume(tag="c1")
    client.do(m.BasicReject(1, True))
    client.do(m.BasicNack(client.tag, True, True))
    client.do(m.BasicNack(0, True, True))


@conversation()
def operator_policies(talk: Talk) -> None:
    client = talk.client()
    body = {"pattern": "^o", "definition": {"max-length": 2}, "apply-to": "queues", "priority": 0}
    talk.note(str(talk.ask("PUT", f"/api/operator-policies/{talk.vhost}/o", body)[0]))
    client.queue("own", x_max_length=5)
    client.queue("o", x_max_length=5)
    client.queue("os", x_max_length=1)
    talk.policy("p", "^on", {"max-length": 1, "message-ttl": 60000})
    client.queue("on")
    for queue in ("own", "o", "os", "on"):
        for body_ in "abcd":
            client.publish(body_, queue)
        client.hear(first=0.2)
        client.count(queue)
    wrong = body | {"definition": {"dead-letter-exchange": "x"}}
    talk.note(str(talk.ask("PUT", f"/api/operator-policies/{talk.vhost}/w", wrong)[0]))
    talk.ask("DELETE", f"/api/operator-policies/{talk.vhost}/o")
    talk.sleep(0.3)
    for body_ in "efgh":
        client.publish(body_, "o")
    client.hear(first=0.2)
    client.count("o")


@conversation()
def policies_by_priority(talk: Talk) -> None:
    client = talk.client()
    client.queue("pq")
    talk.policy("low", "^p", {"max-length": 1}, priority=1)
    talk.policy("high", "^pq", {"max-length": 3}, priority=5)
    talk.policy("exchanges", "^p", {"alternate-exchange": "x"}, **{"apply-to": "exchanges", "priority": 9})
    for body in "abcd":
        client.publish(body, "pq")
    client.hear(first=0.2)
    client.count("pq")
    talk.no_policy("high")
    client.publish("e", "pq")
    client.hear(first=0.2)
    client.count("pq")
    talk.policy("dlx", "^pq$", {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}, priority=7)
    client.queue("dead")
    client.get("pq", no_ack=False)
    client.do(m.BasicReject(client.tag, False), first=0.3)
    client.count("dead")
