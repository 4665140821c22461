"""Arguments of queue.declare: AMQP's `x-…` names on one side, the core's settings on the other.

Comes in: a table as the client sent it. Goes out: settings of a queue or a stream, or the 406 that says which argument
is wrong, or belongs to another type of queue. What nobody knows is kept and says nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

from interlog.core.queue_settings import DECLARED, MAX_MS, OVERFLOWS
from interlog.faces.amqp.argument_checks import Known, Table, checked, flag, number, one_of, period_ms, text
from interlog.faces.amqp.errors import argument as both
from interlog.faces.amqp.errors import inequivalent, invalid_argument, precondition, subject
from interlog.faces.amqp.values import type_name

MAX_LIFE_MS: Final = 315_360_000_000  # ten years: of messages, and of queues that nobody uses
_DEAD_LETTERS: Final = "x-dead-letter-exchange"


def _age(value: Any) -> str:
    return text(value) or ("" if period_ms(value) else "invalid_max_age")


_COUNT: Final = number(0, 1 << 62)
_GROUP: Final = number(1, 1 << 31)
_LOCATORS: Final = ("client-local", "balanced", "random", "least-leaders")
_ANYWHERE: Final[Known] = {"x-queue-leader-locator": ("", one_of("invalid_queue_locator_arg", *_LOCATORS))}

_QUEUE: Final[Known] = {
    "x-message-ttl": ("message_ttl_ms", number(0, MAX_LIFE_MS)),
    "x-expires": ("expires_ms", number(1, MAX_LIFE_MS)),
    "x-max-length": ("max_length", _COUNT),
    "x-max-length-bytes": ("max_bytes", _COUNT),
    "x-overflow": ("overflow", one_of("invalid_overflow", *OVERFLOWS)),
    _DEAD_LETTERS: ("dead_letter_exchange", text),
    "x-dead-letter-routing-key": ("dead_letter_key", text),
    "x-single-active-consumer": ("single_active", flag),
    "x-consumer-timeout": ("consumer_timeout_ms", number(0, MAX_MS)),
    "x-message-deduplication": ("dedupe", flag),
    **_ANYWHERE,
}
_KNOWN: Final[Mapping[str, Known]] = {
    "classic": {
        **_QUEUE,
        "x-max-priority": ("max_priority", number(0, 255, "{{max_value_exceeded,{}}}")),
        "x-queue-mode": ("", one_of("\"unsupported queue mode '{}'\"", "default", "lazy")),
        "x-queue-version": ("", number(1, 2, "\"unsupported queue version '{}'\"")),
        "x-queue-master-locator": ("", text),
    },
    "quorum": {
        **_QUEUE,
        "x-delivery-limit": ("delivery_limit", number(-1, 1 << 31)),
        "x-dead-letter-strategy": ("", one_of("invalid_dlx_strategy", "at-most-once", "at-least-once")),
        "x-max-in-memory-length": ("", _COUNT),
        "x-max-in-memory-bytes": ("", _COUNT),
        "x-quorum-initial-group-size": ("", _GROUP),
        "x-quorum-target-group-size": ("", _GROUP),
    },
    "stream": {
        "x-max-length-bytes": ("retention_bytes", _COUNT),
        "x-max-age": ("retention_ms", _age),
        "x-stream-max-segment-size-bytes": ("segment_bytes", number(0, 3_000_000_000)),
        "x-stream-filter-size-bytes": ("", number(16, 255)),
        "x-initial-cluster-size": ("", _GROUP),
        **_ANYWHERE,
    },
}
_COMPARED: Final = ("x-queue-type", *dict.fromkeys([*_KNOWN["classic"], *_KNOWN["quorum"]]))
NAMES: Final = {
    setting: name for kind in ("classic", "quorum") for name, (setting, _) in _KNOWN[kind].items() if setting
} | {"kind": "x-queue-type"}
STREAM_NAMES: Final = {setting: name for name, (setting, _) in _KNOWN["stream"].items() if setting}

_HEADERS_BYTES: Final = 1 << 20  # room for what comes with a message's body
_MAX_BATCH_BYTES: Final = 512 << 20  # of a topic, at the most


def queue_kind(name: str, vhost: str, arguments: Table, default: str = "classic") -> str:
    """classic, quorum or stream."""
    kind = arguments.get("x-queue-type", default)
    wrong = one_of("\"unsupported queue type '{}'\"", *_KNOWN)(kind)
    if wrong:
        raise invalid_argument("x-queue-type", "queue", name, vhost, wrong)
    return str(kind)


def queue_settings(kind: str, name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    """The settings of a classic or quorum queue."""
    _check_dead_letters(name, vhost, arguments)
    settings = checked(_KNOWN, kind, name, vhost, arguments)
    settings["kind"] = kind
    if "dead_letter_key" in settings and "dead_letter_exchange" not in settings:
        raise invalid_argument("x-dead-letter-routing-key", "queue", name, vhost, "routing_key_but_no_dlx_defined")
    settings[DECLARED] = told(arguments)
    return settings


def stream_settings(name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    """The settings of a stream, which is a topic of one partition."""
    _check_dead_letters(name, vhost, arguments)
    settings = checked(_KNOWN, "stream", name, vhost, arguments)
    age = settings.get("retention_ms")
    if age is not None:
        settings["retention_ms"] = period_ms(age)
    elif "retention_bytes" not in settings:
        settings["retention_ms"] = -1  # a stream without limits keeps everything
    if "segment_bytes" in settings:
        settings["segment_bytes"] = min(max(settings["segment_bytes"], 1 << 20), 1 << 30)
    return settings


def check_declared(name: str, vhost: str, arguments: Table, declared: Table) -> None:
    """406 where a queue is declared again with other arguments than it was."""
    for argument in _COMPARED:
        wanted, found = arguments.get(argument), declared.get(argument)
        if argument == "x-queue-type" and (wanted or "classic") == (found or "classic"):
            continue
        if wanted != found:
            raise inequivalent("queue", name, vhost, argument, *both(wanted, found))


def _check_dead_letters(name: str, vhost: str, arguments: Table) -> None:
    exchange = arguments.get(_DEAD_LETTERS, "")
    if not isinstance(exchange, str):
        where = subject("queue", name, vhost)
        raise precondition(f"invalid type '{type_name(exchange)}' for arg '{_DEAD_LETTERS}' in {where}")


def one_line(name: str) -> str:
    """A name as it is declared: without the ends of lines that are in it."""
    return name.replace("\r", "").replace("\n", "")


def stream_message_bytes(max_message_bytes: int) -> int:
    """The largest batch of a stream that takes what queues take: a message with its properties and headers."""
    return min(max_message_bytes + _HEADERS_BYTES, _MAX_BATCH_BYTES)


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
