"""A conversation with a broker that writes down what it hears, in words that are the same for every broker.

In come methods and bytes to say; out goes a transcript. Names that a broker makes up, times and the names of the
conversation's own vhost and users are made the same; everything else stands as it came.
"""

import json
import re
import socket
import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from interlog.faces.amqp import frames
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, FrameReader, frame, method_frame
from interlog.faces.amqp.properties import Properties, header_payload, read_header
from interlog.faces.amqp.values import type_name
from interlog.faces.amqp.wire import Method
from tests.peers.targets import host_port

PATIENCE_SECONDS = 10.0
CAPABILITIES = {
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
_WITH_CONTENT = (m.BasicDeliver, m.BasicGetOk, m.BasicReturn)
_MADE_UP = re.compile(r"(amq\.gen-|amq\.ctag-|amq\.rabbitmq\.reply-to\.)[\w+/=.-]+")
_BROKEN_LINES = re.compile(r"\\n +")  # of terms that RabbitMQ prints
_NEWER = re.compile(r"\b(configure|write|read) (?=access to (queue|exchange|topic) )")  # RabbitMQ says it since 3.11


class Ended(Exception):
    """The broker hung up."""


class Talk:
    """One conversation: a vhost of its own, and all who take part."""

    def __init__(self, url: str, management_url: str, vhost: str, pace: float) -> None:
        self.host, self.port = host_port(url)
        self.vhost = vhost
        self.pace = pace  # how long a silence must last to be one, in units of the usual
        self.transcript: list[str] = []
        self._management_url = management_url
        self._lines: list[Line] = []
        self._users: list[str] = []
        self.ask("PUT", f"/api/vhosts/{vhost}")
        self.ask("PUT", f"/api/permissions/{vhost}/guest", {"configure": ".*", "write": ".*", "read": ".*"})

    def close(self) -> None:
        for line in self._lines:
            line.cut()
        for user in self._users:
            self.ask("DELETE", f"/api/users/{user}")
        self.ask("DELETE", f"/api/vhosts/{self.vhost}")

    def note(self, words: str) -> None:
        for made_up, usual in ((f"-{self.vhost}", ""), (self.vhost, "/")):
            words = words.replace(made_up, usual)
        words = _BROKEN_LINES.sub("", words)
        self.transcript.append(_NEWER.sub("", _MADE_UP.sub(r"\1*", words)))

    def client(self, name: str = "a", *, user: str = "guest", **more: Any) -> "Line":
        """One who is connected, with channel 1 open."""
        line = Line(self, name, user=user, **more)
        line.connect()
        return line

    def stranger(self, name: str = "s") -> "Line":
        """One who has only a socket."""
        return Line(self, name)

    def add(self, line: "Line") -> None:
        self._lines.append(line)

    # -- by the management API

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        if method == "PUT" and data is None:
            data = b"{}"
        request = Request(self._management_url + path, data, method=method)
        request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
        request.add_header("Content-Type", "application/json")
        try:
            with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except HTTPError as error:
            return error.code, None

    def policy(self, name: str, pattern: str, definition: dict[str, Any], **more: Any) -> None:
        body = {"pattern": pattern, "definition": definition, "apply-to": "all", "priority": 0} | more
        status, _ = self.ask("PUT", f"/api/policies/{self.vhost}/{name}", body)
        self.note(f"policy {name}: {status}")
        time.sleep(0.3 * self.pace)

    def no_policy(self, name: str) -> None:
        self.ask("DELETE", f"/api/policies/{self.vhost}/{name}")
        time.sleep(0.3 * self.pace)

    def user(self, name: str, configure: str = "", write: str = "", read: str = "", tags: str = "") -> str:
        made = f"{name}-{self.vhost}"
        self.ask("PUT", f"/api/users/{made}", {"password": "secret", "tags": tags})
        self._users.append(made)
        given = {"configure": configure, "write": write, "read": read}
        self.ask("PUT", f"/api/permissions/{self.vhost}/{made}", given)
        return made

    def topic_permission(self, user: str, exchange: str, write: str, read: str) -> None:
        given = {"exchange": exchange, "write": write, "read": read}
        self.ask("PUT", f"/api/topic-permissions/{self.vhost}/{user}", given)

    def queue_path(self, name: str) -> str:
        return f"/api/queues/{self.vhost}/{quote(name, safe='')}"

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Line:
    """One connection. What is said and heard is noted; a channel that was closed is opened again."""

    def __init__(
        self,
        talk: Talk,
        name: str,
        *,
        user: str = "guest",
        channels: Sequence[int] = (1,),
        capabilities: dict[str, bool] | None = None,
        frame_max: int = 131_072,
        channel_max: int = 2_047,
        heartbeat: int = 0,
    ) -> None:
        self.talk = talk
        self.name = name
        self.heard: list[tuple[int, Method, Properties, bytes]] = []
        self.heartbeats = 0
        self._tag = 0
        self._user = user
        self._channels = channels
        self._tune = m.ConnectionTuneOk(channel_max, frame_max, heartbeat)
        self._capabilities = CAPABILITIES if capabilities is None else capabilities
        self._sock: socket.socket | None = None
        talk.add(self)

    # -- coming and going

    def reach(self) -> None:
        self._sock = socket.create_connection((self.talk.host, self.talk.port), PATIENCE_SECONDS)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader(frames.NO_LIMIT)
        self._open: dict[int, list[Any]] = {}
        self._waiting: list[tuple[int, Method, Properties, bytes]] = []

    def connect(self) -> None:
        self.reach()
        self._send(PROTOCOL_HEADER)
        self._await(m.ConnectionStart)
        password = "guest" if self._user == "guest" else "secret"
        plain = f"\0{self._user}\0{password}".encode()
        self._send_method(0, m.ConnectionStartOk({"capabilities": self._capabilities}, "PLAIN", plain, "en_US"))
        self._await(m.ConnectionTune)
        self._send_method(0, self._tune)
        self._send_method(0, m.ConnectionOpen(self.talk.vhost))
        self._await(m.ConnectionOpenOk)
        for channel in self._channels:
            self._open_channel(channel)

    def _open_channel(self, channel: int) -> None:
        self._send_method(channel, m.ChannelOpen())
        self._await(m.ChannelOpenOk)

    def cut(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    # -- saying

    def say(self, *said: Method | bytes, channel: int | None = None) -> None:
        for one in said:
            if self._sock is None:
                self.connect()
            if isinstance(one, bytes):
                self.talk.note(f"{self.name} > {len(one)} bytes {one[:24]!r}")
                self._send(one)
                continue
            number = (0 if one.id >> 16 == 10 else 1) if channel is None else channel
            self.talk.note(f"{self.name} > [{number}] {one!r}"[:400])
            self._send_method(number, one)

    def publish(
        self,
        body: bytes | str = b"",
        key: str = "q",
        exchange: str = "",
        *,
        channel: int = 1,
        mandatory: bool = False,
        part: int = 100_000,
        **properties: Any,
    ) -> None:
        body = body.encode() if isinstance(body, str) else body
        if self._sock is None:
            self.connect()
        self.talk.note(f"{self.name} > [{channel}] publish {body[:40]!r} to {exchange!r} {key!r} {properties}")
        method = m.BasicPublish(exchange, key, mandatory=mandatory)
        made = frame(HEADER, channel, header_payload(len(body), Properties(**properties).encode()))
        for at in range(0, len(body), part):
            made += frame(BODY, channel, body[at : at + part])
        self._send(method_frame(channel, method.encode()) + made)

    def _send_method(self, channel: int, method: Method) -> None:
        self._send(method_frame(channel, method.encode()))

    def _send(self, data: bytes) -> None:
        assert self._sock is not None
        try:
            self._sock.sendall(data)
        except OSError:
            pass  # what it has to say to that is read

    # -- hearing

    def do(self, *said: Method | bytes, channel: int | None = None, **more: Any) -> list[Any]:
        """Say, and hear what comes of it."""
        self.say(*said, channel=channel)
        return self.hear(**more)

    def hear(self, first: float = 1.0, quiet: float = 0.07, *, in_order: bool = False) -> list[Any]:
        """All that comes until it is quiet: by channel and kind, unless the whole order is of interest."""
        pace = self.talk.pace
        heard, self.heard = self.heard, []
        ended = False
        try:
            deadline = time.monotonic() + first * pace
            while (left := deadline - time.monotonic()) > 0:
                came = self._take(left)
                if came:
                    deadline = time.monotonic() + quiet * pace
                heard += came
        except Ended:
            ended = True
        if not in_order:
            heard.sort(key=lambda one: (one[0], one[1].name))
        for channel, method, properties, body in heard:
            if isinstance(method, m.BasicDeliver | m.BasicGetOk):
                self._tag = method.delivery_tag
            self.talk.note(f"{self.name} < [{channel}] {told(method, properties, body)}")
        if not heard and not ended:
            self.talk.note(f"{self.name} < nothing")
        if ended:
            self.talk.note(f"{self.name} < hung up")
            self.cut()
            return heard
        for channel, method, _, _ in heard:
            if isinstance(method, m.ChannelClose):
                self._send_method(channel, m.ChannelCloseOk())
                self._open_channel(channel)
            elif isinstance(method, m.ConnectionClose):
                self._send_method(0, m.ConnectionCloseOk())
                self.cut()
        return heard

    def raw(self, seconds: float = 1.0) -> None:
        """What comes, as bytes, until it is quiet or over."""
        assert self._sock is not None
        data = b""
        try:
            self._sock.settimeout(seconds * self.talk.pace)
            while more := self._sock.recv(1 << 16):
                data += more
                self._sock.settimeout(0.3 * self.talk.pace)
            self.talk.note(f"{self.name} < {data!r} and hung up")
        except TimeoutError:
            self.talk.note(f"{self.name} < {data!r}")
        except OSError:
            self.talk.note(f"{self.name} < {data!r} and hung up")

    def _await(self, kind: type[Method]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            for one in self._take(left):
                if isinstance(one[1], kind):
                    deadline = 0.0
                else:
                    self.heard.append(one)
                    if isinstance(one[1], m.ConnectionClose):
                        raise Ended(repr(one[1]))
        if deadline:
            raise Ended(f"no {kind.name}")

    def _take(self, seconds: float) -> list[tuple[int, Method, Properties, bytes]]:
        if self._sock is None:
            raise Ended
        self._sock.settimeout(max(seconds, 0.001))
        try:
            data = self._sock.recv(1 << 18)
        except TimeoutError:
            return []
        except OSError:
            raise Ended from None
        if not data:
            raise Ended
        if data.startswith(b"AMQP"):
            self.talk.note(f"{self.name} < {data!r}")
            return []
        taken: list[tuple[int, Method, Properties, bytes]] = []
        self._reader.feed(data)
        for kind, channel, start, end in self._reader.frames():
            payload = self._reader.data[start:end]
            if kind == METHOD:
                made = m.METHODS[int.from_bytes(payload[:4], "big")]
                method = made.decode(payload, 4, len(payload))
                if isinstance(method, _WITH_CONTENT):
                    self._open[channel] = [method, 0, Properties(), b""]
                else:
                    taken.append((channel, method, Properties(), b""))
                continue
            if kind == frames.HEARTBEAT:
                self.heartbeats += 1
                continue
            content = self._open[channel]
            if kind == HEADER:
                _, content[1], properties = read_header(payload, 0, len(payload))
                content[2] = Properties.decode(properties)
            else:
                content[3] += payload
            if len(content[3]) == content[1]:
                del self._open[channel]
                taken.append((channel, content[0], content[2], content[3]))
        return taken

    # -- usual things, in one line

    def queue(self, name: str = "q", *, channel: int = 1, **more: Any) -> list[Any]:
        return self.do(_queue(name, more), channel=channel)

    def exchange(self, name: str, type: str = "direct", **more: Any) -> list[Any]:
        flags, arguments = _split(more)
        return self.do(m.ExchangeDeclare(name, type, arguments=arguments, **flags))

    def bind(self, queue: str, exchange: str, key: str = "", arguments: dict[str, Any] | None = None) -> list[Any]:
        return self.do(m.QueueBind(queue, exchange, key, arguments=arguments))

    def consume(self, queue: str = "q", tag: str = "c", *, channel: int = 1, **more: Any) -> list[Any]:
        flags, arguments = _split(more)
        return self.do(m.BasicConsume(queue, tag, arguments=arguments, **flags), channel=channel)

    def get(self, queue: str = "q", *, no_ack: bool = True, channel: int = 1) -> list[Any]:
        return self.do(m.BasicGet(queue, no_ack=no_ack), channel=channel)

    def drain(self, queue: str = "q") -> None:
        for _ in range(50):
            heard = self.get(queue)
            if not heard or not isinstance(heard[0][1], m.BasicGetOk):
                return

    @property
    def tag(self) -> int:
        """The delivery tag last heard."""
        return self._tag

    def count(self, queue: str = "q") -> list[Any]:
        return self.do(m.QueueDeclare(queue, passive=True))

    def qos(self, count: int, *, shared: bool = False, channel: int = 1) -> None:
        self.do(m.BasicQos(prefetch_count=count, global_=shared), channel=channel)

    def confirms(self) -> None:
        self.do(m.ConfirmSelect())


_FLAGS = ("durable", "exclusive", "auto_delete", "passive", "internal", "no_ack", "nowait")


def _split(more: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    flags = {name: value for name, value in more.items() if name in _FLAGS}
    return flags, {name.replace("_", "-"): value for name, value in more.items() if name not in _FLAGS}


def _queue(name: str, more: dict[str, Any]) -> m.QueueDeclare:
    flags, arguments = _split(more)
    return m.QueueDeclare(name, arguments=arguments, **flags)


# -- in words


def told(method: Method, properties: Properties, body: bytes) -> str:
    values = method.values()
    if isinstance(method, m.ConnectionStart):
        values.pop("server_properties")
    if isinstance(method, m.BasicNack):
        values.pop("multiple")  # RabbitMQ says so of one message, too
    words = f"{method.name} {' '.join(f'{name}={_value(value)}' for name, value in values.items())}"
    if isinstance(method, _WITH_CONTENT):
        said = {name: getattr(properties, name) for name in Properties.__slots__}
        given = " ".join(f"{name}={_value(value)}" for name, value in said.items() if value is not None)
        shown = repr(body) if len(body) <= 60 else f"{len(body)} bytes"
        words += f" | {given} | {shown}"
    return words


def _value(value: Any) -> str:
    """With its type, where that is another on the wire."""
    if isinstance(value, dict):
        shown = sorted((name, one) for name, one in value.items() if not name.startswith("x-last-death-"))  # of 3.13
        return "{" + ", ".join(f"{name}: {_entry(name, one)}" for name, one in shown) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_typed(one) for one in value) + "]"
    return repr(value)


def _entry(name: str, value: Any) -> str:
    return f"*:{type_name(value)}" if name in ("time", "timestamp_in_ms") else _typed(value)


def _typed(value: Any) -> str:
    return f"{_value(value)}:{type_name(value)}"
