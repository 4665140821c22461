"""What AMQP calls exceptions: a reply code, a text in RabbitMQ's words, and whether the channel or the connection ends.

Client libraries and their users recognise the texts, so they are worded as RabbitMQ words them. The functions below
make the errors that are said in more than one place, or whose wording is a fact to know; for the rest there is
`AmqpError` itself.
"""

from enum import IntEnum

from interlog.base.errors import InterlogError
from interlog.faces.amqp.values import type_name

MAX_TEXT_BYTES = 255  # a reply text is a short string


class ReplyCode(IntEnum):
    REPLY_SUCCESS = 200
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541


SOFT = frozenset(
    {
        ReplyCode.CONTENT_TOO_LARGE,
        ReplyCode.NO_ROUTE,
        ReplyCode.NO_CONSUMERS,
        ReplyCode.ACCESS_REFUSED,
        ReplyCode.NOT_FOUND,
        ReplyCode.RESOURCE_LOCKED,
        ReplyCode.PRECONDITION_FAILED,
    }
)


class AmqpError(InterlogError):
    """Ends a channel, or the connection where `hard`.

    On channel 0 every error is hard; whoever catches it there knows. `method_id` is the method that was at fault
    (class << 16 | method), 0 if none: who dispatches methods sets it.
    """

    def __init__(self, code: ReplyCode, explanation: str, *, method_id: int = 0, hard: bool | None = None) -> None:
        self.code = code
        self.text = cut_text(f"{code.name} - {explanation}")
        self.hard = code not in SOFT if hard is None else hard
        self.method_id = method_id
        super().__init__(self.text)


def cut_text(text: str) -> str:
    """At most as many bytes as a reply text can have, cut between characters; names that are no UTF-8 made so."""
    if not text.isascii():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    raw = text.encode()
    if len(raw) <= MAX_TEXT_BYTES:
        return text
    return raw[: MAX_TEXT_BYTES - 3].decode("utf-8", "ignore") + "..."


def subject(kind: str, name: str, vhost: str) -> str:
    """The queue or exchange, as every text names it."""
    return f"{kind} '{name}' in vhost '{vhost}'"


def octets(data: bytes) -> str:
    """The first of some bytes, as RabbitMQ shows them in the errors of frames."""
    shown = data[:16]
    how = "all" if len(shown) == len(data) else "first 16"
    if shown and all(32 <= byte < 127 and byte not in (34, 92) for byte in shown):
        return f'{how} octets = <<"{shown.decode("ascii")}">>'
    return f"{how} octets = <<{','.join(str(byte) for byte in shown)}>>"


# -- the wire


def frame_error(kind: int, payload: bytes, what: str) -> AmqpError:
    return AmqpError(ReplyCode.FRAME_ERROR, f"type {kind}, {octets(payload)}: {what}")


def unexpected_frame(what: str, method_id: int = 0) -> AmqpError:
    """For example "expected content body, got non content body frame instead"."""
    return AmqpError(ReplyCode.UNEXPECTED_FRAME, what, method_id=method_id)


def syntax_error(what: str, method_id: int = 0) -> AmqpError:
    return AmqpError(ReplyCode.SYNTAX_ERROR, what, method_id=method_id)


def cannot_decode(method: str) -> AmqpError:
    return AmqpError(ReplyCode.FRAME_ERROR, f"cannot decode '{method}'")


def malformed_text() -> AmqpError:
    return AmqpError(ReplyCode.FRAME_ERROR, "Malformed UTF-8 in shortstr")


def unknown_method(method_id: int) -> AmqpError:
    what = f"unimplemented method (class {method_id >> 16}, method {method_id & 0xFFFF})"
    return AmqpError(ReplyCode.COMMAND_INVALID, what, method_id=method_id)


def not_implemented(what: str) -> AmqpError:
    """For example "immediate=true", "active=false", "requeue=false", "prefetch_size!=0 (1)"."""
    return AmqpError(ReplyCode.NOT_IMPLEMENTED, what)


def body_too_long() -> AmqpError:
    return AmqpError(ReplyCode.FRAME_ERROR, "content body frame exceeds remaining content size")


# -- connections and channels


def connection_forced(reason: str = "shutdown") -> AmqpError:
    return AmqpError(ReplyCode.CONNECTION_FORCED, f"broker forced connection closure with reason '{reason}'")


def login_refused(mechanism: str) -> AmqpError:
    what = f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
    return AmqpError(ReplyCode.ACCESS_REFUSED, what, hard=True)


def unknown_mechanism(mechanism: str) -> AmqpError:
    return AmqpError(ReplyCode.COMMAND_INVALID, f"unknown authentication mechanism '{mechanism}'")


def vhost_not_found(vhost: str) -> AmqpError:
    return AmqpError(ReplyCode.NOT_ALLOWED, f"vhost {vhost} not found")


def vhost_refused(vhost: str, user: str, why: str = "") -> AmqpError:
    what = f"access to vhost '{vhost}' refused for user '{user}'"
    return AmqpError(ReplyCode.NOT_ALLOWED, f"{what}: {why}" if why else what)


def bad_negotiation(field: str, wanted: int, allowed: int, *, higher: bool) -> AmqpError:
    """Of tune-ok: `field` is frame_max or channel_max."""
    how, bound = ("higher", "maximum") if higher else ("lower", "minimum")
    detail = " (no limit)" if field == "channel_max" and wanted == 0 else ""
    what = f"negotiated {field} = {wanted}{detail} is {how} than the {bound} allowed value ({allowed})"
    return AmqpError(ReplyCode.NOT_ALLOWED, what)


def too_many_channels(count: int, channel_max: int) -> AmqpError:
    what = f"number of channels opened ({count}) has reached the negotiated channel_max ({channel_max})"
    return AmqpError(ReplyCode.NOT_ALLOWED, what)


def channel_not_open() -> AmqpError:
    return AmqpError(ReplyCode.CHANNEL_ERROR, "expected 'channel.open'")


def channel_already_open() -> AmqpError:
    return AmqpError(ReplyCode.CHANNEL_ERROR, "second 'channel.open' seen")


def unexpected_method(state: str) -> AmqpError:
    return AmqpError(ReplyCode.CHANNEL_ERROR, f"unexpected method in connection state {state}")


# -- queues, exchanges and permissions


def not_found(kind: str, name: str, vhost: str) -> AmqpError:
    return AmqpError(ReplyCode.NOT_FOUND, f"no {subject(kind, name, vhost)}")


def no_previous_queue() -> AmqpError:
    return AmqpError(ReplyCode.NOT_FOUND, "no previously declared queue")


def precondition(what: str) -> AmqpError:
    return AmqpError(ReplyCode.PRECONDITION_FAILED, what)


def inequivalent(kind: str, name: str, vhost: str, what: str, wanted: object, found: object) -> AmqpError:
    """`what` is an attribute ("durable", "type") of the two values, or an argument (see `argument`)."""
    text = f"inequivalent arg '{what}' for {subject(kind, name, vhost)}: received {told(wanted)} but current is"
    return precondition(f"{text} {told(found)}")


class Argument:
    """A value of a declaration's arguments table, to be told with its type."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def argument(wanted: object, found: object) -> tuple[object, object]:
    """Two values of an argument, None where it is absent, as `inequivalent` wants them.

    RabbitMQ tells their types only where one of the two is missing.
    """
    if wanted is None or found is None:
        return (None if wanted is None else Argument(wanted), None if found is None else Argument(found))
    return wanted, found


def told(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, Argument):
        return f"the value '{plain(value.value)}' of type '{type_name(value.value)}'"
    return f"'{plain(value)}'"


def erlang(value: object) -> str:
    """A value as RabbitMQ shows it inside a term."""
    if isinstance(value, str):
        return f'<<"{value}">>' if value else "<<>>"
    return "undefined" if value is None else plain(value)


def plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def locked(name: str, vhost: str) -> AmqpError:
    what = (
        f"cannot obtain exclusive access to locked {subject('queue', name, vhost)}. It could be originally declared on "
        "another connection or the exclusive property value does not match that of the original declaration."
    )
    return AmqpError(ReplyCode.RESOURCE_LOCKED, what)


def in_use(kind: str, name: str, vhost: str) -> AmqpError:
    """A delete with if-unused."""
    return precondition(f"{subject(kind, name, vhost)} in use")


def not_empty(name: str, vhost: str) -> AmqpError:
    return precondition(f"{subject('queue', name, vhost)} not empty")


def exclusive_use(name: str, vhost: str) -> AmqpError:
    """Another consumer has the queue exclusively, or this one wants it so and there are others."""
    return AmqpError(ReplyCode.ACCESS_REFUSED, f"{subject('queue', name, vhost)} in exclusive use")


def access_refused(permission: str, kind: str, name: str, vhost: str, user: str) -> AmqpError:
    what = f"{permission} access to {subject(kind, name, vhost)} refused for user '{user}'"
    return AmqpError(ReplyCode.ACCESS_REFUSED, what)


def topic_refused(permission: str, key: str, exchange: str, vhost: str, user: str) -> AmqpError:
    where = subject("exchange", exchange, vhost)
    what = f"{permission} access to topic '{key}' in {where} refused for user '{user}'"
    return AmqpError(ReplyCode.ACCESS_REFUSED, what)


def default_exchange() -> AmqpError:
    return AmqpError(ReplyCode.ACCESS_REFUSED, "operation not permitted on the default exchange")


def reserved_name(kind: str, name: str) -> AmqpError:
    return AmqpError(ReplyCode.ACCESS_REFUSED, f"{kind} name '{name}' contains reserved prefix 'amq.*'")


def system_exchange(name: str, vhost: str) -> AmqpError:
    what = f"deletion of system {subject('exchange', name, vhost)} not allowed"
    return AmqpError(ReplyCode.ACCESS_REFUSED, what)


def internal_exchange(name: str, vhost: str) -> AmqpError:
    return AmqpError(ReplyCode.ACCESS_REFUSED, f"cannot publish to internal {subject('exchange', name, vhost)}")


def unknown_exchange_type(kind: str) -> AmqpError:
    return AmqpError(ReplyCode.COMMAND_INVALID, f"unknown exchange type '{kind}'")


def invalid_argument(argument: str, kind: str, name: str, vhost: str, why: str) -> AmqpError:
    return precondition(f"invalid arg '{argument}' for {subject(kind, name, vhost)}: {why}")


# -- messages and consumers


def unknown_delivery_tag(tag: int) -> AmqpError:
    return precondition(f"unknown delivery tag {tag}")


def consumer_tag_taken(tag: str) -> AmqpError:
    return AmqpError(ReplyCode.NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")


def acknowledgement_timed_out(channel: int, timeout_ms: int) -> AmqpError:
    what = (
        f"delivery acknowledgement on channel {channel} timed out. Timeout value used: {timeout_ms} ms. "
        "This timeout value can be configured, see consumers doc guide to learn more"
    )
    return precondition(what)


def message_too_large(size: int, limit: int) -> AmqpError:
    return precondition(f"message size {size} is larger than configured max size {limit}")


def wrong_user_id(claimed: str, user: str) -> AmqpError:
    return precondition(f"user_id property set to '{claimed}' but authenticated user was '{user}'")


def invalid_expiration(expiration: str, why: str) -> AmqpError:
    return precondition(f"invalid expiration '{expiration}': {why}")


def no_reply_consumer() -> AmqpError:
    return precondition("fast reply consumer does not exist")
