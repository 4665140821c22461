"""Arguments of basic.consume: which consumers of which type of queue may ask for what.

Comes in: a table as the client sent it. Goes out: what the consumer asks for, or the 406 that says which argument is
wrong, or belongs to another type of queue.
"""

from typing import Any, Final

from interlog.core.queue_settings import MAX_MS
from interlog.faces.amqp.argument_checks import Known, Table, checked, flag, number, period_ms
from interlog.faces.amqp.errors import erlang
from interlog.faces.amqp.values import Timestamp, type_name


def _anything(value: Any) -> str:
    return ""


def _integer(value: Any) -> str:
    sound = isinstance(value, int) and not isinstance(value, bool)
    return "" if sound else f'"expected integer, got {type_name(value)}"'


def _offset(value: Any) -> str:
    """A word, a number, a time, or how far back."""
    if isinstance(value, str):
        sound = value in ("first", "last", "next") or period_ms(value) is not None
    else:
        sound = isinstance(value, Timestamp) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    return "" if sound else f"{{invalid_stream_offset_arg,{{{type_name(value)},{erlang(value)}}}}}"


_TIMEOUT: Final[Known] = {"x-consumer-timeout": ("timeout_ms", number(0, MAX_MS))}
_QUEUE: Final[Known] = {"x-priority": ("priority", _integer), **_TIMEOUT}
_KNOWN: Final[dict[str, Known]] = {
    "classic": {**_QUEUE, "x-cancel-on-ha-failover": ("", flag)},
    "quorum": _QUEUE,
    "stream": {
        "x-stream-offset": ("offset", _offset),
        "x-stream-filter": ("filter", _anything),
        "x-stream-match-unfiltered": ("unfiltered", flag),
        **_TIMEOUT,
    },
}


def consumer_settings(kind: str, name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    """priority, timeout_ms, offset, filter and unfiltered, as far as they are said."""
    settings = checked(_KNOWN, kind, name, vhost, arguments)
    if "offset" in settings:
        settings["offset"] = arguments["x-stream-offset"]  # a time is told from a number by its type
    return settings
