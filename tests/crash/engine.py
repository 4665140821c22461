"""One seed: several lives of a broker on one folder, each ended by what its mode can do to it.

In come a seed, a mode and an empty folder; out comes nothing, or a `Failure` that tells what differed, with the
command that plays the seed again. Everything is decided by the seed: what is asked of the broker, what fails and when,
and when each background job runs.
"""

import random
import signal
import subprocess
import sys
from enum import Enum
from pathlib import Path

from interlog.base.clock import ManualClock
from interlog.base.errors import DamageError, FolderError, InterlogError
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.journal.checkpoint import Checkpoint
from interlog.journal.folder import read_folder
from interlog.journal.journal import Outcome
from interlog.journal.scan import Position
from interlog.journal.verify_journal import verify_journal
from tests.crash.damage import Damage, flip_a_bit, spoil_checkpoints
from tests.crash.differences import differences
from tests.crash.dump import dump, read_tick
from tests.crash.history import History
from tests.crash.living import Living
from tests.crash.model import Dump, Wrong
from tests.crash.settings import tiny_settings
from tests.crash.workload import Workload
from tests.faults import Fault, FaultKind, FaultyFiles, PowerCut

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
TICKS = 26  # about so many in a life


class Mode(Enum):
    POWER = "power"  # the power goes at some disk operation
    KILL = "kill"  # the process is killed at some disk operation
    OS = "os"  # either of them, with durability "os"
    ERRORS = "errors"  # writes, syncs, anything fails; then either of them
    FULL = "full"  # the disk is full for a while
    FLIP = "flip"  # a bit flips between two lives
    SQLITE = "sqlite"  # meta.db is lost or spoilt between two lives
    CHILD = "child"  # a process of its own, killed at some disk operation
    THREADS = "threads"  # a process of its own, with real threads, killed at any time


class Failure(AssertionError):
    pass


class Disk(FaultyFiles):
    """Spill files can always be read: what is in them is transient, and a disk that fails there may lose it."""

    def step(self, operation: str, path: Path) -> FaultKind | None:
        if path.parent.name == "spill" and operation in ("read", "open"):
            self.alive()
            return None
        return super().step(operation, path)


def run_seed(seed: int, mode: Mode, root: Path) -> str:
    """A line about what happened; Failure if that was wrong."""
    engine = Engine(seed, mode, root)
    try:
        engine.run()
    except Failure:
        raise
    except (Exception, PowerCut) as error:
        story = "\n  ".join(engine.story)
        again = f"python -m tests.crash.soak --mode {mode.value} --first {seed} --seeds 1"
        raise Failure(f"seed {seed}, mode {mode.value}:\n  {story}\n{error!r}\nagain: {again}") from error
    finally:
        engine.files.close()
    return "; ".join(engine.story)


class Engine:
    def __init__(self, seed: int, mode: Mode, root: Path) -> None:
        self.seed = seed
        self.mode = mode
        self.rng = random.Random(f"{mode.value} {seed}")
        self.data = root / "data"
        self.files = Disk(root / "trash", seed=seed)
        self.clock = ManualClock()
        self.worker = ManualWorker()
        self.history = History()
        self.settings = tiny_settings(self.rng, "os" if mode is Mode.OS else "sync")
        self.synced = 0  # the newest tick that a power cut cannot take, with durability "os"
        self.story: list[str] = []  # for the report
        self.living: Living | None = None

    # -- lives

    def run(self) -> None:
        for life in range(1, ROUNDS + 1):
            self.story.append(f"life {life}:")
            if self.mode in (Mode.CHILD, Mode.THREADS):
                self._child(life)
            else:
                self._life()
                self._between()
        self.story.append("last life:")
        living = self._begin()
        self._work(living, 5)
        self.stop(living)
        self._verify()
        living = self._begin()
        self.tell(f"{self.history.attempted} ticks at the end")
        self.stop(living)

    def tell(self, what: str) -> None:
        self.story[-1] += " " + what.replace(str(self.data), self.data.name) + ";"

    def _life(self) -> None:
        rng = self.rng
        self.files.faults = self._early_faults()
        try:
            living = self._begin()
            self.files.faults += self._late_faults(living)
            self._work(living, rng.randint(TICKS // 2, TICKS * 3 // 2))
            if rng.random() < 0.25 and not self.files.faults:
                self.stop(living)
                return
        except PowerCut as cut:
            self.tell(str(cut))
        except (InterlogError, OSError) as error:
            if not self.files.faults:
                raise
            self.tell(f"refused: {error!r}")
        self._end()

    def _child(self, life: int) -> None:
        """A life in another process, which tells what it does as long as it is there."""
        rng, history = self.rng, self.history
        kept = self.data.with_name("history.json")
        kept.write_text(history.export())
        words = [sys.executable, "-m", "tests.crash.child", "--folder", str(self.data), "--history", str(kept)]
        words += ["--seed", str(self.seed), "--life", str(life)]
        words += ["--threads"] if self.mode is Mode.THREADS else ["--kill-at", str(int(2 ** rng.uniform(1, 10)))]
        patience = rng.randint(1, 70) if self.mode is Mode.THREADS else -1
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            events = 0
            for line in process.stdout:
                if line.endswith(b"\n"):
                    history.take_event(line)
                    events += 1
                if events == patience:
                    process.kill()
            errors = process.stderr.read().decode()
            code = process.wait()
        self.clock.advance(history.now_ms - self.clock.now_ms())
        if code not in (0, -signal.SIGKILL):
            raise Wrong(f"the child of life {life} ended with {code}: {errors}")
        if code == 0:
            history.durable = history.attempted
        self.tell(f"{events} events, {'killed' if code else 'stopped'}")

    def _begin(self) -> Living:
        """Start the broker; what it holds must be what the model holds."""
        self.worker = ManualWorker()
        self.living = None
        core = self._open()
        living = self.living = self._compare(core)
        return living

    def _open(self) -> Core:
        return Core.open(
            self.data,
            settings=self.settings,
            clock=self.clock,
            worker=self.worker,
            files=self.files,
            rng=random.Random(self.seed),
        )

    def _compare(self, core: Core, found: Dump | None = None) -> Living:
        tick = read_tick(core)
        attempted = self.history.attempted
        model = self.history.settle(tick)
        different = differences(model.dump(), dump(core) if found is None else found)
        if different:
            raise Wrong(f"after {tick} of {attempted} ticks: " + "\n  ".join(different))
        self.tell(f"back with {tick} of {attempted} ticks")
        return Living(core, self.clock, self.history, model, lambda event: None)

    def _work(self, living: Living, ticks: int) -> None:
        workload = Workload(living, self.rng, self.worker)
        if self.mode is not Mode.FULL:
            workload.run(ticks)
            return
        workload.run(ticks // 2)
        self._fill_up(living, workload)
        workload.run(ticks // 2)

    def _fill_up(self, living: Living, workload: Workload) -> None:
        """No room for a while: consumers go on, and afterwards all goes on by itself, nothing lost."""
        self.files.full = True
        self.files.free = 0
        workload.full = True
        for _ in range(self.rng.randint(1, 12)):
            workload.tick()
        living.commit()
        self.clock.advance(1_000)
        living.poll()
        if living.core.accepts_messages or not living.core.refusal:
            raise Wrong("the disk is full, and messages are still accepted")
        self.files.full = workload.full = False
        self.files.free = None
        for _ in range(4):
            living.commit()
            self.clock.advance(1_500)
            living.poll()
            self.worker.run()
        if living.core.storage.journal.reason:
            raise Wrong(f"there is room again, but: {living.core.refusal}")
        late = [tick for tick, outcome in living.outcomes.items() if outcome is not Outcome.DURABLE]
        asked = self.history.durable
        if late or asked < self.history.attempted - 1:
            raise Wrong(f"there was room again, but ticks {late} are not safe, and {asked} is the newest that is")
        self.tell("was full")

    def stop(self, living: Living) -> None:
        """In good order: nothing may be missing afterwards."""
        if living.ops:
            living.commit()
        self.worker.run()
        living.core.close()
        self.worker.run()
        for number, outcome in living.outcomes.items():
            if outcome is not Outcome.DURABLE:
                raise Wrong(f"tick {number} ended {outcome} in a broker that was stopped in good order")
        self.history.durable = self.history.attempted
        self.synced = self.history.attempted
        self.living = None
        self.files.kill()
        self.tell("stopped")

    def _end(self) -> None:
        """The life is over, without a goodbye."""
        rng = self.rng
        living, self.living = self.living, None
        if living is not None:
            self.synced = max(self.synced, living.synced())
            living.abandon()
        # After a power cut the sync mark may be gone, and with it the proof that a flipped last envelope was whole.
        if self.mode in (Mode.KILL, Mode.FLIP) or (self.mode is not Mode.POWER and rng.random() < 0.5):
            self.files.kill()
            self.tell("killed")
        else:
            if self.mode is Mode.OS:
                self.history.durable = self.synced
            self.files.power_cut(rng)
            self.tell("power cut")

    # -- what goes wrong

    def _early_faults(self) -> list[Fault]:
        """Those that may already hit while the broker starts."""
        rng = self.rng
        if self.mode in (Mode.POWER, Mode.KILL, Mode.OS) and rng.random() < 0.9:
            return [Fault(int(2 ** rng.uniform(0, 9.5)), FaultKind.POWER_CUT)]
        if self.mode is Mode.ERRORS and rng.random() < 0.2:
            return [Fault(rng.randint(1, 60), rng.choice((FaultKind.EIO, FaultKind.ENOSPC, FaultKind.SHORT_WRITE)))]
        return []

    def _late_faults(self, living: Living) -> list[Fault]:
        rng = self.rng
        if self.mode is not Mode.ERRORS:
            return []
        kind = rng.choice((FaultKind.EIO, FaultKind.ENOSPC, FaultKind.SHORT_WRITE, FaultKind.SYNC_FAILS))
        only = rng.choice(
            (None, None, frozenset({"write"}), frozenset({"sync"}), frozenset({"read", "copy", "rename"}))
        )
        if kind is FaultKind.SYNC_FAILS:
            only = None
        count = rng.randint(1, 12) if kind is FaultKind.ENOSPC else 1
        return [Fault(int(2 ** rng.uniform(0, 8)), kind, count, only)]

    def _between(self) -> None:
        """What happens to the folder while no broker uses it."""
        if not (self.data / "folder.json").exists():
            return
        if self.mode is Mode.FLIP:
            damage: Damage | None = flip_a_bit(self.data, self.rng)
        elif self.mode is Mode.SQLITE:
            damage = spoil_checkpoints(self.data, self.rng)
        else:
            return
        if damage is None:
            return
        self.tell(damage.what)
        try:
            self.worker = ManualWorker()
            core = self._open()
            living = None
            try:
                found = dump(core)
                living = self._compare(core, found)
            finally:
                if living is None:
                    core.recovered.checkpoint.close()
        except (DamageError, FolderError) as error:
            if not any(name in str(error) for name in damage.names):
                raise Wrong(f"the sentence does not name the file: {error}") from error
            self.tell(f"refused: {error}")
            self.files.kill()
            damage.undo()
            return
        self.tell("healed")
        self.stop(living)
        if self.mode is Mode.FLIP:
            damage.undo()  # where nobody looked it is still there

    def _verify(self) -> None:
        folder = read_folder(self.files, self.data)
        checkpoint = Checkpoint.open(self.data / "meta.db", (), folder.id.hex())
        mark = checkpoint.mark
        checkpoint.close()
        start = Position(mark.file, mark.position, mark.sequence + 1, mark.epoch) if mark.sequence else None
        report = verify_journal(self.files, self.data / "journal", folder.id, start, mark.sequence)
        if report.damages or report.torn_bytes:
            raise Wrong("verify after a stop in good order: " + "; ".join(map(str, report.damages)) + str(report))
