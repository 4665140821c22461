"""Publishes: from the method's bytes to where messages go, worked out once for all that look alike.

In come the payloads of basic.publish; out go routes, kept per connection until the catalog or the permissions change.
What a content asks for beyond routing (priority, expiry, reply-to, more keys, a delay) is done in `publish_specially`.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from interlog.core.deaths import EXPIRES, KEYS
from interlog.core.dedupe import KEY as DEDUPE
from interlog.core.memory import record_size
from interlog.core.publishing import LASTS, PRIORITY, ROUTED, Target
from interlog.faces.amqp import errors
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.arguments import MAX_LIFE_MS
from interlog.faces.amqp.errors import AmqpError, precondition
from interlog.faces.amqp.messages import (
    REMEMBERED_BYTES,
    Content,
    content_of,
    dedupe_key,
    record_headers,
    with_properties,
)
from interlog.faces.amqp.properties import changed, with_headers
from interlog.faces.amqp.service import REPLY_PREFIX, REPLY_TO
from interlog.faces.amqp.values import type_name
from interlog.journal.record import Headers, Record

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel

_ROUTES: Final = 4_096
_KNOWN: Final = 4_096
_IDS: Final = 4  # class and method ids, at the start of a payload
_NEVER: Final = -1  # the generation of a route that must not be used
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
MAX_DELAY_MS: Final = (1 << 32) - 1

Known = tuple[Headers, int, bool]  # a record's headers, their large size, whether it is persistent


class Route:
    """All that is the same for every publish with the same method bytes."""

    __slots__ = (
        "_routes",
        "exchange",
        "generation",
        "key",
        "known",
        "mandatory",
        "raw",
        "routing_key",
        "takes_runs",
        "target",
    )

    def __init__(
        self,
        routes: "Routes",
        raw: bytes,
        exchange: str,
        routing_key: str,
        mandatory: bool,
        target: Target | None,
        generation: int,
    ) -> None:
        self._routes = routes
        self.raw = raw
        self.exchange = exchange
        self.routing_key = routing_key
        self.key = routing_key.encode("utf-8", "surrogateescape")
        self.mandatory = mandatory
        self.target = target  # None: each message decides
        # Every message goes the same way, and there is one.
        self.takes_runs = target is not None and bool(target.queues or target.topics or not mandatory)
        self.generation = generation
        self.known: dict[bytes, Known] = {}  # by properties, of contents that ask for nothing more

    def know(self, properties: bytes, content: Content) -> Known:
        headers = record_headers(content, self.exchange.encode("utf-8", "surrogateescape"))
        extra = record_size(Record(self.key, None, headers, 0))
        known = (headers, extra, content.persistent)
        if len(properties) <= REMEMBERED_BYTES:
            self._routes.remember(self, properties, known)
        return known


class Routes:
    """Routes of one connection, by the bytes of basic.publish."""

    __slots__ = ("_known", "_routes", "get")

    def __init__(self) -> None:
        self._known = 0  # of all routes together
        self._routes: dict[bytes, Route] = {}
        self.get: Callable[[bytes], Route | None] = self._routes.get

    def make(self, channel: "Channel", raw: bytes) -> Route:
        """What is wrong with a publish is said when its message is whole: nothing that belongs to it is astray then."""
        method = m.BasicPublish.decode(raw, _IDS, len(raw))
        try:
            return self.find(channel, raw, method)
        except AmqpError:
            return Route(self, raw, method.exchange, method.routing_key, method.mandatory, None, _NEVER)

    def find(self, channel: "Channel", raw: bytes, method: m.BasicPublish) -> Route:
        """AmqpError where it may not be published so."""
        connection, core = channel.connection, channel.core
        if method.immediate:
            raise errors.not_implemented("immediate=true")
        vhost, name, key = connection.vhost, method.exchange, method.routing_key
        connection.check_access("write", "exchange", name)
        exchange = connection.exchange(name)
        if exchange.internal:
            raise errors.internal_exchange(name, vhost)
        if exchange.kind == "topic":
            connection.check_key("write", name, key)
        target: Target | None = core.publishing.target(vhost, name, (key,))
        if target is not None and (not target.cacheable or target.delayed or (not name and key.startswith(REPLY_TO))):
            target = None
        route = Route(self, raw, name, key, method.mandatory, target, core.generation)
        if len(self._routes) >= _ROUTES:
            self.clear()
        self._routes[raw] = route
        return route

    def renew(self, channel: "Channel", raw: bytes) -> Route:
        """The same as things are now. AmqpError where it may not be published so."""
        return self.find(channel, raw, m.BasicPublish.decode(raw, _IDS, len(raw)))

    def clear(self) -> None:
        self._routes.clear()
        self._known = 0

    def remember(self, route: Route, properties: bytes, known: Known) -> None:
        if self._known >= _KNOWN:
            self._known = 0
            for one in self._routes.values():
                one.known.clear()
            route.known.clear()
        self._known += 1
        route.known[properties] = known


def publish_specially(channel: "Channel", route: Route, content: Content, body: bytes) -> int:
    """A message that asks for more. ROUTED, LASTS and REFUSED as they apply."""
    connection = channel.connection
    core, vhost = connection.core, connection.vhost
    found = content.scan
    now_ms = connection.now_ms
    lifetime_ms, more_keys = check_content(channel, content)
    delay_ms = _delay_ms(content.headers)
    keys = (route.routing_key, *more_keys)
    properties = content.properties
    if found.reply_to == REPLY_TO:
        properties = changed(properties, reply_to=channel.reply_address)
    if "BCC" in content.headers:
        properties = with_headers(properties, {}, ("BCC",))
    if properties is not content.properties:
        content = content_of(properties)
    if not route.exchange and route.routing_key.startswith(REPLY_PREFIX):
        return _reply(channel, route, content, body)

    headers = record_headers(content, route.exchange.encode("utf-8", "surrogateescape"))
    if len(keys) > 1:
        headers += ((KEYS, json.dumps(keys).encode()),)
    key = dedupe_key(content)
    if key is not None:
        headers += ((DEDUPE, key),)
    priority = found.priority or 0
    if priority:
        headers += ((PRIORITY, b"%d" % priority),)
    record = Record(route.key, body, headers, now_ms)
    target = route.target
    if target is None or len(keys) > 1:
        asked = content

        def told() -> Mapping[Any, Any]:
            return with_properties(asked)

        target = core.publishing.target(vhost, route.exchange, keys, told)
    delayed = target.delayed and delay_ms > 0
    if lifetime_ms is not None:
        # It lives from when it is in a queue.
        due_ms = now_ms + delay_ms if delayed else now_ms
        record = Record(route.key, body, (*headers, (EXPIRES, b"%d" % (due_ms + lifetime_ms))), now_ms)
    if delayed:
        core.publishing.publish_later(vhost, route.exchange, keys, record, content.persistent, now_ms + delay_ms)
        return ROUTED | LASTS
    return target.publish(record, record_size(record), content.persistent, priority, lifetime_ms is not None)


def check_content(channel: "Channel", content: Content) -> tuple[int | None, list[str]]:
    """How long the message may wait, and its keys beside the routing key. AmqpError if it says what cannot be done."""
    connection, found = channel.connection, content.scan
    if found.user_id is not None and found.user_id != connection.user and not connection.may_impersonate:
        raise errors.wrong_user_id(found.user_id, connection.user)
    if found.reply_to == REPLY_TO and channel.reply_address is None:
        raise errors.no_reply_consumer()
    lifetime_ms = None if found.expiration is None else expiration_ms(found.expiration)
    return lifetime_ms, _more_keys(content.headers, "CC") + _more_keys(content.headers, "BCC")


def _reply(channel: "Channel", route: Route, content: Content, body: bytes) -> int:
    """Straight to the channel that asked, if it is still there."""
    connection = channel.connection
    asker = connection.service.replies.find(route.routing_key)
    if asker is None:
        return 0
    record = Record(route.key, body, record_headers(content, b""), connection.now_ms)
    asker.take_reply(record)
    return ROUTED


def expiration_ms(text: str) -> int:
    number = _WHOLE_NUMBER.match(text)
    if number is None:
        raise errors.invalid_expiration(text, "no_integer")
    if number.end() < len(text):
        raise errors.invalid_expiration(text, f'{{leftover_string,"{text[number.end() :]}"}}')
    value = int(text)
    if value < 0:
        raise errors.invalid_expiration(text, f"{{value_negative,{value}}}")
    if value > MAX_LIFE_MS:
        raise errors.invalid_expiration(text, f"{{value_too_large,{value}}}")
    return value


def _delay_ms(headers: Mapping[str, Any]) -> int:
    delay = headers.get("x-delay")
    if isinstance(delay, bool) or not isinstance(delay, int | float | str):
        return 0
    try:
        return min(max(int(delay), 0), MAX_DELAY_MS)
    except (ValueError, OverflowError):
        return 0


def _more_keys(headers: Mapping[str, Any], name: str) -> list[str]:
    keys = headers.get(name, [])
    if not isinstance(keys, list):
        raise precondition(f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(keys)}}}')
    return [key for key in keys if isinstance(key, str)]
