"""The driver: read a burst → face → commit → write.

In come sockets; out go the faces' answers. All connections share one tick: what they sent in one turn of the event
loop is fed to their faces, the core commits once, then everybody's output is written. Nothing here knows a protocol.

Slow readers are held in two steps. When a connection's unsent output passes OUTPUT_PAUSE_BYTES its face is told to
push nothing that was not asked for; reading goes on, because a client that publishes and consumes on one connection
may be unable to read before its own write is through. Past OUTPUT_HOLD_BYTES, or when the face itself holds, the
driver stops reading that connection.
"""

import asyncio
from collections.abc import Callable, Sequence
from math import ceil
from typing import Protocol, cast

from interlog.base.errors import InterlogError, ReadOnlyError
from interlog.base.limits import MAX_CONNECTIONS, OUTPUT_HOLD_BYTES, OUTPUT_PAUSE_BYTES, OUTPUT_RESUME_BYTES
from interlog.base.log import get_log
from interlog.base.metrics import Metrics
from interlog.faces.face import Face, MakeFace, Output
from interlog.journal.slices import FileRange
from interlog.net.outbox import Outbox
from interlog.net.peers import peer_of

POLL_SECONDS = 0.1
CHECK_ROUND_POLLS = 10

log = get_log("net")


class Owner(Protocol):
    """Who decides and remembers: the core, as far as the driver knows it."""

    def commit(self) -> object: ...

    def poll(self) -> None:
        """What time asks for; ReadOnlyError once nothing can be written any more."""
        ...

    def meet_deadlines(self) -> float | None:
        """Call those whose time has come; in how many seconds the next one's does."""
        ...


class Driver:
    """All connections of one broker, and the tick they share."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        owner: Owner,
        metrics: Metrics,
        most_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._loop = loop
        self._owner = owner
        self._metrics = metrics
        self.connections: set[Connection] = set()
        self.most_connections = most_connections  # of all listeners together
        self.failed: Callable[[BaseException], None] = lambda error: None
        self.stopping = False
        self._failed = False
        self._marked: list[Connection] = []
        self._tick_due = False
        self._polls = 0
        self._round: list[Connection] = []  # whose turn to be checked comes in the second under way
        self._poll_handle: asyncio.TimerHandle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._on_empty: Callable[[], None] | None = None
        self._ticks = metrics.counter("interlog_ticks_total", "Turns of the event loop in which the core committed.")
        self.received = metrics.counter("interlog_received_bytes_total", "Bytes read from all connections.")
        self.sent = metrics.counter("interlog_sent_bytes_total", "Bytes written to all connections.")
        metrics.gauge("interlog_connections", "Connections that are open now.", lambda: len(self.connections))

    def traffic(self) -> int:
        """Bytes read and written so far."""
        return int(self.received.value + self.sent.value)

    def start(self) -> None:
        """Begin to poll the owner and to check the connections."""
        self._poll_handle = self._loop.call_later(POLL_SECONDS, self._poll)

    def close(self) -> None:
        if self._poll_handle is not None:
            self._poll_handle.cancel()
            self._poll_handle = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def outbox(self, transport: asyncio.Transport, pump: Callable[[], None], *, plain: bool) -> Outbox:
        return Outbox(transport, lambda: self._loop.call_soon(pump), plain=plain)

    def schedule(self) -> None:
        """See that a tick follows in this turn of the loop."""
        if not self._tick_due:
            self._tick_due = True
            self._loop.call_soon(self._tick)

    def mark(self, connection: "Connection") -> None:
        """The connection has something to say, or something changed for it: look at it in the coming tick."""
        if not connection.marked:
            connection.marked = True
            self._marked.append(connection)
        self.schedule()

    def _tick(self) -> None:
        self._tick_due = False
        self._ticks.value += 1
        try:
            self._owner.commit()
        except Exception as error:
            self._fail("commit", error)
            return
        marked, self._marked = self._marked, []
        for connection in marked:
            connection.marked = False
            connection.flush()

    def _poll(self) -> None:
        self._poll_handle = self._loop.call_later(POLL_SECONDS, self._poll)
        try:
            self._owner.poll()
        except Exception as error:
            self._fail("poll", error)
            return
        self._check_some()
        self.schedule()

    def _check_some(self) -> None:
        """A part of the connections at each poll, each once a round: to check them all would keep everybody waiting."""
        turn = self._polls % CHECK_ROUND_POLLS
        if turn == 0:
            self._round = list(self.connections)
        for connection in self._round[turn::CHECK_ROUND_POLLS]:
            connection.check()
        self._polls += 1

    def alarm(self, seconds: float) -> None:
        """Somebody's time comes then, and nobody's before: it is met on the millisecond, not at the next poll."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if self._failed else self._loop.call_later(ceil(seconds * 1000) / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        try:
            seconds = self._owner.meet_deadlines()
        except Exception as error:
            self._fail("deadline", error)
            return
        if seconds is not None:
            self.alarm(seconds)
        self.schedule()

    def _fail(self, where: str, error: Exception) -> None:
        """The journal cannot be written any more, or the core raised what it never should: the broker stops.

        Nothing was told to be safe that is not; a new start recovers what the disk has.
        """
        self.close()
        if self._failed:
            return
        self._failed = True
        if isinstance(error, ReadOnlyError):
            log.error("the journal failed", reason=error)
        else:
            log.failure("the core failed", error, where=where)
        self.failed(error)

    # -- stopping

    async def drain(self, seconds: float) -> None:
        """Say goodbye on every connection, wait for parked replies and unsent output, then cut what is left."""
        self.stopping = True
        for connection in list(self.connections):
            connection.shut_down()
        try:
            await asyncio.wait_for(self._empty(), seconds)
        except TimeoutError:
            log.warning("connections cut", count=len(self.connections), waited_s=seconds)
            for connection in list(self.connections):
                connection.abort()
            await self._empty()

    async def _empty(self) -> None:
        """Wait until every connection is gone."""
        if self.connections:
            empty = self._loop.create_future()
            self._on_empty = lambda: None if empty.done() else empty.set_result(None)
            await empty

    def gone(self, connection: "Connection") -> None:
        self.connections.discard(connection)
        if not self.connections and self._on_empty is not None:
            self._on_empty()


class Connection(asyncio.Protocol):
    """One socket and its face."""

    __slots__ = (
        "_closing",
        "_driver",
        "_eof",
        "_face",
        "_make_face",
        "_on_gone",
        "_outbox",
        "_read_paused",
        "_tls",
        "_transport",
        "made",
        "marked",
        "peer",
    )

    def __init__(self, driver: Driver, make_face: MakeFace, on_gone: Callable[[], None]) -> None:
        self._driver = driver
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._read_paused = False
        self._outbox: Outbox | None = None  # while there is something in files to send
        self._closing = False
        self._eof = False
        self._tls = False
        self.made = False  # its face has it: over TLS, once the handshake is done
        self.marked = False
        self.peer = ""
        self._make_face = make_face
        self._face: Face  # made once there is a connection, for it is told who is at the other end

    def wake(self) -> None:
        self._driver.mark(self)

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=OUTPUT_PAUSE_BYTES, low=OUTPUT_RESUME_BYTES)
        peer = peer_of(self._transport)
        self.peer = peer.address
        self._tls = peer.tls
        self.made = True
        self._face = self._make_face(self.wake, peer)
        self._driver.connections.add(self)
        log.debug("connected", peer=self.peer)
        if self._driver.stopping:
            self.abort()

    def data_received(self, data: bytes) -> None:
        self._driver.received.value += len(data)
        self._feed(data)

    def eof_received(self) -> bool:
        self._eof = True
        self._feed(b"")
        # The face may still owe replies, and the connection ends when they have left. TLS does not end by halves.
        return not self._tls

    def pause_writing(self) -> None:
        if self._outbox is not None:
            self._outbox.paused = True
        self._guard(self._face.pause)

    def resume_writing(self) -> None:
        if self._outbox is not None:
            self._outbox.paused = False
            self._pump()
        else:
            self._guard(self._face.resume)
            self._driver.mark(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._transport = None
        self._outbox = None
        log.debug("disconnected", peer=self.peer, reason=error)
        try:
            self._face.connection_lost()
        except Exception as failure:
            log.failure("a face failed", failure, peer=self.peer)
        del self._face  # it holds `wake`, which holds this: without a word they would wait for the collector
        self._driver.schedule()  # a lost connection gives back what it held: that is a change like any other
        self._on_gone()
        self._driver.gone(self)

    # -- called by the driver

    def flush(self) -> None:
        """Write what the face has to say; close, hold or go on as it wants."""
        transport = self._transport
        if transport is None or self._closing or transport.is_closing():
            return
        face = self._face
        try:
            output = face.take_output()
            closed = face.closed or (self._eof and not face.parked)
            holding = face.holding
        except Exception as error:
            self._face_failed(error)
            return
        if output:
            self._write(transport, output)
        if closed:
            self._closing = True
            if self._outbox is None:
                transport.close()
            return
        unsent = transport.get_write_buffer_size()
        if self._outbox is not None:
            unsent += self._outbox.left_bytes
        hold = holding or unsent > OUTPUT_HOLD_BYTES
        if hold != self._read_paused and not self._eof and not transport.is_closing():
            self._read_paused = hold
            if hold:
                transport.pause_reading()
            else:
                transport.resume_reading()

    def _write(self, transport: asyncio.Transport, output: Sequence[Output]) -> None:
        self._driver.sent.value += sum(map(len, output))
        outbox = self._outbox
        if outbox is not None:
            outbox.add(output)
        elif len(output) == 1 and not isinstance(output[0], FileRange):
            transport.write(output[0])
        else:
            parts = [part for part in output if not isinstance(part, FileRange)]
            if len(parts) == len(output):
                transport.writelines(parts)
                return
            self._outbox = outbox = self._driver.outbox(transport, self._pump, plain=not self._tls)
            outbox.add(output)
            self._pump()
            if self._outbox is not None:
                self._guard(self._face.pause)

    def _pump(self) -> None:
        """Send what is in files, as far as the peer takes it."""
        outbox, transport = self._outbox, self._transport
        if outbox is None or transport is None or transport.is_closing():
            return
        try:
            if not outbox.pump():
                return
        except (OSError, InterlogError) as error:
            log.warning("connection lost while sending", peer=self.peer, reason=error)
            self.abort()
            return
        self._outbox = None
        if self._closing:
            transport.close()
            return
        self._guard(self._face.resume)
        self._driver.mark(self)

    def check(self) -> None:
        if self._transport is not None:  # it may be lost since the round began
            self._guard(self._face.check)

    def shut_down(self) -> None:
        if self._guard(self._face.shut_down):
            self._driver.mark(self)

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _feed(self, data: bytes) -> None:
        if self._closing:
            return
        self._driver.mark(self)
        try:
            self._face.receive(data)
        except Exception as error:
            self._face_failed(error)

    def _guard(self, call: Callable[[], None]) -> bool:
        """Call into the face; a face that fails costs its own connection and no other."""
        if self._closing:
            return False
        try:
            call()
        except Exception as error:
            self._face_failed(error)
            return False
        return True

    def _face_failed(self, error: Exception) -> None:
        log.failure("a face failed", error, peer=self.peer)
        self.abort()
