"""Routers: which ends of an exchange's bindings a message reaches, one class for each kind of exchange.

Comes in: bindings that come and go, and a message's keys and headers. Goes out: ends, perhaps several times the same.
An end is a queue (or a topic) or another exchange, one object for each of them in a namespace; what
exchanges lead to is the business of `exchange_graph`. No router looks at more bindings than those that may match.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

from interlog.core.catalog_state import CatalogState

# What a message's headers are called by; its properties are there, too, as ("", "message_id") and so on. Only called
# where an exchange wants to know.
Headers = Callable[[], Mapping[Any, Any]]


class Destinations(NamedTuple):
    """Where a message goes."""

    queues: tuple[str, ...]  # names of queues and topics, each once, in order
    found: bool  # False: nothing matched, alternates included
    cacheable: bool  # the same exchange and keys lead there again, for this generation
    delayed: bool  # the exchange it was published to delays


class End:
    """Where a binding leads; `bindings` are the names of those that lead there."""

    __slots__ = ("bindings", "name", "to_queue")

    def __init__(self, name: str, to_queue: bool) -> None:
        self.name = name
        self.to_queue = to_queue
        self.bindings: set[str] = set()


NO_ENDS: Final[list[End]] = []


class Router(Protocol):
    by_key: bool  # nothing but the keys decides

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """InvalidError if there cannot be such a binding."""

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None: ...

    def remove(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        """Of a binding that was added."""

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        """What is given back stays the router's own."""


# -- lists of ends: in order, an end as often as it is bound


def _order(end: End) -> tuple[str, bool]:
    return end.name, end.to_queue


def insert_end(ends: list[End], end: End) -> None:
    insort(ends, end, key=_order)


def delete_end(ends: list[End], end: End) -> None:
    del ends[bisect_left(ends, _order(end), key=_order)]


class KeyedEnds:
    """Ends by the very key they are bound with."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[str, list[End]] = {}

    def add(self, key: str, end: End) -> None:
        ends = self._by_key.get(key)
        if ends is None:
            self._by_key[key] = [end]
        else:
            insert_end(ends, end)

    def remove(self, key: str, end: End) -> None:
        ends = self._by_key[key]
        delete_end(ends, end)
        if not ends:
            del self._by_key[key]

    def get(self, key: str) -> list[End]:
        return self._by_key.get(key, NO_ENDS)


# -- the plain kinds


class DirectRouter:
    """The key is the binding's key."""

    by_key = True

    def __init__(self) -> None:
        self._ends = KeyedEnds()

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """Any will do."""

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        self._ends.add(key, end)

    def remove(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        self._ends.remove(key, end)

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        if len(keys) == 1:
            return self._ends.get(keys[0])
        return [end for key in keys for end in self._ends.get(key)]


class FanoutRouter:
    """All of them."""

    by_key = True

    def __init__(self) -> None:
        self._ends: list[End] = []

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """Any will do."""

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        insert_end(self._ends, end)

    def remove(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        delete_end(self._ends, end)

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        return self._ends


class ModulusRouter(FanoutRouter):
    """One of them, by the key: the same for as long as no end comes or goes."""

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        ends = list(dict.fromkeys(self._ends))
        if not ends:
            return NO_ENDS
        return [ends[crc32((keys[0] if keys else "").encode("utf-8", "surrogatepass")) % len(ends)]]


class TurnsRouter(FanoutRouter):
    """One of them, each in its turn."""

    by_key = False

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        ends = list(dict.fromkeys(self._ends))
        if not ends:
            return NO_ENDS
        self._turn = (self._turn + 1) % len(ends)
        return [ends[self._turn]]


class DefaultRouter:
    """The key is a queue's or a topic's name; there are no bindings."""

    by_key = True

    def __init__(self, catalog: CatalogState, namespace: str) -> None:
        self._catalog = catalog
        self._namespace = namespace

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        raise AssertionError("nothing is bound to the default exchange")

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        raise AssertionError("nothing is bound to the default exchange")

    remove = add

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        find, namespace = self._catalog.find, self._namespace
        return [End(key, True) for key in keys if find(namespace, key) is not None]
