"""A client's stream, hurt: everything in it ends in values or in AmqpError, soon and in little memory."""

import random
import time
import tracemalloc

from interlog.faces.amqp import methods
from interlog.faces.amqp.errors import AmqpError
from interlog.faces.amqp.frames import BODY, HEADER, HEARTBEAT_FRAME, METHOD, FrameReader, frame, method_frame
from interlog.faces.amqp.properties import Properties, header_payload, read_header, scan
from interlog.faces.amqp.values import Timestamp

TABLE = {"product": "fuzz", "capabilities": {"a": True, "b": [1, 2.5, None, {"c": "d"}]}, "n": 2**40, "x": b"\xff\x00"}
PROPERTIES = Properties(
    content_type="text/plain", headers=TABLE, delivery_mode=2, correlation_id="c", timestamp=Timestamp(5), app_id="a"
)


def stream() -> bytes:
    said = [
        (0, methods.ConnectionStartOk(TABLE, "PLAIN", b"\0guest\0guest", "en_US")),
        (0, methods.ConnectionTuneOk(2047, 131072, 60)),
        (0, methods.ConnectionOpen("/")),
        (1, methods.ChannelOpen()),
        (1, methods.ExchangeDeclare("x", "topic", durable=True, arguments=TABLE)),
        (1, methods.QueueDeclare("q", durable=True, arguments={"x-max-length": 10})),
        (1, methods.QueueBind("q", "x", "a.#", arguments=TABLE)),
        (1, methods.BasicConsume("q", "tag", arguments=TABLE)),
        (1, methods.BasicPublish("x", "a.b", mandatory=True)),
    ]
    data = b"".join(method_frame(channel, method.encode()) for channel, method in said)
    data += frame(HEADER, 1, header_payload(4, PROPERTIES.encode())) + frame(BODY, 1, b"body")
    return data + HEARTBEAT_FRAME + method_frame(1, methods.BasicAck(3, True).encode())


def read_all(data: bytes, rng: random.Random) -> int:
    """Everything a connection reads of a stream, in random cuts; how many frames that were."""
    reader = FrameReader()
    at = frames = 0
    while at < len(data):
        size = rng.choice((1, 5, 20, 100, len(data)))
        reader.feed(data[at : at + size])
        at += size
        for kind, _, start, end in reader.frames():
            frames += 1
            if kind == METHOD:
                methods.decode(reader.data, start, end)
            elif kind == HEADER:
                properties = read_header(reader.data, start, end)[2]
                scan(properties)
                Properties.decode(properties)
    return frames


def hurt(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data))
        way = rng.randrange(5)
        if way == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xCE, 0xFF, *b"SFAxtIlVD"))
        elif way == 2:
            del data[at : at + rng.randrange(1, 12)]
        elif way == 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 12))
        else:
            data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff"))
        if not data:
            data += b"\0"


def test_the_sound_stream_is_read_whole() -> None:
    for seed in range(50):
        assert read_all(stream(), random.Random(seed)) == 13


def test_hurt_streams_end_in_values_or_amqp_errors() -> None:
    rng = random.Random(11)
    sound = stream()
    refusals: list[AmqpError] = []
    began = time.process_time()
    for _ in range(6_000):
        data = bytearray(sound)
        hurt(data, rng)
        try:
            read_all(bytes(data), rng)
        except AmqpError as error:
            refusals.append(error)
    assert all(error.hard for error in refusals)
    assert all(len(error.text.encode("utf-8", "surrogateescape")) <= 255 for error in refusals)
    assert len(refusals) > 3_000  # else this hurts too little to tell anything
    assert time.process_time() - began < 60


def test_hurt_streams_take_little_memory() -> None:
    rng = random.Random(12)
    sound = stream()
    tracemalloc.start()
    try:
        for _ in range(300):
            data = bytearray(sound)
            hurt(data, rng)
            try:
                read_all(bytes(data), rng)
            except AmqpError:
                pass
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
