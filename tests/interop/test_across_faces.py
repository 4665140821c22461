"""The same messages by AMQP and by Kafka: pika on one side, confluent-kafka on the other, both ways."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck
import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.delivery_mode import DeliveryMode
from pika.exchange_type import ExchangeType

from interlog.testing import RunningBroker
from tests.interop import confluent

STREAM = {"x-queue-type": "stream"}
FIRST = {"x-stream-offset": "first"}
QUIET_SECONDS = 10  # never waited for when all is well


@contextmanager
def connected(url: str) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield connection.channel()


@pytest.fixture
def channel(shared_broker: RunningBroker) -> Iterator[BlockingChannel]:
    with connected(shared_broker.amqp_url) as channel:
        yield channel


Delivery = tuple[pika.spec.Basic.Deliver, pika.BasicProperties, bytes]


def stream_messages(channel: BlockingChannel, stream: str, count: int) -> list[Delivery]:
    channel.basic_qos(prefetch_count=100)
    found: list[Delivery] = []
    for method, properties, body in channel.consume(stream, arguments=FIRST, inactivity_timeout=QUIET_SECONDS):
        assert method is not None, f"{len(found)} of {count} messages came"
        channel.basic_ack(method.delivery_tag)
        found.append((method, properties, body))
        if len(found) == count:
            break
    channel.cancel()
    return found


def headers_of(message: ck.Message) -> dict[str, object]:
    return dict(message.headers() or ())


def test_what_amqp_publishes_kafka_reads(shared_broker: RunningBroker, channel: BlockingChannel) -> None:
    channel.queue_declare("events", durable=True, arguments=STREAM)
    channel.exchange_declare("news", ExchangeType.topic)
    channel.queue_bind("events", "news", "order.#")
    channel.confirm_delivery()
    before_ms = time.time_ns() // 1_000_000
    properties = pika.BasicProperties(
        content_type="text/plain",
        delivery_mode=DeliveryMode.Persistent.value,
        correlation_id="c-1",
        message_id="m-1",
        timestamp=1_700_000_000,
        headers={"customer": 7, "name": "Zoë", "paid": True, "nothing": None, "lines": [1, "two"]},
    )
    channel.basic_publish("news", "order.eu.paid", b"an order", properties)
    channel.basic_publish("", "events", b"straight to it")
    after_ms = time.time_ns() // 1_000_000

    first, second = confluent.read(shared_broker.kafka_address, "events", 2)
    assert (first.key(), first.value(), first.offset()) == (b"order.eu.paid", b"an order", 0)
    assert before_ms <= first.timestamp()[1] <= after_ms
    headers = headers_of(first)
    assert headers["customer"] == b"7" and headers["name"] == "Zoë".encode() and headers["paid"] == b"true"
    assert headers["nothing"] is None and headers["lines"] == b'[1,"two"]'
    assert "amqp.properties" in headers
    assert (second.key(), second.value(), second.offset()) == (b"events", b"straight to it", 1)


def test_what_kafka_produces_an_amqp_stream_consumer_reads(
    shared_broker: RunningBroker, channel: BlockingChannel
) -> None:
    at_ms = 1_700_000_000_123
    records = [
        {"value": b"%d" % number, "key": f"key-{number}", "timestamp": at_ms + number * 1_000, "headers": headers}
        for number, headers in enumerate([[], [], [("colour", b"red"), ("empty", b""), ("none", None)]])
    ]
    confluent.produce(shared_broker.kafka_address, "from-kafka", records)
    found = stream_messages(channel, "from-kafka", 3)
    for number, (method, properties, body) in enumerate(found):
        assert (method.routing_key, body) == (f"key-{number}", b"%d" % number)
        assert properties.timestamp == at_ms // 1_000 + number
        assert properties.headers is not None and properties.headers["x-stream-offset"] == number
    assert found[2][1].headers is not None
    assert {name: found[2][1].headers[name] for name in ("colour", "empty", "none")} == {
        "colour": "red",
        "empty": "",
        "none": None,
    }


def test_what_amqp_has_no_place_for_stands_in_headers_and_breaks_no_client(
    shared_broker: RunningBroker, channel: BlockingChannel
) -> None:
    """Keys that are no texts or too long, no key, no value, a header twice, headers that look like the broker's."""
    address = shared_broker.kafka_address
    records: list[dict[str, Any]] = [
        {"key": None, "value": b"no key"},
        {"key": b"", "value": b"an empty one"},
        {"key": b"\x00\x00\xff\xfe", "value": b"a number of eight bits"},
        {"key": b"k" * 300, "value": b"a long one"},
        {"key": b"gone", "value": None},
        {"key": b"twice", "value": b"", "headers": [("a", b"1"), ("b", b"\xff"), ("a", b"2")]},
        {"key": b"large", "value": b"v", "headers": [(f"h{number}", b"x" * 20_000) for number in range(10)]},
        {"key": b"lies", "value": b"v", "headers": [("amqp.properties", b"\xff\xff no list of properties")]},
        {"key": b"lies", "value": b"v", "headers": [("amqp.properties", b"\0\0"), ("interlog.exchange", b"e" * 999)]},
        {"key": b"lies", "value": b"v", "headers": [("amqp.properties", b"\0\0"), ("interlog.deaths", b"[7]")]},
        {"key": b"lies", "value": b"v", "headers": [("amqp.properties", None)]},
        {"key": b"end", "value": b"the end", "headers": [("n" * 700, b"a long name")]},
    ]
    confluent.produce(address, "odd", records)
    found = stream_messages(channel, "odd", len(records))
    headers = [properties.headers or {} for _, properties, _ in found]
    keys = [method.routing_key for method, _, _ in found]
    assert [body for _, _, body in found] == [record["value"] or b"" for record in records]
    assert keys[:2] == ["", ""] and "x-record-key" not in headers[0] and headers[1]["x-record-key"] == b""
    assert headers[2]["x-record-key"] == records[2]["key"]
    assert keys[3] == "k" * 255 and headers[3]["x-record-key"] == records[3]["key"]
    assert headers[4]["x-record-tombstone"] is True and "x-record-tombstone" not in headers[5]
    assert headers[5]["a"] == ["1", "2"] and headers[5]["b"] == b"\xff"
    kept = sum(name.startswith("h") for name in headers[6])
    assert kept + headers[6]["x-record-headers-left-out"] == 10 and kept >= 5
    assert keys[7:11] == ["lies"] * 4
    assert headers[11]["n" * 255] == "a long name"
    assert [one["x-stream-offset"] for one in headers] == list(range(len(records)))

    assert [(one.key(), one.value(), one.headers() or []) for one in confluent.read(address, "odd", len(records))] == [
        (record["key"], record["value"], record.get("headers", [])) for record in records
    ]


def test_a_mirror_by_kafka_restores_what_amqp_said(shared_broker: RunningBroker, channel: BlockingChannel) -> None:
    """Published by AMQP, copied from topic to topic by a Kafka client, consumed by AMQP: nothing has changed."""
    for stream in ("here", "there"):
        channel.queue_declare(stream, durable=True, arguments=STREAM)
    channel.exchange_declare("all", ExchangeType.fanout)
    channel.queue_bind("here", "all")
    properties = pika.BasicProperties(
        content_type="application/json",
        content_encoding="utf-8",
        headers={"n": 1, "deep": {"list": [True, None, 25]}},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        app_id="a",
    )
    channel.confirm_delivery()
    channel.basic_publish("all", "a.key", b"body", properties)
    (message,) = confluent.read(shared_broker.kafka_address, "here", 1)
    copy = {"key": message.key(), "value": message.value(), "headers": message.headers()}
    confluent.produce(shared_broker.kafka_address, "there", [copy])
    ((method, found, body),) = stream_messages(channel, "there", 1)
    assert (method.exchange, method.routing_key, body) == ("all", "a.key", b"body")
    assert found.headers is not None and found.headers.pop("x-stream-offset") == 0
    assert found == properties


def test_open_and_aborted_transactions_are_not_seen_by_amqp(
    shared_broker: RunningBroker, channel: BlockingChannel
) -> None:
    address = shared_broker.kafka_address
    confluent.create(address, "ledger")
    producer = ck.Producer(confluent.told(address, {"transactional.id": "bank"}))
    producer.init_transactions(confluent.PATIENCE_SECONDS)
    for number, ends in enumerate([producer.commit_transaction, producer.abort_transaction] * 3):
        producer.begin_transaction()
        for part in range(3):
            producer.produce("ledger", b"%d.%d" % (number, part))
        ends(confluent.PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce("ledger", b"open")
    producer.flush(confluent.PATIENCE_SECONDS)
    confluent.produce(address, "ledger", [{"value": b"after it"}])

    channel.basic_qos(prefetch_count=100)
    bodies: list[bytes] = []
    for method, _, body in channel.consume("ledger", arguments=FIRST, inactivity_timeout=QUIET_SECONDS):
        assert method is not None, f"only {bodies} came"
        channel.basic_ack(method.delivery_tag)
        bodies.append(body)
        if len(bodies) == 9:
            assert bodies == [b"%d.%d" % (number, part) for number in (0, 2, 4) for part in range(3)]
            producer.commit_transaction(confluent.PATIENCE_SECONDS)
        if len(bodies) == 11:
            break
    assert bodies[9:] == [b"open", b"after it"]
    channel.cancel()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_is_a_topic_that_can_only_be_read(
    shared_broker: RunningBroker, channel: BlockingChannel, kind: str
) -> None:
    address = shared_broker.kafka_address
    channel.queue_declare("work", durable=True, arguments={"x-queue-type": kind})
    channel.confirm_delivery()
    for number in range(5):
        headers = {"number": number}
        properties = pika.BasicProperties(delivery_mode=DeliveryMode.Persistent.value, headers=headers)
        channel.basic_publish("", "work", b"%d" % number, properties)
    messages = confluent.read(address, "work", 5)
    assert [message.value() for message in messages] == [b"%d" % number for number in range(5)]
    assert [headers_of(message)["number"] for message in messages] == [b"%d" % number for number in range(5)]
    assert {message.key() for message in messages} == {b"work"}

    refused: list[ck.KafkaError | None] = []
    producer = ck.Producer(confluent.told(address))
    producer.produce("work", b"by Kafka", on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(confluent.PATIENCE_SECONDS) == 0
    assert refused[0] is not None and refused[0].code() == ck.KafkaError.TOPIC_EXCEPTION

    assert channel.queue_declare("work", passive=True).method.message_count == 5, "reading takes nothing"
    for _ in range(2):
        method, _, _ = channel.basic_get("work")
        assert method is not None
        channel.basic_ack(method.delivery_tag)
    assert channel.queue_declare("work", passive=True).method.message_count == 3
    left = [message.value() for message in confluent.read(address, "work", 3)]
    assert left == [b"2", b"3", b"4"]


def test_a_topic_with_many_partitions_is_one_stream(shared_broker: RunningBroker, channel: BlockingChannel) -> None:
    address = shared_broker.kafka_address
    confluent.create(address, "wide", 4)
    confluent.produce(address, "wide", [{"value": b"%d" % n, "partition": n % 4, "key": b"k"} for n in range(40)])
    channel.confirm_delivery()
    for number in range(40, 60):
        channel.basic_publish("", "wide", b"%d" % number)  # the default exchange: the name of the topic is the key
    found = [int(body) for _, _, body in stream_messages(channel, "wide", 60)]
    assert sorted(found) == list(range(60))
    for residue in range(4):
        mine = [number for number in found if number < 40 and number % 4 == residue]
        assert mine == sorted(mine), "a partition keeps its order"
    published = [message.partition() for message in confluent.read(address, "wide", 60, partitions=range(4))]
    assert len(set(published)) == 4

    confluent.grow(address, "wide", 6)
    confluent.produce(address, "wide", [{"value": b"60", "partition": 5}])
    assert 60 in [int(body) for _, _, body in stream_messages(channel, "wide", 61)]


def test_what_one_face_makes_or_deletes_the_other_sees(shared_broker: RunningBroker, channel: BlockingChannel) -> None:
    address = shared_broker.kafka_address
    admin = confluent.admin_of(address)
    channel.queue_declare("by-amqp", durable=True, arguments=STREAM)
    confluent.create(address, "by-kafka", 2)
    channel.queue_declare("brief")  # not durable: nobody's topic
    topics = admin.list_topics(timeout=confluent.PATIENCE_SECONDS).topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {"by-amqp": 1, "by-kafka": 2}
    channel.queue_declare("by-kafka", passive=True)

    admin.delete_topics(["by-amqp"])["by-amqp"].result(confluent.PATIENCE_SECONDS)
    channel.queue_delete("by-kafka")
    assert admin.list_topics(timeout=confluent.PATIENCE_SECONDS).topics == {}
    with confluent.consumer_of(address, "g") as consumer:
        for topic in ("by-amqp", "by-kafka"):
            with pytest.raises(ck.KafkaException) as caught:
                consumer.get_watermark_offsets(ck.TopicPartition(topic, 0), timeout=confluent.PATIENCE_SECONDS)
            assert caught.value.args[0].code() in (
                ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
                ck.KafkaError._UNKNOWN_PARTITION,
            )
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="404"):
        channel.queue_declare("by-amqp", passive=True)


def test_a_consumer_of_a_stream_is_told_when_kafka_deletes_it(
    shared_broker: RunningBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("short-lived", durable=True, arguments=STREAM)
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    channel.basic_qos(prefetch_count=10)
    tag = channel.basic_consume("short-lived", lambda *_: None)
    admin = confluent.admin_of(shared_broker.kafka_address)
    admin.delete_topics(["short-lived"])["short-lived"].result(confluent.PATIENCE_SECONDS)
    confluent.until(lambda: channel.connection.process_data_events(0.02) or bool(cancelled), "it is told")
    assert cancelled == [tag]


def test_permissions_hold_on_both_faces(broker: RunningBroker) -> None:
    """One user, one pattern: what AMQP refuses with 403, Kafka refuses as not authorized, and the other way round."""
    broker.call(lambda core: core.access.add_user("reader", "secret"))
    broker.call(lambda core: core.access.set_permissions("/", "reader", "^$", "^mine-", "^shared-|^mine-"))
    confluent.create(broker.kafka_address, "mine-1")
    confluent.create(broker.kafka_address, "shared-1")
    confluent.create(broker.kafka_address, "other-1")
    url = broker.amqp_url.replace("guest:guest", "reader:secret")
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": "secret",
    }
    producer = ck.Producer(confluent.told(broker.kafka_address, login))
    may_write: set[str | None] = set()
    may_read: set[str] = set()

    def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is None:
            may_write.add(message.topic())
        else:
            assert error.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED

    for topic in ("mine-1", "shared-1", "other-1"):
        producer.produce(topic, b"x", on_delivery=delivered)
        assert producer.flush(confluent.PATIENCE_SECONDS) == 0
        with connected(url) as channel:
            channel.basic_qos(prefetch_count=1)
            try:
                channel.basic_consume(topic, lambda *_: None)
                may_read.add(topic)
            except pika.exceptions.ChannelClosedByBroker as error:
                code, _ = error.args
                assert code == 403, error  # noqa: PT017 - only some are refused
    assert may_write == {"mine-1"}
    assert may_read == {"mine-1", "shared-1"}
    visible = confluent.admin_of(broker.kafka_address, login).list_topics(timeout=confluent.PATIENCE_SECONDS).topics
    assert set(visible) == {"mine-1", "shared-1"}


def test_names_are_shared_by_both_faces(shared_broker: RunningBroker, channel: BlockingChannel) -> None:
    """Neither makes what the other has under that name as something else; each finds what fits."""
    address = shared_broker.kafka_address
    admin = confluent.admin_of(address)
    channel.queue_declare("work", durable=True)
    with pytest.raises(ck.KafkaException) as caught:
        confluent.create(address, "work")
    assert caught.value.args[0].code() == ck.KafkaError.TOPIC_ALREADY_EXISTS
    with pytest.raises(ck.KafkaException) as caught:
        confluent.grow(address, "work", 5)
    assert caught.value.args[0].code() == ck.KafkaError.POLICY_VIOLATION
    with pytest.raises(ck.KafkaException) as caught:
        admin.delete_topics(["work"])["work"].result(confluent.PATIENCE_SECONDS)
    channel.queue_declare("work", passive=True)

    confluent.create(address, "log", 3)
    confluent.produce(address, "log", [{"value": b"x", "partition": n} for n in range(3)])
    assert channel.queue_declare("log", durable=True, arguments=STREAM).method.message_count == 3
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="406"):
        channel.queue_declare("log", durable=True)


def test_all_partitions_have_their_turn(shared_broker: RunningBroker, channel: BlockingChannel) -> None:
    """A consumer that takes little at a time hears of each partition, though there is always more in the first."""
    address = shared_broker.kafka_address
    confluent.create(address, "wide", 3)
    records = ({"value": b"%d" % (n % 3) + bytes(9_999), "partition": n % 3} for n in range(240))
    confluent.produce(address, "wide", records, **{"batch.num.messages": 5})
    found = [body[:1] for _, _, body in stream_messages(channel, "wide", 240)]
    assert found.count(b"0") == found.count(b"1") == found.count(b"2") == 80
    assert set(found[:80]) == {b"0", b"1", b"2"}
