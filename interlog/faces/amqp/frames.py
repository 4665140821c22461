"""Frames out of whatever the socket gave: any cut of the stream in, the place of each whole frame out, nothing copied.

A frame is type (1 byte), channel (2), size of the payload (4), payload, and the octet 0xCE. `FrameReader.frames` tells
where in `reader.data` the payloads are; who handles them slices what it wants to keep.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from interlog.faces.amqp.errors import AmqpError, frame_error

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8

KINDS: Final = (METHOD, HEADER, BODY, HEARTBEAT)

FRAME_END: Final = 0xCE
END: Final = b"\xce"
HEAD: Final = Struct(">BHI")  # type, channel, payload's size
HEAD_BYTES: Final = 7
OVERHEAD_BYTES: Final = 8  # head and end octet: what of frame-max is not payload
MIN_FRAME_MAX: Final = 4096  # below this nobody may negotiate
FIRST_PAYLOAD_BYTES: Final = 8192  # before negotiation nothing larger is taken: a login may bring a long token
NO_LIMIT: Final = 0xFFFFFFFF

HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"

Place = tuple[int, int, int, int]  # type, channel, where the payload starts and ends


def payload_limit(frame_max: int) -> int:
    """The largest payload to take in. Clients that forget the overhead are forgiven it, as RabbitMQ does."""
    return frame_max or NO_LIMIT


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return HEAD.pack(kind, channel, len(payload)) + payload + END


def method_frame(channel: int, payload: bytes) -> bytes:
    return HEAD.pack(METHOD, channel, len(payload)) + payload + END


class FrameReader:
    """Cuts a stream into frames.

        reader.feed(data)
        for kind, channel, start, end in reader.frames(): ...   # payload: reader.data[start:end]

    A loop that is left early is taken up again by the next `frames`: `at` is behind the frame last given. Who takes
    frames that follow it by itself moves `at` behind them. Errors are
    AmqpError FRAME_ERROR, raised once the frames before them were given; the stream is of no use after one.
    """

    __slots__ = ("_later", "_later_bytes", "_missing", "at", "data", "limit")

    def __init__(self, limit: int = FIRST_PAYLOAD_BYTES) -> None:
        self.limit = limit  # of a payload, see payload_limit; may change between two frames
        self.data = b""
        self.at = 0
        # What came while less than a frame was there: joined once it is whole, so that a frame in many small
        # pieces costs what its bytes cost, and not their square.
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
        self.data = b"".join((self.data[self.at :], *self._later, data))
        self.at = 0
        self._later.clear()
        self._later_bytes = 0
        self._missing = 0

    def frames(self) -> Iterator[Place]:
        """The whole frames there are, in order."""
        data = self.data
        at = self.at
        size = len(data)
        unpack = HEAD.unpack_from
        while size - at >= HEAD_BYTES:
            kind, channel, length = unpack(data, at)
            if length > self.limit or kind not in KINDS:
                raise self._refusal(kind, length)
            start = at + HEAD_BYTES
            end = start + length
            if end >= size:
                self._missing = end + 1 - size
                return
            if data[end] != FRAME_END:
                raise frame_error(kind, data[start:end], f"{{invalid_frame_end_marker,{data[end]}}}")
            at = end + 1
            self.at = at
            yield kind, channel, start, end
            at = self.at  # who took more than this one says so
        if size > at:
            self._missing = HEAD_BYTES - (size - at)

    def _refusal(self, kind: int, length: int) -> AmqpError:
        if length > self.limit:
            return frame_error(kind, b"", f"{{frame_too_large,{length},{self.limit - OVERHEAD_BYTES}}}")
        start = self.at + HEAD_BYTES
        return frame_error(kind, self.data[start : start + length], "unknown_frame")
