"""Dead letters: why messages die, where they go, what is told of it, and when they go round in circles."""

from typing import Any

from interlog.faces.amqp import methods as m
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Talk


@conversation()
def each_reason(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead")
    client.exchange("dlx", "fanout")
    client.bind("dead", "dlx")
    client.queue("q", x_dead_letter_exchange="dlx", x_max_length=2)
    client.publish("expired", expiration="50", headers={"h": 1}, delivery_mode=2, priority=3)
    talk.sleep(0.4)
    client.drain("dead")
    for body in ("pushed out", "rejected", "nacked"):
        client.publish(body, message_id=body)
        client.hear(first=0.2)
    client.get(no_ack=False)
    client.do(m.BasicReject(client.tag, False), first=0.2)
    client.get(no_ack=False)
    client.do(m.BasicNack(client.tag, False, False), first=0.2)
    client.drain("dead")


@conversation()
def dead_letter_keys(talk: Talk) -> None:
    client = talk.client()
    client.exchange("dlx", "topic")
    client.queue("dead")
    client.bind("dead", "dlx", "#")
    client.queue("q", x_dead_letter_exchange="dlx")
    client.queue("own", x_dead_letter_exchange="dlx", x_dead_letter_routing_key="own.key")
    for queue in ("q", "own"):
        client.bind(queue, "amq.topic", f"{queue}.#")
        client.publish("1", f"{queue}.1", "amq.topic", expiration="0")
        client.publish("2", f"{queue}.2", "amq.topic", expiration="0", headers={"CC": ["more"], "BCC": ["secret"]})
        client.publish("3", queue, "", expiration="0")
        client.hear(first=0.4)
        client.drain("dead")


@conversation()
def counted_together(talk: Talk) -> None:
    client = talk.client()
    client.queue("a", x_dead_letter_exchange="", x_dead_letter_routing_key="b", x_message_ttl=100)
    client.queue("b", x_dead_letter_exchange="", x_dead_letter_routing_key="a")
    client.publish("x", "a")
    for _ in range(3):
        talk.sleep(0.5)
        client.get("b", no_ack=False)
        client.do(m.BasicReject(client.tag, False), first=0.3)
        client.do(m.ChannelClose(200, "", 0, 0))
        client.do(m.ChannelOpen())
    talk.sleep(0.5)
    client.get("b")


@conversation()
def in_circles(talk: Talk) -> None:
    client = talk.client()
    client.queue("self", x_dead_letter_exchange="", x_dead_letter_routing_key="self", x_message_ttl=100)
    client.publish("x", "self")
    talk.sleep(0.5)
    client.count("self")
    client.queue("a", x_dead_letter_exchange="", x_dead_letter_routing_key="b", x_message_ttl=100)
    client.queue("b", x_dead_letter_exchange="", x_dead_letter_routing_key="a", x_message_ttl=100)
    client.publish("x", "a")
    talk.sleep(0.8)
    client.count("a")
    client.count("b")
    client.queue("r", x_dead_letter_exchange="", x_dead_letter_routing_key="r")
    client.publish("x", "r")
    client.hear(first=0.2)
    client.get("r", no_ack=False)
    client.do(m.BasicReject(client.tag, False), first=0.3)
    client.get("r")
    client.queue("len", x_dead_letter_exchange="", x_dead_letter_routing_key="len", x_max_length=1)
    client.publish("1", "len")
    client.publish("2", "len")
    client.hear(first=0.4)
    client.drain("len")


@conversation()
def no_such_exchange(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", x_dead_letter_exchange="none")
    client.publish("a", expiration="0")
    client.hear(first=0.2)
    client.count()
    client.queue("lost", x_dead_letter_exchange="", x_dead_letter_routing_key="nobody")
    client.publish("a", "lost", expiration="0")
    client.hear(first=0.2)
    client.count("lost")
    client.queue("dead")
    client.exchange("none", "fanout")
    client.bind("dead", "none")
    client.publish("b", expiration="0")
    client.hear(first=0.3)
    client.drain("dead")


@conversation()
def overflow_to_dead_letters(talk: Talk) -> None:
    client = talk.client()
    client.confirms()
    client.queue("dead")
    for overflow in ("drop-head", "reject-publish", "reject-publish-dlx"):
        client.queue(
            overflow,
            x_max_length=2,
            x_overflow=overflow,
            x_dead_letter_exchange="",
            x_dead_letter_routing_key="dead",
        )
        for body in "abc":
            client.publish(body, overflow)
            client.hear()
        talk.sleep(0.2)
        client.drain(overflow)
        client.drain("dead")


@conversation("x-death is the broker's own: what a publisher puts there is not continued, as of RabbitMQ 4")
def headers_of_the_dead(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead")
    client.queue("q", x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    sent: list[dict[str, Any]] = [
        {"headers": {"x-death": "not a list"}},
        {"headers": {"x-death": []}},
        {"headers": {"x-death": [{"queue": "other", "reason": "rejected", "count": 5}]}},
        {"headers": {"x-first-death-queue": "mine", "x-first-death-reason": "mine"}},
        {"headers": {"x-delivery-count": 9}},
        {"headers": {"CC": ["nobody"]}},
        {"headers": {}},
        {},
    ]
    for properties in sent:
        client.publish("a", expiration="0", **properties)
        client.hear(first=0.3)
        client.drain("dead")


@conversation()
def of_quorum_queues(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead", durable=True)
    client.queue(
        "q",
        durable=True,
        x_queue_type="quorum",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key="dead",
        x_max_length=2,
        x_message_ttl=60000,
    )
    client.publish("expired", expiration="100")
    client.hear(first=0.6)
    client.drain("dead")
    for body in ("a", "b", "c"):
        client.publish(body, headers={"h": 1})
        client.hear(first=0.4)
    client.drain("dead")
    client.get(no_ack=False)
    client.do(m.BasicReject(client.tag, False), first=0.5)
    client.drain("dead")


@conversation()
def at_least_once(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead", durable=True)
    client.queue(
        "q",
        durable=True,
        x_queue_type="quorum",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key="dead",
        x_dead_letter_strategy="at-least-once",
        x_overflow="reject-publish",
        x_max_length=2,
    )
    client.confirms()
    client.publish("expired", expiration="100")
    client.hear()
    talk.sleep(1.0)
    client.drain("dead")
    for body in "ab":
        client.publish(body)
        client.hear()
    client.get(no_ack=False)
    client.do(m.BasicReject(client.tag, False), first=0.8)
    client.drain("dead")


@conversation()
def by_policy(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead")
    client.exchange("dlx", "fanout")
    client.bind("dead", "dlx")
    client.queue("q")
    talk.policy("dlx", "^q$", {"dead-letter-exchange": "dlx", "dead-letter-routing-key": "k"})
    client.publish("a", expiration="0")
    client.hear(first=0.3)
    client.drain("dead")
    client.queue("q2", x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    talk.policy("dlx2", "^q2$", {"dead-letter-exchange": "nowhere"})
    client.publish("b", "q2", expiration="0")
    client.hear(first=0.3)
    client.drain("dead")


@conversation()
def times_to_live(talk: Talk) -> None:
    client = talk.client()
    client.queue("q", x_message_ttl=600)
    client.publish("queue's", "q")
    client.publish("own, shorter", "q", expiration="100")
    client.publish("own, longer", "q", expiration="5000")
    client.hear(first=0.1)
    talk.sleep(0.3)
    client.count()
    talk.sleep(0.6)
    client.count()
    client.queue("plain")
    client.publish("long", "plain", expiration="60000")
    client.publish("behind", "plain", expiration="50")
    client.hear(first=0.3)
    client.count("plain")
    client.drain("plain")
    client.queue("now", x_message_ttl=0)
    client.publish("to nobody", "now")
    client.hear(first=0.2)
    client.count("now")
    client.consume("now", no_ack=True)
    client.publish("to one who waits", "now")
    client.hear()
    client.publish("at once", "now", expiration="0")
    client.hear()


@conversation()
def held_longer_than_they_live(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead")
    client.queue("q", x_message_ttl=300, x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    client.publish("a")
    client.hear(first=0.1)
    client.get(no_ack=False)
    talk.sleep(0.6)
    client.count("dead")
    client.do(m.BasicNack(client.tag, False, True), first=0.5)
    client.count()
    client.drain("dead")


@conversation()
def delivery_of_expired_messages(talk: Talk) -> None:
    client = talk.client()
    client.queue("q")
    client.qos(1)
    client.consume()
    client.publish("a", expiration="100")
    client.hear()
    client.publish("b", expiration="100")
    client.hear(first=0.5)
    client.do(m.BasicAck(1), first=0.4)
    client.count()


@conversation()
def purged_and_deleted_are_not_dead(talk: Talk) -> None:
    client = talk.client()
    client.queue("dead")
    client.queue("q", x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    client.publish("a")
    client.hear(first=0.1)
    client.do(m.QueuePurge("q"))
    client.publish("b")
    client.hear(first=0.1)
    client.do(m.QueueDelete("q"))
    client.count("dead")
