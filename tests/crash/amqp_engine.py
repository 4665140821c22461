"""One seed of the AMQP crash tests: several lives of a broker on one folder, ended in the middle of a client's work.

    python -m tests.crash.amqp_engine [--mode M ...] [--first S] [--seeds N]

In come a seed, a mode and an empty folder; out comes a line about what happened, or a `Failure` with the command that
plays the seed again. Modes `power` and `kill` run the face against a core in this process, on a disk that fails at some
operation, and always tell the same story. Mode `process` kills a real `interlog serve` at any instant; its seed decides
what the client does, and not when the broker dies.
"""

import argparse
import dataclasses
import json
import logging
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from interlog.base.clock import ManualClock
from interlog.base.metrics import Metrics
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.faces.amqp.service import AmqpService, AmqpSettings
from interlog.faces.face import Peer
from interlog.journal.files import DiskFiles
from interlog.journal.verify import verify
from tests.crash.amqp_client import Gone, Link
from tests.crash.amqp_model import Model
from tests.crash.amqp_story import Story
from tests.crash.engine import Disk, Failure
from tests.crash.model import Wrong
from tests.crash.settings import scratch, tiny_settings
from tests.faults import Fault, FaultKind, PowerCut
from tests.served import PATIENCE_SECONDS, clean_environment

LIVES = 3


class Mode(Enum):
    POWER = "power"
    KILL = "kill"
    PROCESS = "process"


class Broker:
    """A broker that can be started on its folder, and dies."""

    largest = 2_000  # bytes of a message
    deeds = 60  # about so many of the client, in a life

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng = rng
        self.data = root / "data"

    def start(self) -> Link:
        raise NotImplementedError

    def doom(self) -> None:
        """From here on it may die at any time."""
        raise NotImplementedError

    def dead(self) -> None:
        """It died in the middle of something, or is to die now."""

    def stop(self) -> None:
        """In good order."""
        raise NotImplementedError

    def close(self) -> None:
        pass


class InProcess(Broker):
    """The face and the core, with the rhythm of the driver."""

    def __init__(self, seed: int, rng: random.Random, root: Path, power: bool) -> None:
        super().__init__(rng, root)
        self._seed = seed
        self._power = power
        self._files = Disk(root / "trash", seed=seed)
        self._clock = ManualClock()
        # Held-back publishers are another test's matter: here one connection does everything.
        self._settings = dataclasses.replace(tiny_settings(rng, "sync"), memory_bytes=64 << 20)
        self._worker = ManualWorker()
        self._core: Core

    def doom(self) -> None:
        self._files.faults = [Fault(int(2 ** self.rng.uniform(2, 9)), FaultKind.POWER_CUT)]

    def start(self) -> Link:
        self._worker = ManualWorker()
        self._core = Core.open(
            self.data,
            settings=self._settings,
            clock=self._clock,
            worker=self._worker,
            files=self._files,
            rng=random.Random(self._seed),
        )
        self._core.access.make_first_user()
        return InProcessLink(self._core, self._clock, self._worker, self.rng)

    def dead(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None:
            core.recovered.checkpoint.close()
        if self._power:
            self._files.power_cut(self.rng)
        else:
            self._files.kill()

    def stop(self) -> None:
        self._core.commit()
        self._worker.run()
        self._core.close()
        self._worker.run()
        self._files.kill()

    def close(self) -> None:
        self._files.close()


class InProcessLink:
    def __init__(self, core: Core, clock: ManualClock, worker: ManualWorker, rng: random.Random) -> None:
        self._core, self._clock, self._worker, self._rng = core, clock, worker, rng
        self._face = AmqpService(core, AmqpSettings(heartbeat_s=0), Metrics()).face(lambda: None, Peer())
        self._unsent = b""

    def send(self, data: bytes) -> None:
        self._unsent += data

    def turn(self) -> bytes:
        rng, face = self._rng, self._face
        if self._unsent and not face.holding:
            cut = len(self._unsent) if rng.random() < 0.7 else rng.randint(1, len(self._unsent))
            data, self._unsent = self._unsent[:cut], self._unsent[cut:]
            face.receive(data)
        self._core.commit()
        heard = b"".join(face.take_output())
        if rng.random() < 0.7:
            self._worker.run(None if rng.random() < 0.5 else 1)
        self._clock.advance(rng.choice((0, 1, 20, 300)))
        if rng.random() < 0.3:
            self._core.poll()
            face.check()
        return heard


class Process(Broker):
    """A real one, and a real connection."""

    largest = 100_000
    deeds = 400

    def __init__(self, rng: random.Random, root: Path) -> None:
        super().__init__(rng, root)
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._link: SocketLink | None = None
        self._end: float | None = None

    def doom(self) -> None:
        self._end = time.monotonic() + self.rng.random() * 0.4

    def start(self) -> Link:
        ready = self._root / "ready.json"
        ready.unlink(missing_ok=True)
        words = [sys.executable, "-m", "interlog", "serve", "--data", str(self.data), "--ready-file", str(ready)]
        words += ["--amqp-port", "0", "--kafka-port", "off", "--http-port", "off"]
        words += ["--log-level", "error", "--checkpoint-ms", "200ms"]
        words += ["--journal-file-bytes", "1MiB", "--queue-memory-bytes", "64KiB"]
        self._process = process = subprocess.Popen(words, env=clean_environment(), stderr=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise Wrong(f"the broker does not start: {process.communicate()[1].decode()}")
            time.sleep(0.002)
        host, _, port = json.loads(ready.read_text())["amqp"].rpartition(":")
        self._link = SocketLink(host, int(port), self._look_at_the_clock)
        return self._link

    def _look_at_the_clock(self) -> bool:
        """Kill it when its time has come, whatever it is doing; whether it is dead."""
        if self._end is None or time.monotonic() < self._end:
            return False
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        return True

    def dead(self) -> None:
        assert self._process is not None and self._link is not None
        self._process.kill()
        self._end = None
        _, errors = self._process.communicate()
        self._link.close()
        if errors:
            raise Wrong(f"the broker complained: {errors.decode()}")

    def stop(self) -> None:
        assert self._process is not None and self._link is not None
        self._link.close()
        self._process.send_signal(signal.SIGTERM)
        _, errors = self._process.communicate(timeout=PATIENCE_SECONDS)
        if self._process.returncode:
            raise Wrong(f"the broker ended with {self._process.returncode}: {errors.decode()}")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        if self._link is not None:
            self._link.close()


class SocketLink:
    """A real connection. When the broker was killed, what it had said is still read."""

    def __init__(self, host: str, port: int, is_over: Callable[[], bool]) -> None:
        self._socket = socket.create_connection((host, port), PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_over = is_over

    def send(self, data: bytes) -> None:
        self._is_over()
        self._socket.settimeout(PATIENCE_SECONDS)
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the next turn says so

    def turn(self) -> bytes:
        self._socket.settimeout(PATIENCE_SECONDS if self._is_over() else 0.002)
        try:
            data = self._socket.recv(1 << 18)
        except TimeoutError:
            return b""
        except ConnectionResetError:
            data = b""
        if not data:
            raise Gone
        return data

    def close(self) -> None:
        self._socket.close()


def run_seed(seed: int, mode: Mode, root: Path) -> str:
    """A line about what happened; Failure if that was wrong."""
    rng = random.Random(f"amqp {mode.value} {seed}")
    broker = Process(rng, root) if mode is Mode.PROCESS else InProcess(seed, rng, root, mode is Mode.POWER)
    told: list[str] = []
    try:
        _run(broker, rng, told.append)
    except (Exception, PowerCut) as error:
        again = f"python -m tests.crash.amqp_engine --mode {mode.value} --first {seed} --seeds 1"
        story = "\n  ".join(told)
        raise Failure(f"AMQP, seed {seed}, mode {mode.value}:\n  {story}\n{error!r}\nagain: {again}") from error
    finally:
        broker.close()
    return "; ".join(told)


def _run(broker: Broker, rng: random.Random, tell: Callable[[str], None]) -> None:
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
    story = Story(broker.start(), model, rng, number, broker.largest)
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
    with tempfile.TemporaryDirectory(prefix="interlog-crash-", dir=scratch()) as folder:
        return run_seed(seed, mode, Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", action="append", choices=[mode.value for mode in Mode], help="may be given again")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--story", action="store_true", help="tell also what happened where nothing was wrong")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # brokers that are killed have much to tell
    failed = 0
    for mode in [Mode(name) for name in given.mode] if given.mode else list(Mode):
        began = time.perf_counter()
        for seed in range(given.first, given.first + given.seeds):
            try:
                told = run_one(seed, mode)
                if given.story:
                    print(f"seed {seed}, mode {mode.value}: {told}", flush=True)
            except Failure as failure:
                failed += 1
                print(failure, flush=True)
        print(f"{mode.value}: {given.seeds} seeds in {time.perf_counter() - began:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
