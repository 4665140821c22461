"""Connections that do nothing: what each of them costs the broker, and whoever works beside them.

python3 dev.py bench idle [--connections 10000] [--quick] [--folder FOLDER] [--json FILE]

A broker is started for it. Memory is its resident size, after and before, divided by the connections: each with one
open channel, and with the client properties that pika sends. The connections then beat as clients do, every half of
their heartbeat; the broker's CPU is that of its process. The latency is from publish to delivery on two connections
that stand beside the idle ones, at 200 messages a second.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _amqp import HEARTBEAT, Connection, Consumer, Loop, Writer, frame, publish, shortstr
from _rig import Report, cpu_seconds, folders, machine, open_files, parser, percentile, resident_bytes

from tests.peers.targets import Interlog, host_port

HEARTBEAT_S = 60
RATE = 200
SETTLE_SECONDS = 3.0

IDLE_KB = 20.0  # design 4: an idle connection


def client_properties() -> bytes:
    """What pika tells of itself."""

    def text(name: str, value: str) -> bytes:
        return b"".join((shortstr(name), b"S", pack(">I", len(value)), value.encode()))

    def table(name: str, rows: bytes) -> bytes:
        return b"".join((shortstr(name), b"F", pack(">I", len(rows)), rows))

    can = ("authentication_failure_close", "basic.nack", "connection.blocked", "consumer_cancel_notify")
    return (
        text("product", "Pika Python Client Library")
        + text("platform", "Python 3.11.7")
        + table("capabilities", b"".join(shortstr(name) + b"t\x01" for name in (*can, "publisher_confirms")))
        + text("information", "See http://pika.rtfd.org")
        + text("version", "1.3.2")
    )


class Beats:
    """Heartbeats of many connections, evenly over time, as clients that were not all started at once."""

    def __init__(self, idle: list[Connection]) -> None:
        self._idle = idle
        for connection in idle:
            connection.sock.setblocking(False)
        self._began = time.perf_counter()
        self._sent = 0

    def due(self) -> None:
        count = int((time.perf_counter() - self._began) / (HEARTBEAT_S / 2) * len(self._idle))
        for number in range(self._sent, count):
            sock = self._idle[number % len(self._idle)].sock
            sock.send(frame(HEARTBEAT, 0, b""))
            try:
                sock.recv(4096)
            except BlockingIOError:
                pass  # the broker has said nothing since
        self._sent = max(count, self._sent)


def latencies(host: str, port: int, seconds: float, beside: Callable[[], None]) -> list[float]:
    """Publish to delivery, while `beside` is called all the time."""
    out, back, loop = Connection(host, port), Connection(host, port), Loop()
    out.queue("beside")
    back.consume("beside", for_good=True)
    out.loose()
    writer = Writer(loop, out)
    loop.add(out.sock, read=lambda: out.sock.recv(4096) and None, write=writer.on_writable)
    took: list[float] = []
    began: list[float] = []

    def arrived(new: int) -> None:
        now = time.perf_counter()
        took.extend(now - began[number] for number in range(len(took), len(took) + new))

    Consumer(loop, back, acks=False, body_size=100, delivered=arrived)
    message = publish("", "beside", bytes(100), persistent=False)
    next_at = time.perf_counter()
    for _ in range(int(seconds * RATE)):
        while (left := next_at - time.perf_counter()) > 0:
            loop.turn(left)
        began.append(time.perf_counter())
        writer.send(message)
        beside()
        next_at += 1 / RATE
    loop.run(5.0, lambda: len(took) == len(began))
    loop.close()
    for connection in (out, back):
        connection.sock.close()
    return took


@contextmanager
def broker(folder: Path) -> Iterator[Interlog]:
    target = Interlog(folder)
    target.start()
    try:
        yield target
    finally:
        target.stop()


def measure(folder: Path, report: Report, count: int, seconds: float) -> None:
    report.title(f"{count:,} AMQP connections that do nothing")
    with broker(folder) as target:
        host, port = host_port(target.url)
        idle: list[Connection] = []
        properties = client_properties()
        for _ in range(100):  # what the first ones need, the broker has once
            Connection(host, port, properties=properties).sock.close()
        time.sleep(0.5)
        alone = latencies(host, port, seconds, lambda: None)
        before = resident_bytes(target.pid)
        began, spent = time.perf_counter(), cpu_seconds(target.pid)
        for _ in range(count):
            idle.append(Connection(host, port, heartbeat_s=HEARTBEAT_S, properties=properties))
        took, spent = time.perf_counter() - began, cpu_seconds(target.pid) - spent
        report.row("opened in a second, one after the other", count / took, "")
        report.row("CPU to open one", spent / count * 1e6, "µs")
        each = (resident_bytes(target.pid) - before) / count / 1000
        report.row("memory of one, when all are open", each, "KB", most=IDLE_KB)

        beats = Beats(idle)
        until = time.perf_counter() + SETTLE_SECONDS
        while time.perf_counter() < until:
            beats.due()
            time.sleep(0.01)
        began, spent = time.perf_counter(), cpu_seconds(target.pid)
        while time.perf_counter() < began + 2 * seconds:
            beats.due()
            time.sleep(0.01)
        share = (cpu_seconds(target.pid) - spent) / (time.perf_counter() - began)
        report.row("CPU of the broker while they beat", share * 100, "% of a core", f"heartbeat {HEARTBEAT_S} s")
        beside = latencies(host, port, seconds, beats.due)
        for name, among in (("alone", alone), ("beside them", beside)):
            for part, text in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")):
                report.row(f"{text} of one active client, {name}", percentile(among, part) * 1e6, "µs")
        each = (resident_bytes(target.pid) - before) / count / 1000
        report.row("memory of one, a while later", each, "KB", most=IDLE_KB)
        spent = cpu_seconds(target.pid)
        for connection in idle:
            connection.sock.close()
        began = time.perf_counter()
        Connection(host, port).sock.close()
        report.row("all leave at once: the next one is served after", (time.perf_counter() - began) * 1e3, "ms")
        report.row("CPU for one that leaves", (cpu_seconds(target.pid) - spent) / count * 1e6, "µs")


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--connections", type=int, help="default 10,000, with --quick 1,000")
    given = options.parse_args()
    count = given.connections or (1_000 if given.quick else 10_000)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the broker that was started is stopped then, too
    if open_files() < count + 100:
        print(f"This process may open {open_files():,} files, too few for {count:,} connections: ulimit -n.")
        return 1
    report = Report()
    with folders(given.folder) as make_folder:
        print(machine())
        measure(make_folder(), report, count, 3.0 if given.quick else 10.0)
    report.finish(given.json, {"bench": "idle", "connections": count})
    return 0


if __name__ == "__main__":
    sys.exit(main())
