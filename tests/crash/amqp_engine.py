"""One seed of the AMQP crash tests: several lives of a broker on one folder, ended in the middle of a client's work.

    python -m tests.crash.amqp_engine [--mode M ...] [--first S] [--seeds N]

In come a seed and a mode; out comes a line about what happened, or a `Failure` with the command that plays the seed
again. Modes `power` and `kill` run the face against a core in this process, on a disk that fails at some operation, and
always tell the same story. Mode `process` kills a real `interlog serve` at any instant; its seed decides what the
client does, and not when the broker dies.
"""

import random
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from interlog.base.metrics import Metrics
from interlog.core.broker import Core
from interlog.faces.amqp.service import AmqpService, AmqpSettings
from interlog.faces.face import Face, Peer
from interlog.journal.files import DiskFiles
from interlog.journal.verify import verify
from tests.crash.amqp_model import Model
from tests.crash.amqp_story import Story
from tests.crash.brokers import Broker, Gone, InProcess, Process
from tests.crash.model import Wrong
from tests.crash.seeds import command, play_seed
from tests.faults import PowerCut

LIVES = 3


class Mode(Enum):
    POWER = "power"
    KILL = "kill"
    PROCESS = "process"


def _serve(core: Core) -> Callable[[], Face]:
    service = AmqpService(core, AmqpSettings(heartbeat_s=0), Metrics())
    return lambda: service.face(lambda: None, Peer())


def _make(seed: int, mode: Mode, rng: random.Random, root: Path) -> Broker:
    if mode is Mode.PROCESS:
        return Process(rng, root, "amqp", ("--queue-memory-bytes", "64KiB"))
    return InProcess(seed, rng, root, _serve, power=float(mode is Mode.POWER))


def _run(broker: Broker, _: Mode, rng: random.Random, tell: Callable[[str], None]) -> None:
    model = Model()
    number = 1
    declared = False
    for life in range(1, LIVES + 1):
        story: Story | None = None
        try:
            story = _begin(broker, model, rng, number, declared, mortal=True)
            declared = True
            story.work(rng.randint(broker.deeds // 2, broker.deeds * 2))
            tell(f"life {life}: the story was told to its end")
        except (PowerCut, Gone) as end:
            tell(f"life {life}: {str(end) or 'killed'}, after {0 if story is None else story.next - number} messages")
        broker.dead()
        number = number if story is None else story.next
    story = _begin(broker, model, rng, number, declared, mortal=False)
    tell(f"{len(model.copies)} messages at the end")
    story.end()
    broker.stop()
    report = verify(DiskFiles(), broker.data)
    if not report.sound:
        raise Wrong("verify after a stop in good order: " + "; ".join(report.lines))


def _begin(broker: Broker, model: Model, rng: random.Random, number: int, declared: bool, *, mortal: bool) -> Story:
    """Start the broker, and look at what it has."""
    early = mortal and rng.random() < 0.3
    if early:
        broker.doom()
    broker.start()
    story = Story(broker.connect(), model, rng, number, broker.largest)
    story.begin()
    if not declared:
        story.declare()
    found = story.look()
    model.check(found)
    story.look_at_entities()
    model.settle(found)
    if mortal and not early:
        broker.doom()
    return story


def run_one(seed: int, mode: Mode) -> str:
    return play_seed("AMQP", "tests.crash.amqp_engine", seed, mode, _make, _run)


if __name__ == "__main__":
    sys.exit(command(__doc__, Mode, run_one))
