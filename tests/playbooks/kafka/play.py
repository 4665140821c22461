"""Conversations with the Kafka face: bytes in, bytes out, a real core in a folder of its own, no sockets, no sleeping.

    play = Play(tmp_path)
    client = play.connect()
    answer = client.ask(MetadataRequest(topics=None), 12)     # a turn of the driver; the response, decoded
    later = client.send(FetchRequest(max_wait_ms=500, ...), 12)
    assert client.listen() == []                              # a turn, and all responses that came since
    play.advance(500)
    (response,) = client.listen()

A turn (`play.turn`) is what the driver does: one commit for all connections, what they have to say, then the disk's
answer, and what follows from that. `play.turn(sync=False)` leaves the disk's answer out. Time moves by `play.advance`
alone, and stops at each deadline on its way, as the driver's timer does. A client expects its responses in the order
of its requests, and so must the broker send them.
"""

import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from interlog.base.clock import ManualClock
from interlog.base.metrics import Metrics
from interlog.base.work import ManualWorker
from interlog.core.broker import Core, CoreSettings
from interlog.faces.face import Output, Peer
from interlog.faces.kafka.codec import api, decode, encode
from interlog.faces.kafka.connection import KafkaConnection
from interlog.faces.kafka.framing import API_VERSIONS, LENGTH_BYTES, FrameReader
from interlog.faces.kafka.schema.fields import NEVER, Message, misfits
from interlog.faces.kafka.schema.index import FLEXIBLE
from interlog.faces.kafka.service import KafkaService, KafkaSettings
from interlog.journal.slices import FileRange, slice_bytes

SMALL = CoreSettings(journal_file_bytes=1 << 18, min_free_bytes=0, checkpoint_ms=1_000, tail_bytes=1 << 20)
PATIENCE = 50  # turns until a conversation that never comes to rest is a failure
POLL_MS = 100  # how often the driver polls

M = TypeVar("M", bound=Message)


def frame(key: int, version: int, correlation: int, body: bytes, client_id: str | None = "play") -> bytes:
    """A request as it goes over the wire; neither API nor version need exist."""
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + correlation.to_bytes(4, "big")
    name = b"\xff\xff" if client_id is None else len(client_id.encode()).to_bytes(2, "big") + client_id.encode()
    tags = b"\0" if version >= FLEXIBLE.get(key, NEVER) else b""
    whole = head + name + tags + body
    return len(whole).to_bytes(LENGTH_BYTES, "big") + whole


NODE_ID = KafkaSettings().node_id


class Client:
    """One connection."""

    def __init__(self, play: "Play", peer: Peer) -> None:
        self.play = play
        self.woken = False
        self.face: KafkaConnection = play.service.face(self._wake, peer)
        self.heard: list[Any] = []  # responses that nobody asked for yet
        self.raw = b""
        self.ranges = 0  # how many parts of what was heard were ranges of files
        self.hung_up = False  # by the broker
        self.correlation = 0
        self._asked: deque[tuple[int, int, int]] = deque()  # (correlation, API, version) of what is to be answered
        self._reader = FrameReader()

    def _wake(self) -> None:
        self.woken = True

    # -- said

    def feed(self, data: bytes) -> None:
        """Bytes, as a socket gives them."""
        if not self.hung_up and not self.face.closed:
            self.face.receive(data)

    def send(self, request: Message, version: int, *, answered: bool = True, client_id: str | None = "play") -> int:
        """A request, fed to the face and nothing else; its correlation id. `answered`: a response is to be expected."""
        lost = misfits(request, version)
        assert not lost, f"version {version} has no place for {lost}"
        return self.send_bytes(
            request.API_KEY,
            version,
            encode(type(request), version, request),
            answered=answered,
            client_id=client_id,
        )

    def send_bytes(
        self, key: int, version: int, body: bytes, *, answered: bool = True, client_id: str | None = "play"
    ) -> int:
        self.correlation += 1
        if answered:
            self._asked.append((self.correlation, key, version))
        self.feed(frame(key, version, self.correlation, body, client_id))
        return self.correlation

    def drop(self) -> None:
        """The connection breaks."""
        self.hung_up = True
        self.face.connection_lost()
        self.play.clients.remove(self)

    # -- heard

    def collect(self) -> bool:
        """Take what the face has to say; whether it said anything."""
        if self.hung_up:
            return False
        parts: list[Output] = list(self.face.take_output())
        self.ranges += sum(isinstance(part, FileRange) for part in parts)
        data = b"".join(slice_bytes(part) if isinstance(part, FileRange) else bytes(part) for part in parts)
        self.raw += data
        if data:
            self._reader.feed(data)
            for start, end in self._reader.frames():
                self.heard.append(self._response(self._reader.data, start, end))
        if self.face.closed:
            self.hung_up = True
            self.face.connection_lost()
        return bool(data)

    def _response(self, data: bytes, start: int, end: int) -> Any:
        assert self._asked, "a response that nobody asked for"
        correlation, key, version = self._asked.popleft()
        assert int.from_bytes(data[start : start + 4], "big") == correlation, "responses are out of order"
        at = start + 4
        if version >= FLEXIBLE.get(key, NEVER) and key != API_VERSIONS:
            assert data[at] == 0
            at += 1
        tables = api(key)
        assert tables is not None
        if version not in tables.response.VALID or (key == API_VERSIONS and data[at : at + 2] == b"\0\x23"):
            version = 0
        response, reached = decode(tables.response, version, data, at, end)
        assert reached == end, "bytes behind the response"
        return response

    def listen(self, *, turn: bool = True) -> list[Any]:
        """A turn, then all responses that nobody took yet."""
        if turn:
            self.play.turn()
        heard, self.heard = self.heard, []
        return heard

    def ask(self, request: Message, version: int) -> Any:
        """Say one thing and hear its answer, and nothing else."""
        self.send(request, version)
        heard = self.listen()
        assert not self.hung_up, "the broker closed the connection"
        assert len(heard) == 1, heard
        return heard[0]

    def silence(self) -> None:
        heard = self.listen()
        assert heard == []

    def refused(self) -> None:
        """The broker closes the connection, without an answer to what was said last."""
        heard = self.listen()
        assert self.hung_up, heard
        assert heard == []


class Play:
    """A core, its clock, its disk, and who is connected."""

    def __init__(self, data: Path, *, core: CoreSettings = SMALL, seed: int = 1, **face: Any) -> None:
        self.data = data
        self.clock = ManualClock()
        self.worker = ManualWorker()
        self.clients: list[Client] = []
        self.more = False
        self._core_settings = core
        self._face_settings = KafkaSettings(**face)
        self._rng = random.Random(seed)
        self._start()

    def _start(self) -> None:
        self.core = Core.open(
            self.data, settings=self._core_settings, clock=self.clock, worker=self.worker, rng=self._rng
        )
        self.core.access.make_first_user()
        self.core.on_more = self._on_more
        self.service = KafkaService(self.core, self._face_settings, Metrics())
        self.turn()

    def _on_more(self) -> None:
        self.more = True

    def connect(self, peer: Peer | None = None) -> Client:
        client = Client(self, peer or Peer(local_host="127.0.0.1", local_port=9092))
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

    def advance(self, ms: int) -> None:
        """Time passes. The broker is called at each deadline, and polled now and then."""
        until_ms = self.clock.now_ms() + ms
        polled_ms = self.clock.now_ms()
        while (now_ms := self.clock.now_ms()) < until_ms:
            step = min(until_ms - now_ms, POLL_MS)
            first = self.core.deadlines.first
            if first is not None:
                step = min(step, max(round((first - self.clock.monotonic()) * 1000), 1))
            self.clock.advance(step)
            self.core.deadlines.poll()
            if self.clock.now_ms() - polled_ms >= POLL_MS:
                polled_ms = self.clock.now_ms()
                self.core.poll()
            self.turn()
        for client in list(self.clients):
            if not client.hung_up:
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
