"""Which event loop the broker runs on."""

import asyncio
from collections.abc import Callable

from interlog.base.log import get_log

log = get_log("app")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed, else what Python brings."""
    try:
        import uvloop
    except ImportError:
        log.debug("uvloop is not installed; using Python's own event loop")
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.Loop
    return factory
