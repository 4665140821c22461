"""A Kafka client that can be anywhere when its broker dies: requests out, responses in, by whatever link there is.

In come requests, each with what is to be done with its answer; out go the answers, in the order of the requests. It
waits for nothing but answers that it was asked to wait for.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from interlog.faces.kafka.codec import api, decode, encode
from interlog.faces.kafka.framing import API_VERSIONS, LENGTH_BYTES, FrameReader
from interlog.faces.kafka.schema.fields import NEVER, Message
from interlog.faces.kafka.schema.index import FLEXIBLE
from tests.crash.brokers import Link
from tests.crash.model import Wrong

PATIENCE = 3_000  # turns of a link without an answer: never reached when all is well
_CLIENT_ID = b"\0\5story"

Then = Callable[[Any], None]


class Client:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._reader = FrameReader()
        self._correlation = 0
        self._over = False  # the broker is dead: nobody listens any more
        self._waiting: deque[tuple[int, int, int, Then]] = deque()  # correlation id, API, version, what to do

    @property
    def waiting(self) -> int:
        """How many answers are owed."""
        return len(self._waiting)

    def send(self, request: Message, version: int, then: Then | None) -> None:
        """`then`: what to do with the answer; None where there will be none."""
        if self._over:
            return
        self._correlation += 1
        key = request.API_KEY
        head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + self._correlation.to_bytes(4, "big") + _CLIENT_ID
        tags = b"\0" if version >= FLEXIBLE.get(key, NEVER) else b""
        whole = head + tags + encode(type(request), version, request)
        if then is not None:
            self._waiting.append((self._correlation, key, version, then))
        self._link.send(len(whole).to_bytes(LENGTH_BYTES, "big") + whole)

    def call(self, request: Message, version: int) -> Any:
        """Send, and wait for the answer."""
        found: list[Any] = []
        self.send(request, version, found.append)
        self.wait(lambda: bool(found))
        return found[0]

    def flush(self) -> None:
        """Wait for all answers that are owed."""
        self.wait(lambda: not self._waiting)

    def wait(self, done: Callable[[], bool]) -> None:
        for _ in range(PATIENCE):
            if done():
                return
            self.turn()
        asked = [(key, version) for _, key, version, _ in self._waiting]
        raise Wrong(f"no answer, though there was time enough, to {asked} (API and version)")

    def turn(self) -> None:
        self._take(self._link.turn())

    def last_words(self) -> None:
        """The broker is dead: take in what it had said by then."""
        self._over = True
        self._take(self._link.last_words())

    def _take(self, data: bytes) -> None:
        if not data:
            return
        self._reader.feed(data)
        for start, end in self._reader.frames():
            if not self._waiting:
                raise Wrong("an answer came that nobody asked for")
            correlation, key, version, then = self._waiting.popleft()
            if int.from_bytes(self._reader.data[start : start + 4], "big") != correlation:
                raise Wrong("answers are out of order")
            at = start + 4
            if version >= FLEXIBLE.get(key, NEVER) and key != API_VERSIONS:
                at += 1
            tables = api(key)
            assert tables is not None
            then(decode(tables.response, version, self._reader.data, at, end)[0])
