"""Queues, exchanges and bindings over HTTP, to look at, with RabbitMQ's paths and names.

Comes in: calls of those who may look. Goes out: what there is in the vhosts that the user may see.
"""

from collections.abc import Mapping
from typing import Any, Final

from interlog.base.errors import NotFoundError
from interlog.core.broker import Core
from interlog.core.catalog_objects import TopicItem
from interlog.core.exchanges import Binding, Exchange
from interlog.core.queue_settings import DECLARED
from interlog.core.work_queue import WorkQueue
from interlog.web.guard import Call, Guard, Needs
from interlog.web.http import Response, json_response
from interlog.web.policies_api import age_text
from interlog.web.router import Routes

_KINDS: Final = {
    "consistent-hash": "x-consistent-hash",
    "modulus-hash": "x-modulus-hash",
    "random": "x-random",
    "local-random": "x-local-random",
    "dedupe": "x-message-deduplication",
}
_DELAYED: Final = "x-delayed-message"
_EXCHANGE_SETTINGS: Final = (
    ("hash_header", "hash-header"),
    ("hash_property", "hash-property"),
    ("cache_size", "x-cache-size"),
    ("cache_ttl_ms", "x-cache-ttl"),
)
_STREAM_SIZES: Final = (
    ("retention_bytes", "x-max-length-bytes"),
    ("segment_bytes", "x-stream-max-segment-size-bytes"),
)


class ObjectsApi:
    def __init__(self, core: Core, guard: Guard) -> None:
        self._core = core
        self._guard = guard

    def routes(self) -> Routes:
        def viewers(serve: Any) -> Any:
            return {"GET": self._guard.handler(Needs.A_VIEWER, serve)}

        return {
            "/api/queues": viewers(self._queues),
            "/api/queues/{vhost}": viewers(self._queues),
            "/api/queues/{vhost}/{name}": viewers(self._queue),
            "/api/exchanges": viewers(self._exchanges),
            "/api/exchanges/{vhost}": viewers(self._exchanges),
            "/api/exchanges/{vhost}/{name}": viewers(self._exchange),
            "/api/bindings": viewers(self._bindings),
            "/api/bindings/{vhost}": viewers(self._bindings),
        }

    def _queues(self, call: Call) -> Response:
        core, found = self._core, []
        for space in self._guard.vhosts(call, core.catalog):
            found += [self._shown_queue(queue) for queue in core.work_queues.all(space)]
            found += [self._shown_stream(topic) for topic in core.catalog.topics(space)]
        return json_response(found)

    def _queue(self, call: Call) -> Response:
        namespace, name = call.parts
        self._guard.check_vhost(call, namespace)
        queue = self._core.work_queues.find(namespace, name)
        if queue is not None:
            return json_response(self._shown_queue(queue))
        item = self._core.catalog.find(namespace, name)
        if not isinstance(item, TopicItem):
            raise NotFoundError(f"there is no queue {name} in namespace {namespace}")
        return json_response(self._shown_stream(item))

    def _exchanges(self, call: Call) -> Response:
        spaces = self._guard.vhosts(call, self._core.catalog)
        return json_response([_exchange(one) for space in spaces for one in self._core.exchanges.all(space)])

    def _exchange(self, call: Call) -> Response:
        namespace, name = call.parts
        self._guard.check_vhost(call, namespace)
        return json_response(_exchange(self._core.exchanges.get(namespace, "" if name == "amq.default" else name)))

    def _bindings(self, call: Call) -> Response:
        exchanges, found = self._core.exchanges, []
        for space in self._guard.vhosts(call, self._core.catalog):
            found += [_binding(space, one) for one in exchanges.bindings(space)]
        return json_response(found)

    def _shown_queue(self, queue: WorkQueue) -> dict[str, Any]:
        settings, policies = queue.settings, self._core.policies
        where = queue.namespace, queue.name, settings.kind
        return {
            "name": queue.name,
            "vhost": queue.namespace,
            "type": settings.kind,
            "durable": queue.durable or queue.item.settings.get("durable", False),
            "auto_delete": settings.auto_delete,
            "exclusive": queue.owner is not None,
            "arguments": queue.item.settings.get(DECLARED) or {},
            "policy": _name(policies.for_queue(*where)),
            "operator_policy": _name(policies.for_queue(*where, operator=True)),
            "state": "running",
            "consumers": queue.consumer_count,
            "messages": queue.ready + queue.leased,
            "messages_ready": queue.ready,
            "messages_unacknowledged": queue.leased,
            "message_bytes_ready": queue.ready_bytes,
        }

    def _shown_stream(self, item: TopicItem) -> dict[str, Any]:
        policies, where = self._core.policies, (item.namespace, item.name, "stream")
        topic = self._core.topics.get(item.namespace, item.name)
        messages = sum(topic.log_end(index) - topic.log_start(index) for index in range(len(topic)))
        return {
            "name": item.name,
            "vhost": item.namespace,
            "type": "stream",
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "arguments": _stream_arguments(item.settings),
            "policy": _name(policies.for_queue(*where)),
            "operator_policy": _name(policies.for_queue(*where, operator=True)),
            "state": "running",
            "messages": messages,
            "messages_ready": messages,
            "messages_unacknowledged": 0,
        }


def _stream_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What it would be declared with by AMQP, however it was made."""
    arguments: dict[str, Any] = {"x-queue-type": "stream"}
    if settings.get("retention_ms", -1) >= 0:
        arguments["x-max-age"] = age_text(settings["retention_ms"])
    for setting, argument in _STREAM_SIZES:
        if settings.get(setting, -1) >= 0:
            arguments[argument] = settings[setting]
    return arguments


def _name(policy: Any) -> str | None:
    return None if policy is None else policy.name


def _exchange(exchange: Exchange) -> dict[str, Any]:
    return {
        "name": exchange.name,
        "vhost": exchange.namespace,
        "type": _DELAYED if exchange.delayed else _KINDS.get(exchange.kind, exchange.kind),
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": _exchange_arguments(exchange),
    }


def _exchange_arguments(exchange: Exchange) -> dict[str, Any]:
    """What it was declared with by AMQP, or would be."""
    settings = exchange.settings
    arguments = dict(settings.get(DECLARED) or {})
    arguments |= {argument: settings[name] for name, argument in _EXCHANGE_SETTINGS if name in settings}
    if settings.get("cache_lasts"):
        arguments["x-cache-persistence"] = "disk"
    if exchange.alternate is not None:
        arguments["alternate-exchange"] = exchange.alternate
    if exchange.delayed:
        arguments["x-delayed-type"] = _KINDS.get(exchange.kind, exchange.kind)
    return arguments


def _binding(namespace: str, binding: Binding) -> dict[str, Any]:
    return {
        "source": binding.source,
        "vhost": namespace,
        "destination": binding.destination,
        "destination_type": "queue" if binding.to_queue else "exchange",
        "routing_key": binding.key,
        "arguments": binding.arguments,
        "properties_key": binding.id,
    }
