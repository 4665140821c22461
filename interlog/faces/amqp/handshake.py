"""The handshake: protocol header, start, login, tune, open.

In come the connection's first bytes and the methods of channel 0 until it is open; out go answers, or the end. A wrong
password is answered late, so that guessing is slow.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final

from interlog.base.errors import RefusedError
from interlog.base.log import get_log
from interlog.core.access import User
from interlog.faces.amqp import errors, frames
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.tables import decode_table
from interlog.faces.amqp.wire import SIZE, Method

if TYPE_CHECKING:
    from interlog.faces.amqp.connection import AmqpConnection

log = get_log("amqp")

_MAX_SECRET_BYTES: Final = 4_096


class Step(Enum):
    HEADER = "waiting for the protocol header"
    START_OK = "starting"
    REFUSED = "refused"  # the answer is held back for a while
    TUNE_OK = "tuning"
    OPEN = "opening"


class Handshake:
    def __init__(self, connection: "AmqpConnection") -> None:
        self._connection = connection
        self._step = Step.HEADER
        self._greeting = b""
        self._refusal: AmqpError | None = None
        self._refused_s = 0
        self._tuned = m.ConnectionTune()
        self._agreed = (0, 0, 0)

    def greet(self, data: bytes) -> bytes | None:
        """The protocol header, whole or in parts. What follows it; None if there is nothing to go on with."""
        if self._step is not Step.HEADER:
            return data
        self._greeting += data
        header = frames.PROTOCOL_HEADER
        greeting = self._greeting[: len(header)]
        if greeting != header[: len(greeting)]:
            # Another version, or no AMQP at all: AMQP's answer to both is the header of the version spoken here.
            self._connection.out.append(header)
            self._connection.end()
            return None
        if len(greeting) < len(header):
            return None
        rest, self._greeting = self._greeting[len(header) :], b""
        self._step = Step.START_OK
        service = self._connection.service
        mechanisms = " ".join(self._mechanisms()).encode()
        self._connection.say(m.ConnectionStart(0, 9, service.properties, mechanisms, b"en_US"))
        return rest

    def _mechanisms(self) -> list[str]:
        """EXTERNAL only where a certificate was shown."""
        connection = self._connection
        external = bool(connection.peer.certificate)
        return [name for name in connection.settings.mechanisms if name != "EXTERNAL" or external]

    def method(self, method: Method) -> None:
        if isinstance(method, m.ConnectionStartOk) and self._step is Step.START_OK:
            self._start_ok(method)
        elif isinstance(method, m.ConnectionTuneOk) and self._step is Step.TUNE_OK:
            self._tune_ok(method)
        elif isinstance(method, m.ConnectionOpen) and self._step is Step.OPEN:
            self._open(method)
        else:
            error = errors.unexpected_method(self._step.value)
            error.method_id = method.id
            raise error

    def check(self, second: int) -> None:
        """A refusal that waited long enough leaves."""
        if self._refusal is not None and second > self._refused_s:
            connection, refusal = self._connection, self._refusal
            self._refusal = None
            capabilities = connection.client.get("capabilities")
            if isinstance(capabilities, dict) and capabilities.get("authentication_failure_close") is True:
                connection.fail(refusal)
            else:
                connection.end()

    # -- login

    def _start_ok(self, method: m.ConnectionStartOk) -> None:
        connection = self._connection
        connection.client = method.client_properties
        mechanism = method.mechanism
        if mechanism not in self._mechanisms():
            raise errors.unknown_mechanism(mechanism)
        try:
            user = self._login(mechanism, method.response)
        except RefusedError as error:
            log.warning("login refused", peer=connection.peer.address, mechanism=mechanism, reason=str(error))
            self._step = Step.REFUSED
            self._refusal = errors.login_refused(mechanism)
            self._refused_s = connection.second
            return
        connection.user = user.name
        connection.tags = frozenset(user.tags)
        settings = connection.settings
        self._tuned = m.ConnectionTune(settings.channel_max, settings.frame_max, settings.heartbeat_s)
        connection.say(self._tuned)
        self._step = Step.TUNE_OK

    def _login(self, mechanism: str, response: bytes) -> User:
        connection, access = self._connection, self._connection.core.access
        peer = connection.peer
        if mechanism == "EXTERNAL":
            for name in peer.certificate:
                if access.find(name) is not None:
                    return access.login_external(name)
            return access.login_external(peer.certificate[0])
        name, password = _plain(response) if mechanism == "PLAIN" else _amqplain(response)
        return access.login(name, password, loopback=peer.loopback, source=peer.host)

    # -- tune and open

    def _tune_ok(self, method: m.ConnectionTuneOk) -> None:
        tuned = self._tuned
        for field, wanted, most, least in (
            ("channel_max", method.channel_max, tuned.channel_max, 0),
            ("frame_max", method.frame_max, tuned.frame_max, frames.MIN_FRAME_MAX),
        ):
            if most and (not wanted or wanted > most):
                raise errors.bad_negotiation(field, wanted, most, higher=True)
            if wanted and wanted < least:
                raise errors.bad_negotiation(field, wanted, least, higher=False)
        self._agreed = (method.heartbeat, method.frame_max, method.channel_max)
        self._step = Step.OPEN

    def _open(self, method: m.ConnectionOpen) -> None:
        connection, core = self._connection, self._connection.core
        vhost = method.virtual_host
        if not core.catalog.has_namespace(vhost):
            raise errors.vhost_not_found(vhost)
        if not core.access.may_enter(connection.user, vhost):
            raise errors.vhost_refused(vhost, connection.user)
        connection.vhost = vhost
        connection.say(m.ConnectionOpenOk())
        heartbeat, frame_max, channel_max = self._agreed
        connection.opened(heartbeat_s=heartbeat, frame_max=frame_max, channel_max=channel_max)


def _plain(response: bytes) -> tuple[str, bytes]:
    """authorization id, user, password, with zeros between."""
    parts = response.split(b"\x00")
    if len(parts) != 3 or len(response) > _MAX_SECRET_BYTES:
        raise RefusedError("The answer to PLAIN is not a user and a password.")
    return _text(parts[1]), parts[2]


def _amqplain(response: bytes) -> tuple[str, bytes]:
    """A table without its size."""
    try:
        table = decode_table(SIZE.pack(len(response)) + response)
    except AmqpError:
        raise RefusedError("The answer to AMQPLAIN is not a table.") from None
    name, password = table.get("LOGIN"), table.get("PASSWORD")
    if not isinstance(name, str | bytes) or not isinstance(password, str | bytes):
        raise AmqpError(ReplyCode.ACCESS_REFUSED, "AMQPLAIN auth info is missing LOGIN or PASSWORD field", hard=True)
    secret = password.encode() if isinstance(password, str) else password
    return name if isinstance(name, str) else _text(name), secret


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RefusedError("The user's name is not UTF-8.") from None
