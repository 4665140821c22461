"""The properties of a message: content header payloads and property lists in, what is wanted of them out.

A property list (flags, then the properties that the flags name) travels as the bytes it came as. `scan` takes out what
the broker itself looks at; `Properties` takes out everything; `with_headers`, `changed` and `without` make a new list
of an old one and leave the bytes of all else as they are.

Texts are not checked to be UTF-8, as RabbitMQ does not check them: other bytes stay in the str as surrogates.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

from interlog.faces.amqp.errors import AmqpError, syntax_error
from interlog.faces.amqp.tables import check_table, encode_entry, encode_table, entries, read_table
from interlog.faces.amqp.values import Table
from interlog.faces.amqp.wire import READ_ERRORS, SIZE, read_loose_short, short

BASIC: Final = 60  # the only class that has content
HEADER_HEAD: Final = Struct(">HHQ")  # class, weight, size of the body; the property list is the rest
FLAGS: Final = Struct(">H")
STAMP: Final = Struct(">Q")
NO_PROPERTIES: Final = b"\x00\x00"

# In the order of their flags, from the highest bit down. The two lowest are nobody's, and kept as they are.
KINDS: Final = {
    "content_type": str,
    "content_encoding": str,
    "headers": dict,
    "delivery_mode": bytes,  # one octet
    "priority": bytes,
    "correlation_id": str,
    "reply_to": str,
    "expiration": str,
    "message_id": str,
    "timestamp": int,
    "type": str,
    "user_id": str,
    "app_id": str,
    "cluster_id": str,
}
NAMES: Final = tuple(KINDS)
INDEX: Final = {name: index for index, name in enumerate(NAMES)}
HEADERS: Final = INDEX["headers"]
SPARE_BITS: Final = 0b11

TRANSIENT: Final = 1
PERSISTENT: Final = 2


# -- content headers


def read_header(data: bytes, at: int, end: int) -> tuple[int, int, bytes]:
    """Of a header frame's payload: class, size of the body, property list (not looked at yet)."""
    if end - at < HEADER_HEAD.size + FLAGS.size:
        raise syntax_error("cannot decode content header")
    class_id, weight, size = HEADER_HEAD.unpack_from(data, at)
    if weight:
        raise syntax_error(f"the weight of a content header is 0, not {weight}")
    return class_id, size, data[at + HEADER_HEAD.size : end]


def header_payload(size: int, properties: bytes) -> bytes:
    return HEADER_HEAD.pack(BASIC, 0, size) + properties


# -- reading


class Scan(NamedTuple):
    """What the broker itself looks at."""

    delivery_mode: int = TRANSIENT
    priority: int | None = None
    reply_to: str | None = None
    expiration: str | None = None
    timestamp: int | None = None  # seconds
    user_id: str | None = None
    headers_at: int = 0  # the headers' entries are in list[headers_at:headers_end], for tables.find and tables.entries
    headers_end: int = 0  # 0: there are no headers


NOTHING: Final = Scan()
PERSISTENT_ONLY: Final = Scan(PERSISTENT)


def scan(data: bytes) -> Scan:
    """Goes through a property list once and checks all of it, headers included: whoever gets it can read it."""
    if data == NO_PROPERTIES:
        return NOTHING
    if data == b"\x10\x00\x02":
        return PERSISTENT_ONLY
    try:
        made, at = _scan(data)
    except READ_ERRORS:
        raise malformed_properties() from None
    if at != len(data):
        raise malformed_properties()
    return made


def _scan(data: bytes) -> tuple[Scan, int]:
    flags = data[0] << 8 | data[1]
    at = 2
    delivery_mode = TRANSIENT
    priority: int | None = None
    reply_to: str | None = None
    expiration: str | None = None
    timestamp: int | None = None
    user_id: str | None = None
    headers_at = headers_end = 0
    if flags & 0xF800:
        if flags & 0x8000:  # content_type
            at += 1 + data[at]
        if flags & 0x4000:  # content_encoding
            at += 1 + data[at]
        if flags & 0x2000:
            headers_at = at + 4
            at = headers_end = check_table(data, at, len(data))
        if flags & 0x1000:
            delivery_mode = data[at]
            at += 1
        if flags & 0x0800:
            priority = data[at]
            at += 1
    if flags & 0x07FC:
        if flags & 0x0400:  # correlation_id
            at += 1 + data[at]
        if flags & 0x0200:
            reply_to, at = read_loose_short(data, at)
        if flags & 0x0100:
            expiration, at = read_loose_short(data, at)
        if flags & 0x0080:  # message_id
            at += 1 + data[at]
        if flags & 0x0040:
            (timestamp,) = STAMP.unpack_from(data, at)
            at += 8
        if flags & 0x0020:  # type
            at += 1 + data[at]
        if flags & 0x0010:
            user_id, at = read_loose_short(data, at)
        if flags & 0x0008:  # app_id
            at += 1 + data[at]
        if flags & 0x0004:  # cluster_id
            at += 1 + data[at]
    return Scan(delivery_mode, priority, reply_to, expiration, timestamp, user_id, headers_at, headers_end), at


def malformed_properties() -> AmqpError:
    return syntax_error("cannot decode content properties")


class Properties:
    """All of a property list. None is a property that is not there."""

    __slots__ = tuple(sorted(NAMES))

    content_type: str | None
    content_encoding: str | None
    headers: Table | None
    delivery_mode: int | None
    priority: int | None
    correlation_id: str | None
    reply_to: str | None
    expiration: str | None
    message_id: str | None
    timestamp: int | None
    type: str | None
    user_id: str | None
    app_id: str | None
    cluster_id: str | None

    def __init__(self, **values: Any) -> None:
        for name in NAMES:
            setattr(self, name, values.pop(name, None))
        if values:
            raise TypeError(f"there is no property {next(iter(values))!r}")

    @classmethod
    def decode(cls, data: bytes) -> "Properties":
        parts = zip(KINDS.items(), _parts(data), strict=True)
        return cls(**{name: _value(kind, part) for (name, kind), part in parts if part})

    def encode(self) -> bytes:
        return _joined(0, [_part(kind, getattr(self, name)) for name, kind in KINDS.items()])

    def values(self) -> dict[str, Any]:
        """Those that are there."""
        return {name: value for name in NAMES if (value := getattr(self, name)) is not None}

    def __eq__(self, other: object) -> bool:
        return self.values() == other.values() if isinstance(other, Properties) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Properties({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"


# -- changing


def with_headers(data: bytes, updates: Mapping[str, Any], removals: Iterable[str] = ()) -> bytes:
    """The list with these headers set and those gone. The bytes of all other headers stay as they are.

    A list without headers gets them if there is something to set. What is set stands behind what stays.
    """
    parts = _parts(data)
    old = parts[HEADERS]
    if not old and not updates:
        return data
    gone = {name.encode("utf-8", "surrogateescape") for name in (*updates, *removals)}
    kept = [old[start:end] for name, start, _, end in entries(old, 4, len(old)) if name not in gone]
    body = b"".join([*kept, *(encode_entry(name, value) for name, value in updates.items())])
    parts[HEADERS] = SIZE.pack(len(body)) + body
    return _joined(data[1] & SPARE_BITS, parts)


def changed(data: bytes, **values: Any) -> bytes:
    """The list with these properties set, or gone where the value is None."""
    parts = _parts(data)
    for name, value in values.items():
        parts[INDEX[name]] = _part(KINDS[name], value)
    return _joined(data[1] & SPARE_BITS, parts)


def without(data: bytes, *names: str) -> bytes:
    """The list without these properties."""
    return changed(data, **dict.fromkeys(names))


def _parts(data: bytes) -> list[bytes]:
    """The bytes of each property, in order; none for a property that is not there (each has one byte at least)."""
    parts = []
    size = len(data)
    try:
        (flags,) = FLAGS.unpack_from(data, 0)
        at = 2
        bit = 0x8000
        for kind in KINDS.values():
            start = at
            if flags & bit:
                if kind is str:
                    at += 1 + data[at]
                elif kind is dict:
                    at = check_table(data, at, size)
                else:
                    at += 8 if kind is int else 1
            parts.append(data[start:at])
            bit >>= 1
    except READ_ERRORS:
        raise malformed_properties() from None
    if at != size:
        raise malformed_properties()
    return parts


def _joined(spare: int, parts: list[bytes]) -> bytes:
    flags = spare
    bit = 0x8000
    for part in parts:
        if part:
            flags |= bit
        bit >>= 1
    return FLAGS.pack(flags) + b"".join(parts)


def _value(kind: type, part: bytes) -> Any:
    if kind is str:
        return part[1:].decode("utf-8", "surrogateescape")
    if kind is dict:
        return read_table(part, 0, len(part))[0]
    return int.from_bytes(part, "big")


def _part(kind: type, value: Any) -> bytes:
    if value is None:
        return b""
    if kind is str:
        return short(value)
    if kind is dict:
        return encode_table(value)
    return STAMP.pack(value) if kind is int else int(value).to_bytes(1, "big")
