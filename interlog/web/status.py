"""What the broker tells about itself: /health for a supervisor, /status for a person, /metrics for Prometheus.

All three are made when asked, from what the core says of itself (`Core.status()`, a dictionary of plain values) and
what only the process knows: since when, where, with which memory.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interlog.base.clock import Clock
from interlog.base.metrics import CONTENT_TYPE, Metrics
from interlog.base.version import VERSION
from interlog.web.http import Request, Response, json_response
from interlog.web.router import Routes

OS_WARNING = (
    "Durability is os: what is acknowledged may be lost in a power cut until the operating system has written it out."
)

CoreStatus = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class About:
    """What does not change while the broker runs."""

    folder: str
    durability: str
    flush_ms: int
    started: float  # monotonic seconds
    addresses: Mapping[str, str]


class Status:
    """The three answers."""

    def __init__(self, core_status: CoreStatus, about: About, clock: Clock, metrics: Metrics) -> None:
        self._core_status = core_status
        self._about = about
        self._clock = clock
        self._metrics = metrics
        self.stopping = False
        metrics.samples(
            "interlog_info",
            "What runs: always 1.",
            lambda: [((("version", VERSION), ("durability", about.durability)), 1)],
        )
        metrics.gauge("interlog_uptime_seconds", "Seconds since the start.", self._uptime)
        metrics.gauge("interlog_resident_memory_bytes", "Memory of the process.", resident_bytes)
        metrics.gauge("interlog_healthy", "1 while the journal accepts writes.", lambda: int(self._health()[0]))

    def routes(self) -> Routes:
        return {
            "/health": {"GET": self.health},
            "/status": {"GET": self.status},
            "/metrics": {"GET": self.metrics},
        }

    def health(self, request: Request) -> Response:
        """200 while the broker can do its work. A full disk is no reason to restart it: consuming goes on."""
        healthy, state = self._health()
        content = {"status": state}
        core = self._core_status()
        reason = core.get("reason") or _journal(core).get("reason")
        if reason:
            content["reason"] = str(reason)
        return json_response(content, 200 if healthy else 503)

    def status(self, request: Request) -> Response:
        about = self._about
        content: dict[str, Any] = {
            "version": VERSION,
            "health": self._health()[1],
            "data": about.folder,
            "durability": about.durability,
        }
        if about.durability == "os":
            content["flush_ms"] = about.flush_ms
            content["warning"] = OS_WARNING
        content["uptime_s"] = round(self._uptime(), 3)
        content["memory_bytes"] = resident_bytes()
        content["addresses"] = dict(about.addresses)
        return json_response(content | {"core": dict(self._core_status())})

    def metrics(self, request: Request) -> Response:
        lines = [self._metrics.render()]
        for name, value in _numbers(self._core_status(), "interlog"):
            lines.append(f"# TYPE {name} gauge\n{name} {value}\n")
        return Response(200, "".join(lines).encode(), CONTENT_TYPE)

    def _health(self) -> tuple[bool, str]:
        if self.stopping:
            return False, "stopping"
        state = _journal(self._core_status()).get("state", "ok")
        return state != "failed", str(state)

    def _uptime(self) -> float:
        return self._clock.monotonic() - self._about.started


def _journal(status: Mapping[str, Any]) -> Mapping[str, Any]:
    journal = status.get("journal")
    return journal if isinstance(journal, Mapping) else {}


def _numbers(status: Mapping[str, Any], path: str) -> Iterable[tuple[str, int | float]]:
    """Every number of a nested dictionary, named by its path: {"journal": {"tail": 7}} is interlog_journal_tail.

    Only what has a plain name has a path: a topic's or a queue's name belongs into a label.
    """
    for key, value in status.items():
        if not key.isidentifier():
            continue
        name = f"{path}_{key}"
        if isinstance(value, Mapping):
            yield from _numbers(value, name)
        elif isinstance(value, int | float):
            yield name, int(value) if isinstance(value, bool) else value


def resident_bytes() -> int:
    """The memory that the process really occupies."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # no /proc: the most that it ever was is the next best

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
