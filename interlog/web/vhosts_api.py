"""Virtual hosts and the overview over HTTP, with RabbitMQ's paths and bodies. A vhost is a namespace.

Comes in: calls. Goes out: what there is, and changes that last before they are answered. Who makes a vhost gets all
permissions in it, as with RabbitMQ.
"""

from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.base.version import VERSION
from interlog.core.broker import Core
from interlog.core.catalog_objects import Namespace
from interlog.web.guard import Call, Guard, Needs, lasting
from interlog.web.http import Response, json_response
from interlog.web.router import Routes

CREATED, DONE = 201, 204
_KEPT: Final = ("description", "default_queue_type")
_QUEUE_TYPES: Final = ("classic", "quorum", "stream")


class VhostsApi:
    def __init__(self, core: Core, guard: Guard) -> None:
        self._core = core
        self._guard = guard

    def routes(self) -> Routes:
        handler = self._guard.handler
        return {
            "/api/overview": {"GET": handler(Needs.A_VIEWER, self._overview)},
            "/api/vhosts": {"GET": handler(Needs.A_VIEWER, self._vhosts)},
            "/api/vhosts/{name}": {
                "GET": handler(Needs.A_VIEWER, self._vhost),
                "PUT": handler(Needs.AN_ADMINISTRATOR, self._put_vhost),
                "DELETE": handler(Needs.AN_ADMINISTRATOR, self._delete_vhost),
            },
        }

    def _overview(self, call: Call) -> Response:
        status = self._core.status()
        messages = status["messages"]
        return json_response(
            {
                "product_name": "Interlog",
                "product_version": VERSION,
                "queue_totals": {
                    "messages": messages["ready"] + messages["leased"],
                    "messages_ready": messages["ready"],
                    "messages_unacknowledged": messages["leased"],
                },
                "object_totals": {"queues": status["queues"], "vhosts": status["namespaces"]},
            }
        )

    def _vhosts(self, call: Call) -> Response:
        namespaces = self._core.catalog.namespaces()
        return json_response([_vhost(one) for one in namespaces if self._guard.shows(call, one.name)])

    def _vhost(self, call: Call) -> Response:
        (name,) = call.parts
        self._guard.check_vhost(call, name)
        return json_response(_vhost(self._core.catalog.namespace(name)))

    def _put_vhost(self, call: Call) -> Response:
        (name,) = call.parts
        settings = _settings(call.body())
        catalog = self._core.catalog
        if any(one.name == name for one in catalog.namespaces()):
            catalog.alter_namespace(name, {**catalog.namespace(name).settings, **settings})
            status = DONE
        else:
            catalog.create_namespace(name, settings)
            self._core.access.set_permissions(name, call.user.name, ".*", ".*", ".*")
            status = CREATED
        return lasting(Response(status, b""), self._core.ticket)

    def _delete_vhost(self, call: Call) -> Response:
        self._core.delete_namespace(call.parts[0])
        return lasting(Response(DONE, b""), self._core.ticket)


def _vhost(namespace: Namespace) -> dict[str, Any]:
    settings = namespace.settings
    shown = {
        "description": settings.get("description", ""),
        "tags": settings.get("tags", []),
        "default_queue_type": settings.get("default_queue_type", "classic"),
    }
    return {"name": namespace.name, **shown, "metadata": shown, "tracing": False}


def _settings(body: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a body; what is not there stays as it is."""
    settings: dict[str, Any] = {name: body[name] for name in _KEPT if body.get(name) is not None}
    for name, value in settings.items():
        if not isinstance(value, str):
            raise InvalidError(f"the {name} must be text")
    if settings.get("default_queue_type", "classic") not in _QUEUE_TYPES:
        raise InvalidError(f"the default_queue_type is one of {', '.join(_QUEUE_TYPES)}")
    tags = body.get("tags")
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
    if tags is not None:
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise InvalidError("tags must be a list of words, or one text with commas between them")
        settings["tags"] = tags
    return settings
