"""The exchanges of one namespace as a graph: which exchange leads where, and what a message reaches through it.

Comes in: exchanges and bindings as the catalog has them, one by one, and messages' keys and headers. Goes out: the
queues and topics reached. Bindings stand here by their names in the catalog only, which say all of them but their
arguments: there may be many.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from interlog.core.catalog import Catalog
from interlog.core.dedupe import DedupeRouter
from interlog.core.exchange_objects import (
    BINDING,
    DEFAULT,
    EXCHANGE,
    Exchange,
    binding_parts,
    built_in,
    exchange_of,
    unpack_table,
)
from interlog.core.hashing import HashRouter
from interlog.core.headers_match import HeadersRouter
from interlog.core.routing import (
    DefaultRouter,
    Destinations,
    DirectRouter,
    End,
    FanoutRouter,
    Headers,
    ModulusRouter,
    Router,
    TurnsRouter,
)
from interlog.core.seen_keys import Memories
from interlog.core.topic_trie import TopicRouter

Alternate = Callable[[Exchange], str | None]

_ROUTERS: Mapping[str, Callable[[], Router]] = {
    "direct": DirectRouter,
    "fanout": FanoutRouter,
    "topic": TopicRouter,
    "headers": HeadersRouter,
    "modulus-hash": ModulusRouter,
    "random": TurnsRouter,
    "local-random": TurnsRouter,
}


class Node:
    """An exchange; `bindings` are the names of those that lead from it."""

    __slots__ = ("bindings", "exchange", "router")

    def __init__(self, exchange: Exchange, router: Router) -> None:
        self.exchange = exchange
        self.router = router
        self.bindings: set[str] = set()


class Graph:
    def __init__(self, catalog: Catalog, namespace: str, memories: Memories) -> None:
        self.nodes: dict[str, Node] = {}
        self._memories = memories
        self._catalog = catalog
        self._namespace = namespace
        self._queues: dict[str, End] = {}
        self._exchanges: dict[str, End] = {}
        for exchange in built_in(namespace):
            self.add_exchange(exchange)
        for item in catalog.objects(EXCHANGE, namespace):
            self.add_exchange(exchange_of(item))
        for item in catalog.objects(BINDING, namespace):
            self.add_binding(item.name, item.value)

    def _router(self, exchange: Exchange) -> Router:
        if exchange.name == DEFAULT:
            return DefaultRouter(self._catalog, self._namespace)
        if exchange.kind == "dedupe":
            memory = self._memories.of(self._namespace, exchange.name, exchange.settings, exchange.durable)
            return DedupeRouter(memory, self._memories.clock)
        make = _ROUTERS.get(exchange.kind)
        return HashRouter(exchange.settings) if make is None else make()

    # -- changed

    def add_exchange(self, exchange: Exchange) -> None:
        self.nodes[exchange.name] = Node(exchange, self._router(exchange))

    def remove_exchange(self, name: str) -> None:
        self.nodes.pop(name, None)

    def add_binding(self, name: str, value: Mapping[str, Any]) -> None:
        source, to_queue, destination, key = binding_parts(name)
        node = self.nodes.get(source)
        if node is None or name in node.bindings:
            return
        ends = self._queues if to_queue else self._exchanges
        end = ends.get(destination)
        if end is None:
            end = ends[destination] = End(destination, to_queue)
        node.bindings.add(name)
        end.bindings.add(name)
        node.router.add(end, key, _arguments(value))

    def remove_binding(self, name: str, value: Mapping[str, Any]) -> None:
        source, to_queue, destination, key = binding_parts(name)
        node = self.nodes.get(source)
        if node is None or name not in node.bindings:
            return
        ends = self._queues if to_queue else self._exchanges
        end = ends[destination]
        node.bindings.remove(name)
        end.bindings.remove(name)
        node.router.remove(end, key, _arguments(value))
        if not end.bindings:
            del ends[destination]

    # -- asked

    def bindings_to(self, destination: str, to_queue: bool) -> Iterable[str]:
        end = (self._queues if to_queue else self._exchanges).get(destination)
        return end.bindings if end is not None else ()

    def walk(
        self, start: Node, ends: Sequence[End], keys: Sequence[str], headers: Headers, alternate: Alternate
    ) -> Destinations:
        """From an exchange on, whose matches are `ends`: through exchanges that exchanges lead to, each once.

        Wherever nothing matches, the alternate exchange is led to instead.
        """
        seen = {start}
        pending: list[Node] = []
        queues: set[str] = set()
        cacheable = start.router.by_key
        node = start
        while True:
            onward: list[str | None] = [] if ends else [alternate(node.exchange)]
            for end in ends:
                if end.to_queue:
                    queues.add(end.name)
                else:
                    onward.append(end.name)
            for name in onward:
                following = self.nodes.get(name) if name is not None else None
                if following is not None and following not in seen:
                    seen.add(following)
                    pending.append(following)
            if not pending:
                return Destinations(tuple(sorted(queues)), bool(queues), cacheable, start.exchange.delayed)
            node = pending.pop()
            cacheable = cacheable and node.router.by_key
            ends = node.router.match(keys, headers)


def _arguments(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return unpack_table(value["arguments"]) if value else {}
