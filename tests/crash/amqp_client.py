"""An AMQP client that can be anywhere when its broker dies: bytes out, bytes in, by whatever link there is.

In come methods to send; out go the broker's methods and contents, in order, as `Heard`. It waits for nothing but
answers that it was asked to wait for, and meanwhile takes in all else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, FrameReader, frame, method_frame
from interlog.faces.amqp.properties import Properties, header_payload, read_header
from interlog.faces.amqp.wire import Method
from tests.crash.brokers import Link
from tests.crash.model import Wrong

M = TypeVar("M", bound=Method)
PATIENCE = 3_000  # turns of a link without an answer: never reached when all is well
_WITH_CONTENT = (m.BasicDeliver, m.BasicGetOk, m.BasicReturn)


@dataclass(slots=True)
class Heard:
    channel: int
    method: Method
    properties: Properties | None = None
    body: bytes = b""

    def origin(self) -> str:
        """The queue that it first died in."""
        headers = (self.properties.headers if self.properties is not None else None) or {}
        return str(headers["x-first-death-queue"])


class Client:
    def __init__(self, link: Link, take: Callable[[Heard], None]) -> None:
        self._link = link
        self._take = take  # whatever nobody waits for
        self._reader = FrameReader(1 << 20)
        self._content: Heard | None = None
        self._missing = 0
        self._parts: list[bytes] = []
        self._frame_max = 4096

    # -- out

    def send(self, channel: int, method: Method) -> None:
        self._link.send(method_frame(channel, method.encode()))

    def publish(self, channel: int, method: m.BasicPublish, properties: Properties, body: bytes) -> None:
        frames = method_frame(channel, method.encode())
        frames += frame(HEADER, channel, header_payload(len(body), properties.encode()))
        room = self._frame_max - 8
        for at in range(0, len(body), room):
            frames += frame(BODY, channel, body[at : at + room])
        self._link.send(frames)

    def call(self, channel: int, method: Method, *answers: type[Method]) -> Heard:
        """Send, and wait for one of the answers on that channel."""
        self.send(channel, method)
        return self.wait(channel, *answers)

    def wait(self, channel: int, *answers: type[Method]) -> Heard:
        for _ in range(PATIENCE):
            found: Heard | None = None
            for heard in self._turn():
                if found is None and heard.channel == channel and isinstance(heard.method, answers):
                    found = heard
                else:
                    self._take(heard)
            if found is not None:
                return found
        raise Wrong(f"no answer on channel {channel}: {[answer.name for answer in answers]} was waited for")

    def turn(self) -> None:
        for heard in self._turn():
            self._take(heard)

    def open(self, *channels: int) -> None:
        self._link.send(PROTOCOL_HEADER)
        self.wait(0, m.ConnectionStart)
        properties = {"capabilities": {"consumer_cancel_notify": True, "connection.blocked": True}}
        self.call(0, m.ConnectionStartOk(properties, "PLAIN", b"\0guest\0guest", "en_US"), m.ConnectionTune)
        self._frame_max = 8192
        self.send(0, m.ConnectionTuneOk(2047, self._frame_max, 0))
        self.call(0, m.ConnectionOpen("/"), m.ConnectionOpenOk)
        for channel in channels:
            self.call(channel, m.ChannelOpen(), m.ChannelOpenOk)

    def close(self) -> None:
        self.call(0, m.ConnectionClose(200, "done"), m.ConnectionCloseOk)

    # -- in

    def _turn(self) -> list[Heard]:
        data = self._link.turn()
        if not data:
            return []
        reader = self._reader
        reader.feed(data)
        heard: list[Heard] = []
        for kind, channel, start, end in reader.frames():
            if kind == METHOD:
                method = _decode(reader.data, start, end)
                self._content = Heard(channel, method)
                if not isinstance(method, _WITH_CONTENT):
                    heard.append(self._content)
            elif kind == HEADER and self._content is not None:
                _, self._missing, properties = read_header(reader.data, start, end)
                self._content.properties = Properties.decode(properties)
                self._parts = []
            elif kind == BODY:
                self._parts.append(reader.data[start:end])
                self._missing -= end - start
            if kind in (HEADER, BODY) and self._missing == 0 and self._content is not None:
                self._content.body = b"".join(self._parts)
                heard.append(self._content)
                self._content = None
        for one in heard:
            if isinstance(one.method, m.ConnectionClose):
                raise Wrong(f"the broker closed the connection: {one.method}")
        return heard


def _decode(data: bytes, start: int, end: int) -> Method:
    known = m.METHODS[int.from_bytes(data[start : start + 4], "big")]
    return known.decode(data, start + 4, end)
