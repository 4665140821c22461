"""What a connection has still to send, where part of it lies in files.

Comes in: bytes and ranges of files, in order. Goes out: the same on the socket, as fast as the peer reads. Without TLS
the kernel copies ranges from file to socket (sendfile); over TLS, or where a file is none of the kernel's, they are
read piece by piece.

The transport keeps the order: as long as it holds bytes of its own nothing goes past it. Its buffer is told to hold
next to nothing meanwhile, so that it calls (`resume_writing`) as soon as the socket has room: then `pump` goes on.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from interlog.base.limits import OUTPUT_PAUSE_BYTES, OUTPUT_RESUME_BYTES
from interlog.faces.face import Output
from interlog.journal.slices import FileRange, read_exactly

PIECE_BYTES: Final = 64 << 10  # read at once
TURN_BYTES: Final = 4 << 20  # sent in one turn of the event loop: others want theirs


class Outbox:
    """Of one connection, from the first range of a file until all is handed over."""

    def __init__(self, transport: asyncio.Transport, again: Callable[[], object], *, plain: bool) -> None:
        self._transport = transport
        self._again = again  # asks for another turn
        self._rest: deque[Output] = deque()
        self.left_bytes = 0
        self.paused = False
        self._socket = -1
        if plain:
            socket = transport.get_extra_info("socket")
            self._socket = -1 if socket is None else socket.fileno()
        # Not 0: TLS transports would pause with nothing in their buffer, and have no cause to call again.
        transport.set_write_buffer_limits(high=1, low=0)

    def add(self, output: Iterable[Output]) -> None:
        self._rest.extend(output)
        self.left_bytes = sum(map(len, self._rest))

    def pump(self) -> bool:
        """Hand over what there is room for; whether that was all. OSError or DamageError end the connection."""
        rest, turn = self._rest, TURN_BYTES
        while rest and not self.paused:
            if turn <= 0:
                self._again()
                return False
            part = rest[0]
            sent = self._send(part)
            if sent < len(part) and not self.paused:
                piece = _piece(part, sent)
                sent += len(piece)
                self._transport.write(piece)
            turn -= sent
            self.left_bytes -= sent
            if sent < len(part):
                rest[0] = _after(part, sent)
            else:
                rest.popleft()
        if rest:
            return False
        self._transport.set_write_buffer_limits(high=OUTPUT_PAUSE_BYTES, low=OUTPUT_RESUME_BYTES)
        return True

    def _send(self, part: Output) -> int:
        """Straight to the socket, if it has room: how much of it."""
        if self._socket < 0 or self._transport.get_write_buffer_size():
            return 0
        try:
            if not isinstance(part, FileRange):
                return os.write(self._socket, part)
            file = part.file.fileno()
            return os.sendfile(self._socket, file, part.position, min(part.length, TURN_BYTES))
        except BlockingIOError:
            return 0


def _piece(part: Output, start: int) -> bytes:
    if isinstance(part, FileRange):
        return read_exactly(part.file, min(part.length - start, PIECE_BYTES), part.position + start)
    return bytes(memoryview(part)[start:])


def _after(part: Output, start: int) -> Output:
    if isinstance(part, FileRange):
        return FileRange(part.file, part.position + start, part.length - start)
    return memoryview(part)[start:]
