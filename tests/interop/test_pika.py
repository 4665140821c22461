"""pika: an order service with its queues, retries, dead letters, workers that die, streams and transactions."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.delivery_mode import DeliveryMode
from pika.exchange_type import ExchangeType

from tests.served import Serve

Named = Callable[[str], str]
PERSISTENT = pika.BasicProperties(delivery_mode=DeliveryMode.Persistent.value)
QUIET_SECONDS = 10  # never waited for when all is well


@contextmanager
def connected(url: str) -> Iterator[pika.BlockingConnection]:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


@pytest.fixture
def channel(amqp_url: str) -> Iterator[BlockingChannel]:
    with connected(amqp_url) as connection:
        yield connection.channel()


def drain(channel: BlockingChannel, queue: str, count: int) -> list[tuple[object, pika.BasicProperties, bytes]]:
    """So many messages, each acknowledged."""
    found: list[tuple[object, pika.BasicProperties, bytes]] = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=QUIET_SECONDS):
        assert method is not None, f"{len(found)} of {count} messages came from {queue}"
        channel.basic_ack(method.delivery_tag)
        found.append((method, properties, body))
        if len(found) == count:
            break
    channel.cancel()
    return found


def bodies(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    return [body for _, _, body in drain(channel, queue, count)]


def depth(channel: BlockingChannel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def test_orders_reach_those_who_asked_for_them(amqp_url: str, named: Named) -> None:
    """A topic exchange, three durable queues, persistent and confirmed; two workers share one of them."""
    exchange, billing, audit, europe = named("orders"), named("billing"), named("audit"), named("europe")
    with connected(amqp_url) as publishing, connected(amqp_url) as working:
        out = publishing.channel()
        out.exchange_declare(exchange, ExchangeType.topic, durable=True)
        for queue, pattern in (
            (billing, "order.*.paid"),
            (audit, "order.#"),
            (europe, "order.eu.*"),
            (europe, "#.paid"),
        ):
            out.queue_declare(queue, durable=True)
            out.queue_bind(queue, exchange, pattern)
        out.confirm_delivery()
        keys = ["order.eu.placed", "order.eu.paid", "order.us.paid", "order.us.placed"]
        for number in range(200):
            out.basic_publish(exchange, keys[number % 4], b"%d" % number, PERSISTENT, mandatory=True)

        workers = [working.channel() for _ in range(2)]
        done: list[Counter[int]] = [Counter(), Counter()]
        for worker, counts in zip(workers, done, strict=True):
            worker.basic_qos(prefetch_count=5)

            def work(
                channel: BlockingChannel,
                method: pika.spec.Basic.Deliver,
                properties: pika.BasicProperties,
                body: bytes,
                counts: Counter[int] = counts,
            ) -> None:
                assert properties.delivery_mode == 2
                counts[int(body)] += 1
                channel.basic_ack(method.delivery_tag)

            worker.basic_consume(billing, work)
        while done[0].total() + done[1].total() < 100:
            working.process_data_events(time_limit=QUIET_SECONDS)
        assert done[0] + done[1] == Counter(number for number in range(200) if number % 4 in (1, 2))
        assert min(done[0].total(), done[1].total()) >= 20, "both have worked"
        assert bodies(out, audit, 200) == [b"%d" % number for number in range(200)]
        assert bodies(out, europe, 150) == [b"%d" % number for number in range(200) if number % 4 != 3]
        assert depth(out, billing) == depth(out, audit) == depth(out, europe) == 0
        for queue in (billing, audit, europe):
            out.queue_delete(queue)
        out.exchange_delete(exchange)


def test_what_no_queue_takes_comes_back(channel: BlockingChannel, named: Named) -> None:
    channel.exchange_declare(named("nowhere"), ExchangeType.direct, auto_delete=True)
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.UnroutableError) as caught:
        channel.basic_publish(named("nowhere"), "key", b"lost", mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.routing_key, returned.body) == ("key", b"lost")
    channel.basic_publish(named("nowhere"), "key", b"lost, and nobody minds")
    channel.exchange_delete(named("nowhere"))


def test_a_failed_order_is_tried_again_later_and_then_set_aside(channel: BlockingChannel, named: Named) -> None:
    """The retry circle everybody builds: work → (rejected) → wait, with a TTL → work; after three tries: set aside."""
    work, wait, aside, retry = named("work"), named("wait"), named("aside"), named("retry")
    channel.exchange_declare(retry, ExchangeType.direct)
    channel.queue_declare(work, arguments={"x-dead-letter-exchange": retry, "x-dead-letter-routing-key": "wait"})
    channel.queue_declare(
        wait, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 30}
    )
    channel.queue_declare(aside)
    channel.queue_bind(wait, retry, "wait")
    channel.basic_publish("", work, b"an order", pika.BasicProperties(headers={"customer": 7}, message_id="m-1"))
    for tries, (method, properties, body) in enumerate(channel.consume(work, inactivity_timeout=QUIET_SECONDS)):
        assert method is not None, f"it did not come back after {tries} tries"
        deaths = (properties.headers or {}).get("x-death") or []
        rejections = sum(death["count"] for death in deaths if death["reason"] == "rejected")
        assert rejections == tries
        if rejections == 3:
            channel.basic_publish("", aside, body, properties)
            channel.basic_ack(method.delivery_tag)
            break
        channel.basic_reject(method.delivery_tag, requeue=False)
    channel.cancel()
    ((_, properties, body),) = drain(channel, aside, 1)
    assert body == b"an order"
    assert properties.message_id == "m-1" and properties.headers is not None and properties.headers["customer"] == 7
    assert properties.headers["x-first-death-queue"] == work
    assert properties.headers["x-first-death-reason"] == "rejected"
    assert {(death["queue"], death["reason"], death["count"]) for death in properties.headers["x-death"]} == {
        (work, "rejected", 3),
        (wait, "expired", 3),
    }
    for queue in (work, wait, aside):
        channel.queue_delete(queue)
    channel.exchange_delete(retry)


def test_a_worker_that_dies_gives_its_orders_to_the_next(amqp_url: str, channel: BlockingChannel, named: Named) -> None:
    queue = named("queue")
    channel.queue_declare(queue, durable=True)
    for number in range(20):
        channel.basic_publish("", queue, b"%d" % number, PERSISTENT)
    with connected(amqp_url) as doomed:
        worker = doomed.channel()
        worker.basic_qos(prefetch_count=8)
        held = worker.consume(queue, inactivity_timeout=QUIET_SECONDS)
        for number in range(4):
            method, _, body = next(held)
            assert method is not None and body == b"%d" % number
            if number < 2:
                worker.basic_ack(method.delivery_tag)
        doomed.process_data_events(time_limit=0)
        worker.queue_declare(queue, passive=True)  # what was acknowledged has arrived
    found = drain(channel, queue, 18)
    assert [body for _, _, body in found] == [b"%d" % number for number in range(2, 20)]
    redelivered = [getattr(method, "redelivered", None) for method, _, _ in found]
    assert redelivered[:2] == [True, True] and redelivered[-1] is False
    channel.queue_delete(queue)


def test_answers_come_by_direct_reply(amqp_url: str, named: Named) -> None:
    queue = named("squares")
    with connected(amqp_url) as serving, connected(amqp_url) as asking:
        server, client = serving.channel(), asking.channel()
        server.queue_declare(queue, exclusive=True)

        def square(
            channel: BlockingChannel, method: pika.spec.Basic.Deliver, properties: pika.BasicProperties, body: bytes
        ) -> None:
            assert properties.reply_to is not None
            answer = pika.BasicProperties(correlation_id=properties.correlation_id)
            channel.basic_publish("", properties.reply_to, b"%d" % int(body) ** 2, answer)
            channel.basic_ack(method.delivery_tag)

        # The queue is exclusive: only its own connection may consume, and anybody may publish.
        server.basic_consume(queue, square)
        answers: dict[str | None, bytes] = {}
        client.basic_consume(
            "amq.rabbitmq.reply-to",
            lambda channel, method, properties, body: answers.update({properties.correlation_id: body}),
            auto_ack=True,
        )
        for number in range(10):
            properties = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
            client.basic_publish("", queue, b"%d" % number, properties)
        for _ in range(1000):
            serving.process_data_events(time_limit=0.01)
            asking.process_data_events(time_limit=0.01)
            if len(answers) == 10:
                break
        assert answers == {str(number): b"%d" % number**2 for number in range(10)}


def test_a_full_queue_refuses_and_one_that_drops_does_not(channel: BlockingChannel, named: Named) -> None:
    refuses, drops = named("refuses"), named("drops")
    channel.queue_declare(refuses, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    channel.queue_declare(drops, arguments={"x-max-length": 3})
    channel.confirm_delivery()
    for number in range(3):
        channel.basic_publish("", refuses, b"%d" % number)
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", refuses, b"one too many")
    for number in range(10):
        channel.basic_publish("", drops, b"%d" % number)
    assert bodies(channel, refuses, 3) == [b"0", b"1", b"2"]
    assert bodies(channel, drops, 3) == [b"7", b"8", b"9"]
    channel.queue_delete(refuses)
    channel.queue_delete(drops)


def test_what_is_urgent_goes_first(channel: BlockingChannel, named: Named) -> None:
    queue = named("queue")
    channel.queue_declare(queue, arguments={"x-max-priority": 9})
    for number in range(30):
        channel.basic_publish("", queue, b"%d" % number, pika.BasicProperties(priority=number % 3 * 4))
    expected = sorted(range(30), key=lambda number: (-(number % 3), number))
    assert bodies(channel, queue, 30) == [b"%d" % number for number in expected]
    channel.queue_delete(queue)


def test_mistakes_close_the_channel_and_not_the_connection(amqp_url: str, named: Named) -> None:
    queue = named("queue")
    with connected(amqp_url) as connection, connected(amqp_url) as other:
        connection.channel().queue_declare(queue, exclusive=True)
        mistakes: list[tuple[int, pika.BlockingConnection, Callable[[BlockingChannel], object]]] = [
            (404, connection, lambda channel: channel.queue_declare(named("missing"), passive=True)),
            (404, connection, lambda channel: channel.basic_consume(named("missing"), lambda *_: None)),
            (405, other, lambda channel: channel.queue_declare(queue, exclusive=True)),
            (405, other, lambda channel: channel.basic_get(queue)),
            (406, connection, lambda channel: channel.queue_declare(queue, exclusive=True, auto_delete=True)),
            (403, connection, lambda channel: channel.exchange_declare("amq.mine", ExchangeType.direct)),
            (403, connection, lambda channel: channel.queue_bind(queue, "", "key")),
        ]
        for code, at, mistake in mistakes:
            channel = at.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
                mistake(channel)
            assert caught.value.reply_code == code, caught.value.reply_text
            assert not channel.is_open and at.is_open
        connection.channel().basic_publish("", queue, b"still there")
        assert connection.channel().basic_get(queue, auto_ack=True)[2] == b"still there"


def test_one_active_consumer_and_its_successor(amqp_url: str, channel: BlockingChannel, named: Named) -> None:
    queue = named("queue")
    channel.queue_declare(queue, arguments={"x-single-active-consumer": True})
    with connected(amqp_url) as first, connected(amqp_url) as second:
        got: dict[str, list[bytes]] = {"first": [], "second": []}
        for name, connection in (("first", first), ("second", second)):
            worker = connection.channel()

            def take(
                channel: BlockingChannel,
                method: pika.spec.Basic.Deliver,
                properties: pika.BasicProperties,
                body: bytes,
                name: str = name,
            ) -> None:
                got[name].append(body)
                channel.basic_ack(method.delivery_tag)

            worker.basic_consume(queue, take)
        for number in range(5):
            channel.basic_publish("", queue, b"%d" % number)
        _until(lambda: len(got["first"]) == 5, first, second)
        first.close()
        for number in range(5, 10):
            channel.basic_publish("", queue, b"%d" % number)
        _until(lambda: len(got["second"]) == 5, second)
        assert got == {"first": [b"%d" % n for n in range(5)], "second": [b"%d" % n for n in range(5, 10)]}
    channel.queue_delete(queue)


def _until(condition: Callable[[], bool], *connections: pika.BlockingConnection) -> None:
    for _ in range(int(QUIET_SECONDS / 0.02)):
        if condition():
            return
        for connection in connections:
            connection.process_data_events(time_limit=0.02)
    pytest.fail("it did not happen")


def test_a_stream_is_read_again_and_from_anywhere(channel: BlockingChannel, named: Named) -> None:
    stream = named("stream")
    channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    channel.confirm_delivery()
    for number in range(50):
        channel.basic_publish("", stream, b"%d" % number, PERSISTENT)
    channel.basic_qos(prefetch_count=20)
    for start, first in (("first", 0), (30, 30), ("first", 0)):
        read = []
        for method, properties, body in channel.consume(
            stream, inactivity_timeout=QUIET_SECONDS, arguments={"x-stream-offset": start}
        ):
            assert method is not None and properties.headers is not None
            assert properties.headers["x-stream-offset"] == int(body)
            channel.basic_ack(method.delivery_tag)
            read.append(int(body))
            if len(read) == 50 - first:
                break
        channel.cancel()
        assert read == list(range(first, 50))
    channel.queue_delete(stream)


def test_a_transaction_is_all_or_nothing(channel: BlockingChannel, named: Named) -> None:
    source, target = named("source"), named("target")
    channel.queue_declare(source)
    channel.queue_declare(target)
    channel.basic_publish("", source, b"work")
    channel.tx_select()
    method, _, body = channel.basic_get(source)
    assert method is not None and body == b"work"
    channel.basic_publish("", target, b"half done")
    channel.basic_ack(method.delivery_tag)
    channel.tx_rollback()
    assert depth(channel, target) == 0
    channel.basic_publish("", target, b"done")
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    assert (depth(channel, source), depth(channel, target)) == (0, 1)
    channel.tx_commit()
    assert channel.basic_get(target, auto_ack=True)[2] == b"done"
    channel.tx_commit()
    channel.queue_delete(source)
    channel.queue_delete(target)


def test_large_messages_cross_whole(channel: BlockingChannel, named: Named) -> None:
    queue = named("queue")
    channel.queue_declare(queue)
    sizes = [0, 1, 131_064, 131_065, 131_072, 1_000_000, 5_000_000]
    properties = pika.BasicProperties(headers={"filler": "x" * 20_000})
    for size in sizes:
        channel.basic_publish("", queue, bytes([size % 251]) * size, properties)
    assert bodies(channel, queue, len(sizes)) == [bytes([size % 251]) * size for size in sizes]
    channel.queue_delete(queue)


def test_what_was_confirmed_is_there_after_a_kill(serve: Serve, tmp_path: Path, against_rabbitmq: bool) -> None:
    if against_rabbitmq:
        pytest.skip("it kills a broker of its own")
    first = serve("--amqp-port", "0")
    url = f"amqp://guest:guest@{first.addresses()['amqp']}/"
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.exchange_declare("orders", ExchangeType.topic, durable=True)
    channel.queue_declare("orders", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_bind("orders", "orders", "order.#")
    channel.confirm_delivery()
    for number in range(30):
        channel.basic_publish("orders", f"order.{number}", b"%d" % number, PERSISTENT)
    method, _, _ = channel.basic_get("orders")
    assert method is not None
    channel.basic_ack(method.delivery_tag)
    channel.basic_publish("orders", "order.30", b"30", PERSISTENT)  # confirmed after the ack: that is safe, too
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    with suppress(pika.exceptions.AMQPError):
        connection.close()
    second = serve("--amqp-port", "0")
    with connected(f"amqp://guest:guest@{second.addresses()['amqp']}/") as after:
        channel = after.channel()
        channel.exchange_declare("orders", passive=True)
        assert bodies(channel, "orders", 30) == [b"%d" % number for number in range(1, 31)]
