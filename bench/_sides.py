"""Two brokers side by side: what a scenario found on one of them, medians of rounds, and who stands still meanwhile."""

import os
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from _rig import cpu_seconds


@dataclass
class Figure:
    """What one scenario found on one broker in one round."""

    rate: float = 0.0  # of whatever is counted, a second
    broker_us: float = 0.0  # CPU of the broker for each
    client: float = 0.0  # share of one core that the client needed
    more: dict[str, float] = field(default_factory=dict)
    broker: float = 0.0  # share of one core that the broker needed


def median(figures: list[Figure]) -> Figure:
    return Figure(
        statistics.median(figure.rate for figure in figures),
        statistics.median(figure.broker_us for figure in figures),
        statistics.median(figure.client for figure in figures),
        {name: statistics.median(figure.more[name] for figure in figures) for name in figures[0].more},
        statistics.median(figure.broker for figure in figures),
    )


def between(pid: int, count: Callable[[], int], work: Callable[[], None]) -> Figure:
    """What was counted while `work` worked, and the CPU of the process meanwhile; without a pid, none."""

    def cpu() -> float:
        return cpu_seconds(pid) if pid else 0.0

    counted, spent, own, began = count(), cpu(), time.process_time(), time.perf_counter()
    work()
    took = time.perf_counter() - began
    done, spent = count() - counted, cpu() - spent
    if not done:
        raise NothingDoneError("nothing was done")
    return Figure(done / took, spent / done * 1e6, (time.process_time() - own) / took, broker=spent / took)


class NothingDoneError(Exception):
    pass


def still(pid: int, stands: bool) -> None:
    """A broker that is not measured now costs nothing."""
    if pid:
        os.kill(pid, signal.SIGSTOP if stands else signal.SIGCONT)
