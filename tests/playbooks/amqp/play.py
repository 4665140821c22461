"""Conversations with the AMQP face: bytes in, bytes out, a real core in a folder of its own, no sockets, no sleeping.

    play = Play(tmp_path)
    client = play.connect()                                   # handshake and channel 1, in one line
    client.send(m.QueueDeclare(queue="q", durable=True))      # fed to the face, and nothing else
    client.expect(m.QueueDeclareOk("q", 0, 0))                # a turn of the driver, then what the client heard next

A turn (`play.turn`) is what the driver does: one commit for all connections, what they have to say, then the disk's
answer, and what follows from that. `play.turn(sync=False)` leaves the disk's answer out: what is heard then waited
for nothing. Time moves by `play.later(ms)` alone.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from interlog.base.clock import ManualClock
from interlog.base.metrics import Metrics
from interlog.base.work import ManualWorker
from interlog.core.broker import Core, CoreSettings
from interlog.faces.amqp import frames
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.connection import AmqpConnection
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, FrameReader, frame, method_frame
from interlog.faces.amqp.properties import NO_PROPERTIES, Properties, header_payload, read_header
from interlog.faces.amqp.service import AmqpService, AmqpSettings
from interlog.faces.amqp.wire import Method
from interlog.faces.face import Peer

SMALL = CoreSettings(journal_file_bytes=1 << 18, min_free_bytes=0, checkpoint_ms=1_000, tail_bytes=1 << 20)
CAPABILITIES = {
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
PATIENCE = 50  # turns until a conversation that never comes to rest is a failure

M = TypeVar("M", bound=Method)


class Content(NamedTuple):
    """A method with its content: basic.deliver, get-ok or return."""

    method: Method
    properties: Properties
    body: bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)

    @property
    def headers(self) -> dict[str, Any]:
        return self.properties.headers or {}


Heard = Method | Content


def content(body: bytes, properties: bytes = NO_PROPERTIES, *, channel: int = 1, part: int = 100_000) -> bytes:
    """The frames of a content: header, bodies."""
    made = frame(HEADER, channel, header_payload(len(body), properties))
    for at in range(0, len(body), part):
        made += frame(BODY, channel, body[at : at + part])
    return made


class Client:
    """One connection."""

    def __init__(self, play: "Play", peer: Peer) -> None:
        self.play = play
        self.woken = False
        self.face: AmqpConnection = play.service.face(self._wake, peer)
        self.heard: list[tuple[int, Heard]] = []
        self.heartbeats = 0
        self.raw = b""
        self.hung_up = False  # by the broker
        self._reader = FrameReader(frames.NO_LIMIT)
        self._open: dict[int, tuple[Method, bytes, int, bytes]] = {}  # contents that are not whole, by channel

    def _wake(self) -> None:
        self.woken = True

    # -- said

    def feed(self, data: bytes) -> None:
        """Bytes, as a socket gives them."""
        assert data
        if not self.hung_up:
            self.face.receive(data)

    def send(self, *said: Method | bytes, channel: int | None = None) -> None:
        """Methods, on channel 1 unless they are the connection's; bytes as they are."""
        for one in said:
            if isinstance(one, bytes):
                self.feed(one)
            else:
                number = (0 if one.id >> 16 == 10 else 1) if channel is None else channel
                self.feed(method_frame(number, one.encode()))

    def publish(
        self,
        body: bytes = b"",
        key: str = "q",
        exchange: str = "",
        *,
        mandatory: bool = False,
        channel: int = 1,
        **properties: Any,
    ) -> None:
        method = m.BasicPublish(exchange, key, mandatory=mandatory)
        made = Properties(**properties).encode()
        self.feed(method_frame(channel, method.encode()) + content(body, made, channel=channel))

    def drop(self) -> None:
        """The connection breaks."""
        self.hung_up = True
        self.face.connection_lost()
        self.play.clients.remove(self)

    def leave(self) -> None:
        """Hang up; the broker does the same at once."""
        assert not self.hung_up
        self.face.receive(b"")
        self.silence()
        assert self.hung_up

    # -- heard

    def collect(self) -> bool:
        """Take what the face has to say; whether it said anything."""
        data = b"".join(bytes(part) for part in self.face.take_output())
        self.raw += data
        if data and data != PROTOCOL_HEADER:
            self._reader.feed(data)
            for kind, channel, start, end in self._reader.frames():
                self._take(kind, channel, self._reader.data[start:end])
        if self.face.closed and not self.hung_up:
            self.hung_up = True
            self.face.connection_lost()
        return bool(data)

    def _take(self, kind: int, channel: int, payload: bytes) -> None:
        if kind == METHOD:
            made = m.METHODS[int.from_bytes(payload[:4], "big")]
            method = made.decode(payload, 4, len(payload))
            assert channel not in self._open, "a method in the middle of a content"
            if made.content:
                self._open[channel] = (method, b"", -1, b"")
            else:
                self.heard.append((channel, method))
        elif kind == HEADER:
            method, _, size, _ = self._open[channel]
            assert size == -1
            class_id, size, properties = read_header(payload, 0, len(payload))
            assert class_id == 60
            self._open[channel] = (method, properties, size, b"")
            self._whole(channel)
        elif kind == BODY:
            method, properties, size, body = self._open[channel]
            assert payload, "an empty body frame"
            self._open[channel] = (method, properties, size, body + payload)
            self._whole(channel)
        else:
            assert (channel, payload) == (0, b"")
            self.heartbeats += 1

    def _whole(self, channel: int) -> None:
        method, properties, size, body = self._open[channel]
        assert len(body) <= size
        if len(body) == size:
            del self._open[channel]
            self.heard.append((channel, Content(method, Properties.decode(properties), body)))

    def listen_with_channels(self) -> list[tuple[int, Heard]]:
        """A turn, then all that was heard, and on which channel."""
        self.play.turn()
        heard, self.heard = self.heard, []
        return heard

    def listen(self, channel: int | None = None) -> list[Heard]:
        """A turn, then all that was heard (on one channel) and not yet asked for."""
        self.play.turn()
        taken = [(number, one) for number, one in self.heard if channel is None or number == channel]
        self.heard = [(number, one) for number, one in self.heard if channel is not None and number != channel]
        return [one for _, one in taken]

    def expect(self, *wanted: Heard | type[Method], channel: int | None = None) -> None:
        """All that is heard is this, in this order. A class stands for any method of its kind."""
        heard = self.listen(channel)
        told = [type(one) if isinstance(want, type) else one for one, want in zip(heard, wanted, strict=False)]
        assert told + heard[len(told) :] == list(wanted)

    def ask(self, method: Method, answer: type[M], *, channel: int | None = None) -> M:
        """Say one thing and hear one thing."""
        self.send(method, channel=channel)
        heard = self.listen()
        assert len(heard) == 1 and isinstance(heard[0], answer), heard
        return heard[0]

    def silence(self) -> None:
        heard = self.listen()
        assert heard == []

    def messages(self, channel: int | None = None) -> list[Content]:
        """What was delivered, got or returned; nothing else may have been heard."""
        heard = self.listen(channel)
        assert all(isinstance(one, Content) for one in heard), heard
        return [one for one in heard if isinstance(one, Content)]

    def bodies(self, channel: int | None = None) -> list[bytes]:
        return [message.body for message in self.messages(channel)]

    # -- usual things, in one line

    def open(self, channel: int) -> None:
        self.send(m.ChannelOpen(), channel=channel)
        self.expect(m.ChannelOpenOk())

    def queue(self, name: str = "q", *, channel: int = 1, durable: bool = False, **more: Any) -> m.QueueDeclareOk:
        """Declare; keywords are arguments, in words with underscores: x_max_length=3."""
        flags = {flag: more.pop(flag) for flag in ("exclusive", "auto_delete", "passive") if flag in more}
        arguments = {argument.replace("_", "-"): value for argument, value in more.items()}
        return self.ask(
            m.QueueDeclare(name, durable=durable, arguments=arguments, **flags), m.QueueDeclareOk, channel=channel
        )

    def exchange(self, name: str, type: str = "direct", **more: Any) -> None:
        flags = ("durable", "auto_delete", "internal", "passive")
        made = {flag: more.pop(flag) for flag in flags if flag in more}
        arguments = {argument.replace("_", "-"): value for argument, value in more.items()}
        self.ask(m.ExchangeDeclare(name, type, arguments=arguments, **made), m.ExchangeDeclareOk)

    def bind(self, queue: str, exchange: str, key: str = "", arguments: dict[str, Any] | None = None) -> None:
        self.ask(m.QueueBind(queue, exchange, key, arguments=arguments), m.QueueBindOk)

    def consume(self, queue: str = "q", tag: str = "c", *, channel: int = 1, **more: Any) -> None:
        flags = {flag: more.pop(flag) for flag in ("no_ack", "exclusive") if flag in more}
        arguments = {argument.replace("_", "-"): value for argument, value in more.items()}
        self.send(m.BasicConsume(queue, tag, arguments=arguments, **flags), channel=channel)
        self.play.turn()
        assert (channel, m.BasicConsumeOk(tag)) in self.heard, self.heard
        self.heard.remove((channel, m.BasicConsumeOk(tag)))

    def qos(self, count: int, *, shared: bool = False, channel: int = 1) -> None:
        self.ask(m.BasicQos(prefetch_count=count, global_=shared), m.BasicQosOk, channel=channel)

    def confirms(self, channel: int = 1) -> None:
        self.ask(m.ConfirmSelect(), m.ConfirmSelectOk, channel=channel)

    def get(self, queue: str = "q", *, no_ack: bool = True, channel: int = 1) -> Content | None:
        self.send(m.BasicGet(queue, no_ack=no_ack), channel=channel)
        (heard,) = self.listen()
        if heard == m.BasicGetEmpty():
            return None
        assert isinstance(heard, Content) and isinstance(heard.method, m.BasicGetOk), heard
        return heard

    def drain(self, queue: str = "q") -> list[bytes]:
        """All that is ready, taken for good."""
        bodies = []
        while (message := self.get(queue)) is not None:
            bodies.append(message.body)
        return bodies

    def ready(self, queue: str = "q") -> int:
        return self.queue(queue, passive=True).message_count

    def refused(self, *said: Method | bytes, code: ReplyCode, text: str, channel: int = 1) -> None:
        """The channel is closed for what was said, with this code and text; it is opened anew."""
        close = self._closed(said, m.ChannelClose, code, text, channel)
        method = next((one for one in said if isinstance(one, Method)), None)
        if method is not None:
            assert (close.class_id, close.method_id) == (method.id >> 16, method.id & 0xFFFF), close
        self.send(m.ChannelCloseOk(), channel=channel)
        self.open(channel)

    def fatal(self, *said: Method | bytes, code: ReplyCode, text: str, channel: int | None = None) -> None:
        """The connection is closed for what was said."""
        close = self._closed(said, m.ConnectionClose, code, text, channel)
        method = next((one for one in said if isinstance(one, Method)), None)
        if method is not None:
            assert (close.class_id, close.method_id) == (method.id >> 16, method.id & 0xFFFF), close
        assert not self.hung_up
        self.send(m.ConnectionCloseOk())
        self.silence()
        assert self.hung_up

    def _closed(
        self, said: Sequence[Method | bytes], kind: type[M], code: ReplyCode, text: str, channel: int | None
    ) -> M:
        self.send(*said, channel=channel)
        heard = self.listen()
        assert heard and isinstance(heard[-1], kind), heard
        close: Any = heard[-1]
        assert (close.reply_code, close.reply_text) == (code, f"{code.name} - {text}")
        assert len(heard) == 1, heard
        return close  # type: ignore[no-any-return]


class Play:
    """A core, its clock, its disk, and who is connected."""

    def __init__(self, data: Path, *, core: CoreSettings = SMALL, seed: int = 1, **face: Any) -> None:
        self.data = data
        self.clock = ManualClock()
        self.worker = ManualWorker()
        self.clients: list[Client] = []
        self.more = False
        self._core_settings = core
        self._face_settings = AmqpSettings(**face)
        self._rng = random.Random(seed)
        self._start()

    def _start(self) -> None:
        self.core = Core.open(
            self.data, settings=self._core_settings, clock=self.clock, worker=self.worker, rng=self._rng
        )
        self.core.access.make_first_user()
        self.core.on_more = self._on_more
        self.service = AmqpService(self.core, self._face_settings, Metrics())
        self.turn()

    def _on_more(self) -> None:
        self.more = True

    def connect(
        self,
        user: str = "guest",
        password: str = "guest",
        *,
        vhost: str = "/",
        channels: Sequence[int] = (1,),
        capabilities: dict[str, bool] | None = None,
        channel_max: int = 2_047,
        frame_max: int = 131_072,
        heartbeat: int = 0,
        peer: Peer | None = None,
    ) -> Client:
        client = self.stranger(peer)
        client.feed(PROTOCOL_HEADER)
        client.expect(m.ConnectionStart)
        properties = {"capabilities": CAPABILITIES if capabilities is None else capabilities}
        client.send(m.ConnectionStartOk(properties, "PLAIN", f"\0{user}\0{password}".encode(), "en_US"))
        client.expect(m.ConnectionTune)
        client.send(m.ConnectionTuneOk(channel_max, frame_max, heartbeat), m.ConnectionOpen(vhost))
        client.expect(m.ConnectionOpenOk())
        for channel in channels:
            client.open(channel)
        return client

    def stranger(self, peer: Peer | None = None) -> Client:
        """A connection that has not said anything yet."""
        client = Client(self, peer or Peer())
        self.clients.append(client)
        return client

    def turn(self, *, sync: bool = True) -> None:
        """A turn of the driver, and whatever follows from it at once."""
        for _ in range(PATIENCE):
            self.more = False
            self.core.commit()
            said = [client.collect() for client in self.clients]
            ran = self.worker.run() if sync else 0
            woken = [client for client in self.clients if client.woken]
            for client in woken:
                client.woken = False
            if not (ran or woken or self.more or any(said)):
                return
        raise AssertionError("the conversation never comes to rest")

    def later(self, ms: int, *, step: int | None = None) -> None:
        """Time passes; the broker notices in steps of so many milliseconds."""
        step = step or ms
        while ms > 0:
            passing = min(step, ms)
            self.clock.advance(passing)
            ms -= passing
            self.core.poll()
            for client in list(self.clients):
                client.face.check()
            self.turn()

    def restart(self, *, kill: bool = True) -> None:
        """The broker ends, by a kill unless it may save, and starts again on the same folder. Nobody is connected."""
        self.clients.clear()
        if kill:
            self.core.recovered.checkpoint.close()
            self.core._folder.release()
            self.worker.jobs.clear()
        else:
            self.core.close()
        self._start()

    def close(self) -> None:
        for client in list(self.clients):
            if not client.hung_up:
                client.drop()
        self.turn()
        self.core.close()


def playing(data: Path, **settings: Any) -> Iterator[Play]:
    """For fixtures: a play that ends with the test, and must have been sound to its end."""
    play = Play(data, **settings)
    yield play
    play.close()
