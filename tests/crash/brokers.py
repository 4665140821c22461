"""Brokers that are started on their folder and die: what the crash tests of all faces share.

In come a seed's randomness, what it is that a broker serves, and when it is to die; out go links to it, whose bytes go
both ways until it is gone. `InProcess` runs a face against a core in this process, on a disk that fails when it is
told to, and always does the same for the same seed. `Process` kills a real `interlog serve` at any instant.
"""

import dataclasses
import json
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from interlog.base.clock import ManualClock
from interlog.base.errors import InterlogError
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.faces.face import Face
from interlog.journal.slices import FileRange, slice_bytes
from tests.crash.engine import Disk
from tests.crash.model import Wrong
from tests.crash.settings import tiny_settings
from tests.faults import Fault, FaultKind
from tests.served import PATIENCE_SECONDS, clean_environment

Connect = Callable[[], Face]  # a connection to what is served
Serve = Callable[[Core], Connect]


class Gone(Exception):
    """The broker was killed, or gave up: nothing more will come."""


class Link(Protocol):
    def send(self, data: bytes) -> None: ...

    def turn(self) -> bytes:
        """Let the broker work; what came in by now, which may be nothing. Gone, or PowerCut, when there is none."""
        ...

    def last_words(self) -> bytes:
        """The broker is dead; what it had said before, and nobody took yet."""
        ...


class Broker:
    """A broker that can be started on its folder, and dies."""

    largest = 2_000  # bytes of a message
    deeds = 60  # about so many of the client, in a life

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng = rng
        self.data = root / "data"

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def start(self) -> None:
        raise NotImplementedError

    def connect(self) -> Link:
        raise NotImplementedError

    def turn(self) -> None:
        """Let it work a little: what it has to say is then at its links."""
        raise NotImplementedError

    def doom(self) -> None:
        """From here on it may die at any time."""
        raise NotImplementedError

    def dead(self) -> bool:
        """It died in the middle of something, or is to die now. Whether what was not synced may be gone."""
        raise NotImplementedError

    def stop(self) -> None:
        """In good order."""
        raise NotImplementedError

    def close(self) -> None:
        pass


class InProcess(Broker):
    """The face and the core, with the rhythm of the driver."""

    def __init__(
        self,
        seed: int,
        rng: random.Random,
        root: Path,
        serve: Serve,
        *,
        power: float,
        faults: Callable[[random.Random], Sequence[Fault]] | None = None,
    ) -> None:
        """`power`: how likely a death is a power cut, and no kill. `faults`: of each life; else it dies at one."""
        super().__init__(rng, root)
        self._seed = seed
        self._serve = serve
        self._power = power
        self._faults = faults
        self._files = Disk(root / "trash", seed=seed)
        self._clock = ManualClock()
        # Held-back publishers are another test's matter.
        self._settings = dataclasses.replace(tiny_settings(rng, "sync"), memory_bytes=64 << 20)
        self._worker = ManualWorker()
        self._core: Core | None = None
        self._connect: Connect
        self._links: list[InProcessLink] = []

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    @property
    def core(self) -> Core:
        assert self._core is not None
        return self._core

    def doom(self) -> None:
        if self._faults is not None:
            self._files.faults = list(self._faults(self.rng))
        else:
            self._files.faults = [Fault(int(2 ** self.rng.uniform(2, 9)), FaultKind.POWER_CUT)]

    def start(self) -> None:
        self._links.clear()
        self._core = None
        self._worker = ManualWorker()
        with self._given_up():
            self._core = Core.open(
                self.data,
                settings=self._settings,
                clock=self._clock,
                worker=self._worker,
                files=self._files,
                rng=random.Random(self._seed),
            )
            self._core.access.make_first_user()
            self._connect = self._serve(self._core)

    def connect(self) -> "InProcessLink":
        link = InProcessLink(self, self._connect())
        self._links.append(link)
        return link

    def turn(self) -> None:
        rng, core = self.rng, self.core
        with self._given_up():
            for link in self._links:
                link.feed(rng)
            core.commit()
            for link in self._links:
                link.collect()
            if rng.random() < 0.7:
                self._worker.run(None if rng.random() < 0.5 else 1)
            self._clock.advance(rng.choice((0, 1, 20, 300)))
            core.deadlines.poll()
            if rng.random() < 0.3:
                core.poll()
                for link in self._links:
                    link.face.check()

    @contextmanager
    def _given_up(self) -> Iterator[None]:
        """Where a disk fails the broker may give up; elsewhere it must not."""
        try:
            yield
        except (InterlogError, OSError) as error:
            if not self._files.faults:
                raise
            raise Gone(f"gave up: {error}") from error

    def hung_up(self) -> Exception:
        """Why a link ended."""
        reason = self.core.storage.journal.reason
        return Gone(reason) if reason and self._files.faults else Wrong("the broker closed the connection")

    # -- a disk without room

    def fill(self) -> None:
        self._files.full = True
        self._files.free = 0

    def make_room(self) -> None:
        self._files.full = False
        self._files.free = None

    # -- the end

    def dead(self) -> bool:
        if self._core is not None:
            self._core.recovered.checkpoint.close()
        self.make_room()
        if self.rng.random() < self._power:
            self._files.power_cut(self.rng)
            return True
        self._files.kill()
        return False

    def stop(self) -> None:
        self.core.commit()
        self._worker.run()
        self.core.close()
        self._worker.run()
        self._files.kill()

    def close(self) -> None:
        self._files.close()


class InProcessLink:
    """A connection. Its bytes come to the broker in pieces."""

    def __init__(self, broker: InProcess, face: Face) -> None:
        self.face = face
        self._broker = broker
        self._unsent = b""
        self._heard = b""

    def send(self, data: bytes) -> None:
        self._unsent += data

    def feed(self, rng: random.Random) -> None:
        if self._unsent and not self.face.holding:
            cut = len(self._unsent) if rng.random() < 0.7 else rng.randint(1, len(self._unsent))
            data, self._unsent = self._unsent[:cut], self._unsent[cut:]
            self.face.receive(data)

    def collect(self) -> None:
        parts = self.face.take_output()
        self._heard += b"".join(slice_bytes(part) if isinstance(part, FileRange) else bytes(part) for part in parts)

    def turn(self) -> bytes:
        if not self._heard:
            self._broker.turn()
        return self.take()

    def take(self) -> bytes:
        heard = self.last_words()
        if not heard and self.face.closed:
            raise self._broker.hung_up()
        return heard

    def last_words(self) -> bytes:
        heard, self._heard = self._heard, b""
        return heard


class Process(Broker):
    """A real one, and real connections."""

    largest = 100_000
    deeds = 400

    def __init__(self, rng: random.Random, root: Path, port: str, flags: Sequence[str] = ()) -> None:
        """`port`: which of its listeners is spoken to, by its name in the ready file."""
        super().__init__(rng, root)
        self._root = root
        self._port = port
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self._links: list[SocketLink] = []
        self._selector = selectors.DefaultSelector()
        self._address = ("", 0)
        self._end: float | None = None

    def doom(self) -> None:
        self._end = time.monotonic() + self.rng.random() * 0.4

    def start(self) -> None:
        ready = self._root / "ready.json"
        ready.unlink(missing_ok=True)
        words = [sys.executable, "-m", "interlog", "serve", "--data", str(self.data), "--ready-file", str(ready)]
        for port in ("amqp", "kafka", "http"):
            words += [f"--{port}-port", "0" if port == self._port else "off"]
        words += ["--log-level", "error", "--checkpoint-ms", "200ms", "--journal-file-bytes", "1MiB", *self._flags]
        self._process = process = subprocess.Popen(words, env=clean_environment(), stderr=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not ready.exists():
            late = time.monotonic() > deadline
            if process.poll() is not None or late:
                process.kill()
                self._process = None
                errors = process.communicate()[1].decode()
                raise Wrong(f"the broker does not start{' in time' if late else ''}: {errors}")
            time.sleep(0.002)
        host, _, port = json.loads(ready.read_text())[self._port].rpartition(":")
        self._address = (host, int(port))

    def connect(self) -> "SocketLink":
        link = SocketLink(self, socket.create_connection(self._address, PATIENCE_SECONDS))
        self._links.append(link)
        self._selector.register(link.socket, selectors.EVENT_READ, link)
        return link

    def turn(self) -> None:
        patience = PATIENCE_SECONDS if self.is_over() else 0.002
        for key, _ in self._selector.select(patience):
            key.data.collect()

    def is_over(self) -> bool:
        """Kill it when its time has come, whatever it is doing; whether it is dead."""
        if self._end is None or time.monotonic() < self._end:
            return False
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        return True

    def forget(self, link: "SocketLink") -> None:
        self._selector.unregister(link.socket)

    def _hang_up(self) -> None:
        for link in self._links:
            link.close()
        self._links.clear()

    def dead(self) -> bool:
        assert self._process is not None
        self._process.kill()
        self._end = None
        _, errors = self._process.communicate()
        self._hang_up()
        if errors:
            raise Wrong(f"the broker complained: {errors.decode()}")
        return False

    def stop(self) -> None:
        assert self._process is not None
        self._hang_up()
        self._process.send_signal(signal.SIGTERM)
        _, errors = self._process.communicate(timeout=PATIENCE_SECONDS)
        if self._process.returncode:
            raise Wrong(f"the broker ended with {self._process.returncode}: {errors.decode()}")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._hang_up()
        self._selector.close()


class SocketLink:
    """A real connection. When the broker was killed, what it had said is still read."""

    def __init__(self, broker: Process, connected: socket.socket) -> None:
        self.socket = connected
        self._broker = broker
        self._heard = b""
        self._ended = False
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(PATIENCE_SECONDS)

    def send(self, data: bytes) -> None:
        self._broker.is_over()
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the next turn says so

    def collect(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        self._heard += data
        if not data:
            self._ended = True
            self._broker.forget(self)

    def turn(self) -> bytes:
        if not self._heard and not self._ended:
            self._broker.turn()
        return self.take()

    def take(self) -> bytes:
        heard, self._heard = self._heard, b""
        if not heard and self._ended:
            raise Gone
        return heard

    def last_words(self) -> bytes:
        while not self._ended:
            self.collect()
        heard, self._heard = self._heard, b""
        return heard

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._broker.forget(self)
        self.socket.close()
