"""One Kafka connection: requests in, responses out in the same order, whenever they are ready.

Bytes in, bytes out (see faces/face.py). Each request is handed to its API's handler as soon as it is whole, without
waiting for the answers to those before it; an answer that comes early waits until its turn. What a client may not ask
for, or what no version of the protocol knows, ends its connection with a line in the log: so does Kafka.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from interlog.base.errors import InterlogError, RefusedError
from interlog.base.log import get_log
from interlog.core.access import User
from interlog.core.deadlines import Deadline
from interlog.faces.face import Output, Peer, Wake
from interlog.faces.kafka.api import api_versions
from interlog.faces.kafka.api.index import SERVED, handler, reader
from interlog.faces.kafka.authorization import OPERATIONS, RESOURCES
from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.framing import API_VERSIONS, LENGTH_BYTES, FrameReader, read_request_header
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.sasl import Sasl
from interlog.journal.journal import Outcome
from interlog.journal.slices import Slice

if TYPE_CHECKING:
    from interlog.faces.kafka.service import KafkaService

log = get_log("kafka")

MOST_WAITING: Final = 256  # requests whose answers have not left: what comes after them is not read
FULL_BYTES: Final = 8 << 20  # of answers that nobody has taken yet: no more requests are read
UNKNOWN_REQUEST_BYTES: Final = 512 << 10  # the largest request of a client that has not said who it is
LEAVE_SECONDS: Final = 5  # how long answers may take once the connection is to end
_ACCESS_KEPT: Final = 4_096
_PRODUCE: Final = 0
_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_BEFORE_LOGIN: Final = frozenset((API_VERSIONS, _SASL_HANDSHAKE, _SASL_AUTHENTICATE))


class Phase(Enum):
    OPEN = "open"
    LEAVING = "leaving"  # no more is taken in; what is owed is still said
    OVER = "over"


class KafkaConnection:
    """A face; see faces/face.py for when each method is called."""

    def __init__(self, service: "KafkaService", wake: Wake, peer: Peer) -> None:
        self.service = service
        self.core = service.core
        self.settings = service.settings
        self.peer = peer
        self.wake = wake
        self.namespace = service.settings.namespace
        self.user = ""
        self.sasl: Sasl | None = None
        self.client_software = ""  # name and version, where the client told
        self.phase = Phase.OPEN
        self.parked = 0
        self._when_over: list[Callable[[], None]] = []
        self._out: list[Output] = []
        self._out_bytes = 0
        self._waiting: deque[Request] = deque()  # in the order they came; the first one's answer leaves next
        self._reader = FrameReader(service.settings.max_request_bytes)
        self._paused = False
        self._muted: Deadline | None = None
        self._refusal: Deadline | None = None  # that a login waits for
        self._held = False  # whole requests may be left in the reader
        self._reading = False
        now_s = self.core.clock.monotonic()
        self._moved_s = now_s  # when something last came or left
        self._began_s = now_s
        self._left_s = 0.0
        self._access: dict[tuple[str, str, str], bool] = {}
        self._access_generation = -1
        service.connections[self] = None
        for name in peer.certificate:
            user = self.core.access.find(name)
            if user is not None:
                self.authenticated(user)
                break
        if not self._knows_user:
            self._reader.limit = min(self._reader.limit, UNKNOWN_REQUEST_BYTES)
        if service.quotas.active:
            wait_ms = service.quotas.connection_ms(peer.host)
            if wait_ms:
                self.mute(wait_ms)

    # -- what the driver asks

    @property
    def closed(self) -> bool:
        return self.phase is Phase.OVER

    @property
    def holding(self) -> bool:
        return self._held

    @property
    def is_full(self) -> bool:
        """No more requests are looked at for now."""
        return (
            self._paused
            or self._muted is not None
            or self._refusal is not None
            or len(self._waiting) >= MOST_WAITING
            or self._out_bytes > FULL_BYTES
        )

    def receive(self, data: bytes) -> None:
        if self.phase is not Phase.OPEN:
            return
        if not data:
            self._leave()
            return
        self._moved_s = self.core.clock.monotonic()
        self._reader.feed(data)
        if self.is_full:
            self._held = True
        else:
            self._read()

    def take_output(self) -> Sequence[Output]:
        out, self._out = self._out, []
        if out:
            self._out_bytes = 0
            self._moved_s = self.core.clock.monotonic()
        if self._held:
            self._go_on()
        return out

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._moved_s = self.core.clock.monotonic()
        if self._held:
            self._go_on()

    def check(self) -> None:
        now_s = self.core.clock.monotonic()
        settings = self.settings
        still_s = now_s - self._moved_s
        if self.phase is Phase.LEAVING:
            if now_s - self._left_s > LEAVE_SECONDS:
                self._end()
        elif self.phase is Phase.OPEN:
            if self._paused:
                if still_s > settings.idle_s:
                    self._fail("it does not read what it asked for")
            elif self._reader.pending_bytes and not self._held and still_s > settings.request_s:
                self._fail("the rest of a request never came")
            elif not self._knows_user and now_s - self._began_s > settings.login_s:
                self._fail("nobody logged in")
            elif not self._waiting and self._muted is None and still_s > settings.idle_s:
                log.debug("idle", peer=self.peer.address)
                self._end()

    def shut_down(self) -> None:
        """What waits for the disk is still answered; what waits for others is not: clients come back for it."""
        if self.phase is Phase.OPEN:
            self._leave()
            if not self.parked:
                self._end()

    def connection_lost(self) -> None:
        self._end()
        self.service.connections.pop(self, None)

    # -- requests

    def _read(self) -> None:
        """Take in all whole requests, as long as there is room for their answers."""
        self._reading = True
        try:
            reader = self._reader
            data = reader.data
            self._held = False
            for start, end in reader.frames():
                self._request(data, start, end)
                if self.phase is not Phase.OPEN:
                    return
                if self.is_full:
                    self._held = True
                    return
        except WireError as error:
            self._fail(str(error))
        except InterlogError as error:
            log.error("a request failed", peer=self.peer.address, user=self.user, reason=error)
            self._leave()
        finally:
            self._reading = False

    def _request(self, data: bytes, start: int, end: int) -> None:
        if self.sasl is not None and self.sasl.expects_raw_token:
            self._token(self.sasl, data[start:end])
            return
        header, at = read_request_header(data, start, end)
        key, version = header.api_key, header.version
        served = SERVED.get(key)
        request = Request(self, header)
        if served is None or version not in served.versions:
            if key != API_VERSIONS:
                raise WireError(f"version {version} of API {key} is not served")
            self._waiting.append(request)
            api_versions.answer_unsupported(request)
            return
        if not self._knows_user and key not in _BEFORE_LOGIN:
            raise WireError(f"API {key} is for clients that have logged in")
        if self.service.quotas.active and key not in _BEFORE_LOGIN:
            request.toll = self.service.quotas.toll(self.user, request.client_id)
            if request.toll is not None and key == _PRODUCE:
                request.toll.charge_produced(end - start)
        body = reader(key)(version, data, at, end)
        self._waiting.append(request)
        response = handler(key)(request, body)
        if response is not None:
            request.answer(response)
        elif request.toll is not None:
            request.pay()

    def _go_on(self) -> None:
        """Read what was held back, if there is room now. Not from inside `_read`, which goes on by itself."""
        if self._held and not self._reading and self.phase is Phase.OPEN and not self.is_full:
            self._read()
            self.wake()

    # -- answers

    def send(self, request: Request, parts: Sequence[Slice] | None) -> None:
        """The answer to a request, None if it has none. It leaves when all before it have."""
        if self.phase is Phase.OVER or request.parts is not None:
            return
        request.parts = parts or ()
        waiting = self._waiting
        while waiting:
            ready = waiting[0].parts
            if ready is None:
                break
            waiting.popleft()
            self._out += ready
            for part in ready:
                self._out_bytes += len(part)
        if self.phase is Phase.LEAVING and not waiting:
            self._end()
        self.wake()

    def park(self, then: Callable[[bool], None], *, written: bool = False) -> None:
        """Call back once it is known whether all that was done so far lasts; or, sooner, whether it is written."""
        self.parked += 1
        ticket = self.core.ticket

        def settle(outcome: Outcome | None) -> None:
            self.parked -= 1
            then(outcome is None or outcome is Outcome.DURABLE)
            if self.phase is Phase.LEAVING and not self.parked:
                self._end()  # what still waits does so for others, not for the disk
            self.wake()

        if written:
            ticket.when_written(lambda: settle(ticket.outcome))
        else:
            ticket.when_durable(settle)

    def when_over(self, call: Callable[[], None]) -> None:
        """Once the connection has ended."""
        self._when_over.append(call)

    def mute(self, ms: float) -> None:
        """Read nothing for a while, or for longer than it is so already: it asks for more than its share."""
        if self._muted is not None:
            if self._muted.when >= self.core.clock.monotonic() + ms / 1000:
                return
            self._muted.cancel()
        self._muted = self.core.deadlines.after(ms, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._go_on()
        self.wake()

    # -- who it is

    @property
    def _knows_user(self) -> bool:
        return bool(self.user) or not self.settings.authentication

    def authenticated(self, user: User) -> None:
        """It has said who it is."""
        self.user = user.name
        self._access.clear()
        self._reader.limit = self.settings.max_request_bytes
        log.debug("open", peer=self.peer.address, user=self.user)

    def may(self, what: str, name: str, resource: str = "topic") -> bool:
        """Whether it may do this to a topic, a group, a transactional_id or the cluster.

        Who need not log in, and did not, may do everything.
        """
        if not self.user:
            return not self.settings.authentication
        authorization = self.service.authorization
        if authorization.generation != self._access_generation:
            self._access.clear()
            self._access_generation = authorization.generation
        key = (what, name, resource)
        allowed = self._access.get(key)
        if allowed is None:
            if len(self._access) >= _ACCESS_KEPT:
                self._access.clear()
            allowed = self._access[key] = authorization.may(
                self.user, self.peer.host, OPERATIONS[what], RESOURCES[resource], name
            )
        return allowed

    def _token(self, sasl: Sasl, token: bytes) -> None:
        """Without a request around it, and answered without one. A refusal has no words."""
        try:
            answer = sasl.take(token)
        except RefusedError:
            self.refuse_later(lambda: None)
            return
        self._out += (len(answer).to_bytes(LENGTH_BYTES, "big"), answer)
        self._out_bytes += LENGTH_BYTES + len(answer)
        if sasl.user is not None:
            self.authenticated(sasl.user)
        self.wake()

    def refuse_later(self, answer: Callable[[], None]) -> None:
        """Nobody logged in: answer and hang up, after a while in which nothing more is read."""

        def refuse() -> None:
            self._refusal = None
            answer()
            self._leave()

        self._refusal = self.core.deadlines.after(self.core.access.refusal_delay_ms, refuse)

    # -- the end

    def end(self, reason: str) -> None:
        """Close it; what is owed is still said."""
        self._fail(reason)

    def _fail(self, reason: str) -> None:
        if self.phase is Phase.OPEN:
            log.warning("connection closed", peer=self.peer.address, user=self.user, reason=reason)
            self._leave()

    def _leave(self) -> None:
        """Take nothing more in. It is over once what is owed has left."""
        if self.phase is not Phase.OPEN:
            return
        self.phase = Phase.LEAVING
        self._left_s = self.core.clock.monotonic()
        self._held = False
        self._reader = FrameReader(0)
        if not self.parked:
            self._end()
        self.wake()

    def _end(self) -> None:
        """Whoever still waits for something on its behalf does so no longer."""
        if self.phase is Phase.OVER:
            return
        self.phase = Phase.OVER
        self._held = False
        if self._muted is not None:
            self._muted.cancel()
            self._muted = None
        if self._refusal is not None:
            self._refusal.cancel()
            self._refusal = None
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            if request.on_lost is not None:
                request.on_lost()
        for call in self._when_over:
            call()
        self.wake()
