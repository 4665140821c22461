"""Bytes that are not as they should be: frames, methods, tables, names."""

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.frames import BODY, HEADER, METHOD, frame, method_frame
from interlog.faces.amqp.properties import NO_PROPERTIES, header_payload
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Talk


def _raw(class_id: int, method_id: int, arguments: bytes = b"", channel: int = 1) -> bytes:
    return frame(METHOD, channel, class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + arguments)


_DECLARE = b"\x00\x00\x01q\x00"  # queue.declare up to its arguments


@conversation("it says what is wrong in more words, and never hangs up without a word")
def broken_frames(talk: Talk) -> None:
    good = method_frame(1, m.QueueDeclare("q").encode())
    for said in (
        good[:-1] + b"\x00",
        b"\x05" + good[1:],
        b"\x00" + good[1:],
        frame(4, 0, b""),
        frame(4, 1, b"abc"),
        frame(9, 1, b"\x01\x02\x03"),
        frame(8, 0, b"x"),
        frame(8, 1, b""),
        frame(METHOD, 1, b""),
        frame(METHOD, 1, b"\x00"),
        frame(METHOD, 1, b"\x00\x32\x00"),
        frame(METHOD, 0, b""),
        frame(METHOD, 9, b"\x00\x32\x00\x0a"),
        frame(BODY, 0, b"abc"),
        frame(HEADER, 0, header_payload(0, NO_PROPERTIES)),
        frame(BODY, 9, b"abc"),
        b"\x01\x00\x01\x7f\xff\xff\xff" + b"x" * 20,
        frame(BODY, 1, b"x" * 131_073),
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
    ):
        client = talk.client()
        client.do(said)
        client.cut()


@conversation("it says what is wrong in more words, and never hangs up without a word")
def broken_methods(talk: Talk) -> None:
    for said in (
        _raw(50, 10, _DECLARE),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x00extra"),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x09\x01a"),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x04\x01a?\x01"),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x04\x01at\x02"),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x04\x09at\x02"),
        _raw(50, 10, b"\x00\x00\x02\xff\xfe\x00\x00\x00\x00\x00"),
        _raw(50, 10, b"\x00\x00\x01"),
        _raw(50, 99),
        _raw(99, 10),
        _raw(0, 0),
        _raw(60, 60, b"\x00" * 20),
        _raw(60, 50, b"\x00" * 20),
        _raw(60, 71, b"\x00" * 20),
        _raw(50, 11, b"\x01q\x00\x00\x00\x00\x00\x00\x00\x00"),
        _raw(20, 11, b"\x00\x00\x00\x00"),
        _raw(10, 50, b"\x00\xc8\x00\x00\x00\x00\x00"),
        _raw(10, 10, b"", channel=0),
        _raw(10, 11, b"\x00" * 10, channel=0),
        _raw(10, 31, b"\x00" * 8, channel=0),
        _raw(10, 40, b"\x01/\x00\x00", channel=0),
        _raw(10, 41, b"\x00", channel=0),
        _raw(10, 51, b"", channel=0),
        _raw(10, 60, b"\x00", channel=0),
        _raw(10, 99, b"", channel=0),
        _raw(20, 10, b"\x00", channel=0),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x00", channel=0),
        _raw(20, 10, b"\x00"),
        _raw(20, 10, b"\x00", channel=3000),
        _raw(50, 10, _DECLARE + b"\x00\x00\x00\x00", channel=9),
        _raw(20, 40, b"\x00\xc8\x00\x00\x00\x00\x00", channel=9),
        _raw(20, 41, b"", channel=9),
        _raw(20, 41, b""),
        _raw(85, 10, b""),
        _raw(90, 99, b""),
        _raw(30, 10, b"\x00\x00"),
        _raw(60, 100, b"\x01"),
        _raw(60, 100, b"\x00"),
        _raw(60, 110, b"\x00"),
    ):
        client = talk.client()
        client.do(said)
        client.cut()


@conversation()
def deep_and_large_tables(talk: Talk) -> None:
    deep: object = 1
    for _ in range(40):
        deep = {"a": deep}
    client = talk.client()
    client.do(m.QueueDeclare("q", arguments={"a": deep}))
    client.do(m.QueueDeclare("r", arguments={str(at): at for at in range(1_000)}))
    client.publish("a", "r", headers={"a": deep})
    client.hear(first=0.3)
    client.get("r")


@conversation()
def long_names(talk: Talk) -> None:
    client = talk.client()
    name = "n" * 255
    client.exchange(name)
    client.queue(name)
    client.bind(name, name, name)
    client.publish("a", name, name, mandatory=True)
    client.consume(name, tag=name, no_ack=True)
    client.do(m.QueueDeclare(name, durable=True))
    client.do(m.ExchangeDeclare(name, "fanout"))
    client.do(m.QueueDeclare("x" + name[:254], passive=True))


@conversation("it names the method that has them")
def names_that_are_no_utf8(talk: Talk) -> None:
    client = talk.client()
    bad = b"\x03\xff\xfe\xfd"
    client.queue()
    for said in (
        _raw(50, 10, b"\x00\x00" + bad + b"\x00" + b"\x00\x00\x00\x00"),
        _raw(40, 10, b"\x00\x00" + bad + b"\x06direct\x00\x00\x00\x00\x00"),
        _raw(50, 20, b"\x00\x00\x01q" + b"\x0aamq.direct" + bad + b"\x00\x00\x00\x00\x00"),
        _raw(60, 20, b"\x00\x00\x01q" + bad + b"\x00\x00\x00\x00\x00"),
        _raw(60, 70, b"\x00\x00" + bad + b"\x00"),
        _raw(60, 40, b"\x00\x00\x0aamq.direct" + bad + b"\x01") + frame(HEADER, 1, header_payload(0, NO_PROPERTIES)),
        _raw(60, 40, b"\x00\x00\x00" + bad + b"\x01") + frame(HEADER, 1, header_payload(0, b"\x80\x00" + bad)),
    ):
        client.do(said)


@conversation()
def frames_no_larger_than_agreed(talk: Talk) -> None:
    client = talk.client(frame_max=8192)
    client.queue()
    client.publish("x" * 20_000, part=8184)
    client.get()
    client.publish("y" * 8192, part=8192)
    client.hear(first=0.4)
    client.publish("z" * 8193, part=8193)
    client.hear()


@conversation()
def cut_anywhere(talk: Talk) -> None:
    client = talk.client()
    said = b"".join(method_frame(1, m.QueueDeclare(name).encode()) for name in "abc")
    for at in range(0, len(said), 7):
        client.say(said[at : at + 7])
    client.hear()
