"""Messages between the wire and the core: contents of publishes as records, records as deliveries.

A record keeps the properties as the bytes they came in (`amqp.properties`), so they leave as they came; beside them
stand the message's own headers in neutral form, for readers by other protocols. A record without those properties came
by another protocol: properties are made of what it says.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from interlog.core.deaths import DEATHS, EXCHANGE, KEYS, deaths_of, first_of, header
from interlog.core.dedupe import KEY_BYTES, KEY_PROPERTY, TTL_PROPERTY
from interlog.core.leases import Message
from interlog.faces.amqp import foreign
from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.frames import BODY, END, HEAD, HEADER, METHOD
from interlog.faces.amqp.properties import (
    PERSISTENT,
    Properties,
    Scan,
    header_payload,
    scan,
    with_headers,
    without,
)
from interlog.faces.amqp.tables import read_table
from interlog.faces.amqp.values import Int64, Timestamp
from interlog.faces.amqp.wire import MAX_SHORT, ONE, short
from interlog.journal.record import Headers, Record

if TYPE_CHECKING:
    from interlog.faces.amqp.publish import Route

BASIC_CLASS: Final = 60
CONTENT_HEAD: Final = Struct(">HHQ")
CONTENT_HEAD_BYTES: Final = CONTENT_HEAD.size

PROPERTIES: Final = b"amqp.properties"
OWN: Final = (b"interlog.", b"amqp.")  # headers of these names are not the message's own

_SPECIAL: Final = frozenset(("CC", "BCC", "x-delay", "x-deduplication-header"))
_REMEMBERED: Final = 4_096
REMEMBERED_BYTES: Final = 512  # of properties: longer ones seldom come twice

_UNREADABLE: Final = (AmqpError, ValueError, LookupError, TypeError, AttributeError)

_TAG: Final = Struct(">QB")
_DELIVER: Final = b"\x00\x3c\x00\x3c"
_GET_OK: Final = b"\x00\x3c\x00\x47"
_RETURN: Final = b"\x00\x3c\x00\x32"
_COUNT: Final = Struct(">I")
_CODE: Final = Struct(">H")
_HEADER_FRAME: Final = Struct(">BHIHHQ")


class Content:
    """What the broker needs to know of a list of properties, worked out once for all messages that have the same."""

    __slots__ = ("headers", "neutral", "persistent", "plain", "properties", "scan")

    def __init__(self, properties: bytes) -> None:
        found = scan(properties)
        self.properties = properties
        self.scan: Scan = found
        self.persistent = found.delivery_mode == PERSISTENT
        self.headers: dict[str, Any] = {}
        if found.headers_end:
            self.headers, _ = read_table(properties, found.headers_at - 4, found.headers_end)
        self.neutral: Headers = tuple(
            (name.encode("utf-8", "surrogateescape"), neutral(value)) for name, value in self.headers.items()
        )
        # Nothing in it asks for more than to be routed and kept.
        self.plain = not (
            found.priority
            or found.expiration is not None
            or found.reply_to is not None
            or found.user_id is not None
            or not _SPECIAL.isdisjoint(self.headers)
        )


_contents: dict[bytes, Content] = {}


def content_of(properties: bytes) -> Content:
    content = _contents.get(properties)
    if content is None:
        content = Content(properties)
        if len(properties) <= REMEMBERED_BYTES:
            if len(_contents) >= _REMEMBERED:
                _contents.clear()
            _contents[properties] = content
    return content


def neutral(value: Any) -> bytes | None:
    """A header's value for who knows nothing of AMQP: texts and bytes as they are, all else as JSON says it."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return str(value).encode()
    return json.dumps(value, default=str, separators=(",", ":")).encode()


def dedupe_key(content: Content) -> bytes | None:
    """Of messages that are the same if they say so; different for values of different types."""
    value = content.headers.get("x-deduplication-header", ())
    if isinstance(value, list | dict | tuple):
        return None
    kind = int if isinstance(value, int) and not isinstance(value, bool) else type(value)
    text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else repr(value).encode()
    return blake2b(kind.__name__.encode() + b" " + text, digest_size=KEY_BYTES).digest()


def record_headers(content: Content, exchange: bytes) -> Headers:
    if exchange:
        return ((PROPERTIES, content.properties), (EXCHANGE, exchange), *content.neutral)
    return ((PROPERTIES, content.properties), *content.neutral)


def headers_of(record: Record) -> Mapping[Any, Any]:
    """A record's headers as exchanges compare them: with their types where the message came by AMQP.

    Under ("", name) stand its properties.
    """
    properties = header(record, PROPERTIES)
    if properties is None:
        return {
            name.decode("utf-8", "surrogateescape"): None if value is None else value.decode("utf-8", "surrogateescape")
            for name, value in record.headers
            if not name.startswith(OWN)
        }
    return with_properties(content_of(properties))


def with_properties(content: Content) -> Mapping[Any, Any]:
    values: dict[Any, Any] = dict(content.headers)
    decoded = Properties.decode(content.properties)
    key = dedupe_key(content)
    if key is not None:
        values[KEY_PROPERTY] = key
        ttl_ms = content.headers.get("x-cache-ttl")
        if isinstance(ttl_ms, int) and not isinstance(ttl_ms, bool) and ttl_ms > 0:
            values[TTL_PROPERTY] = ttl_ms
    for name in ("message_id", "correlation_id", "timestamp"):
        value = getattr(decoded, name)
        if value is not None:
            values["", name] = value
    return values


# -- records as deliveries


def wire_of(record: Record, body_max: int) -> tuple[bytes, bytes]:
    """The exchange as a short string, and the properties, as the message is delivered."""
    headers = record.headers
    if headers and headers[0][0] == PROPERTIES:
        properties = headers[0][1] or b"\x00\x00"
        if len(headers) == 1:
            return b"\x00", properties
    else:
        properties = foreign.properties_of(record, body_max)
        if not headers:
            return b"\x00", properties
    exchange = header(record, EXCHANGE) or b""
    if headers[-1][0] == DEATHS:
        properties = _with_deaths(record, properties)
    return ONE[len(exchange)] + exchange, properties


def stream_wire_of(record: Record, offset: int, body_max: int) -> tuple[bytes, bytes, bytes]:
    """Exchange, routing key and properties of a record of a stream, which any protocol may have written.

    So what it says of AMQP is checked: clients of AMQP get nothing that they cannot read.
    """
    at = {"x-stream-offset": Int64(offset)}
    properties = header(record, PROPERTIES)
    exchange, key = header(record, EXCHANGE) or b"", record.key or b""
    if properties is not None and len(exchange) <= MAX_SHORT and len(key) <= MAX_SHORT:
        try:
            scan(properties)
            if header(record, DEATHS) is not None:
                properties = _with_deaths(record, properties)
            return ONE[len(exchange)] + exchange, key, with_headers(properties, at)
        except _UNREADABLE:
            pass  # somebody else's header of that name
    return b"\x00", foreign.routing_key(record), with_headers(foreign.properties_of(record, body_max), at)


def _with_deaths(record: Record, properties: bytes) -> bytes:
    """What dead-lettered messages tell: x-death, newest first, and the first and the last death by themselves."""
    deaths = deaths_of(record)
    shown = content_of(properties).headers.get("CC")
    shown = shown if isinstance(shown, list) else ()
    table = []
    for death in deaths:
        first, *more = death["keys"]
        told: dict[str, Any] = {
            "count": Int64(death["count"]),
            "reason": death["reason"],
            "queue": death["queue"],
            "time": Timestamp(death["time_ms"] // 1000),
            "exchange": death["exchange"],
            "routing-keys": [first, *[key for key in more if key in shown]],  # those of BCC are nobody's business
        }
        if "ttl" in death:
            told["original-expiration"] = str(death["ttl"])
        table.append(told)
    updates: dict[str, Any] = {"x-death": table}
    for which, death in (("first", first_of(deaths)), ("last", deaths[0])):
        for what in ("reason", "queue", "exchange"):
            updates[f"x-{which}-death-{what}"] = death[what]
    removals = () if header(record, KEYS) is not None else ("CC",)
    return without(with_headers(properties, updates, removals), "expiration")


def content_frames(channel: int, properties: bytes, body: bytes, body_max: int) -> list[bytes]:
    """The header frame and the body frames of a message."""
    payload = header_payload(len(body), properties)
    return [HEAD.pack(HEADER, channel, len(payload)), payload, END, *_body_frames(channel, body, body_max)]


def _body_frames(channel: int, body: bytes, body_max: int) -> list[bytes]:
    frames: list[bytes] = []
    for at in range(0, len(body), body_max):
        part = body[at : at + body_max]
        frames += (HEAD.pack(BODY, channel, len(part)), part, END)
    return frames


class Deliveries:
    """Writes deliveries of one consumer. Runs of messages with the same headers are common, and cheaper."""

    __slots__ = ("_counts", "_delivered", "_exchange", "_headers", "_method", "_number", "_offsets", "_properties")

    def __init__(self, channel: int, tag: str, *, counts: bool = False, offsets: bool = False) -> None:
        self._number = channel
        self._method = _DELIVER + short(tag)
        self._counts = counts  # deliveries are counted, and the count is told
        self._offsets = offsets  # of a stream: each message tells its own
        self._headers: Headers | None = None
        self._delivered = 0
        self._exchange = b"\x00"
        self._properties = b""

    def write(self, out: list[bytes], messages: Sequence[Message], tag: int, body_max: int) -> int:
        """Append the frames to `out`; how many bytes they are."""
        pack_tag = _TAG.pack
        headers, key, size = None, b"", -1  # of the message before
        before = after = b""  # what stands before and after the delivery tag of all messages that look alike
        parts: list[bytes] = []
        for offset, record, delivered, redelivered, _, _ in messages:
            body = record.value or b""
            told = self._offsets or (delivered and self._counts)
            if record.headers is not headers or len(body) != size or record.key != key or told:
                headers, key, size = record.headers, record.key or b"", len(body)
                before, after = self._around_tag(record, offset, delivered, body_max)
                if told or not headers:  # those without headers tell their own time
                    headers = None
            if size <= body_max:
                parts += (
                    (before, pack_tag(tag, redelivered), after, body, END)
                    if size
                    else (before, pack_tag(tag, redelivered), after)
                )
            else:
                parts += (before, pack_tag(tag, redelivered), after, *_body_frames(self._number, body, body_max))
            tag += 1
        data = b"".join(parts)
        out.append(data)
        return len(data)

    def _around_tag(self, record: Record, offset: int, delivered: int, body_max: int) -> tuple[bytes, bytes]:
        """The frames of a message but for its tag, up to where its body begins."""
        number = self._number
        if self._offsets:
            exchange, key, properties = stream_wire_of(record, offset, body_max)
        else:
            if record.headers is not self._headers:
                self._exchange, self._properties = wire_of(record, body_max)
                self._headers = record.headers or None
            exchange, properties = self._exchange, self._properties
            if delivered and self._counts:
                properties = with_headers(properties, {"x-delivery-count": Int64(delivered)})
            key = record.key or b""
        size = len(record.value or b"")
        method = self._method
        before = HEAD.pack(METHOD, number, len(method) + _TAG.size + len(exchange) + 1 + len(key)) + method
        after = exchange + ONE[len(key)] + key + END
        after += _HEADER_FRAME.pack(HEADER, number, 12 + len(properties), BASIC_CLASS, 0, size) + properties + END
        if 0 < size <= body_max:
            after += HEAD.pack(BODY, number, size)
        return before, after


def got(channel: int, tag: int, message: Message, left: int, body_max: int, *, counts: bool) -> bytes:
    """A message that was asked for: get-ok and its content."""
    _, record, delivered, redelivered, _, _ = message
    exchange, properties = wire_of(record, body_max)
    if counts:  # who asks is told of the first time, too
        properties = with_headers(properties, {"x-delivery-count": Int64(delivered)})
    key = record.key or b""
    payload = _GET_OK + _TAG.pack(tag, redelivered) + exchange + ONE[len(key)] + key + _COUNT.pack(left)
    frames = [HEAD.pack(METHOD, channel, len(payload)), payload, END]
    return b"".join(frames + content_frames(channel, properties, record.value or b"", body_max))


def returned(channel: int, route: "Route", properties: bytes, body: bytes, body_max: int) -> bytes:
    """A mandatory message that nobody wanted, back to who published it."""
    text = ReplyCode.NO_ROUTE.name
    payload = _RETURN + _CODE.pack(ReplyCode.NO_ROUTE) + short(text) + short(route.exchange) + short(route.routing_key)
    frames = [HEAD.pack(METHOD, channel, len(payload)), payload, END]
    return b"".join(frames + content_frames(channel, properties, body, body_max))
