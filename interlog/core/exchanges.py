"""Exchanges and bindings: declared, bound, deleted, and asked where a message goes.

Comes in: what faces want, and every change of the catalog. Goes out: objects of kind "exchange" and "binding" for
the catalog, and the queues and topics that a message reaches. What follows from a change (bindings that go with their
ends, exchanges that go with their last binding) is done here, live, as changes of the catalog of their own in the same
tick, so replay has nothing to decide.

A namespace's graph is made from the catalog when it is first asked for, and follows the catalog's changes from then
on. What was loaded without a word, or asked for while a change was being told, shows in the catalog's generation: then
graphs are made anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interlog.base.clock import SystemClock
from interlog.base.errors import InequivalentError, InUseError, NotFoundError, RefusedError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, Namespace, ObjectItem, QueueItem, TopicItem, What
from interlog.core.exchange_graph import Graph, Node
from interlog.core.exchange_objects import (
    BINDING,
    DECLARED,
    DEFAULT,
    EXCHANGE,
    RESERVED,
    Binding,
    Exchange,
    binding_name,
    binding_of,
    binding_parts,
    binding_value,
    check_exchange,
    check_key,
    exchange_of,
    exchange_value,
)
from interlog.core.policies import Policies
from interlog.core.routing import Destinations, Headers
from interlog.core.seen_keys import Memories

__all__ = ["Binding", "Destinations", "Exchange", "Exchanges"]


def _no_headers() -> Mapping[Any, Any]:
    return {}


class Exchanges:
    def __init__(self, catalog: Catalog, policies: Policies | None = None, memories: Memories | None = None) -> None:
        self.generation = 0  # rises with each change that may change where a message goes
        self._catalog = catalog
        self._policies = Policies(catalog) if policies is None else policies
        self._graphs: dict[str, Graph] = {}
        self._memories = Memories(catalog, SystemClock()) if memories is None else memories
        self._seen = catalog.generation  # the generation of the catalog that the graphs are of
        catalog.observe(self._changed)

    # -- the catalog changed

    def _changed(self, change: Change) -> None:
        item = change.item
        if change.what is What.REMOVED:
            if isinstance(item, Namespace):
                self._memories.forget_namespace(item.name)
            elif isinstance(item, ObjectItem) and item.kind == EXCHANGE:
                self._memories.forget(item.namespace, item.name)
        if isinstance(item, ObjectItem):
            self.generation += item.kind in (EXCHANGE, BINDING, *Policies.KINDS)
        elif not isinstance(item, Namespace):
            self.generation += change.what is not What.CHANGED
        if self._catalog.generation != self._seen + 1:
            return
        self._seen += 1
        if isinstance(item, Namespace) and change.what is What.REMOVED:
            self._graphs.pop(item.name, None)
        elif isinstance(item, ObjectItem) and item.kind in (EXCHANGE, BINDING):
            graph = self._graphs.get(item.namespace)
            if graph is not None:
                self._follow(graph, change.what, item)

    @staticmethod
    def _follow(graph: Graph, what: What, item: ObjectItem) -> None:
        if what is What.REMOVED:
            if item.kind == EXCHANGE:
                graph.remove_exchange(item.name)
            else:
                graph.remove_binding(item.name, item.value)
        elif item.kind == EXCHANGE:
            graph.add_exchange(exchange_of(item))
        else:
            graph.add_binding(item.name, item.value)

    def _graph(self, namespace: str) -> Graph:
        if self._seen != self._catalog.generation:
            self._graphs.clear()
            self._seen = self._catalog.generation
            self.generation += 1
        graph = self._graphs.get(namespace)
        if graph is None:
            graph = self._graphs[namespace] = Graph(
                self._catalog, self._catalog.namespace(namespace).name, self._memories
            )
        return graph

    def _node(self, namespace: str, name: str) -> Node:
        node = self._graph(namespace).nodes.get(name)
        if node is None:
            raise NotFoundError(f"there is no exchange {name} in namespace {namespace}")
        return node

    # -- asked

    def get(self, namespace: str, name: str) -> Exchange:
        return self._node(namespace, name).exchange

    def exists(self, namespace: str, name: str) -> bool:
        return name in self._graph(namespace).nodes

    def all(self, namespace: str) -> list[Exchange]:
        """By name, those that nobody made among them."""
        return [node.exchange for _, node in sorted(self._graph(namespace).nodes.items())]

    def bindings(self, namespace: str) -> list[Binding]:
        """First those of the default exchange, which nobody made: one for each queue and topic."""
        made = [binding_of(item) for item in self._catalog.objects(BINDING, namespace)]
        return self.bindings_from(namespace, DEFAULT) + made

    def bindings_from(self, namespace: str, exchange: str) -> list[Binding]:
        node = self._node(namespace, exchange)
        if exchange == DEFAULT:
            catalog = self._catalog
            names = [item.name for items in (catalog.queues(namespace), catalog.topics(namespace)) for item in items]
            return [_implied(name) for name in sorted(names)]
        return self._read(namespace, node.bindings)

    def bindings_to(self, namespace: str, destination: str, to_queue: bool) -> list[Binding]:
        made = self._read(namespace, self._graph(namespace).bindings_to(destination, to_queue))
        if to_queue and self._catalog.find(namespace, destination) is not None:
            return [_implied(destination), *made]
        return made

    def _read(self, namespace: str, names: Iterable[str]) -> list[Binding]:
        items = [self._catalog.object(BINDING, namespace, name) for name in sorted(names)]
        return [binding_of(item) for item in items if item is not None]

    def route(self, namespace: str, exchange: str, keys: Sequence[str], headers: Headers = _no_headers) -> Destinations:
        """NotFoundError if there is no such exchange. An internal one will do: dead letters go there."""
        if self._seen != self._catalog.generation:
            self._graph(namespace)
        try:
            graph = self._graphs[namespace]
            node = graph.nodes[exchange]
        except KeyError:
            node = self._node(namespace, exchange)
            graph = self._graphs[namespace]
        ends = node.router.match(keys, headers)
        if len(ends) == 1 and ends[0].to_queue:
            return Destinations((ends[0].name,), True, node.router.by_key, node.exchange.delayed)
        return graph.walk(node, ends, keys, headers, self._alternate)

    def _alternate(self, exchange: Exchange) -> str | None:
        """What the exchange was declared with goes before what policies say."""
        if exchange.alternate is not None or exchange.name == DEFAULT:
            return exchange.alternate
        name: str | None = self._policies.of_exchange(exchange.namespace, exchange.name).get("alternate")
        return name

    # -- changed: exchanges

    def declare(
        self,
        namespace: str,
        name: str,
        kind: str,
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
        delayed: bool = False,
        alternate: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Exchange:
        """The exchange, made if it is not there; InequivalentError if it is there and was declared otherwise."""
        if name == DEFAULT:
            raise RefusedError("the default exchange is there already, and nobody may declare it")
        node = self._graph(namespace).nodes.get(name)
        wanted = Exchange(
            namespace, name, kind, durable, auto_delete, internal, delayed, alternate, dict(settings or {})
        )
        if node is not None:
            _compare(wanted, node.exchange)
            return node.exchange
        if name.startswith(RESERVED):
            raise RefusedError(f"exchange {name} cannot be declared: names that begin with {RESERVED} are reserved")
        check_exchange(wanted)
        self._catalog.put(EXCHANGE, namespace, name, exchange_value(wanted), durable=durable)
        return self.get(namespace, name)

    def delete(self, namespace: str, name: str, *, if_unused: bool = False) -> None:
        """The exchange, with all bindings from it and to it."""
        if name == DEFAULT or name.startswith(RESERVED):
            raise RefusedError(f"exchange {name or '(default)'} is the broker's own and cannot be deleted")
        node = self._node(namespace, name)
        if if_unused and node.bindings:
            raise InUseError(f"exchange {name} in namespace {namespace} has bindings")
        self._remove(namespace, [name])

    def _remove(self, namespace: str, exchanges: Iterable[str]) -> None:
        """Exchanges, their bindings, and the exchanges that those were the last binding of."""
        pending = list(exchanges)
        while pending:
            name = pending.pop()
            graph = self._graph(namespace)
            node = graph.nodes.get(name)
            if node is not None:
                spent = self._discard(namespace, node.bindings.union(graph.bindings_to(name, False)))
                self._catalog.discard(EXCHANGE, namespace, name)
                pending += spent

    # -- changed: bindings

    def bind(
        self,
        namespace: str,
        source: str,
        destination: str,
        key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        to_queue: bool = True,
    ) -> None:
        """Nothing happens if it is bound so already."""
        _refuse_default(source, destination, to_queue)
        arguments = arguments or {}
        node = self._node(namespace, source)
        if to_queue:
            lasts = _lasts(self._find(namespace, destination))
        else:
            lasts = self._node(namespace, destination).exchange.durable
        check_key(key)
        name = binding_name(source, to_queue, destination, key, arguments)
        node.router.check(key, arguments)
        if name not in node.bindings:
            durable = lasts and node.exchange.durable
            self._catalog.put(BINDING, namespace, name, binding_value(arguments), durable=durable)

    def _find(self, namespace: str, name: str) -> QueueItem | TopicItem:
        item = self._catalog.find(namespace, name)
        if item is None:
            raise NotFoundError(f"there is no queue {name} in namespace {namespace}")
        return item

    def unbind(
        self,
        namespace: str,
        source: str,
        destination: str,
        key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        to_queue: bool = True,
    ) -> None:
        """Nothing happens if it is not bound so, or the one or the other is not there at all."""
        _refuse_default(source, destination, to_queue)
        node = self._graph(namespace).nodes.get(source)
        name = binding_name(source, to_queue, destination, key, arguments or {})
        if node is not None and name in node.bindings:
            self._remove(namespace, self._discard(namespace, [name]))

    def drop_queue(self, namespace: str, queue: str) -> None:
        """All bindings to a queue, or a topic, that is about to be removed."""
        names = self._graph(namespace).bindings_to(queue, True)
        if names:
            self._remove(namespace, self._discard(namespace, names))

    def _discard(self, namespace: str, names: Iterable[str]) -> list[str]:
        """Remove bindings; the exchanges that want to go with their last binding, and of which these were the last."""
        ordered = sorted(names)  # a copy, in an order that is always the same
        for name in ordered:
            self._catalog.discard(BINDING, namespace, name)
        nodes = self._graph(namespace).nodes
        spent = []
        for source in sorted({binding_parts(name)[0] for name in ordered}):
            node = nodes.get(source)
            if node is not None and node.exchange.auto_delete and not node.bindings:
                spent.append(source)
        return spent


def _implied(queue: str) -> Binding:
    return Binding(DEFAULT, True, queue, queue)


def _lasts(item: QueueItem | TopicItem) -> bool:
    return isinstance(item, TopicItem) or item.durable


def _refuse_default(source: str, destination: str, to_queue: bool) -> None:
    if source == DEFAULT or (not to_queue and destination == DEFAULT):
        raise RefusedError(
            "nothing can be bound to the default exchange or unbound from it: its keys are queues' names"
        )


def _compare(wanted: Exchange, found: Exchange) -> None:
    subject = f"exchange {found.name} in namespace {found.namespace}"
    pairs: list[tuple[str, object, object]] = [
        ("delayed", wanted.delayed, found.delayed),
        ("kind", wanted.kind, found.kind),
        ("durable", wanted.durable, found.durable),
        ("auto_delete", wanted.auto_delete, found.auto_delete),
        ("internal", wanted.internal, found.internal),
        ("alternate", wanted.alternate, found.alternate),
    ]
    names = sorted({*wanted.settings, *found.settings} - {DECLARED})
    pairs += [(name, wanted.settings.get(name), found.settings.get(name)) for name in names]
    for what, one, other in pairs:
        if one != other:
            raise InequivalentError(subject, what, one, other)
