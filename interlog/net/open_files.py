"""How many files the process may have open, for each connection is one.

In comes what the system allows; out goes how many connections there may be, and a sentence if these are few.
"""

import resource
from typing import Final

from interlog.base.limits import FILES_BESIDE_CONNECTIONS, MAX_CONNECTIONS
from interlog.base.log import get_log

log = get_log("net")

_WANTED: Final = MAX_CONNECTIONS + FILES_BESIDE_CONNECTIONS


def raise_limit() -> None:
    """As many as are wanted, if the system allows it without being asked by root."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if most == resource.RLIM_INFINITY else min(_WANTED, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def connections_allowed() -> int:
    """How many connections may be open at a time; said aloud if the system allows fewer than the broker."""
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY or now >= _WANTED:
        return MAX_CONNECTIONS
    allowed = max(now - FILES_BESIDE_CONNECTIONS, now // 2)
    log.warning(
        f"This process may have {now:,} files open, so that at most {allowed:,} connections are served and not "
        f"{MAX_CONNECTIONS:,}. To serve more, allow it {_WANTED:,}: ulimit -n, or LimitNOFILE of the service.",
        files=now,
        connections=allowed,
    )
    return allowed
