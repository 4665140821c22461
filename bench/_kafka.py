"""A lean Kafka client for load: prebuilt requests out, responses counted as they pass, one epoll for all connections.

It shares no code with the broker. Batches are made once and sent again and again; of a response only the beginning is
looked at. Versions are those that today's clients settle on, or simpler ones where nothing is measured.
"""

import socket
import struct
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Final

import cramjam
from _amqp import LoadError, Loop, Writer
from crc32c import crc32c

PRODUCE, FETCH, METADATA, FIND, JOIN, HEARTBEAT, LEAVE, SYNC, CREATE, DELETE = 0, 1, 3, 10, 11, 12, 13, 14, 19, 20
ALL, LEADER = -1, 1
CODECS: Final = {"none": 0, "lz4": 3, "zstd": 4}
READ_BYTES: Final = 1 << 20
COORDINATOR_LOADS, NO_COORDINATOR, NOT_COORDINATOR, REBALANCING, MEMBER_ID_REQUIRED = 14, 15, 16, 27, 79
HEAD_BYTES: Final = 256  # of a response, at most, that is shown to who waits for it
_NOT_FLEXIBLE: Final = frozenset((FIND, JOIN, HEARTBEAT, LEAVE, SYNC, CREATE, DELETE))  # in the versions used here
CLIENT: Final = "load"


# -- encoding


def text(name: str) -> bytes:
    data = name.encode()
    return struct.pack(">h", len(data)) + data


def varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def compact(data: bytes) -> bytes:
    return varint(len(data) + 1) + data


def request(key: int, version: int, body: bytes, correlation: int = 1) -> bytes:
    head = struct.pack(">hhi", key, version, correlation) + text(CLIENT)
    if key not in _NOT_FLEXIBLE:
        head += b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


def batch(values: list[bytes], codec: str = "none") -> bytes:
    """One batch of records that have values only."""
    records = bytearray()
    for number, value in enumerate(values):
        record = b"\0\0" + _zigzag(number) + b"\1" + _zigzag(len(value)) + value + b"\0"
        records += _zigzag(len(record)) + record
    packed = bytes(records)
    if codec == "lz4":
        packed = bytes(cramjam.lz4.compress(packed))
    elif codec == "zstd":
        packed = bytes(cramjam.zstd.compress(packed))
    last = len(values) - 1
    inner = struct.pack(">hiqqqhii", CODECS[codec], last, NOW_MS, NOW_MS, -1, -1, -1, len(values)) + packed
    return struct.pack(">qiibI", 0, len(inner) + 9, -1, 2, crc32c(inner)) + inner


NOW_MS: Final = int(time.time() * 1000)  # the records of a run are of one age


def _zigzag(value: int) -> bytes:
    return varint(value << 1)


def produce(topic: str, batches: dict[int, bytes], acks: int = ALL) -> bytes:
    """Produce 9: one batch for each of these partitions."""
    parts = b"".join(struct.pack(">i", index) + compact(data) + b"\0" for index, data in batches.items())
    body = b"\0" + struct.pack(">hi", acks, 30_000)
    body += varint(2) + compact(topic.encode()) + varint(len(batches) + 1) + parts + b"\0\0"
    return request(PRODUCE, 9, body)


def check_produced(head: memoryview) -> None:
    """That the first partition of an answer has no error."""
    topic = head[6]
    at = 5 + 1 + topic + 1  # correlation and tags, count of topics, name, count of partitions
    (error,) = struct.unpack_from(">h", head, at + 4)
    if error:
        raise LoadError(f"a batch was refused with error {error}")


def fetch(topic_id: bytes, partitions: dict[int, int], *, wait_ms: int, most_bytes: int = 1 << 20) -> bytes:
    """Fetch 13, without a session: from these offsets on."""
    parts = b"".join(
        struct.pack(">iiqiqiB", index, -1, offset, -1, -1, most_bytes, 0) for index, offset in partitions.items()
    )
    body = struct.pack(">iiiibii", -1, wait_ms, 1, 50 << 20, 0, 0, -1)
    body += varint(2) + topic_id + varint(len(partitions) + 1) + parts + b"\0" + varint(1) + varint(1) + b"\0"
    return request(FETCH, 13, body)


def fetched(head: memoryview) -> tuple[int, bytes]:
    """High watermark of an answer's first partition, and its records as far as they are in the head."""
    error, topics = struct.unpack_from(">hiB", head, 9)[0], head[15]
    if error or topics < 2:
        raise LoadError(f"a fetch was answered with error {error} and {topics - 1} topics")
    index, error, end = struct.unpack_from(">ihq", head, 33)
    if error:
        raise LoadError(f"a fetch of partition {index} was answered with error {error}")
    at = 33 + 4 + 2 + 24
    at += 1 + 4  # no aborted transactions were asked for; preferred replica
    while head[at] > 127:
        at += 1
    return end, bytes(head[at + 1 :])


# -- one connection


class Connection:
    """Calls are blocking; afterwards an `Asker` may make it part of a loop."""

    def __init__(self, host: str, port: int) -> None:
        self.sock = socket.create_connection((host, port), 30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, key: int, version: int, body: bytes) -> bytes:
        """The body of the answer."""
        self.sock.sendall(request(key, version, body))
        return self.answer()[4 if key in _NOT_FLEXIBLE else 5 :]

    def answer(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise LoadError("the broker closed the connection")
            data += more
        return bytes(data)

    def create(self, topic: str, partitions: int = 1) -> None:
        body = struct.pack(">i", 1) + text(topic) + struct.pack(">ihii", partitions, 1, 0, 0)
        deadline = time.monotonic() + 30
        while True:
            try:
                self._made(self.call(CREATE, 2, body + struct.pack(">ib", 30_000, 0)), topic)
                return
            except LoadError:
                # A Kafka that stood still takes itself for gone, and has no broker for a while.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _made(self, answer: bytes, topic: str) -> None:
        at = 8 + 2 + len(topic)
        (error,) = struct.unpack_from(">h", answer, at)
        if error:
            raise LoadError(f"topic {topic} cannot be made: error {error}")

    def delete(self, *topics: str) -> None:
        names = b"".join(text(topic) for topic in topics)
        self.call(DELETE, 1, struct.pack(">i", len(topics)) + names + struct.pack(">i", 30_000))

    def topic_id(self, topic: str) -> bytes:
        return _first_topic(self.call(METADATA, 12, metadata_body([topic])))

    def wait_until_led(self, topic: str, partitions: int) -> None:
        """A broker may know a topic before it serves it."""
        deadline = time.monotonic() + 30
        while True:
            try:
                id = self.topic_id(topic)
                for index in range(0, partitions, max(1, partitions // 16)):
                    self.sock.sendall(fetch(id, {index: 0}, wait_ms=0))
                    fetched(memoryview(self.answer()))
                return
            except LoadError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def wait_for_coordinator(self, group: str) -> None:
        """The first group of a broker needs a while."""
        deadline = time.monotonic() + 30
        body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">h", -1)
        while True:
            self.call(FIND, 0, text(group))
            (error,) = struct.unpack_from(">h", self.call(HEARTBEAT, 3, body), 4)
            if error not in (COORDINATOR_LOADS, NO_COORDINATOR, NOT_COORDINATOR):
                return  # nobody is a member yet, and it says so
            if time.monotonic() > deadline:
                raise LoadError(f"there is no coordinator: error {error}")
            time.sleep(0.05)

    def close(self) -> None:
        self.sock.close()


def metadata_body(topics: list[str] | None) -> bytes:
    if topics is None:
        return b"\0\0\0\0"
    parts = b"".join(bytes(16) + compact(topic.encode()) + b"\0" for topic in topics)
    return varint(len(topics) + 1) + parts + b"\0\0\0"


def metadata(topics: list[str] | None) -> bytes:
    return request(METADATA, 12, metadata_body(topics))


def _first_topic(answer: bytes) -> bytes:
    """The id of the first topic in an answer to Metadata 12."""
    at = 4
    brokers = answer[at] - 1
    at += 1
    for _ in range(brokers):
        at += 4
        at += answer[at]  # host, its length with one more
        at += 4
        at += max(answer[at], 1) + 1  # rack and tags
    at += max(answer[at], 1) + 4  # cluster id, controller
    while answer[at] > 127:
        at += 1
    at += 1
    (error,) = struct.unpack_from(">h", answer, at)
    if error:
        raise LoadError(f"a topic has error {error}")
    at += 2
    at += answer[at]
    return answer[at : at + 16]


# -- part of a loop


class Asker:
    """Sends requests, at most `in_flight` of them unanswered, and counts the answers.

    `requests` is one that is sent again and again, or gives the next one each time it is asked. `answered` is shown the
    beginning of each answer once all of it is there, if only to check it.
    """

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        requests: "bytes | Iterator[bytes]",
        *,
        in_flight: int = 1,
        answered: Callable[[memoryview], None] = lambda head: None,
        most: float = float("inf"),
    ) -> None:
        self.sent = 0
        self.count = 0  # answers
        self.bytes = 0  # of them
        self.stopped = False
        self.by_hand = False  # somebody calls `pump` for each request
        self._requests = repeat(requests) if isinstance(requests, bytes) else requests
        self._in_flight = in_flight
        self._most = most
        self._answered = answered
        self._sock = connection.sock
        self._sock.setblocking(False)
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self._rest = b""  # of an answer of which not even the head is there
        self._head = b""  # of one that is not whole
        self._missing = 0  # bytes of that one
        self._writer = Writer(loop, connection)
        self._writer.resumed = self.pump
        loop.add(self._sock, read=self._read, write=self._writer.on_writable)

    @property
    def settled(self) -> bool:
        return self.count == self.sent

    def counted(self) -> int:
        return self.count

    def pump(self) -> None:
        room = self._in_flight - (self.sent - self.count)
        if self.stopped or room <= 0 or self._writer.blocked:
            return
        parts = []
        while room > 0 and self.sent < self._most:
            parts.append(next(self._requests))
            self.sent += 1
            room -= 1
        if parts:
            self._writer.send(parts[0] if len(parts) == 1 else b"".join(parts))

    def _read(self) -> None:
        size = self._sock.recv_into(self._buffer)
        if not size:
            raise LoadError("the broker closed a connection")
        self.bytes += size
        data: memoryview = self._view[:size]
        if self._missing:
            taken = min(self._missing, size)
            self._missing -= taken
            if self._missing:
                return
            self._count(memoryview(self._head))
            data = data[taken:]
        if self._rest:
            data = memoryview(self._rest + bytes(data))
            self._rest = b""
        at, end = 0, len(data)
        while end - at >= 4:
            length = int.from_bytes(data[at : at + 4], "big")
            there = end - at - 4
            if there >= length:
                self._count(data[at + 4 : at + 4 + min(length, HEAD_BYTES)])
                at += 4 + length
            elif there >= HEAD_BYTES:
                self._head = bytes(data[at + 4 : at + 4 + HEAD_BYTES])
                self._missing = length - there
                at = end
            else:
                break
        if at < end:
            self._rest = bytes(data[at:])
        if not self.by_hand:
            self.pump()

    def _count(self, head: memoryview) -> None:
        self.count += 1
        self._answered(head)


# -- members of a group


class Member:
    """One of a classic group, as far as the broker sees it: joins, syncs, beats, joins again when it is told to.

    It asks as fast as it is answered, and beats every `beat_s`: the broker is measured, not a client's patience.
    """

    def __init__(self, loop: Loop, connection: Connection, group: str, topic: str, beat_s: float) -> None:
        self.id = ""
        self.generation = -1
        self.stable_since = 0.0  # when it last got its assignment; 0 while it has none
        self.left = False
        self.count = 0  # members that the leader was last told of
        self.beat_s = beat_s
        self._group = group
        self._topic = topic
        self._waits_for = 0
        self._writer = Writer(loop, connection)
        connection.sock.setblocking(False)
        self._sock = connection.sock
        self._rest = b""
        self.next_beat = 0.0
        self._now: Callable[[], float]
        loop.add(connection.sock, read=self._read, write=self._writer.on_writable)

    def begin(self, now: Callable[[], float]) -> None:
        self._now = now
        self._join()

    def _ask(self, key: int, version: int, body: bytes) -> None:
        self._waits_for = key
        self._writer.send(request(key, version, body))

    def _join(self) -> None:
        self.stable_since = 0.0
        subscription = struct.pack(">hi", 0, 1) + text(self._topic) + struct.pack(">i", -1)
        body = text(self._group) + struct.pack(">ii", 30_000, 60_000) + text(self.id) + struct.pack(">h", -1)
        body += text("consumer") + struct.pack(">i", 1) + text("range")
        self._ask(JOIN, 5, body + struct.pack(">i", len(subscription)) + subscription)

    def _sync(self, members: list[str]) -> None:
        one = struct.pack(">hi", 0, 1) + text(self._topic) + struct.pack(">iii", 1, 0, -1)
        parts = b"".join(text(member) + struct.pack(">i", len(one)) + one for member in members)
        body = text(self._group) + struct.pack(">i", self.generation) + text(self.id) + struct.pack(">h", -1)
        self._ask(SYNC, 3, body + struct.pack(">i", len(members)) + parts)

    def beat(self) -> None:
        """If it is time, and it waits for nothing else."""
        if self._waits_for or not self.stable_since or self._now() < self.next_beat or self.left:
            return
        self.next_beat = self._now() + self.beat_s
        body = text(self._group) + struct.pack(">i", self.generation) + text(self.id) + struct.pack(">h", -1)
        self._ask(HEARTBEAT, 3, body)

    def leave(self) -> None:
        self.left = True
        self.stable_since = 0.0
        self._ask(LEAVE, 2, text(self._group) + text(self.id))

    def _read(self) -> None:
        data = self._sock.recv(READ_BYTES)
        if not data:
            raise LoadError("the broker closed a member's connection")
        self._rest += data
        while len(self._rest) >= 4 and len(self._rest) >= (end := 4 + int.from_bytes(self._rest[:4], "big")):
            body, self._rest = self._rest[8:end], self._rest[end:]
            key, self._waits_for = self._waits_for, 0
            if self.left and key != LEAVE:
                self._waits_for = LEAVE  # its answer comes behind that of a heartbeat
                continue
            self._answered(key, body)

    def _answered(self, key: int, body: bytes) -> None:
        (error,) = struct.unpack_from(">h", body, 4)
        if key == JOIN:
            self._joined(error, body)
        elif key == SYNC:
            if error == REBALANCING:
                self._join()
            elif error:
                raise LoadError(f"a member cannot sync: error {error}")
            else:
                self.stable_since = self._now()
                self.next_beat = self.stable_since + self.beat_s
        elif key == HEARTBEAT and error:
            if error != REBALANCING:
                raise LoadError(f"a heartbeat is answered with error {error}")
            self._join()

    def _joined(self, error: int, body: bytes) -> None:
        at = 6
        (self.generation,) = struct.unpack_from(">i", body, at)
        at += 4
        names = []
        for _ in range(3):  # protocol, leader, member
            (size,) = struct.unpack_from(">h", body, at)
            names.append(body[at + 2 : at + 2 + size].decode())
            at += 2 + size
        _, leader, self.id = names
        if error == MEMBER_ID_REQUIRED:
            self._join()
            return
        if error:
            raise LoadError(f"a member cannot join: error {error}")
        members: list[str] = []
        (count,) = struct.unpack_from(">i", body, at)
        at += 4
        for _ in range(count):
            (size,) = struct.unpack_from(">h", body, at)
            members.append(body[at + 2 : at + 2 + size].decode())
            at += 2 + size
            (size,) = struct.unpack_from(">h", body, at)  # group instance id, which nobody has
            at += 2 + max(size, 0)
            (size,) = struct.unpack_from(">i", body, at)
            at += 4 + size
        self.count = len(members)
        self._sync(members if leader == self.id else [])
