"""Who does not read costs no more than buffers; a broker short of memory holds publishers back, and never consumers."""

from collections.abc import Iterator

import pytest

from interlog.base.limits import OUTPUT_PAUSE_BYTES
from interlog.core.work_queue import HAND_OUT_BYTES
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.connection import FULL_BYTES
from interlog.testing import RunningBroker, running
from tests.amqp_socket import SocketClient, until
from tests.interop.unsent import unsent_bytes

BODY = bytes(16 << 10)
FLOOD = 2_000  # messages: 32 MiB
KERNEL_BYTES = 12 << 20  # what the two sockets between may hold: Linux lets a sender's grow to 4 MiB, a reader's to 6
MEMORY = 64 << 20


def ready(broker: RunningBroker, queue: str) -> int:
    return broker.call(lambda core: core.work_queues.get("/", queue).settled().ready)


def flood(broker: RunningBroker, publisher: SocketClient) -> None:
    for number in range(FLOOD):
        publisher.publish("flood", b"%06d" % number + BODY)
    publisher.client.call(1, m.QueueDeclare("flood", passive=True), m.QueueDeclareOk)  # all have been taken in


@pytest.mark.parametrize("no_ack", [True, False], ids=["for good", "to be acknowledged"])
def test_a_consumer_that_does_not_read(broker: RunningBroker, no_ack: bool) -> None:
    with SocketClient(broker) as publisher, SocketClient(broker) as deaf, SocketClient(broker) as other:
        publisher.declare("flood")
        deaf.consume("flood", no_ack=no_ack)
        flood(broker, publisher)
        handed_out = (FLOOD - ready(broker, "flood")) * len(BODY)
        bound = OUTPUT_PAUSE_BYTES + FULL_BYTES + HAND_OUT_BYTES
        assert unsent_bytes(broker) <= bound
        assert handed_out <= bound + KERNEL_BYTES

        other.declare("quiet", exclusive=True)
        other.consume("quiet", no_ack=True)
        for number in range(100):
            other.publish("quiet", b"%d" % number)
            assert other.hear(number + 1)[number].body == b"%d" % number

        heard = deaf.hear(FLOOD)
        assert [int(one.body[:6]) for one in heard] == list(range(FLOOD))


@pytest.fixture
def small_broker() -> Iterator[RunningBroker]:
    with running(memory_bytes=MEMORY) as broker:
        yield broker


def test_publishers_are_held_back_while_consumers_go_on(small_broker: RunningBroker) -> None:
    broker = small_broker
    body = bytes(1 << 20)
    with SocketClient(broker) as publisher, SocketClient(broker) as holder, SocketClient(broker) as consumer:
        publisher.declare("held")
        publisher.declare("flowing")
        for number in range(10):
            publisher.publish("flowing", b"%d" % number)
        holder.consume("held")  # takes all there is, and acknowledges nothing yet
        published = 0
        while broker.call(lambda core: core.accepts_messages):
            publisher.publish("held", body)
            published += 1
            holder.hear(published)
        publisher.publish("held", b"late")
        blocked = publisher.hear(1)[0].method
        assert isinstance(blocked, m.ConnectionBlocked)
        assert "memory" in blocked.reason
        publisher.client.send(1, m.QueueDelete("flowing"))  # is not even read

        consumer.consume("flowing", no_ack=True)
        assert [one.body for one in consumer.hear(10)] == [b"%d" % number for number in range(10)]
        assert len(holder.heard) == published

        holder.client.send(1, m.BasicAck(published, True))
        assert isinstance(publisher.hear(2)[1].method, m.ConnectionUnblocked)
        late = holder.hear(published + 1)[published]
        assert late.body == b"late"
        until(lambda: broker.call(lambda core: core.work_queues.find("/", "flowing")) is None, "the queue is deleted")
