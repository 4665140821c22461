"""A lean AMQP client for load: prebuilt frames out, fixed-size frames counted by their bytes in, one epoll for all.

It shares no code with the broker. A delivery to a given consumer has the same size each time (its tag is eight bytes),
so that counting deliveries is a division, and the delivery tag of the last one says whether the count is right.
"""

import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from math import inf
from typing import Final

END: Final = b"\xce"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
ACK_SIZE: Final = 21  # a frame of basic.ack or, with the same fields, basic.nack
READ_BYTES: Final = 1 << 18

CLOSE_OK: Final = b"\x01\0\0\0\0\0\x04\0\x0a\0\x33\xce"
CONFIRM: Final = struct.Struct(">BHIHHQBB")


class LoadError(Exception):
    """The broker closed the connection or sent what cannot be; the message says what."""


def shortstr(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + END


def method(channel: int, class_id: int, method_id: int, fields: bytes = b"") -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", class_id, method_id) + fields)


def publish(
    exchange: str, key: str, body: bytes, *, persistent: bool, channel: int = 1, frame_max: int = 131072
) -> bytes:
    """The frames of one message."""
    fields = b"\0\0" + shortstr(exchange) + shortstr(key) + b"\0"
    mode = 2 if persistent else 1
    header = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, mode)
    most = frame_max - 8
    parts = [method(channel, 60, 40, fields), frame(HEADER, channel, header)]
    parts += [frame(BODY, channel, body[at : at + most]) for at in range(0, len(body), most)]
    return b"".join(parts)


class Connection:
    """One connection with one channel. Calls are blocking; afterwards `loose` makes it part of a loop."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        user: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        heartbeat_s: int = 0,
        properties: bytes = b"",
    ) -> None:
        self.sock = socket.create_connection((host, port), 20)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self.frame_max = 131072
        self.sock.sendall(b"AMQP\x00\x00\x09\x01")
        self.expect(10, 10)
        response = b"\0" + user.encode() + b"\0" + password.encode()
        start_ok = struct.pack(">I", len(properties)) + properties + shortstr("PLAIN")
        start_ok += struct.pack(">I", len(response)) + response + shortstr("en_US")
        self.sock.sendall(method(0, 10, 11, start_ok))
        tune = self.expect(10, 30)
        channels, frame_max, _ = struct.unpack(">HIH", tune)
        self.frame_max = min(frame_max or self.frame_max, self.frame_max)
        self.sock.sendall(method(0, 10, 31, struct.pack(">HIH", channels, self.frame_max, heartbeat_s)))
        self.sock.sendall(method(0, 10, 40, shortstr(vhost) + b"\0\0"))
        self.expect(10, 41)
        self.sock.sendall(method(1, 20, 10, b"\0"))
        self.expect(20, 11)

    # -- blocking

    def call(self, class_id: int, method_id: int, fields: bytes) -> bytes:
        """Send a method, wait for its -ok; the fields of that."""
        self.sock.sendall(method(1, class_id, method_id, fields))
        return self.expect(class_id, method_id + 1)

    def queue(self, name: str, *, durable: bool = False, passive: bool = False, exclusive: bool = False) -> int:
        """Declare; how many messages it has."""
        bits = (1 if passive else 0) | (2 if durable else 0) | (4 if exclusive else 0)
        answer = self.call(50, 10, b"\0\0" + shortstr(name) + bytes([bits]) + b"\0\0\0\0")
        count: int = struct.unpack(">I", answer[1 + answer[0] :][:4])[0]
        return count

    def delete_queue(self, name: str) -> None:
        self.call(50, 40, b"\0\0" + shortstr(name) + b"\0")

    def exchange(self, name: str, kind: str, *, durable: bool = False) -> None:
        bits = bytes([2 if durable else 0])
        self.call(40, 10, b"\0\0" + shortstr(name) + shortstr(kind) + bits + b"\0\0\0\0")

    def delete_exchange(self, name: str) -> None:
        self.call(40, 20, b"\0\0" + shortstr(name) + b"\0")

    def bind(self, queue: str, exchange: str, key: str = "") -> None:
        self.call(50, 20, b"\0\0" + shortstr(queue) + shortstr(exchange) + shortstr(key) + b"\0" + b"\0\0\0\0")

    def confirms(self) -> None:
        self.call(85, 10, b"\0")

    def prefetch(self, count: int) -> None:
        self.call(60, 10, struct.pack(">IHB", 0, count, 0))

    def consume(self, queue: str, *, for_good: bool) -> None:
        fields = b"\0\0" + shortstr(queue) + shortstr("c") + bytes([2 if for_good else 0]) + b"\0\0\0\0"
        self.call(60, 20, fields)

    def say_goodbye(self) -> None:
        try:
            self.sock.settimeout(5)
            self.sock.sendall(method(0, 10, 50, b"\0\xc8" + shortstr("done") + b"\0\0\0\0"))
        except OSError:
            pass  # it is closed already

    def close(self) -> None:
        """Wait for the answer to the goodbye: its end is looked for, whatever comes before it."""
        end = b""
        try:
            while data := self.sock.recv(READ_BYTES):
                end = (end + data)[-len(CLOSE_OK) :]
                if end == CLOSE_OK:
                    break
        except OSError:
            pass
        self.sock.close()

    def expect(self, class_id: int, method_id: int) -> bytes:
        while True:
            while len(self._rest) < 7 or len(self._rest) < (size := 8 + struct.unpack(">I", self._rest[3:7])[0]):
                data = self.sock.recv(READ_BYTES)
                if not data:
                    raise LoadError(f"the broker closed the connection while {class_id}.{method_id} was waited for")
                self._rest += data
            kind, payload = self._rest[0], self._rest[7 : size - 1]
            if kind == METHOD:
                got = struct.unpack(">HH", payload[:4])
                if got == (class_id, method_id):
                    self._rest = self._rest[size:]
                    return payload[4:]
                if got in ((10, 50), (20, 40)):
                    raise LoadError(f"closed: {payload[7 : 7 + payload[6]].decode(errors='replace')}")
            self._rest = self._rest[size:]

    def loose(self) -> bytes:
        """From now on a loop reads and writes; what was read too much."""
        self.sock.setblocking(False)
        rest, self._rest = self._rest, b""
        return rest


class Loop:
    """Calls what is ready; everything in the measured part of a run goes through here."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._writers: dict[int, Callable[[], None]] = {}

    def add(self, sock: socket.socket, *, read: Callable[[], None], write: Callable[[], None] | None = None) -> None:
        self._readers[sock.fileno()] = read
        if write is not None:
            self._writers[sock.fileno()] = write
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def wants_to_write(self, sock: socket.socket, wants: bool) -> None:
        self._epoll.modify(sock.fileno(), select.EPOLLIN | (select.EPOLLOUT if wants else 0))

    def turn(self, timeout: float) -> None:
        for fd, events in self._epoll.poll(timeout):
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._readers[fd]()
            if events & select.EPOLLOUT and fd in self._writers:
                self._writers[fd]()

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        deadline = time.perf_counter() + seconds
        while not until() and (left := deadline - time.perf_counter()) > 0:
            self.turn(min(left, 0.1))

    def close(self) -> None:
        self._epoll.close()


class Writer:
    """Bytes that go out as the socket takes them."""

    def __init__(self, loop: Loop, connection: Connection) -> None:
        self._loop = loop
        self._sock = connection.sock
        self._waiting: memoryview | None = None
        self.resumed: Callable[[], None] = lambda: None

    @property
    def blocked(self) -> bool:
        return self._waiting is not None

    def send(self, data: "bytes | bytearray | memoryview") -> None:
        if self._waiting is not None:
            self._waiting = memoryview(bytes(self._waiting) + bytes(data))
            return
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._waiting = memoryview(bytes(memoryview(data)[sent:]))
            self._loop.wants_to_write(self._sock, True)

    def on_writable(self) -> None:
        assert self._waiting is not None
        try:
            self._waiting = self._waiting[self._sock.send(self._waiting) :]
        except BlockingIOError:
            return
        if not self._waiting:
            self._waiting = None
            self._loop.wants_to_write(self._sock, False)
            self.resumed()


class Publisher:
    """Publishes one message, or ready chunks of `chunk` messages, as long as `room` says that there may be more."""

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        message: "bytes | Iterator[bytes]",
        *,
        chunk: int,
        room: Callable[[], int],
        confirmed: bool = False,
        most: float = inf,
    ) -> None:
        self.sent = 0
        self.confirmed = 0
        self._most = most
        self._early: set[int] = set()  # confirmed before one that was sent earlier
        self._sock = connection.sock
        self._chunks = repeat(message * chunk) if isinstance(message, bytes) else message
        self._count = chunk
        self._room = room
        self._rest = connection.loose()
        self._writer = Writer(loop, connection)
        self._writer.resumed = self.pump
        self._confirms = confirmed
        loop.add(connection.sock, read=self._read, write=self._writer.on_writable)

    @property
    def written(self) -> bool:
        """All that was to be sent has left."""
        return self.sent >= self._most and not self._writer.blocked

    @property
    def settled(self) -> bool:
        return not self._confirms or self.confirmed == self.sent

    def pump(self) -> None:
        while not self._writer.blocked and self._room() >= self._count and self.sent < self._most:
            self.sent += self._count
            self._writer.send(next(self._chunks))

    def _read(self) -> None:
        data = self._sock.recv(READ_BYTES)
        if not data:
            raise LoadError("the broker closed a publisher's connection")
        if not self._confirms:
            if data[0] == METHOD and data[7:11] in (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28"):
                raise LoadError(f"the broker closed a publisher: {data[13:200]!r}")
            return  # a heartbeat, or that the connection is blocked
        data = self._rest + data
        whole = len(data) - len(data) % ACK_SIZE
        self._rest = data[whole:]
        for kind, _, size, class_id, method_id, tag, multiple, end in CONFIRM.iter_unpack(data[:whole]):
            if (kind, size, class_id, method_id, end) != (METHOD, 13, 60, 80, 0xCE):
                raise LoadError(f"no confirm: {data[:whole][:120]!r}")
            if multiple:
                self._early = {early for early in self._early if early > tag}
                self.confirmed = max(self.confirmed, tag)
            elif tag == self.confirmed + 1:
                self.confirmed = tag
            else:
                self._early.add(tag)
            while self._early and self.confirmed + 1 in self._early:
                self.confirmed += 1
                self._early.discard(self.confirmed)
        self.pump()


class Acks:
    """Frames of basic.ack, each for one message, by slices of a template of 256."""

    def __init__(self, channel: int = 1) -> None:
        self._high = 0
        self._block = bytearray(b"".join(method(channel, 60, 80, struct.pack(">QB", low, 0)) for low in range(256)))

    def run(self, first: int, last: int) -> bytes:
        """One for each tag from first to last."""
        parts = []
        while first <= last:
            high, low = first >> 8, first & 255
            if high != self._high:
                self._high = high
                for place, value in enumerate(high.to_bytes(7, "big")):
                    self._block[11 + place :: ACK_SIZE] = bytes([value]) * 256
            until = min(256, low + last - first + 1)
            parts.append(bytes(self._block[low * ACK_SIZE : until * ACK_SIZE]))
            first += until - low
        return b"".join(parts)


class Consumer:
    """Counts deliveries by their bytes; acknowledges each of them if it is to."""

    def __init__(
        self, loop: Loop, connection: Connection, *, acks: bool, body_size: int, delivered: Callable[[int], None]
    ) -> None:
        self.count = 0
        self._sock = connection.sock
        self._delivered = delivered
        self._body_size = body_size
        self._size = 0  # of one delivery on the wire
        self._bytes = 0
        self._buffer = bytearray(READ_BYTES)
        self._rest = bytearray(
            connection.loose()
        )  # the beginning, until the size is known; then the end, for the check
        self._acks = Acks() if acks else None
        self._writer = Writer(loop, connection)
        loop.add(connection.sock, read=self._read, write=self._writer.on_writable)
        if self._rest:
            self._take(b"")

    def _read(self) -> None:
        read = self._sock.recv_into(self._buffer)
        if not read:
            raise LoadError("the broker closed a consumer's connection")
        if not self._size:
            self._take(bytes(self._buffer[:read]))
            return
        self._bytes += read
        if read >= self._size:
            self._rest[:] = self._buffer[read - self._size : read]
        else:
            self._rest += self._buffer[:read]
            del self._rest[: -self._size]
        self._counted()

    def _take(self, data: bytes) -> None:
        self._rest += data
        size = _first_delivery(self._rest, self._body_size)
        if size:
            self._size = size
            self._bytes = len(self._rest)
            self._rest = self._rest[-size:]
            self._counted()

    def _counted(self) -> None:
        count = self._bytes // self._size
        new = count - self.count
        if new:
            if self._acks is not None:
                self._writer.send(self._acks.run(self.count + 1, count))
            self.count = count
            self._delivered(new)

    def check(self) -> None:
        """When nothing is under way: the last delivery has the tag that was counted."""
        if not self.count:
            return
        over = self._bytes % self._size
        if over:
            raise LoadError(f"a consumer got {over} bytes that are no delivery: {bytes(self._rest[-over:])[:80]!r}")
        at = 11 + 1 + self._rest[11]
        tag = struct.unpack(">Q", self._rest[at : at + 8])[0]
        if tag != self.count:
            raise LoadError(f"a consumer counted {self.count} deliveries, but the last has the tag {tag}")


def _first_delivery(data: bytearray, body_size: int) -> int:
    """The size of the delivery that the bytes begin with, or 0 if it is not all there."""
    at, body = 0, 0
    while at + 7 <= len(data):
        kind = data[at]
        if at == 0 and (kind != METHOD or bytes(data[7:11]) != b"\x00\x3c\x00\x3c"):
            raise LoadError(f"no delivery: {bytes(data[:120])!r}")
        size: int = struct.unpack(">I", data[at + 3 : at + 7])[0]
        at += 8 + size
        if kind == BODY:
            body += size
        if body == body_size and kind in (BODY, HEADER):
            return at if at <= len(data) else 0
    return 0
