"""A real Kafka, for comparison: its jars from Maven Central, one node in KRaft mode, a folder and ports of its own.

    python -m tests.peers.kafka [--port 9092] [--folder FOLDER] [--version 3.9.1]     until Ctrl-C

The jars are kept in the user's cache, so that only the first start fetches them. It needs Java and Maven.
"""

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.peers import maven
from tests.peers.certificates import Certificates
from tests.peers.rabbitmq import free_port

VERSION = "3.9.1"  # the newest that runs on Java 11 and 17 alike and still knows the old message formats
START_SECONDS = 60.0
STOP_SECONDS = 20.0
HEAP = ("-Xms512m", "-Xmx1g")

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SECURITY = "org.apache.kafka.common.security"


class NoKafka(Exception):
    """There is none, or it does not start; the message says which."""


def jars(version: str = VERSION) -> Path:
    """The folder of its jars, fetched if they are not there."""
    try:
        wanted = [f"org.apache.kafka:{part}:{version}" for part in ("kafka_2.13", "kafka-tools")]
        return maven.jars(f"kafka-{version}-with-tools", *wanted, "org.slf4j:slf4j-simple:1.7.36")
    except maven.NoJars as error:
        raise NoKafka(str(error)) from None


class Kafka:
    """One node that is its own controller. `pid` is the process that does the work: its CPU time is the broker's.

    With users there is a port for SASL, with certificates the same two again over TLS; ACLs hold for those users.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        version: str = VERSION,
        settings: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        self.port = port or free_port()
        self.sasl_port = free_port() if users else 0
        self.tls_port = free_port() if certificates else 0
        self.sasl_tls_port = free_port() if users and certificates else 0
        self.address = f"127.0.0.1:{self.port}"
        self.pid = 0
        self._folder = folder
        self._jars = jars(version)
        self._settings = dict(settings or {})
        self._users = dict(users or {})
        self._certificates = certificates
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> "Kafka":
        self._folder.mkdir(parents=True, exist_ok=True)
        self._configure()
        properties = str(self._folder / "server.properties")
        cluster = "interlogpeer0000000000"
        words = ["format", "-t", cluster, "-c", properties, "--ignore-formatted"]
        for name, password in self._users.items():
            words += [f"--add-scram={each}=[name={name},password={password}]" for each in _SCRAM]
        self._java("kafka.tools.StorageTool", *words)
        with (self._folder / "output.txt").open("wb") as output:
            self._server = subprocess.Popen(
                self._command("kafka.Kafka", properties),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._server.pid
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def _configure(self) -> None:
        controller = free_port()
        ports = {
            "PLAINTEXT": self.port,
            "SASL_PLAINTEXT": self.sasl_port,
            "SSL": self.tls_port,
            "SASL_SSL": self.sasl_tls_port,
        }
        told = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": _addresses(ports | {"CONTROLLER": controller}),
            "advertised.listeners": _addresses(ports),
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in ports) + ",CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._folder / "data"),
            "num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": "0",
            "group.coordinator.rebalance.protocols": "classic,consumer",
            "auto.create.topics.enable": "true",
        }
        if self._users:
            told |= _of_users(self._users)
        if self._certificates:
            told |= self._of_tls(self._certificates)
        told |= self._settings
        lines = [f"{name}={value}\n" for name, value in told.items()]
        (self._folder / "server.properties").write_text("".join(lines))

    def _of_tls(self, certificates: Certificates) -> dict[str, str]:
        both = self._folder / "server.pem"
        both.write_text(certificates.server_key.read_text() + certificates.server.read_text())
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "ssl.client.auth": "requested",
        }

    def _command(self, main: str, *words: str) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *HEAP, "-XX:+UseG1GC", log, "-cp", f"{self._jars}/*", main, *words]

    def _java(self, main: str, *words: str) -> None:
        found = subprocess.run(self._command(main, *words), capture_output=True, text=True, check=False)
        if found.returncode:
            raise NoKafka(f"{main} fails: {(found.stderr or found.stdout).strip()[-400:]}")

    def _wait(self) -> None:
        assert self._server is not None
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.port):
            if self._server.poll() is not None or time.monotonic() > deadline:
                words = (self._folder / "output.txt").read_text(errors="replace")[-800:]
                raise NoKafka(f"Kafka does not start: {words.strip() or 'it says nothing'}")
            time.sleep(0.1)

    def stop(self) -> None:
        if self._server is not None and self._server.poll() is None:
            self._server.terminate()
            try:
                self._server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._server = None

    def __enter__(self) -> "Kafka":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items() if port)


def _of_users(users: Mapping[str, str]) -> dict[str, str]:
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    told = {
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *_SCRAM)),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        told[f"listener.name.{listener}.plain.sasl.jaas.config"] = (
            f"{_SECURITY}.plain.PlainLoginModule required {known};"
        )
        for each in _SCRAM:
            module = f"{_SECURITY}.scram.ScramLoginModule required;"
            told[f"listener.name.{listener}.{each.lower()}.sasl.jaas.config"] = module
    return told


def answers(port: int) -> bool:
    """A broker tells there which APIs it serves."""
    request = b"\x00\x12\x00\x00\x00\x00\x00\x01\x00\x00"  # ApiVersions 0, without a client id
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as connection:
            connection.sendall(len(request).to_bytes(4, "big") + request)
            return len(connection.recv(10)) == 10
    except OSError:
        return False


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--version", default=VERSION)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="kafka-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Kafka(folder, port=given.port, version=given.version) as node:
            print(f"{node.address} (pid {node.pid})", flush=True)
            while True:
                time.sleep(3600)
    except NoKafka as error:
        print(error)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
