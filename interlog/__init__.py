"""Interlog: a message broker in one process.

`interlog.Broker` runs it inside another program; `interlog serve` runs it by itself.
"""

from typing import TYPE_CHECKING

from interlog.base.errors import InterlogError, SettingError
from interlog.base.version import VERSION as __version__

if TYPE_CHECKING:
    from interlog.app.embedded import Broker

__all__ = ["Broker", "InterlogError", "SettingError", "__version__"]


def __getattr__(name: str) -> object:
    # Late, so that importing a part of the package does not load the whole broker.
    if name == "Broker":
        from interlog.app.embedded import Broker

        return Broker
    raise AttributeError(f"module 'interlog' has no attribute {name!r}")
