"""The APIs that are served, and the versions that are advertised: this and nothing else is what ApiVersions tells.

The modules are loaded when somebody first uses them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.fields import Message

Handle = Callable[[Request, Any], Message | None]


class Served(NamedTuple):
    module: str
    versions: range


SERVED: Final[dict[int, Served]] = {}

_handlers: dict[int, Handle] = {}


def handler(key: int) -> Handle:
    """Of an API that is served."""
    found = _handlers.get(key)
    if found is None:
        module = import_module(f"interlog.faces.kafka.api.{SERVED[key].module}")
        found = _handlers[key] = module.handle
    return found
