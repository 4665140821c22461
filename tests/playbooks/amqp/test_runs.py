"""Publishes and acknowledgements that come together do what they do one by one, whatever stands between them."""

import random
from pathlib import Path
from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.connection import TURN_ROUTED
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import END, FrameReader, method_frame
from interlog.faces.amqp.properties import Properties
from tests.playbooks.amqp.play import Client, Content, Heard, Play, content

PLAIN = Properties(delivery_mode=1).encode()
LASTING = Properties(delivery_mode=2, content_type="text/plain").encode()
HEADERS = Properties(headers={"a": 1}).encode()
PRIORITY = Properties(priority=3).encode()
EXPIRES = Properties(expiration="60000").encode()


def publish(
    body: bytes, key: str, properties: bytes = PLAIN, *, channel: int = 1, part: int = 8_000, **more: Any
) -> bytes:
    method = m.BasicPublish(more.pop("exchange", ""), key, **more)
    return method_frame(channel, method.encode()) + content(body, properties, channel=channel, part=part)


def ack(tag: int, *, multiple: bool = False, channel: int = 1) -> bytes:
    return method_frame(channel, m.BasicAck(tag, multiple).encode())


def pieces(data: bytes) -> list[bytes]:
    """Frame by frame."""
    reader = FrameReader()
    reader.feed(data)
    return [data[start - 7 : end + 1] for _, _, start, end in reader.frames()]


def prepared(folder: Path) -> tuple[Play, Client]:
    play = Play(folder)
    client = play.connect()
    client.open(2)
    client.queue("plain")
    client.queue("lasting", durable=True)
    client.queue("quorum", durable=True, x_queue_type="quorum")
    client.queue("stream", durable=True, x_queue_type="stream")
    client.queue("short", x_max_length=5)
    client.queue("full", x_max_length=5, x_overflow="reject-publish")
    client.queue("ranked", x_max_priority=5)
    client.exchange("all", "fanout")
    for queue in ("plain", "lasting", "full"):
        client.bind(queue, "all")
    client.exchange("by-header", "headers")
    client.bind("plain", "by-header", arguments={"a": 1})
    for channel in (1, 2):
        client.confirms(channel)
    return play, client


def burst(rng: random.Random) -> bytes:
    keys = ("plain", "lasting", "quorum", "stream", "short", "full", "ranked", "nowhere")
    said = b""
    key, properties, exchange, mandatory, channel = "plain", PLAIN, "", False, 1
    for number in range(rng.randrange(1, 60)):
        if rng.random() < 0.3:
            key = rng.choice(keys)
            exchange = rng.choice(("", "", "", "all", "by-header"))
            mandatory = rng.random() < 0.3
        if rng.random() < 0.2:
            properties = rng.choice((PLAIN, LASTING, HEADERS, PRIORITY, EXPIRES))
        if rng.random() < 0.1:
            channel = 3 - channel
        body = b"%d " % number * rng.choice((0, 1, 1, 5, 100, 10_000 if rng.random() < 0.1 else 1))
        part = rng.choice((50, 8_000))
        said += publish(body, key, properties, channel=channel, part=part, exchange=exchange, mandatory=mandatory)
    return said


def confirmed(heard: list[Heard]) -> tuple[list[int], list[int], list[tuple[Any, ...]]]:
    """Acknowledged and refused numbers, and what was returned."""
    upto = 0
    acked: list[int] = []
    refused: list[int] = []
    returned: list[tuple[Any, ...]] = []
    for one in heard:
        if isinstance(one, m.BasicAck):
            acked += range(upto + 1 if one.multiple else one.delivery_tag, one.delivery_tag + 1)
            upto = one.delivery_tag
        elif isinstance(one, m.BasicNack):
            refused.append(one.delivery_tag)
            upto = one.delivery_tag
        else:
            assert isinstance(one, Content) and isinstance(one.method, m.BasicReturn)
            returned.append((one.method, one.properties, one.body))
    return sorted(acked), refused, returned


def state(play: Play, client: Client) -> Any:
    found: dict[str, Any] = {}
    for queue in ("plain", "lasting", "quorum", "short", "full", "ranked"):
        got = []
        while (message := client.get(queue)) is not None:
            got.append((message.method.exchange, message.routing_key, message.properties, message.body))  # type: ignore[attr-defined]
        found[queue] = got
    topic = play.core.topics.get("/", "stream")
    found["stream"] = [
        (record.key, record.value) for _, record in play.core.storage.read_records(topic.item.partitions[0], 0, 1 << 30)
    ]
    return found


@pytest.mark.parametrize("seed", range(25))
def test_a_burst_and_its_frames_one_by_one_are_the_same(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    bursts = [burst(rng) for _ in range(4)]
    outcomes = []
    for name in ("whole", "by frame"):
        play, client = prepared(tmp_path / name)
        told: dict[int, list[Heard]] = {1: [], 2: []}
        for one in bursts:
            for part in [one] if name == "whole" else pieces(one):
                client.feed(part)
            for channel, heard in told.items():
                heard += client.listen(channel)
        outcomes.append(([confirmed(heard) for heard in told.values()], state(play, client)))
        play.close()
    assert outcomes[0] == outcomes[1]


def test_what_comes_before_something_broken_counts(client: Client) -> None:
    client.queue()
    good = publish(b"good", "q")
    broken = publish(b"bad", "q")[: -len(END)] + b"\x00"
    client.feed(good + good + good)
    text = 'type 3, all octets = <<"bad">>: {invalid_frame_end_marker,0}'
    client.fatal(good + good + broken + good, code=ReplyCode.FRAME_ERROR, text=text)
    other = client.play.connect()
    assert other.drain() == [b"good"] * 5


def test_a_body_that_says_to_be_too_large_ends_its_channel_alone(tmp_path: Path) -> None:
    play = Play(tmp_path, max_message_bytes=1000)
    client = play.connect()
    client.queue()
    client.feed(publish(b"a", "q") * 3)
    client.feed(publish(b"b", "q") + publish(b"x" * 1001, "q") + publish(b"c", "q"))
    heard = client.listen()
    assert [type(one) for one in heard] == [m.ChannelClose]
    client.send(m.ChannelCloseOk())
    client.open(1)
    assert client.drain() == [b"a", b"a", b"a", b"b"]
    play.close()


def test_acknowledgements_that_come_together(play: Play, client: Client) -> None:
    client.queue()
    client.queue("other")
    client.qos(50)
    client.consume("q", "one")
    client.consume("other", "two")
    for number in range(60):
        client.publish(b"%d" % number, "q" if number % 3 else "other")
    assert len(client.messages()) == 60
    client.feed(ack(3) + ack(1) + ack(2) + ack(10, multiple=True) + ack(20) + ack(19))
    client.silence()
    assert play.core.work_queues.find("/", "q").leased + play.core.work_queues.find("/", "other").leased == 48  # type: ignore[union-attr]
    for number in range(40):
        client.publish(b"more %d" % number)
    assert len(client.messages()) > 0


def test_an_acknowledgement_of_nothing_among_others(play: Play, client: Client) -> None:
    client.queue()
    client.consume()
    for number in range(6):
        client.publish(b"%d" % number)
    assert len(client.messages()) == 6
    text = "unknown delivery tag 2"
    client.refused(ack(1) + ack(2) + ack(2) + ack(3), code=ReplyCode.PRECONDITION_FAILED, text=text)
    assert client.drain() == [b"2", b"3", b"4", b"5"]


def test_acknowledgements_in_a_transaction_wait_for_its_end(client: Client) -> None:
    client.queue()
    client.consume()
    client.ask(m.TxSelect(), m.TxSelectOk)
    client.open(2)
    for number in range(3):
        client.publish(b"%d" % number, channel=2)
    assert len(client.messages()) == 3
    client.feed(ack(1) + ack(2) + ack(3))
    client.ask(m.TxRollback(), m.TxRollbackOk)
    client.feed(ack(1) + ack(2) + ack(3))
    client.ask(m.TxCommit(), m.TxCommitOk)
    client.ask(m.ChannelClose(), m.ChannelCloseOk)
    client.open(1)
    assert client.ready() == 0


# -- no turn is for one connection alone


@pytest.mark.parametrize("properties", [PLAIN, PRIORITY])
def test_a_burst_for_many_queues_takes_several_turns(play: Play, client: Client, properties: bytes) -> None:
    queues, messages = 200, 500
    client.exchange("all", "fanout")
    for number in range(queues):
        client.queue(f"q{number}")
        client.bind(f"q{number}", "all")
    last = play.core.work_queues.find("/", f"q{queues - 1}")
    assert last is not None
    client.face.receive(publish(b"x", "", properties, exchange="all") * messages)
    assert client.face.holding
    assert 0 < last.ready <= TURN_ROUTED // queues
    other = play.connect()  # there is a turn for others
    other.queue("other")
    client.silence()
    assert last.ready == messages and not client.face.holding


def test_a_client_that_leaves_has_said_all_of_it(play: Play, client: Client) -> None:
    client.exchange("all", "fanout")
    for number in range(100):
        client.queue(f"q{number}")
        client.bind(f"q{number}", "all")
    client.face.receive(publish(b"x", "", exchange="all") * 450)
    assert client.face.holding
    client.leave()
    assert play.connect().ready("q99") == 450
