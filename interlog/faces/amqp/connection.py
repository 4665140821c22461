"""One AMQP connection: the handshake, the frames of its channels, heartbeats, and what holds it back.

Bytes in, bytes out (see faces/face.py). What a client does on a channel is the channel's business.
"""

from collections.abc import Sequence
from enum import Enum
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from interlog.base.errors import InterlogError, NotFoundError
from interlog.base.log import get_log
from interlog.core.exchanges import Exchange
from interlog.core.work_queue import WorkQueue
from interlog.faces.amqp import errors, frames
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.channel import Channel, State
from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.frames import FrameReader, method_frame
from interlog.faces.amqp.handlers import HANDLERS
from interlog.faces.amqp.handshake import Handshake
from interlog.faces.amqp.publish import Route, Routes
from interlog.faces.amqp.runs import ACK, ACK_BYTES, PUBLISH, take_acks, take_publishes
from interlog.faces.amqp.wire import Method
from interlog.faces.face import Buffer, Peer, Wake

if TYPE_CHECKING:
    from interlog.faces.amqp.service import AmqpService

log = get_log("amqp")

FULL_BYTES: Final = 256 << 10  # of deliveries waiting to be written: no more are handed out
TURN_ROUTED: Final = 20_000  # messages that one connection routes in one turn, once for each queue: others have theirs
UNREAD_BYTES: Final = 8 << 20  # of direct replies to a peer that does not read
_BODIES_AT_ONCE: Final = 2  # of the largest size: how much of messages that are not whole is held
CLOSE_SECONDS: Final = 5  # how long a peer may take to agree that it is over
_METHOD_ID: Final = Struct(">I")
_ACK_ARGUMENTS: Final = Struct(">QB")


class Phase(Enum):
    HANDSHAKE = "handshake"
    OPEN = "open"
    CLOSING = "closing"  # close was said, and not yet answered
    LEAVING = "leaving"  # the client said close, and was answered: it hangs up when it has read that
    OVER = "over"


_ENDED: Final = frozenset((Phase.CLOSING, Phase.LEAVING, Phase.OVER))


class AmqpConnection:
    """A face; see faces/face.py for when each method is called."""

    __slots__ = (
        "_access",
        "_access_generation",
        "_began_s",
        "_blocked",
        "_cancelled",
        "_closing_s",
        "_counted",
        "_deaf",
        "_doom",
        "_handshake",
        "_heard_s",
        "_more",
        "_reader",
        "_said_s",
        "_starved",
        "_unread",
        "_wants_blocked",
        "body_max",
        "channel_max",
        "channels",
        "client",
        "confirms_due",
        "core",
        "gathered",
        "heartbeat_s",
        "now_ms",
        "out",
        "out_bytes",
        "owned",
        "parked",
        "paused",
        "peer",
        "phase",
        "published",
        "routed",
        "routes",
        "second",
        "service",
        "settings",
        "tags",
        "user",
        "vhost",
        "wake",
        "wants_cancels",
    )

    def __init__(self, service: "AmqpService", wake: Wake, peer: Peer) -> None:
        self.service = service
        self.core = service.core
        self.settings = service.settings
        self.peer = peer
        self.wake = wake
        self.phase = Phase.HANDSHAKE
        self.out: list[bytes] = []
        self.out_bytes = 0  # of deliveries in `out`
        self.body_max = self.settings.frame_max - frames.OVERHEAD_BYTES
        self.parked = 0
        self.now_ms = self.core.clock.now_ms()
        self.second = int(self.core.clock.monotonic())
        self.user = ""
        self.tags: frozenset[str] = frozenset()
        self.vhost = ""
        self.client: dict[str, Any] = {}
        self.wants_cancels = False
        self.heartbeat_s = 0
        self.channel_max = self.settings.channel_max
        self.channels: dict[int, Channel] = {}
        self.confirms_due: list[Channel] = []
        self.owned: dict[WorkQueue, None] = {}  # queues that are this connection's alone
        self.routes = Routes()
        self.published = 0
        self.paused = False
        self.gathered = 0
        self._unread = 0  # bytes of replies that were said since it reads too slowly
        self._handshake: Handshake | None = Handshake(self)
        self._reader = FrameReader(frames.FIRST_PAYLOAD_BYTES)
        self._starved: dict[Channel, None] = {}
        self._cancelled: list[tuple[Channel, str]] = []
        self._blocked = False
        self._more = False  # whole frames are left for the next turn
        self.routed = 0  # messages of this turn, once for each queue
        self._wants_blocked = False
        self._access_generation = -1
        self._access: dict[tuple[str, str], bool] = {}
        self._heard_s = self.second
        self._said_s = self.second
        self._closing_s = 0
        self._began_s = self.second
        self._counted = 0
        self._deaf = False  # its frames cannot be made out any more
        self._doom: AmqpError | None = None
        service.connections[self] = None

    # -- what the driver asks

    @property
    def closed(self) -> bool:
        return self.phase is Phase.OVER

    @property
    def is_over(self) -> bool:
        """Nothing that its channels could still say is wanted."""
        return self.phase in _ENDED

    @property
    def holding(self) -> bool:
        return self._blocked or self._more

    @property
    def is_full(self) -> bool:
        return self.paused or self.out_bytes > FULL_BYTES

    def receive(self, data: bytes) -> None:
        if self._doom is not None:
            self._meet_doom()
        if self.phase is Phase.OVER:
            return
        if not data:
            while self._more and not self._blocked:
                self._read()
            self.end()
            return
        if self.phase is Phase.LEAVING:
            return  # what it had under way
        self._heard_s = self.second
        if self._handshake is not None:
            rest = self._handshake.greet(data)
            if rest is None:
                return
            data = rest
        if self._deaf:
            if data.endswith(_CLOSE_OK_FRAME):
                self.end()
            return
        self._reader.feed(data)
        if not (self._blocked or self._more):
            self._read()

    def take_output(self) -> Sequence[Buffer]:
        if self._doom is not None:
            self._meet_doom()
        if self._cancelled:
            cancelled, self._cancelled = self._cancelled, []
            for channel, tag in cancelled:
                channel.say_cancelled(tag)
        out, self.out = self.out, []
        self.out_bytes = 0
        if out:
            self._said_s = self.second
        if self._starved and not self.paused:
            self._feed_again()
        if self._more and not self._blocked and self.phase not in (Phase.OVER, Phase.LEAVING):
            self._read()
        return out

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._unread = 0
        self._feed_again()

    def _feed_again(self) -> None:
        starved, self._starved = self._starved, {}
        for channel in starved:
            channel.look_again()
        if starved:
            self.wake()

    def check(self) -> None:
        second = self.second = int(self.core.clock.monotonic())
        if self._handshake is not None:
            self._handshake.check(second)
            if second - self._began_s > self.settings.handshake_s:
                log.warning("no handshake", peer=self.peer.address)
                self.end()
        elif self.phase in (Phase.CLOSING, Phase.LEAVING):
            if second - self._closing_s > CLOSE_SECONDS:
                self.end()
        elif self.phase is Phase.OPEN:
            if self._blocked:
                self._look_at_alarm()
                self._heard_s = second  # it could not be heard
            if self.heartbeat_s:
                self._beat(second)
            for channel in self.channels.values():
                if channel.unacked:
                    self._check_unacked(channel)
        if self.out or self.closed:
            self.wake()

    def _check_unacked(self, channel: Channel) -> None:
        limit = channel.overdue(self.second)
        if limit is not None:
            self.close_channel(channel, errors.acknowledgement_timed_out(channel.number, limit))

    def _beat(self, second: int) -> None:
        interval = self.heartbeat_s
        if second - self._heard_s > 2 * interval:
            log.warning("missed heartbeats", peer=self.peer.address, user=self.user, interval_s=interval)
            self.end()
        elif second - self._said_s >= max(interval // 2, 1):
            self.out.append(frames.HEARTBEAT_FRAME)

    def shut_down(self) -> None:
        if self.phase is Phase.OPEN:
            self.fail(errors.connection_forced())
        elif self.phase in (Phase.HANDSHAKE, Phase.LEAVING):
            self.end()

    def connection_lost(self) -> None:
        self.phase = Phase.OVER
        self._let_go()
        self.routes.clear()
        self.service.connections.pop(self, None)

    # -- frames

    def _read(self) -> None:
        """Take in all whole frames there are, or as many as one turn has room for: the rest in the next."""
        self.now_ms = self.core.clock.now_ms()
        self.routed = 0
        self._more = False
        reader = self._reader
        try:
            for kind, number, start, end in reader.frames():
                if kind == frames.METHOD:
                    self._method(number, reader.data, start, end)
                elif kind == frames.HEARTBEAT:
                    if number or start != end:
                        raise _odd_heartbeat(number, reader.data[start:end])
                else:
                    self._content(kind, number, reader.data, start, end)
                if self._blocked or self.phase in (Phase.OVER, Phase.LEAVING):
                    break
                if self.routed >= TURN_ROUTED:
                    self._more = True
                    self.wake()
                    break
        except AmqpError as error:
            self._deaf = _is_stuck(reader)
            self.fail(error)
        if self.confirms_due:
            self._settle_confirms()
        if self.published != self._counted:
            self.service.published.value += self.published - self._counted
            self._counted = self.published

    def _settle_confirms(self) -> None:
        due, self.confirms_due = self.confirms_due, []
        for channel in dict.fromkeys(due):
            if channel.state is State.OPEN:
                channel.settle_confirms()

    def _method(self, number: int, data: bytes, start: int, end: int) -> None:
        channel = self.channels.get(number)
        if channel is None:
            self._method_outside(number, data, start, end)
            return
        ids = data[start : start + 4]
        if channel.state is not State.OPEN:
            if ids in (_CLOSE_OK, _CLOSE):
                self._channel_over(channel, answer=ids == _CLOSE)
            return
        try:
            if ids == PUBLISH:
                if not take_publishes(channel, self._reader, start, end):
                    channel.publish(data[start:end])
                elif not self.core.accepts_messages:
                    self._block()
            elif channel.awaits_content:
                raise channel.unexpected(m.BasicPublish.id)
            elif ids == ACK and end - start == ACK_BYTES:
                tag, bits = _ACK_ARGUMENTS.unpack_from(data, start + 4)
                if bits & 1 or not take_acks(channel, self._reader, tag):
                    channel.ack(tag, bool(bits & 1))
            else:
                self._call(channel, data, start, end)
        except AmqpError as error:
            if end - start >= 4:
                error.method_id = error.method_id or int.from_bytes(ids, "big")
            self._channel_failed(channel, error)
        except InterlogError as error:
            raise self._unexpected(error, int.from_bytes(ids, "big")) from error

    def _call(self, channel: Channel, data: bytes, start: int, end: int) -> None:
        if end - start < 4:
            raise errors.frame_error(frames.METHOD, data[start:end], "unknown_frame")
        (method_id,) = _METHOD_ID.unpack_from(data, start)
        if method_id == m.ChannelClose.id:
            m.ChannelClose.decode(data, start + 4, end)
            self._channel_over(channel, answer=True)
            return
        known = m.METHODS.get(method_id)
        handler = HANDLERS.get(method_id)
        if known is None or handler is None:
            raise errors.unknown_method(method_id)
        handler(channel, known.decode(data, start + 4, end))

    def _content(self, kind: int, number: int, data: bytes, start: int, end: int) -> None:
        channel = self.channels.get(number)
        if channel is None:
            if self.phase is Phase.CLOSING:
                return
            if number:
                raise errors.channel_not_open()
            raise errors.unexpected_frame(f"type {kind}, {errors.octets(data[start:end])}")
        if channel.state is not State.OPEN:
            return
        try:
            if kind == frames.BODY:
                channel.body(data, start, end)
            else:
                channel.header(data, start, end)
        except AmqpError as error:
            astray = error.code is ReplyCode.UNEXPECTED_FRAME and not channel.awaits_content
            error.method_id = error.method_id or (0 if astray else m.BasicPublish.id)
            self._channel_failed(channel, error)
            return
        except InterlogError as error:
            raise self._unexpected(error, m.BasicPublish.id) from error
        if not channel.awaits_content and not self.core.accepts_messages:
            self._block()

    def _method_outside(self, number: int, data: bytes, start: int, end: int) -> None:
        """A method on channel 0, or on a channel that is not open."""
        if end - start < 4:
            raise errors.frame_error(frames.METHOD, data[start:end], "unknown_frame")
        (method_id,) = _METHOD_ID.unpack_from(data, start)
        if self.phase is Phase.CLOSING:
            if method_id == m.ConnectionCloseOk.id:
                self.end()
            elif method_id == m.ConnectionClose.id:
                self._agree_to_close()
            return
        known = m.METHODS.get(method_id)
        if known is None:
            raise errors.unknown_method(method_id)
        if number:
            if method_id == m.ChannelCloseOk.id and self.phase is Phase.OPEN:
                return
            if self.phase is not Phase.OPEN or method_id != m.ChannelOpen.id:
                refusal = errors.channel_not_open()
                refusal.method_id = method_id
                raise refusal
            known.decode(data, start + 4, end)
            self._open_channel(number)
            return
        method = known.decode(data, start + 4, end)
        if isinstance(method, m.ConnectionClose):
            self._agree_to_close()
        elif self._handshake is not None:
            try:
                self._handshake.method(method)
            except AmqpError as error:
                error.method_id = error.method_id or method_id
                raise
        elif isinstance(method, m.ConnectionUpdateSecret):
            self.say(m.ConnectionUpdateSecretOk())
        else:
            refusal = errors.unexpected_method("running")
            refusal.method_id = method_id
            raise refusal

    def _unexpected(self, error: InterlogError, method_id: int) -> AmqpError:
        """What no method should end in, and one did: a disk that cannot be read, a limit of the core's own."""
        log.error("a method failed", peer=self.peer.address, user=self.user, method=method_id, reason=error)
        return AmqpError(ReplyCode.INTERNAL_ERROR, str(error), method_id=method_id)

    # -- channels

    def _open_channel(self, number: int) -> None:
        if len(self.channels) >= self.channel_max:
            refusal = errors.too_many_channels(len(self.channels), self.channel_max)
            refusal.method_id = m.ChannelOpen.id
            raise refusal
        self.channels[number] = Channel(self, number)
        self.out.append(method_frame(number, m.ChannelOpenOk().encode()))

    def _channel_over(self, channel: Channel, *, answer: bool) -> None:
        """The client closed it, or agreed that it is closed."""
        was_open = channel.state is State.OPEN
        channel.state = State.CLOSED
        if was_open:
            channel.release()
        if answer:
            channel.reply(m.ChannelCloseOk())
        self.channels.pop(channel.number, None)
        self._starved.pop(channel, None)

    def _channel_failed(self, channel: Channel, error: AmqpError) -> None:
        if error.hard:
            raise error
        self.close_channel(channel, error)

    def close_channel(self, channel: Channel, error: AmqpError) -> None:
        """Tell the client why; all else goes on."""
        log.info("channel closed", peer=self.peer.address, user=self.user, channel=channel.number, reason=error.text)
        if channel in self.confirms_due:
            channel.settle_confirms()
        channel.state = State.CLOSING
        channel.release()
        method_id = error.method_id
        channel.reply(m.ChannelClose(error.code, error.text, method_id >> 16, method_id & 0xFFFF))

    # -- for channels

    def starve(self, channel: Channel) -> None:
        """The channel was refused room: look again when there is some."""
        self._starved[channel] = None

    def tell_cancelled(self, channel: Channel, tag: str) -> None:
        """A consumer's queue is gone. Told once this turn is over: who deleted the queue hears of that first."""
        self._cancelled.append((channel, tag))
        self.wake()

    def gather(self, count: int) -> None:
        """So many more bytes are held for bodies that are not whole yet."""
        self.gathered += count
        limit = self.settings.max_message_bytes * _BODIES_AT_ONCE
        if self.gathered > limit:
            raise AmqpError(ReplyCode.RESOURCE_ERROR, f"unfinished messages hold more than {limit} bytes")

    def room_for(self, route: Route) -> int:
        """How many messages may go this way before the turn is over; one at least."""
        queues = len(route.target.queues) if route.target is not None else 1
        return max(1, (TURN_ROUTED - self.routed) // max(queues, 1))

    def is_drowning(self, count: int) -> bool:
        """Whether the peer reads so slowly that what is said without being asked for must be dropped."""
        if not self.paused:
            return False
        self._unread += count
        return self._unread > UNREAD_BYTES

    def delivered(self, count: int) -> None:
        self.service.delivered.value += count
        self.wake()

    def exchange(self, name: str) -> Exchange:
        try:
            return self.core.exchanges.get(self.vhost, name)
        except NotFoundError:
            raise errors.not_found("exchange", name, self.vhost) from None

    @property
    def may_impersonate(self) -> bool:
        return "impersonator" in self.tags

    def check_access(self, permission: str, kind: str, name: str) -> None:
        """403 unless the user's permissions on this vhost allow it."""
        access = self.core.access
        if access.generation != self._access_generation:
            self._access.clear()
            self._access_generation = access.generation
        key = (permission, name)
        allowed = self._access.get(key)
        if allowed is None:
            if len(self._access) > 4_096:
                self._access.clear()
            allowed = self._access[key] = access.may(self.user, self.vhost, permission, name)  # type: ignore[arg-type]
        if not allowed:
            raise errors.access_refused(permission, kind, name or "amq.default", self.vhost, self.user)

    def check_key(self, permission: str, exchange: str, key: str) -> None:
        """403 unless the user may use the routing key with this topic exchange."""
        if not self.core.access.may_use_key(self.user, self.vhost, permission, exchange, key):  # type: ignore[arg-type]
            raise errors.topic_refused(permission, key, exchange, self.vhost, self.user)

    # -- the handshake is through

    def opened(self, *, heartbeat_s: int, frame_max: int, channel_max: int) -> None:
        self._handshake = None
        self.phase = Phase.OPEN
        self.heartbeat_s = heartbeat_s
        self.channel_max = channel_max
        self.body_max = (frame_max or self.settings.frame_max) - frames.OVERHEAD_BYTES
        self._reader.limit = frames.payload_limit(frame_max)
        capabilities = self.client.get("capabilities")
        capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.wants_cancels = capabilities.get("consumer_cancel_notify") is True
        self._wants_blocked = capabilities.get("connection.blocked") is True
        log.debug("open", peer=self.peer.address, user=self.user, vhost=self.vhost)

    def say(self, method: Method) -> None:
        """On channel 0."""
        self.out.append(method_frame(0, method.encode()))

    # -- alarms

    def _block(self) -> None:
        """Publishers are held back: the disk is full, or too much memory is held."""
        self._blocked = True
        if self._wants_blocked:
            self.say(m.ConnectionBlocked(errors.cut_text(self.core.refusal)))
        log.warning("publisher held back", peer=self.peer.address, user=self.user, reason=self.core.refusal)
        self.wake()

    def _look_at_alarm(self) -> None:
        if not self.core.accepts_messages:
            return
        self._blocked = False
        if self._wants_blocked:
            self.say(m.ConnectionUnblocked())
        self._read()
        self.wake()

    # -- the end

    def fail(self, error: AmqpError) -> None:
        """Say why, let go of everything, and wait for the client to agree."""
        if self.is_over:
            return
        log.warning("connection closed", peer=self.peer.address, user=self.user, reason=error.text)
        self._handshake = None
        self._let_go()
        method_id = error.method_id
        self.say(m.ConnectionClose(error.code, error.text, method_id >> 16, method_id & 0xFFFF))
        self.phase = Phase.CLOSING
        self._closing_s = self.second
        self._blocked = False
        self.wake()

    def _agree_to_close(self) -> None:
        """The client hangs up: whoever does it first, with something unread, takes the answer back."""
        self._handshake = None
        self._let_go()
        self.say(m.ConnectionCloseOk())
        self.phase = Phase.LEAVING
        self._closing_s = self.second

    def doom(self, reason: str) -> None:
        """What it stands on is being taken away: end it, but not in the middle of that."""
        if self._doom is None and not self.is_over:
            self._doom = AmqpError(ReplyCode.CONNECTION_FORCED, reason)
            self.wake()

    def _meet_doom(self) -> None:
        doom, self._doom = self._doom, None
        if doom is not None:
            self.fail(doom)

    def end(self) -> None:
        self.phase = Phase.OVER
        self._let_go()
        self.wake()

    def _let_go(self) -> None:
        """Give back what its channels hold; remove what was its alone."""
        channels, self.channels = self.channels, {}
        for channel in channels.values():
            was_open = channel.state is State.OPEN
            channel.state = State.CLOSED
            if was_open:
                channel.release()
        owned, self.owned = self.owned, {}
        for queue in owned:
            if not queue.closed:
                self.core.work_queues.delete(queue)


def _is_stuck(reader: FrameReader) -> bool:
    """Whether no more frames can be made out."""
    at = reader.at
    try:
        next(reader.frames(), None)
    except AmqpError:
        return True
    reader.at = at
    return False


def _odd_heartbeat(number: int, payload: bytes) -> AmqpError:
    if payload:
        return errors.frame_error(frames.HEARTBEAT, payload, "unknown_frame")
    return errors.unexpected_frame(f"type {frames.HEARTBEAT}, {errors.octets(payload)}")


_CLOSE: Final = m.ChannelClose.id.to_bytes(4, "big")
_CLOSE_OK_FRAME: Final = method_frame(0, m.ConnectionCloseOk().encode())
_CLOSE_OK: Final = m.ChannelCloseOk.id.to_bytes(4, "big")
