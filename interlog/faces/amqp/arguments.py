"""Arguments of declarations: AMQP's `x-…` names on one side, the core's settings on the other.

Comes in: a table as the client sent it. Goes out: settings of a queue, a stream or an exchange, or the 406 that says
which argument is wrong.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from interlog.core.queue_settings import DECLARED, MAX_MS, OVERFLOWS
from interlog.faces.amqp.errors import AmqpError, ReplyCode, invalid_argument, precondition, subject
from interlog.faces.amqp.values import type_name

Table = Mapping[str, Any]
_Check = Callable[[Any], str]  # what is wrong, in RabbitMQ's words; nothing if all is well


def _number(least: int, most: int, too_large: str = "value_too_large") -> _Check:
    def check(value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            return f'"expected integer, got {type_name(value)}"'
        if value < least:
            return f"{{value_{'negative' if value < 0 else 'zero'},{value}}}"
        return f"{{{too_large},{value}}}" if value > most else ""

    return check


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else f"{{unacceptable_type,{type_name(value)}}}"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"{{unacceptable_type,{type_name(value)}}}"


def _one_of(wrong: str, *words: str) -> _Check:
    def check(value: Any) -> str:
        return _text(value) or ("" if value in words else wrong.format(value))

    return check


# The argument, the core's setting (none: accepted, and without effect here), and what it may be.
_QUEUE: Final[dict[str, tuple[str, _Check]]] = {
    "x-message-ttl": ("message_ttl_ms", _number(0, MAX_MS)),
    "x-expires": ("expires_ms", _number(1, MAX_MS)),
    "x-max-length": ("max_length", _number(0, 1 << 62)),
    "x-max-length-bytes": ("max_bytes", _number(0, 1 << 62)),
    "x-overflow": ("overflow", _one_of("invalid_overflow", *OVERFLOWS)),
    "x-dead-letter-exchange": ("dead_letter_exchange", _text),
    "x-dead-letter-routing-key": ("dead_letter_key", _text),
    "x-max-priority": ("max_priority", _number(0, 255, "max_value_exceeded")),
    "x-single-active-consumer": ("single_active", _flag),
    "x-delivery-limit": ("delivery_limit", _number(-1, 1 << 31)),
    "x-consumer-timeout": ("consumer_timeout_ms", _number(0, MAX_MS)),
    "x-message-deduplication": ("dedupe", _flag),
    "x-queue-mode": ("", _one_of("\"unsupported queue mode '{}'\"", "default", "lazy")),
    "x-queue-version": ("", _number(1, 2)),
    "x-queue-master-locator": ("", _text),
    "x-queue-leader-locator": ("", _text),
    "x-quorum-initial-group-size": ("", _number(1, 1 << 31)),
    "x-dead-letter-strategy": ("", _one_of("invalid_dlx_strategy", "at-most-once", "at-least-once")),
    "x-max-in-memory-length": ("", _number(0, 1 << 62)),
    "x-max-in-memory-bytes": ("", _number(0, 1 << 62)),
}

_STREAM: Final[dict[str, tuple[str, _Check]]] = {
    "x-max-length-bytes": ("retention_bytes", _number(0, 1 << 62)),
    "x-max-age": ("retention_ms", _text),
    "x-stream-max-segment-size-bytes": ("segment_bytes", _number(1, 3_000_000_000)),
    "x-stream-filter-size-bytes": ("", _number(16, 255)),
    "x-queue-leader-locator": ("", _text),
    "x-initial-cluster-size": ("", _number(1, 1 << 31)),
    "x-message-ttl": ("", _number(0, MAX_MS)),
    "x-max-length": ("", _number(0, 1 << 62)),
}
_NOT_FOR_STREAMS: Final = (
    "x-expires",
    "x-message-ttl",
    "x-max-length",
    "x-max-priority",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-single-active-consumer",
)
_NOT_FOR_QUORUM: Final = ("x-max-priority", "x-queue-mode")
NAMES: Final = {setting: name for name, (setting, _) in _QUEUE.items() if setting} | {"kind": "x-queue-type"}
STREAM_NAMES: Final = {setting: name for name, (setting, _) in _STREAM.items() if setting}

_HEADERS_BYTES: Final = 1 << 20  # room for what comes with a message's body
_MAX_BATCH_BYTES: Final = 512 << 20  # of a topic, at the most

_AGES: Final = {"Y": 365 * 86_400, "M": 30 * 86_400, "D": 86_400, "h": 3_600, "m": 60, "s": 1}


def queue_kind(name: str, vhost: str, arguments: Table) -> str:
    """classic, quorum or stream."""
    kind = arguments.get("x-queue-type", "classic")
    wrong = _one_of("\"unsupported queue type '{}'\"", "classic", "quorum", "stream")(kind)
    if wrong:
        raise invalid_argument("x-queue-type", "queue", name, vhost, wrong)
    return str(kind)


def queue_settings(name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    """The settings of a classic or quorum queue."""
    kind = queue_kind(name, vhost, arguments)
    settings = _settings(_QUEUE, name, vhost, arguments)
    settings["kind"] = kind
    if kind == "quorum":
        for argument in _NOT_FOR_QUORUM:
            if argument in arguments:
                raise _not_for(argument, name, vhost, "rabbit_quorum_queue")
    if "dead_letter_key" in settings and "dead_letter_exchange" not in settings:
        raise invalid_argument("x-dead-letter-routing-key", "queue", name, vhost, "routing_key_but_no_dlx_defined")
    settings[DECLARED] = told(arguments)
    return settings


def stream_settings(name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    """The settings of a stream, which is a topic of one partition."""
    for argument in _NOT_FOR_STREAMS:
        if argument in arguments:
            raise _not_for(argument, name, vhost, "rabbit_stream_queue")
    settings = _settings(_STREAM, name, vhost, arguments)
    age = settings.get("retention_ms")
    if age is not None:
        settings["retention_ms"] = _age_ms(name, vhost, age)
    elif "retention_bytes" not in settings:
        settings["retention_ms"] = -1  # a stream without limits keeps everything
    if "segment_bytes" in settings:
        settings["segment_bytes"] = min(max(settings["segment_bytes"], 1 << 20), 1 << 30)
    return settings


def stream_message_bytes(max_message_bytes: int) -> int:
    """The largest batch of a stream that takes what queues take: a message with its properties and headers."""
    return min(max_message_bytes + _HEADERS_BYTES, _MAX_BATCH_BYTES)


def _not_for(argument: str, name: str, vhost: str, kind: str) -> AmqpError:
    return precondition(f"invalid arg '{argument}' for {subject('queue', name, vhost)} of queue type {kind}")


def _settings(known: Mapping[str, tuple[str, _Check]], name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for argument, value in arguments.items():
        if argument not in known:
            continue
        setting, check = known[argument]
        wrong = check(value)
        if wrong and check is _text:
            kind = type_name(value)
            raise precondition(f"invalid type '{kind}' for arg '{argument}' in {subject('queue', name, vhost)}")
        if wrong:
            raise invalid_argument(argument, "queue", name, vhost, wrong)
        if setting:
            settings[setting] = int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return settings


def _age_ms(name: str, vhost: str, age: str) -> int:
    number, unit = age[:-1], age[-1:]
    if not number.isdigit() or unit not in _AGES:
        raise invalid_argument("x-max-age", "queue", name, vhost, "{invalid_max_age," + age + "}")
    return int(number) * _AGES[unit] * 1_000


def told(arguments: Table) -> dict[str, Any]:
    """The arguments as the catalog can keep them: for those who ask later what was declared."""
    return {name: _plain(value) for name, value in arguments.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dict):
        return told(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


_EXCHANGE_KINDS: Final = {
    "direct": "direct",
    "fanout": "fanout",
    "topic": "topic",
    "headers": "headers",
    "x-consistent-hash": "consistent-hash",
    "x-local-random": "local-random",
    "x-random": "random",
    "x-modulus-hash": "modulus-hash",
    "x-message-deduplication": "dedupe",
}
_KIND_NAMES: Final = {kind: name for name, kind in _EXCHANGE_KINDS.items()}


EXCHANGE_NAMES: Final = {
    "hash_header": "hash-header",
    "hash_property": "hash-property",
    "cache_size": "x-cache-size",
    "cache_ttl_ms": "x-cache-ttl",
}


def exchange_type(kind: str, delayed: bool) -> str:
    """What AMQP calls an exchange's kind."""
    return "x-delayed-message" if delayed else _KIND_NAMES.get(kind, kind)


def _hash_settings(arguments: Table) -> dict[str, Any]:
    settings = {}
    for setting in ("hash_header", "hash_property"):
        value = arguments.get(EXCHANGE_NAMES[setting])
        if isinstance(value, str):
            settings[setting] = value
    if len(settings) == 2:
        raise precondition("hash-header and hash-property are mutually exclusive")
    return settings


def _cache_settings(arguments: Table) -> dict[str, Any]:
    """What an exchange remembers of the messages it has seen."""
    settings: dict[str, Any] = {}
    for argument, setting, how in (
        ("x-cache-size", "cache_size", "Missing or invalid argument"),
        ("x-cache-ttl", "cache_ttl_ms", "Invalid argument"),
    ):
        value = arguments.get(argument)
        if value is None and setting != "cache_size":
            continue
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise precondition(f"{how}, '{argument}' must be an integer greater than 0")
        settings[setting] = int(value)
    persistence = arguments.get("x-cache-persistence", "memory")
    if persistence not in ("memory", "disk"):
        raise precondition("Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'")
    if persistence == "disk":
        raise precondition("'x-cache-persistence' can only be 'memory' here: a deduplication queue lasts")
    return settings


def exchange_settings(name: str, vhost: str, type: str, arguments: Table) -> dict[str, Any]:
    """Keyword arguments of `Exchanges.declare`: kind, delayed, alternate, settings."""
    delayed = type == "x-delayed-message"
    if delayed:
        inner = arguments.get("x-delayed-type")
        if not isinstance(inner, str) or inner not in _EXCHANGE_KINDS:
            raise precondition("Invalid argument, 'x-delayed-type' must be an existing exchange type")
        type = inner
    kind = _EXCHANGE_KINDS.get(type)
    if kind is None:
        raise AmqpError(ReplyCode.COMMAND_INVALID, f"unknown exchange type '{type}'")
    alternate = arguments.get("alternate-exchange")
    if alternate is not None and not isinstance(alternate, str):
        where = subject("exchange", name, vhost)
        raise precondition(f"invalid type '{type_name(alternate)}' for arg 'alternate-exchange' in {where}")
    settings: dict[str, Any] = {}
    if kind == "dedupe":
        settings = _cache_settings(arguments)
    elif kind == "consistent-hash":
        settings = _hash_settings(arguments)
    used = [EXCHANGE_NAMES[setting] for setting in settings]
    rest = {
        key: value
        for key, value in told(arguments).items()
        if key not in ("alternate-exchange", "x-delayed-type", *used)
    }
    if rest:
        settings[DECLARED] = rest
    return {"kind": kind, "delayed": delayed, "alternate": alternate, "settings": settings}
