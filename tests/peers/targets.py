"""What the suites and benchmarks run against: an Interlog of this clone, a RabbitMQ of this machine, a Kafka."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol
from urllib.parse import urlsplit

from tests.peers.certificates import Certificates
from tests.peers.rabbitmq import RabbitMQ, find

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 20.0
STOP_SECONDS = 20.0


class NoTarget(Exception):
    """It is not there, or does not start; the message says why."""


class Target(Protocol):
    name: str
    url: str
    pid: int
    tls_port: int
    management_url: str

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Interlog:
    """`interlog serve` on kernel ports with a data folder of its own."""

    name = "interlog"

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        flags: tuple[str, ...] = (),
        certificates: Certificates | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        self.url = self.management_url = self.kafka = self.kafkas = ""
        self.pid = self.tls_port = 0
        self._folder = folder
        self._port = port
        self._flags = flags
        self._certificates = certificates
        self._users = dict(users or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        ready_file = self._folder / "ready.json"
        ready_file.unlink(missing_ok=True)  # of one that was killed
        words = [sys.executable, "-m", "interlog", "serve", "--data", str(self._folder / "data"), "--http-port", "0"]
        words += ["--amqp-port", str(self._port), "--kafka-port", "0", "--ready-file", str(ready_file), *self._flags]
        if self._certificates is not None:
            words += ["--amqps-port", "0", "--kafkas-port", "0", "--tls-client", "optional"]
            words += ["--tls-certificate", str(self._certificates.server)]
            words += ["--tls-key", str(self._certificates.server_key), "--tls-ca", str(self._certificates.ca)]
        kept = {name: text for name, text in os.environ.items() if not name.startswith("INTERLOG_")}
        kept["PYTHONPATH"] = str(ROOT)
        log = self._folder / "log.txt"
        with log.open("wb") as output:
            self._process = subprocess.Popen(words, cwd=self._folder, env=kept, stdout=output, stderr=output)
        deadline = time.monotonic() + START_SECONDS
        while not ready_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                said = log.read_text(errors="replace").strip().splitlines()
                raise NoTarget(f"interlog serve does not start: {said[-1] if said else 'it says nothing'}")
            time.sleep(0.002)
        addresses: dict[str, str] = json.loads(ready_file.read_text())
        self.url = f"amqp://guest:guest@{addresses['amqp']}/"
        self.management_url = f"http://{addresses['http']}"
        self.kafka, self.kafkas = addresses["kafka"], addresses.get("kafkas", "")
        self.tls_port = int(addresses.get("amqps", ":0").rpartition(":")[2])
        self.pid = self._process.pid
        for name, password in self._users.items():
            self._call("PUT", f"users/{name}", {"password": password, "tags": ""})
            self._call("PUT", f"permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": ".*"})

    def forget_permissions(self) -> None:
        """Kafka clients see them as ACLs. Who does not log in may do everything all the same."""
        self._call("DELETE", "permissions/%2F/guest")
        self._call("PUT", "users/guest", {"password": "guest", "tags": ""})

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.management_url}/api/{path}", data, method=method)
        request.add_header("Authorization", f"Basic {base64.b64encode(b'guest:guest').decode()}")
        urllib.request.urlopen(request, timeout=10).close()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None


class Rabbit:
    """RabbitMQ as a target."""

    name = "rabbitmq"

    def __init__(
        self, folder: Path, *, port: int = 0, management: bool = False, certificates: Certificates | None = None
    ) -> None:
        if find() is None:
            raise NoTarget("no rabbitmq-server is installed here")
        self._node = RabbitMQ(folder, port=port, management=management, certificates=certificates)
        self.url = self._node.url
        self.tls_port = self._node.tls_port
        self.management_url = self._node.management_url
        self.pid = 0

    def start(self) -> None:
        self._node.start()
        self.pid = self._node.pid

    def stop(self) -> None:
        self._node.stop()


@dataclass
class Elsewhere:
    """One that somebody else runs, by its address."""

    name: str
    url: str
    tls_port: int = 0
    management_url: str = ""
    pid: int = 0

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Running:
    """A target from `with` to its end."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def __enter__(self) -> Target:
        self.target.start()
        return self.target

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.target.stop()


def host_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 5672
