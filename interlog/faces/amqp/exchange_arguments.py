"""Arguments of exchanges and of their bindings: AMQP's names on one side, the core's settings on the other.

Comes in: a type and a table as the client sent them. Goes out: an exchange's kind and settings, or the error that says
what is wrong.
"""

from typing import Any, Final

from interlog.core.exchange_objects import HASHED_PROPERTIES
from interlog.core.queue_settings import DECLARED
from interlog.faces.amqp.argument_checks import Table
from interlog.faces.amqp.arguments import told
from interlog.faces.amqp.errors import erlang, precondition, subject, unknown_exchange_type
from interlog.faces.amqp.values import type_name

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
_MATCHES: Final = ("all", "any", "all-with-x", "any-with-x")
_KIND_NAMES: Final = {kind: name for name, kind in _EXCHANGE_KINDS.items()}


EXCHANGE_NAMES: Final = {
    "hash_header": "hash-header",
    "hash_property": "hash-property",
    "cache_size": "x-cache-size",
    "cache_ttl_ms": "x-cache-ttl",
    "cache_lasts": "x-cache-persistence",
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
    used = settings.get("hash_property", HASHED_PROPERTIES[0])
    if used not in HASHED_PROPERTIES:
        raise precondition(f"Unsupported property: {used}")
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
        settings["cache_lasts"] = True
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
        raise unknown_exchange_type(type)
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


def check_binding(kind: str, key: str, arguments: Table) -> None:
    """406, in RabbitMQ's words, for a binding that an exchange of this kind cannot have."""
    if kind == "headers":
        match = arguments.get("x-match", "all")
        if not isinstance(match, str):
            what = f"type {type_name(match)} (value {erlang(match)}); expected longstr"
            raise precondition(f"Invalid x-match field {what}")
        if match not in _MATCHES:
            what = f"value {erlang(match)}; expected {', '.join(_MATCHES[:-1])}, or {_MATCHES[-1]}"
            raise precondition(f"Invalid x-match field {what}")
    elif kind == "consistent-hash":
        if not key.removeprefix("-").isdecimal():
            raise precondition(f"The binding key must be an integer: {erlang(key)}")
        if int(key) < 1:
            raise precondition("The binding key must be greater than 0")
