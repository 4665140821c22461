"""A real RabbitMQ, for comparison: found where it is installed, run in a folder and on a port of its own.

    python -m tests.peers.rabbitmq [--port 5672] [--folder FOLDER]     until Ctrl-C

Nothing of a RabbitMQ that runs on the machine already is used or touched: not its port, folder, cookie or epmd.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.peers.certificates import Certificates

START_SECONDS = 60.0
STOP_SECONDS = 20.0

# Debian's command is a wrapper that changes the user; what it wraps stands here.
PLACES = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/usr/local/sbin/rabbitmq-server",
    "/opt/rabbitmq/sbin/rabbitmq-server",
)

WANTED_PLUGINS = (
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_delayed_message_exchange",
    "rabbitmq_message_deduplication",
)


class NoRabbitMQ(Exception):
    """There is none, or it does not start; the message says which."""


def find() -> Path | None:
    """The script that starts it, or nothing."""
    for place in PLACES:
        if Path(place).exists():
            return Path(place)
    found = shutil.which("rabbitmq-server")
    return Path(found) if found else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RabbitMQ:
    """One node. `pid` is the process that does the work: its CPU time is the broker's."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        plugins: Sequence[str] = WANTED_PLUGINS,
        management: bool = False,
        certificates: Certificates | None = None,
    ) -> None:
        script = find()
        if script is None:
            raise NoRabbitMQ("no rabbitmq-server is installed here")
        self.port = port or free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self.pid = 0
        self._script = script
        self._folder = folder
        self._certificates = certificates
        self.tls_port = free_port() if certificates else 0
        self._management_port = free_port() if management else 0
        self.management_url = f"http://127.0.0.1:{self._management_port}" if management else ""
        self._plugins = [name for name in plugins if self._has(name)]
        if management:
            self._plugins.append("rabbitmq_management")
        self._epmd: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def plugins(self) -> list[str]:
        """Those that were asked for and are there."""
        return list(self._plugins)

    def _has(self, plugin: str) -> bool:
        base = self._script.resolve().parent.parent
        return any(base.glob(f"**/plugins/{plugin}-*")) or any(base.glob(f"plugins/{plugin}-*"))

    def start(self) -> "RabbitMQ":
        self._folder.mkdir(parents=True, exist_ok=True)
        environment = self._environment()
        epmd = shutil.which("epmd")
        if epmd is None:
            raise NoRabbitMQ("rabbitmq-server is there, but no epmd of Erlang")
        # A child of ours, or Erlang starts one that outlives everything.
        self._epmd = subprocess.Popen(
            [epmd, "-address", "127.0.0.1", "-port", environment["ERL_EPMD_PORT"]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with (self._folder / "output.txt").open("wb") as output:
            self._server = subprocess.Popen(
                [str(self._script)],
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def _environment(self) -> dict[str, str]:
        folder = self._folder
        lines = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", "log.console = false", "log.file.level = warning"]
        if self._management_port:
            lines += [f"management.tcp.port = {self._management_port}", "management.tcp.ip = 127.0.0.1"]
        if self._certificates is not None:
            lines += [
                f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}",
                f"ssl_options.cacertfile = {self._certificates.ca}",
                f"ssl_options.certfile = {self._certificates.server}",
                f"ssl_options.keyfile = {self._certificates.server_key}",
                "ssl_options.verify = verify_peer",
                "ssl_options.fail_if_no_peer_cert = false",
            ]
        (folder / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
        (folder / "enabled_plugins").write_text(f"[{','.join(self._plugins)}].\n")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
        return kept | {
            "HOME": str(folder),  # the cookie is made there
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"interlog-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "none.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "config"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _wait(self) -> None:
        assert self._server is not None
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.port):
            if self._server.poll() is not None or time.monotonic() > deadline:
                words = (self._folder / "output.txt").read_text(errors="replace")[-800:]
                raise NoRabbitMQ(f"rabbitmq-server does not start: {words.strip() or 'it says nothing'}")
            time.sleep(0.1)
        self.pid = _beam(self._server.pid)

    def stop(self) -> None:
        if self._server is not None and self._server.poll() is None:
            try:
                os.kill(self.pid or self._server.pid, signal.SIGTERM)
                self._server.wait(STOP_SECONDS)
            except (subprocess.TimeoutExpired, ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGKILL)  # a session of its own: only ours is in it
                self._server.wait()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
        self._server = self._epmd = None

    def __enter__(self) -> "RabbitMQ":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def answers(port: int) -> bool:
    """An AMQP server greets there."""
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return connection.recv(8)[:1] == b"\x01"
    except OSError:
        return False


def _beam(pid: int) -> int:
    """The Erlang VM among a process and what it started."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        try:
            name = Path(f"/proc/{one}/comm").read_text().strip()
            if name.startswith("beam"):
                return one
            waiting += [int(word) for word in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
        except OSError:
            continue
    return pid


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--management", action="store_true", help="with its management plugin")
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="rabbitmq-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with RabbitMQ(folder, port=given.port, management=given.management) as node:
            print(f"{node.url} (pid {node.pid}, plugins {', '.join(node.plugins) or 'none'})", flush=True)
            while True:
                time.sleep(3600)
    except NoRabbitMQ as error:
        print(error)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
