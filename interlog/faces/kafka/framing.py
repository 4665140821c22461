"""Frames and headers: a length in front of every request and response, and a header behind it.

The header's version hangs on the API and its version. In flexible ones it ends with tagged fields, while the client id
stays a string of the old kind, so that any broker can read it. A response to ApiVersions never has tagged fields in
its header: the client does not know yet what the broker speaks.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.schema.fields import NEVER
from interlog.faces.kafka.schema.index import FLEXIBLE
from interlog.faces.kafka.schema.reading import MOST_ELEMENTS, skip_tags
from interlog.journal.slices import Slice

MAX_FRAME_BYTES: Final = 100 << 20
LENGTH_BYTES: Final = 4

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7  # its version 0 has a header without a client id; brokers alone ever sent it

_LENGTH: Final = Struct(">i")
_HEAD: Final = Struct(">hhih")  # with the client id's length
_BARE_HEAD: Final = Struct(">hhi")
_RESPONSE: Final = Struct(">ii")
_FLEXIBLE_RESPONSE: Final = Struct(">iiB")


class FrameReader:
    """Cuts a stream into frames.

        reader.feed(data)
        for start, end in reader.frames(): ...   # header and body: reader.data[start:end]

    A loop that is left early is taken up again by the next `frames`: `at` is behind the frame last given. WireError at
    a length that cannot be; the stream is of no use after it.
    """

    __slots__ = ("_later", "_later_bytes", "_missing", "at", "data", "limit")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self.limit = limit  # may change between two frames
        self.data = b""
        self.at = 0
        # What came while less than a frame was there: joined once it is whole, so that a large frame in many pieces
        # is copied once.
        self._later: list[bytes] = []
        self._later_bytes = 0
        self._missing = 0

    @property
    def pending_bytes(self) -> int:
        """How much was fed and is not yet given."""
        return len(self.data) - self.at + self._later_bytes

    def feed(self, data: bytes) -> None:
        if self.at == len(self.data) and not self._later:
            self.data = data
            self.at = 0
            return
        if self._later_bytes + len(data) < self._missing:
            self._later.append(data)
            self._later_bytes += len(data)
            return
        self.data = b"".join((memoryview(self.data)[self.at :], *self._later, data))
        self.at = 0
        self._later.clear()
        self._later_bytes = 0
        self._missing = 0

    def frames(self) -> Iterator[tuple[int, int]]:
        """Where the whole frames are that there are, in order."""
        data = self.data
        at = self.at
        size = len(data)
        while size - at >= LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(data, at)
            if not 0 <= length <= self.limit:
                raise WireError(f"a frame of {length} bytes; the limit is {self.limit}")
            start = at + LENGTH_BYTES
            end = start + length
            if end > size:
                self._missing = end - size
                return
            at = end
            self.at = at
            yield start, end
        if size > at:
            self._missing = LENGTH_BYTES - (size - at)


class RequestHeader:
    __slots__ = ("api_key", "client_id", "correlation_id", "flexible", "version")

    def __init__(
        self, api_key: int, version: int, correlation_id: int, client_id: str | None = None, flexible: bool = False
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.flexible = flexible  # header and body have tagged fields

    def __repr__(self) -> str:
        return f"RequestHeader({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def read_request_header(data: bytes, at: int, end: int) -> tuple[RequestHeader, int]:
    """The header of the frame in data[at:end], and where its body begins. Neither API nor version need be known."""
    if end - at < _BARE_HEAD.size:
        raise WireError("the request's header is cut short")
    key, version, correlation = _BARE_HEAD.unpack_from(data, at)
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return RequestHeader(key, version, correlation), at + _BARE_HEAD.size
    if end - at < _HEAD.size:
        raise WireError("the request's header is cut short")
    size = _HEAD.unpack_from(data, at)[3]
    at += _HEAD.size
    client_id = None
    if size >= 0:
        to = at + size
        if to > end:
            raise WireError("the client id is cut short")
        # A name for logs and quotas: bytes that are no UTF-8 are no reason to refuse.
        client_id = data[at:to].decode("utf-8", "replace")
        at = to
    flexible = version >= FLEXIBLE.get(key, NEVER)
    if flexible:
        if at >= end:
            raise WireError("the request's header is cut short")
        tags = data[at]
        at += 1
        if tags:
            try:
                at, _ = skip_tags(data, at, end, tags, MOST_ELEMENTS)
            except IndexError:
                at = end + 1
            if at > end:
                raise WireError("the header's tagged fields are cut short")
    return RequestHeader(key, version, correlation, client_id, flexible), at


def response_head(header: RequestHeader, body_bytes: int, *, version: int | None = None) -> bytes:
    """What stands in front of a response's body: the frame's length and the header.

    `version` where the answer is in another version than the request's: the downgrade answer of ApiVersions.
    """
    flexible = header.flexible
    if version is not None and version != header.version:
        flexible = version >= FLEXIBLE.get(header.api_key, NEVER)
    if flexible and header.api_key != API_VERSIONS:
        return _FLEXIBLE_RESPONSE.pack(body_bytes + 5, header.correlation_id, 0)
    return _RESPONSE.pack(body_bytes + 4, header.correlation_id)


def response(header: RequestHeader, body: bytes) -> bytes:
    """A whole response frame."""
    return response_head(header, len(body)) + body


def response_parts(header: RequestHeader, parts: Sequence[Slice]) -> list[Slice]:
    """The same of a body in parts."""
    return [response_head(header, sum(len(part) for part in parts)), *parts]
