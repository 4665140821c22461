"""Thousands of queues and bindings: what they take to be made, what they hold, and whether anybody else notices them.

python3 dev.py bench names [--queues 5000] [--bindings 50000] [--quick] [--folder FOLDER] [--json FILE]

A broker is started for it. Queues are durable and classic; half of the bindings lead from a direct exchange, half
from a topic exchange, a third of those with wildcards. They are declared with a hundred requests under way at a time,
as from many clients. Then the same messages are published with and without them: 100 B, transient, to one queue with
one consumer; "many keys" are 20,000 different ones in turn, so that each has to be routed anew. CPU is that of the
broker's process for each message, best of three.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _amqp import Connection, Consumer, Loop, Publisher, method, publish, shortstr
from _rig import Report, cpu_seconds, folders, machine, parser, resident_bytes

from tests.peers.targets import Interlog, host_port

DIRECT, TOPIC = "names.direct", "names.topic"
QUEUE = "names.one"
AT_ONCE = 100
WINDOW = 5_000
CHUNK = 100
KEYS = 20_000
BODY = bytes(100)
DECLARE_OK, BIND_OK = (50, 11), (50, 21)


class Names:
    def __init__(self, queues: int, bindings: int) -> None:
        self.queues = [f"names.queue-{number:05}" for number in range(queues)]
        self.bindings = [self._binding(number) for number in range(bindings)]

    def _binding(self, number: int) -> tuple[str, str, str]:
        """Queue, exchange, key."""
        queue = self.queues[number % len(self.queues)]
        if number % 2:
            return queue, DIRECT, f"site{number % 1000}.sensor{number}"
        key = f"site{number % 1000}.{'*' if number % 3 == 0 else 'room'}.sensor{number}"
        return queue, TOPIC, key

    def declares(self) -> Iterator[bytes]:
        for queue in self.queues:
            yield method(1, 50, 10, b"\0\0" + shortstr(queue) + b"\x02" + b"\0\0\0\0")

    def binds(self) -> Iterator[bytes]:
        for queue, exchange, key in self.bindings:
            fields = b"\0\0" + shortstr(queue) + shortstr(exchange) + shortstr(key)
            yield method(1, 50, 20, fields + b"\0" + b"\0\0\0\0")


def all_of(connection: Connection, requests: Iterable[bytes], ok: tuple[int, int]) -> int:
    """Send them, a hundred at a time, and wait for their answers; how many they were."""
    count = 0
    waiting = iter(requests)
    while some := list(islice(waiting, AT_ONCE)):
        connection.sock.sendall(b"".join(some))
        for _ in some:
            connection.expect(*ok)
        count += len(some)
    return count


def publishing(target: Interlog, exchange: str, keys: list[str], seconds: float) -> tuple[float, float]:
    """Messages a second, and the broker's CPU for each, in microseconds."""
    host, port = host_port(target.url)
    out, back, loop = Connection(host, port), Connection(host, port), Loop()
    back.consume(QUEUE, for_good=True)
    messages = [publish(exchange, key, BODY, persistent=False) for key in keys] * max(1, CHUNK // len(keys))
    pieces = [b"".join(messages[at : at + CHUNK]) for at in range(0, len(messages), CHUNK)]
    stopped = False
    publisher: Publisher
    consumer = Consumer(loop, back, acks=False, body_size=len(BODY), delivered=lambda _: publisher.pump())
    publisher = Publisher(
        loop, out, cycle(pieces), chunk=CHUNK, room=lambda: 0 if stopped else WINDOW - publisher.sent + consumer.count
    )
    publisher.pump()
    loop.run(seconds / 2)
    counted, spent, began = consumer.count, cpu_seconds(target.pid), time.perf_counter()
    loop.run(seconds)
    count = consumer.count - counted
    spent, took = cpu_seconds(target.pid) - spent, time.perf_counter() - began
    stopped = True
    loop.run(20.0, lambda: consumer.count == publisher.sent)
    consumer.check()
    loop.close()
    for connection in (out, back):
        connection.sock.close()
    return count / took, spent / count * 1e6


SCENES: dict[str, tuple[str, list[str]]] = {
    "default exchange, one key": ("", [QUEUE]),
    "topic exchange, one key": (TOPIC, ["one.00000"]),
    "topic exchange, many keys": (TOPIC, [f"one.{number:05}" for number in range(KEYS)]),
}


def best(target: Interlog, seconds: float) -> dict[str, tuple[float, float]]:
    """By scene: messages a second, and CPU of the broker for each."""
    found = {}
    for name, (exchange, keys) in SCENES.items():
        rounds = [publishing(target, exchange, keys, seconds) for _ in range(3)]
        found[name] = max(rate for rate, _ in rounds), min(cpu for _, cpu in rounds)
    return found


def idle_share(target: Interlog, seconds: float) -> float:
    """Of a core, when nobody does anything; percent."""
    time.sleep(1.0)
    spent, began = cpu_seconds(target.pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(target.pid) - spent) / (time.perf_counter() - began) * 100


def declared(target: Interlog, names: Names, report: Report) -> None:
    with_connection = Connection(*host_port(target.url))
    for what, requests, ok in (
        ("queue", names.declares(), DECLARE_OK),
        ("binding", names.binds(), BIND_OK),
    ):
        held, spent, began = resident_bytes(target.pid), cpu_seconds(target.pid), time.perf_counter()
        count = all_of(with_connection, requests, ok)
        took, spent = time.perf_counter() - began, cpu_seconds(target.pid) - spent
        held = resident_bytes(target.pid) - held
        report.row(f"a {what}: declared in a second", count / took, "", f"{count:,} in {took:.1f} s")
        report.row(f"a {what}: CPU to declare", spent / count * 1e6, "us")
        report.row(f"a {what}: memory", held / count, "bytes", f"{held / 1e6:.1f} MB for all")
    with_connection.sock.close()


def again(target: Interlog, report: Report, end: signal.Signals, seconds: float | None) -> None:
    """End it so, start it on the same folder."""
    if end == signal.SIGKILL:
        os.kill(target.pid, end)
    target.stop()
    began = time.perf_counter()
    target.start()
    how = "after a clean stop" if end == signal.SIGTERM else "after a kill"
    report.row(f"start {how}, to ready", time.perf_counter() - began, "s", most=seconds)
    report.row(f"start {how}, CPU", cpu_seconds(target.pid), "s")


def measure(folder: Path, report: Report, names: Names, seconds: float) -> None:
    report.title(f"{len(names.queues):,} queues and {len(names.bindings):,} bindings")
    target = Interlog(folder)
    target.start()
    try:
        first = Connection(*host_port(target.url))
        first.queue(QUEUE)
        first.exchange(DIRECT, "direct", durable=True)
        first.exchange(TOPIC, "topic", durable=True)
        first.bind(QUEUE, TOPIC, "one.#")
        before = best(target, seconds)
        report.row("CPU when nothing happens, without them", idle_share(target, 2 * seconds), "%")
        declared(target, names, report)
        report.row("CPU when nothing happens, with them", idle_share(target, 2 * seconds), "%")
        for name, (rate, cpu) in best(target, seconds).items():
            rate_before, cpu_before = before[name]
            note = f"without them {cpu_before:.2f} us; {rate_before:,.0f}/s, with them {rate:,.0f}/s"
            report.row(f"publish, {name}: CPU of a message", cpu, "us", note, most=round(cpu_before * 1.25, 2))
        first.sock.close()
        again(target, report, signal.SIGKILL, 3.0)
        again(target, report, signal.SIGTERM, 0.5)
        again(target, report, signal.SIGTERM, 0.5)
        report.row("memory after a start", resident_bytes(target.pid) / 1e6, "MB")
    finally:
        target.stop()


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--queues", type=int, help="default 5,000, with --quick 500")
    options.add_argument("--bindings", type=int, help="default 50,000, with --quick 5,000")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the broker that was started is stopped then, too
    names = Names(given.queues or (500 if given.quick else 5_000), given.bindings or (5_000 if given.quick else 50_000))
    report = Report()
    with folders(given.folder) as make_folder:
        print(machine())
        measure(make_folder(), report, names, 1.0 if given.quick else 3.0)
    report.finish(given.json, {"bench": "names", "queues": len(names.queues), "bindings": len(names.bindings)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
