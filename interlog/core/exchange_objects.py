"""Exchanges and bindings as objects: what they are, what the catalog keeps of them, what may be declared.

Comes in: what callers ask for, and the catalog's names and values. Goes out: immutable objects, and names and values
for the catalog, always the same for the same thing. A binding is its ends, its key and its arguments, so all of it is
in its name; but arguments may be anything that plain Python can say, so the name has their hash and the value has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.core.catalog_objects import MAX_NAME_BYTES, ObjectItem, check_name, dump

EXCHANGE: Final = "exchange"
BINDING: Final = "binding"

DEFAULT: Final = ""  # the exchange whose keys are names of queues
RESERVED: Final = "amq."  # names that nobody may declare or delete
KINDS: Final = (
    "direct",
    "fanout",
    "topic",
    "headers",
    "consistent-hash",
    "modulus-hash",
    "random",
    "local-random",
    "dedupe",
)
DECLARED: Final = "declared"  # a setting the core does not look into: the face's own words
HASH_HEADER: Final = "hash_header"
HASH_PROPERTY: Final = "hash_property"
CACHE_SIZE: Final = "cache_size"  # keys of messages that an exchange remembers
CACHE_TTL_MS: Final = "cache_ttl_ms"
CACHE_LASTS: Final = "cache_lasts"  # whether it outlasts the broker
CACHE: Final = {CACHE_SIZE: 10_000_000, CACHE_TTL_MS: 1 << 53}  # and the most that each can be
MAX_LASTING_CACHE: Final = 1_000_000  # it is read at a start
HASHED_PROPERTIES: Final = ("message_id", "correlation_id", "timestamp")

_HASH_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Exchange:
    namespace: str
    name: str
    kind: str
    durable: bool = True
    auto_delete: bool = False  # goes when its last binding as source went
    internal: bool = False  # clients may not publish to it; whoever takes publishes from them checks it
    delayed: bool = False
    alternate: str | None = None  # where what matched nothing goes
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binding:
    source: str
    to_queue: bool
    destination: str
    key: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """What tells it from other bindings between the same two, as text that can stand in a path."""
        from urllib.parse import quote_plus  # costs a start some milliseconds, and only a page asks

        if not self.key and not self.arguments:
            return "~"
        quoted = quote_plus(self.key).replace("~", "%7E")
        return f"{quoted}~{hash_of(self.arguments)}" if self.arguments else quoted


def built_in(namespace: str) -> list[Exchange]:
    """The exchanges that every namespace has without anybody making them."""
    kinds = {DEFAULT: "direct", "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic"}
    kinds |= {"amq.headers": "headers", "amq.match": "headers"}
    trace = Exchange(namespace, "amq.rabbitmq.trace", "topic", internal=True)
    return [*(Exchange(namespace, name, kind) for name, kind in kinds.items()), trace]


def check_exchange(exchange: Exchange) -> None:
    """InvalidError says what such an exchange cannot have."""
    check_name(EXCHANGE, exchange.name)
    if exchange.kind not in KINDS:
        raise InvalidError(f"{exchange.kind!r} is not a kind of exchange; there are {', '.join(KINDS)}")
    if exchange.alternate:
        check_name(EXCHANGE, exchange.alternate)
    settings = exchange.settings
    for name, value in settings.items():
        if name == DECLARED or (exchange.kind == "dedupe" and name in (*CACHE, CACHE_LASTS)):
            continue
        if name not in (HASH_HEADER, HASH_PROPERTY) or exchange.kind != "consistent-hash":
            raise InvalidError(f"{name!r} is not a setting of an exchange of kind {exchange.kind}")
        if not isinstance(value, str):
            raise InvalidError(f"exchange setting {name} is text, not {value!r}")
    if exchange.kind == "dedupe":
        _check_cache(settings)
    if HASH_HEADER in settings and HASH_PROPERTY in settings:
        raise InvalidError("an exchange hashes a header or a property, not both")
    if settings.get(HASH_PROPERTY, HASHED_PROPERTIES[0]) not in HASHED_PROPERTIES:
        allowed = " | ".join(HASHED_PROPERTIES)
        raise InvalidError(f"exchange setting {HASH_PROPERTY} is one of {allowed}, not {settings[HASH_PROPERTY]!r}")


def _check_cache(settings: Mapping[str, Any]) -> None:
    lasts = settings.get(CACHE_LASTS, False)
    if not isinstance(lasts, bool):
        raise InvalidError(f"exchange setting {CACHE_LASTS} is true or false, not {lasts!r}")
    for name, most in CACHE.items():
        most = min(most, MAX_LASTING_CACHE) if lasts and name == CACHE_SIZE else most
        value = settings.get(name)
        if value is None and name != CACHE_SIZE:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise InvalidError(f"exchange setting {name} is a whole number from 1 to {most}, not {value!r}")


# -- what the catalog keeps


def exchange_value(exchange: Exchange) -> dict[str, Any]:
    value: dict[str, Any] = {"kind": exchange.kind}
    for flag in ("auto_delete", "internal", "delayed"):
        if getattr(exchange, flag):
            value[flag] = True
    if exchange.alternate is not None:
        value["alternate"] = exchange.alternate
    if exchange.settings:
        value["settings"] = pack_table(exchange.settings)
    return value


def exchange_of(item: ObjectItem) -> Exchange:
    value = item.value
    return Exchange(
        item.namespace,
        item.name,
        value["kind"],
        item.durable,
        value.get("auto_delete", False),
        value.get("internal", False),
        value.get("delayed", False),
        value.get("alternate"),
        unpack_table(value.get("settings", {})),
    )


def binding_name(source: str, to_queue: bool, destination: str, key: str, arguments: Mapping[str, Any]) -> str:
    """Lengths first, so that two different bindings never have the same name whatever is in theirs."""
    lengths = f"{'q' if to_queue else 'e'}{len(source)},{len(destination)},{len(key)}"
    hashed = hash_of(arguments) if arguments else ""
    return f"{lengths} {source} {destination} {key} {hashed}"


def binding_value(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"arguments": pack_table(arguments)} if arguments else {}


def binding_parts(name: str) -> tuple[str, bool, str, str]:
    """Source, whether it leads to a queue, destination and key."""
    lengths, _, rest = name.partition(" ")
    source, destination, key = map(int, lengths[1:].split(","))
    second = source + 1
    third = second + destination + 1
    return rest[:source], lengths[0] == "q", rest[second : third - 1], rest[third : third + key]


def binding_of(item: ObjectItem) -> Binding:
    source, to_queue, destination, key = binding_parts(item.name)
    return Binding(source, to_queue, destination, key, unpack_table(item.value.get("arguments", {})))


def check_key(key: str) -> None:
    if key:
        try:
            check_name("key", key)
        except InvalidError:
            raise InvalidError(f"a key is text of at most {MAX_NAME_BYTES} bytes that UTF-8 can write") from None


# -- arguments: JSON has no bytes, and floats that it cannot write


def hash_of(arguments: Mapping[str, Any]) -> str:
    return blake2b(text_of(arguments).encode(), digest_size=_HASH_BYTES).hexdigest()


def text_of(value: object) -> str:
    """Plain Python as text, different for different values and types; InvalidError if it cannot be kept."""
    try:
        text = dump(_pack(value))
        text.encode()
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"these arguments cannot be kept: {error}") from None
    return text


def pack_table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _pack(value) for name, value in table.items()}


def unpack_table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _unpack(value) for name, value in table.items()}


def _pack(value: object) -> object:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else {"float": repr(value)}  # infinities and no number
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, list | tuple):
        return [_pack(one) for one in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"table": pack_table(value)}
    from decimal import Decimal  # rare, and not worth its share of every start

    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    raise InvalidError(f"these arguments cannot be kept: {type(value).__name__} is not a plain type")


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(one) for one in value]
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        if kind == "table":
            return unpack_table(inner)
        if kind == "decimal":
            from decimal import Decimal

            return Decimal(inner)
        return bytes.fromhex(inner) if kind == "bytes" else float(inner)
    return value
