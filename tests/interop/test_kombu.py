"""kombu, and py-amqp under it: pools, entities, mixins, compressed and pickled messages, a broker that comes back."""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import amqp
import pytest
from amqp.exceptions import NotFound, PreconditionFailed
from kombu import Connection, Consumer, Exchange, Message, Producer, Queue, pools
from kombu.mixins import ConsumerProducerMixin
from yarl import URL

from tests.served import Serve

Named = Callable[[str], str]
PATIENCE_SECONDS = 20  # never waited for when all is well


@pytest.fixture
def connection(amqp_url: str) -> Iterator[Connection]:
    with Connection(amqp_url, transport_options={"confirm_publish": True}) as connection:
        yield connection


def drain_until(connection: Connection, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        with contextlib.suppress(socket.timeout):
            connection.drain_events(timeout=1)


def test_entities_are_declared_and_bound(connection: Connection, named: Named) -> None:
    events = Exchange(named("events"), type="topic")
    europe = Exchange(named("europe"), type="fanout", auto_delete=True)
    queues = {
        "all": Queue(named("all"), events, "#", max_priority=5),
        "one": Queue(named("one"), europe, expires=60, message_ttl=60, max_length=10),
    }
    channel = connection.default_channel
    events(channel).declare()
    bound = europe(channel)
    bound.declare()
    bound.bind_to(events, "order.eu.*")
    got: dict[str, list[Any]] = {"all": [], "one": []}

    def take(name: str) -> Callable[[Any, Message], None]:
        def callback(body: Any, message: Message) -> None:
            got[name].append((message.delivery_info["routing_key"], body))
            message.ack()

        return callback

    consumers = [
        Consumer(connection.channel(), [queue], callbacks=[take(name)], prefetch_count=3)
        for name, queue in queues.items()
    ]
    for consumer in consumers:
        consumer.consume()
    with Producer(connection) as producer:
        for serializer, compression in (("json", None), ("json", "zlib"), ("json", "bzip2")):
            for key in ("order.eu.paid", "order.us.paid"):
                body = {"key": key, "filler": "x" * 1000}
                producer.publish(
                    body, exchange=events, routing_key=key, serializer=serializer, compression=compression, priority=2
                )
    drain_until(connection, lambda: len(got["all"]) == 6 and len(got["one"]) == 3)
    assert {key for key, _ in got["one"]} == {"order.eu.paid"}
    assert all(body["key"] == key for key, body in got["all"])
    for consumer in consumers:
        consumer.cancel()
    for queue in queues.values():
        queue(channel).delete()
    events(channel).delete()


def test_simple_queues_and_pools(amqp_url: str, connection: Connection, named: Named) -> None:
    try:
        with pools.producers[connection].acquire(block=True) as producer:
            for number in range(5):
                producer.publish(number, routing_key=named("simple"), declare=[Queue(named("simple"))], retry=True)
        with connection.SimpleQueue(named("simple"), queue_opts={"durable": True}) as queue:
            assert len(queue) == 5
            message = queue.get(timeout=PATIENCE_SECONDS)
            message.requeue()
            assert sorted(queue.get(timeout=PATIENCE_SECONDS).payload for _ in range(5)) == list(range(5))
            queue.clear()
            with pytest.raises(queue.Empty):
                queue.get(block=False)
        assert connection.default_channel.queue_delete(named("simple")) == 0
    finally:
        pools.reset()


class Doubler(ConsumerProducerMixin):  # type: ignore[misc]
    """A service: takes numbers, answers with twice as much."""

    def __init__(self, url: str, queue: Queue) -> None:
        self.connection = Connection(url)
        self._queue = queue
        self.ready = threading.Event()

    def get_consumers(self, Consumer: Any, channel: Any) -> list[Any]:
        return [Consumer(queues=[self._queue], on_message=self.double, prefetch_count=4)]

    def on_consume_ready(self, connection: Any, channel: Any, consumers: Any, **_: Any) -> None:
        self.ready.set()

    def double(self, message: Message) -> None:
        properties = message.properties
        self.producer.publish(
            message.payload * 2, routing_key=properties["reply_to"], correlation_id=properties["correlation_id"]
        )
        message.ack()


def test_a_service_answers(amqp_url: str, connection: Connection, named: Named) -> None:
    queue = Queue(named("double"), auto_delete=True)
    service = Doubler(amqp_url, queue)
    thread = threading.Thread(target=lambda: service.run(_tokens=1))
    thread.start()
    assert service.ready.wait(PATIENCE_SECONDS)
    answers: dict[str, int] = {}

    def take(message: Message) -> None:
        answers[message.properties["correlation_id"]] = message.payload

    replies = Queue("amq.rabbitmq.reply-to", no_declare=True)
    with Consumer(connection.default_channel, [replies], on_message=take, no_ack=True):
        producer = Producer(connection.default_channel)
        for number in range(30):
            producer.publish(
                number, routing_key=queue.name, reply_to="amq.rabbitmq.reply-to", correlation_id=str(number)
            )
        drain_until(connection, lambda: len(answers) == 30)
    assert answers == {str(number): 2 * number for number in range(30)}
    service.should_stop = True
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    service.producer_connection.close()
    service.connection.close()


def test_publishing_goes_on_when_the_broker_comes_back(serve: Serve, against_rabbitmq: bool) -> None:
    if against_rabbitmq:
        pytest.skip("it kills a broker of its own")
    first = serve("--amqp-port", "0")
    address = first.addresses()["amqp"]
    queue = Queue("orders", durable=True, queue_arguments={"x-queue-type": "quorum"})
    tries: list[BaseException] = []
    second = None
    with Connection(f"amqp://guest:guest@{address}//", transport_options={"confirm_publish": True}) as connection:
        with Producer(connection, auto_declare=True) as producer:
            producer.publish(1, routing_key="orders", declare=[queue])
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()

            def failed(error: BaseException, interval: float) -> None:
                nonlocal second
                tries.append(error)
                if second is None:
                    second = serve("--amqp-port", address.rpartition(":")[2])
                    second.addresses()

            policy = {"interval_start": 0.05, "interval_step": 0, "max_retries": 50, "errback": failed}
            producer.publish(2, routing_key="orders", declare=[queue], retry=True, retry_policy=policy)
        assert tries and second is not None
        with connection.SimpleQueue(queue) as simple:
            assert [simple.get(timeout=PATIENCE_SECONDS).payload for _ in range(2)] == [1, 2]


# -- py-amqp itself


@pytest.fixture
def plain(amqp_url: str) -> Iterator[amqp.Connection]:
    url = URL(amqp_url)
    with amqp.Connection(
        f"{url.host}:{url.port}", url.user, url.password, virtual_host=url.path[1:] or "/", confirm_publish=True
    ) as connection:
        yield connection


def test_the_broker_introduces_itself(plain: amqp.Connection) -> None:
    properties = plain.server_properties
    assert properties["product"] and properties["version"] and properties["platform"]
    for capability in ("publisher_confirms", "consumer_cancel_notify", "connection.blocked", "basic.nack"):
        assert properties["capabilities"][capability] is True
    assert (plain.frame_max, plain.channel_max) == (131072, 2047)


def test_what_is_recovered_comes_again(plain: amqp.Connection, named: Named) -> None:
    channel = plain.channel()
    queue = named("queue")
    channel.queue_declare(queue, exclusive=True)
    for number in range(3):
        channel.basic_publish(amqp.Message(str(number), delivery_mode=2), routing_key=queue)
    first = channel.basic_get(queue)
    assert (first.body, first.delivery_info["redelivered"], first.delivery_info["message_count"]) == ("0", False, 2)
    channel.basic_recover(requeue=True)
    again = channel.basic_get(queue)
    assert (again.body, again.delivery_info["redelivered"]) == ("0", True)
    channel.basic_ack(again.delivery_tag)
    assert channel.queue_purge(queue) == 2
    assert channel.basic_get(queue) is None


def test_a_transaction(amqp_url: str, plain: amqp.Connection, named: Named) -> None:
    """On a connection without confirms: a channel has one or the other."""
    url = URL(amqp_url)
    queue = named("queue")
    plain.channel().queue_declare(queue, exclusive=True)
    with amqp.Connection(
        f"{url.host}:{url.port}", url.user, url.password, virtual_host=url.path[1:] or "/"
    ) as connection:
        channel = connection.channel()
        channel.tx_select()
        for body, end in (("taken back", channel.tx_rollback), ("done", channel.tx_commit)):
            channel.basic_publish(amqp.Message(body), routing_key=queue)
            end()
    found = plain.channel().basic_get(queue, no_ack=True)
    assert (found.body, found.delivery_info["message_count"]) == ("done", 0)


def test_flow_and_cancel(plain: amqp.Connection, named: Named) -> None:
    channel, other = plain.channel(), plain.channel()
    queue = named("queue")
    channel.queue_declare(queue, auto_delete=False)
    got: list[Any] = []
    cancelled: list[str] = []
    channel.basic_consume(queue, callback=got.append, no_ack=True, on_cancel=cancelled.append, consumer_tag="mine")
    channel.flow(False)
    other.basic_publish_confirm(amqp.Message("held back"), routing_key=queue)
    assert other.queue_declare(queue, passive=True).message_count == 1 and not got
    channel.flow(True)
    _drain(plain, lambda: len(got) == 1)
    other.queue_delete(queue)
    _drain(plain, lambda: bool(cancelled))
    assert cancelled == ["mine"]


def test_errors_have_their_classes(plain: amqp.Connection, named: Named) -> None:
    with pytest.raises(NotFound, match="404"):
        plain.channel().queue_declare(named("missing"), passive=True)
    channel = plain.channel()
    channel.queue_declare(named("queue"), exclusive=True)
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-max-length'"):
        channel.queue_declare(named("queue"), exclusive=True, arguments={"x-max-length": 3})
    assert plain.connected
    assert plain.channel().queue_declare(named("queue"), exclusive=True).message_count == 0


def _drain(connection: amqp.Connection, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        with contextlib.suppress(socket.timeout):
            connection.drain_events(timeout=1)
