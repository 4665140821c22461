"""Whole connections that say anything at all: AMQP's own answers and nothing else, in bounded memory, and nobody
else notices.

Conversations are made of every method a client has, with names and arguments that mean something more often than not,
in any order; of the same as bytes, hurt; and of no sense at all.
"""

import inspect
import random
import shutil
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.faces.amqp import frames
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import BODY, HEADER, HEARTBEAT_FRAME, METHOD, PROTOCOL_HEADER, frame, method_frame
from interlog.faces.amqp.properties import Properties, header_payload
from interlog.faces.amqp.service import REPLY_TO
from interlog.faces.amqp.values import Timestamp
from interlog.faces.amqp.wire import Method
from interlog.journal.files import DiskFiles
from interlog.journal.verify import verify
from tests.playbooks.amqp.play import CAPABILITIES, Client, Play, content
from tests.unit.amqp_values import SCALARS, SHORT

QUEUES = ("", "q", "durable", "stream", "quorum", "nope", REPLY_TO)
EXCHANGES = ("", "x", "amq.direct", "amq.topic", "amq.headers", "delayed", "once", "nope")
KEYS = ("", "q", "durable", "stream", "a.b", "#", "*.b", "5")
TYPES = (
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-delayed-message",
    "x-consistent-hash",
    "x-modulus-hash",
    "x-local-random",
    "x-message-deduplication",
    "none",
)
KNOWN_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "x-queue-type": ("classic", "quorum", "stream"),
    "x-message-ttl": (0, 1_000),
    "x-expires": (1, 10_000),
    "x-max-length": (0, 1, 5),
    "x-max-length-bytes": (0, 20),
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "x-dead-letter-exchange": EXCHANGES,
    "x-dead-letter-routing-key": KEYS,
    "x-max-priority": (0, 3),
    "x-single-active-consumer": (True, False),
    "x-delivery-limit": (-1, 0, 1),
    "x-consumer-timeout": (0, 1_000),
    "x-message-deduplication": (True,),
    "x-max-age": ("1D", "1w"),
    "x-stream-max-segment-size-bytes": (1, 1 << 20),
    "x-priority": (-1, 5),
    "x-stream-offset": ("first", "last", "next", 0, 3, Timestamp(1), "1h"),
    "x-stream-filter": ("a", ["a", "b"]),
    "x-match": ("all", "any", "any-with-x"),
    "x-delayed-type": ("direct", "topic", "headers", "x-message-deduplication", "none"),
    "x-cache-size": (1, 3, "2"),
    "x-cache-ttl": (1, 1_000),
    "alternate-exchange": EXCHANGES,
    "hash-header": ("h",),
    "hash-property": ("message_id", "none"),
}
ODD = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(SHORT, SCALARS, max_size=2)
ARGUMENTS = st.lists(
    st.sampled_from(sorted(KNOWN_ARGUMENTS)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(KNOWN_ARGUMENTS[name]) | ODD)
    )
    | st.tuples(SHORT, ODD),
    max_size=3,
).map(dict)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "CC": st.lists(st.sampled_from(KEYS), max_size=2) | ODD,
        "BCC": st.lists(st.sampled_from(KEYS), max_size=2) | ODD,
        "x-delay": st.integers(-1, 5_000) | ODD,
        "x-deduplication-header": st.sampled_from(("k", 1, None)) | ODD,
        "x-cache-ttl": st.integers(-1, 5_000) | ODD,
        "x-stream-filter-value": st.sampled_from(("a", "b")) | ODD,
        "x-death": ODD,
        "h": ODD,
    },
)
PROPERTIES = st.builds(
    Properties,
    headers=st.none() | HEADERS,
    delivery_mode=st.sampled_from((None, 1, 2, 0, 255)),
    priority=st.sampled_from((None, 0, 2, 255)),
    expiration=st.sampled_from((None, "0", "1000", "soon", "", "-1")),
    reply_to=st.sampled_from((None, "r", REPLY_TO)),
    user_id=st.sampled_from((None, None, None, "guest", "eve")),
    message_id=st.none() | SHORT,
    content_type=st.none() | SHORT,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "queue": st.sampled_from(QUEUES),
    "exchange": st.sampled_from(EXCHANGES),
    "source": st.sampled_from(EXCHANGES),
    "destination": st.sampled_from(EXCHANGES),
    "routing_key": st.sampled_from(KEYS),
    "type": st.sampled_from(TYPES),
    "consumer_tag": st.sampled_from(("", "c", "d")),
    "delivery_tag": st.integers(0, 5) | st.just(2**64 - 1),
    "arguments": st.just({}) | ARGUMENTS,
    "prefetch_count": st.sampled_from((0, 1, 3, 65_535)),
    "prefetch_size": st.sampled_from((0, 0, 0, 0, 1)),
    "requeue": st.just(True) | st.booleans(),
    "active": st.booleans(),
    "immediate": st.just(False),
    "passive": st.sampled_from((False, False, True)),
    "nowait": st.sampled_from((False, False, True)),
}
OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "str": SHORT,
    "bool": st.booleans(),
    "int": st.integers(0, 255),
    "bytes": st.binary(max_size=20),
    "Table | None": ARGUMENTS,
}
ASKED = [
    method
    for method in m.METHODS.values()
    if method.from_client and method.id >> 16 not in (10,) and method not in (m.ChannelOpen, m.BasicPublish)
]


def strategy_of(method: type[Method]) -> st.SearchStrategy[Method]:
    names = inspect.signature(method).parameters
    return st.builds(method, **{name: FIELDS.get(name, OTHERS[str(names[name].annotation)]) for name in names})


PUBLISH = st.builds(
    lambda method, properties, body: method_frame(1, method.encode()) + content(body, properties.encode()),
    strategy_of(m.BasicPublish),
    PROPERTIES,
    st.binary(max_size=30),
)
TIME = st.sampled_from((0, 1, 999, 10_000))  # that passes, in milliseconds
STEP = st.one_of([strategy_of(method) for method in ASKED]) | PUBLISH | PUBLISH | TIME


@contextmanager
def playing() -> Iterator[Play]:
    folder = tempfile.mkdtemp(prefix="interlog-fuzz-")
    try:
        play = Play(Path(folder) / "data", max_message_bytes=100_000)
        yield play
        play.close()
        report = verify(DiskFiles(), play.data)
        assert report.sound, report.lines
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def furnish(play: Play) -> Client:
    """Something to meet; and somebody who is to notice nothing."""
    client = play.connect()
    client.queue()
    client.queue("durable", durable=True)
    client.queue("quorum", durable=True, x_queue_type="quorum")
    client.queue("stream", durable=True, x_queue_type="stream")
    client.exchange("x", "topic")
    client.exchange("delayed", "x-delayed-message", x_delayed_type="headers")
    client.exchange("once", "x-message-deduplication", x_cache_size=2)
    for exchange in ("x", "delayed", "once"):
        for queue in ("q", "durable", "stream"):
            client.bind(queue, exchange, "#")
    client.queue("mine", exclusive=True)
    return client


def notices_nothing(play: Play, client: Client) -> None:
    client.publish(b"still here", "mine")
    assert client.drain("mine") == [b"still here"]
    for one in play.clients:
        assert one.face.gathered >= 0


def ended(client: Client) -> bool:
    """Answers what the broker closed; whether the connection is over. Errors of ours are none of AMQP's."""
    over = client.hung_up
    for channel, one in client.listen_with_channels():
        if isinstance(one, m.ChannelClose | m.ConnectionClose):
            assert one.reply_code != ReplyCode.INTERNAL_ERROR, one
        if isinstance(one, m.ChannelClose):
            client.send(m.ChannelCloseOk(), m.ChannelOpen(), channel=channel)
        over = over or isinstance(one, m.ConnectionClose)
    if not over and 1 not in client.face.channels:
        client.send(m.ChannelOpen())
    return over


@settings(max_examples=100)
@given(st.lists(STEP, max_size=40))
def test_any_methods_in_any_order(steps: list[Any]) -> None:
    with playing() as play:
        other, client = furnish(play), play.connect()
        for step in steps:
            if isinstance(step, int):
                play.later(step)
            else:
                client.send(step)
            if ended(client):
                assert not client.face.channels
                client = play.connect()
        notices_nothing(play, other)
        play.restart()
        furnished = play.connect()
        furnished.publish(b"", "q")
        furnished.listen()


# -- bytes


def conversation() -> list[tuple[int, Method | bytes]]:
    """A bit of everything, as one client says it."""
    headers = {"CC": ["durable"], "x-delay": 5, "x-deduplication-header": "k", "n": [1, {"a": None}]}
    properties = Properties(headers=headers, delivery_mode=2, priority=1, expiration="1000", message_id="m").encode()
    publish = m.BasicPublish("new", "a.b", mandatory=True)
    said: list[tuple[int, Method | bytes]] = [
        (0, m.ConnectionStartOk({"capabilities": CAPABILITIES}, "PLAIN", b"\0guest\0guest", "en_US")),
        (0, m.ConnectionTuneOk(2_047, 131_072, 60)),
        (0, m.ConnectionOpen("/")),
        (1, m.ChannelOpen()),
        (1, m.ExchangeDeclare("new", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})),
        (1, m.QueueDeclare("fresh", arguments={"x-max-priority": 3, "x-message-ttl": 60_000, "x-max-length": 10})),
        (1, m.QueueBind("fresh", "new", "a.#", arguments={"k": [1, "v"]})),
        (1, m.BasicQos(prefetch_count=5)),
        (1, m.BasicConsume("fresh", "tag", arguments={"x-priority": 2})),
        (1, m.ConfirmSelect()),
        (1, publish),
        (1, content(b"body" * 10, properties, part=7)),
        (2, m.ChannelOpen()),
        (2, m.TxSelect()),
        (2, publish),
        (2, content(b"", properties, channel=2)),
        (2, m.TxCommit()),
        (0, HEARTBEAT_FRAME),
        (1, m.BasicGet("fresh")),
        (1, m.BasicAck(1)),
        (1, m.QueueDelete("fresh")),
        (1, m.ChannelClose(200, "", 0, 0)),
    ]
    return said


def frames_of(said: list[tuple[int, Method | bytes]]) -> list[bytes]:
    return [one if isinstance(one, bytes) else method_frame(channel, one.encode()) for channel, one in said]


def hurt(parts: list[bytes], rng: random.Random) -> bytes:
    """Some wounds: of bits, of bytes, or of whole frames."""
    parts = list(parts)
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(parts))
        way = rng.randrange(6)
        if way == 0:
            del parts[at]
        elif way == 1:
            parts.insert(rng.randrange(len(parts)), parts[at])
        elif way == 2:
            parts[at] = bytes((parts[at][0],)) + rng.randbytes(2) + parts[at][3:]  # another channel
        elif way == 3 and len(parts[at]) > 8:
            inside = bytearray(parts[at][7:-1])
            inside[rng.randrange(len(inside))] = rng.choice((0, 1, 127, 128, 206, 255, *b"SFAxtIlVDT"))
            parts[at] = parts[at][:7] + bytes(inside) + parts[at][-1:]
        elif way == 4 and parts[at]:
            data = bytearray(parts[at])
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            parts[at] = bytes(data)
        else:
            cut = rng.randrange(len(parts[at]) + 1)
            parts[at] = parts[at][:cut] + rng.randbytes(rng.randrange(9)) + parts[at][cut:]
        if not parts:
            parts = [b"\0"]
    return b"".join(parts)


def feed(client: Client, data: bytes, rng: random.Random) -> None:
    at = 0
    while at < len(data) and not client.hung_up:
        size = rng.choice((1, 8, 50, 400, len(data)))
        client.feed(data[at : at + size])
        at += size
        if rng.random() < 0.3:
            client.play.turn()


def finish(play: Play, client: Client) -> bool:
    """Ends it, in the way it is to end; whether the broker closed it for an error."""
    heard = client.listen()
    closed = [one for one in heard if isinstance(one, m.ConnectionClose | m.ChannelClose)]
    assert all(one.reply_code != ReplyCode.INTERNAL_ERROR for one in closed), closed
    assert client.face._reader.pending_bytes <= frames.FIRST_PAYLOAD_BYTES * 32
    if not client.hung_up:
        client.drop()
    assert not client.face.channels and client.face.gathered == 0
    play.turn()
    return bool(closed)


def test_hurt_conversations() -> None:
    rng = random.Random(5)
    sound = [PROTOCOL_HEADER, *frames_of(conversation())]
    closed = 0
    with playing() as play:
        other = furnish(play)
        for number in range(700):
            client = play.stranger()
            feed(client, hurt(sound, rng), rng)
            closed += finish(play, client)
            if number % 100 == 0:
                notices_nothing(play, other)
        notices_nothing(play, other)
        assert len(play.service.connections) == 1
    assert closed > 300  # else it hurts too little to tell anything


def test_no_sense_at_all() -> None:
    rng = random.Random(6)
    with playing() as play:
        other = furnish(play)
        for _ in range(200):
            client = play.stranger()
            feed(client, rng.randbytes(rng.randrange(1, 300)), rng)
            finish(play, client)
        for _ in range(400):
            client = play.connect()
            data = b""
            for _ in range(rng.randrange(1, 5)):
                kind, channel = rng.choice((METHOD, METHOD, HEADER, BODY, 8, 0, 255)), rng.choice((0, 1, 1, 1, 9))
                ids = rng.choice([*m.METHODS, 0]).to_bytes(4, "big") if rng.random() < 0.8 else b""
                data += frame(kind, channel, ids + rng.randbytes(rng.randrange(30)))
            feed(client, data, rng)
            finish(play, client)
        notices_nothing(play, other)


def test_conversations_cut_anywhere() -> None:
    data = b"".join([PROTOCOL_HEADER, *frames_of(conversation())])
    with playing() as play:
        furnish(play)
        said_to(play, [data])  # what it declares is there from now on, and waited for no more
        whole = said_to(play, [data])
        assert whole[-4:] == ["BasicGetEmpty", "QueueDeleteOk", "ChannelCloseOk", "TxCommitOk"], whole
        assert "BasicDeliver" in whole
        for cut in range(1, len(data), 3):
            assert said_to(play, [data[:cut], data[cut:]]) == whole, cut
        assert said_to(play, [bytes((byte,)) for byte in data]) == whole


def said_to(play: Play, parts: list[bytes]) -> list[str]:
    """What the broker says to a conversation in pieces, as far as it does not depend on when."""
    client = play.stranger()
    for part in parts:
        client.feed(part)
    heard = [name for one in client.listen() if (name := type(getattr(one, "method", one)).__name__) != "BasicAck"]
    client.drop()
    play.turn()
    return heard


def test_what_is_never_whole_takes_little_memory() -> None:
    with playing() as play:
        other = furnish(play)
        clients = [play.connect(channels=range(1, 6)) for _ in range(5)]
        head = frame(HEADER, 1, header_payload(100_000, b"\0\0"))
        tracemalloc.start()
        try:
            for client in clients:
                for channel in range(1, 6):
                    start = bytes((HEADER,)) + channel.to_bytes(2, "big") + head[3:]
                    client.feed(method_frame(channel, m.BasicPublish("", "q").encode()) + start)
                    for _ in range(3_000):
                        if not client.face.is_over:
                            client.feed(frame(BODY, channel, bytes(20)))
            assert tracemalloc.get_traced_memory()[1] < 5 * 2 * 100_000 + 2_000_000
        finally:
            tracemalloc.stop()
        for client in clients:
            client.drop()
        notices_nothing(play, other)


def test_frames_that_never_end_take_little_memory() -> None:
    with playing() as play:
        stranger, client = play.stranger(), play.connect()
        stranger.feed(PROTOCOL_HEADER + b"\x01\0\0\0\0\x20\x00")
        client.feed(b"\x03\0\x01\0\x01\xff\xf8")
        tracemalloc.start()
        try:
            for one in (stranger, client):
                for _ in range(1_000):
                    one.feed(bytes(1_000))
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()
        play.turn()
