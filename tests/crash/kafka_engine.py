"""One seed of the Kafka crash tests: several lives of a broker on one folder, ended in the middle of its clients' work.

    python -m tests.crash.kafka_engine [--mode M ...] [--first S] [--seeds N]

In come a seed and a mode; out comes a line about what happened, or a `Failure` with the command that plays the seed
again. All modes but the last run the face against a core in this process, and always tell the same story: in `power`
and `kill` the disk fails at some operation, in `errors` single operations of it fail, in `full` it is full for a while.
Mode `process` kills a real `interlog serve` at any instant; its seed decides what the clients do, and not when the
broker dies.
"""

import random
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from interlog.base.metrics import Metrics
from interlog.core.broker import Core
from interlog.faces.face import Face, Peer
from interlog.faces.kafka.service import KafkaService, KafkaSettings
from interlog.journal.files import DiskFiles
from interlog.journal.verify import verify
from tests.crash.brokers import Broker, Gone, InProcess, Process
from tests.crash.kafka_story import Story
from tests.crash.model import Wrong
from tests.crash.seeds import command, play_seed
from tests.faults import Fault, FaultKind, PowerCut

LIVES = 3


class Mode(Enum):
    POWER = "power"
    KILL = "kill"
    ERRORS = "errors"
    FULL = "full"
    PROCESS = "process"


def _serve(core: Core) -> Callable[[], Face]:
    service = KafkaService(core, KafkaSettings(), Metrics())
    return lambda: service.face(lambda: None, Peer(local_host="127.0.0.1", local_port=9092))


def _errors(rng: random.Random) -> Sequence[Fault]:
    kind = rng.choice((FaultKind.EIO, FaultKind.ENOSPC, FaultKind.SHORT_WRITE, FaultKind.SYNC_FAILS))
    only = None if kind is FaultKind.SYNC_FAILS else rng.choice((None, frozenset({"write"}), frozenset({"sync"})))
    return [Fault(int(2 ** rng.uniform(0, 9)), kind, rng.randint(1, 12) if kind is FaultKind.ENOSPC else 1, only)]


def _make(seed: int, mode: Mode, rng: random.Random, root: Path) -> Broker:
    if mode is Mode.PROCESS:
        return Process(rng, root, "kafka")
    power = {Mode.POWER: 1.0, Mode.KILL: 0.0}.get(mode, 0.5)
    return InProcess(seed, rng, root, _serve, power=power, faults=_errors if mode is Mode.ERRORS else None)


def _run(broker: Broker, mode: Mode, rng: random.Random, tell: Callable[[str], None]) -> None:
    story = Story(broker, rng, disk_fails=mode is Mode.ERRORS, disk_fills=mode is Mode.FULL)
    power = False
    for life in range(1, LIVES + 1):
        before = story.records
        try:
            _begin(broker, story, rng, power=power, mortal=True)
            power = False
            if mode is Mode.FULL and isinstance(broker, InProcess):
                story.work(rng.randint(5, broker.deeds))
                story.fill_up(broker)
            story.work(rng.randint(broker.deeds // 2, broker.deeds * 2))
            tell(f"life {life}: the story was told to its end")
        except (PowerCut, Gone) as end:
            why = str(end).replace(str(broker.data), broker.data.name) or "killed"
            tell(f"life {life}: {why}, after {story.records - before} records")
        died = broker.dead()
        story.last_words()
        power = power or died or mode is Mode.ERRORS  # a sync that fails may take what was written
        _verify(broker, "after a death")
    _begin(broker, story, rng, power=power, mortal=False)
    story.work(rng.randint(5, 30))
    story.end()
    tell(f"{story.records} records at the end")
    broker.stop()
    _verify(broker, "after a stop in good order")


def _verify(broker: Broker, when: str) -> None:
    if not (broker.data / "folder.json").exists():
        return
    report = verify(DiskFiles(), broker.data)
    if not report.sound:
        raise Wrong(f"verify {when}: " + "; ".join(report.lines))


def _begin(broker: Broker, story: Story, rng: random.Random, *, power: bool, mortal: bool) -> None:
    """Start the broker, look at what it has, and go on."""
    early = mortal and rng.random() < 0.3
    if early:
        broker.doom()
    broker.start()
    story.begin(power=power)
    if mortal and not early:
        broker.doom()
    story.connect()


def run_one(seed: int, mode: Mode) -> str:
    return play_seed("Kafka", "tests.crash.kafka_engine", seed, mode, _make, _run)


if __name__ == "__main__":
    sys.exit(command(__doc__, Mode, run_one))
