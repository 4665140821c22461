"""AMQP: Interlog beside RabbitMQ, in one run, with a client that is not the bottleneck.

    python3 dev.py bench amqp                              both brokers, all scenarios, 100 B and 4 KiB
    python3 dev.py bench amqp --quick --scenario acked     a short look at one
    python3 dev.py bench amqp --only interlog              without the peer
    python3 dev.py bench amqp --url amqp://guest:guest@127.0.0.1:5672/     a broker that runs already, alone

The load comes from one process (this one): one loop, prebuilt frames, deliveries counted by their bytes and checked by
their tags. Its own CPU is in the table ("client"): far below one core, or the figures are the client's. Each broker
stands still (SIGSTOP) while the other is measured, and they take turns in every round; a figure is the median of the
rounds. "µs/msg" is CPU time of the broker's process, user and system, for each message (of fan-out: for each delivery).

transient   publish, deliver, no acknowledgement; not persistent
acked       the same, each delivery acknowledged by itself; prefetch 1,000
confirmed   persistent, durable queue, confirmed (at most 1,000 open), delivered, acknowledged
fanout      one publish, ten queues with a consumer each; counted by deliveries
backlog     200,000 messages into a queue without a consumer
drain       ... and out again, acknowledged
latency     publish to delivery at 1,000 messages a second, on two connections
connections 1,000 connections, each with a queue and a consumer of its own; counted by deliveries over all of them
"""

import argparse
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from _amqp import Connection, Consumer, LoadError, Loop, Publisher, Writer, publish
from _rig import folders, machine, parser, percentile, resident_bytes

from tests.peers.rabbitmq import NoRabbitMQ
from tests.peers.targets import Elsewhere, Interlog, NoTarget, Rabbit, Target, host_port

SIZES = {"100B": 100, "4KiB": 4096}
FAN_OUT = 10
PREFETCH = 1000
WINDOW_BYTES = 4 << 20  # published and not delivered yet, at most
WINDOW_MESSAGES = 10_000
UNCONFIRMED = 1000
RATE = 1000
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 20.0  # for what is under way to arrive


@dataclass
class Size:
    name: str
    bytes: int

    @property
    def window(self) -> int:
        return min(WINDOW_MESSAGES, WINDOW_BYTES // self.bytes)

    @property
    def chunk(self) -> int:
        """Messages in one write: some 16 KiB, as a client under load would send."""
        return max(4, 16384 // (self.bytes + 60))


@dataclass
class Times:
    warm: float
    measured: float
    backlog: int
    connections: int


@dataclass
class Figure:
    """What one scenario found on one broker in one round."""

    rate: float = 0.0  # messages a second
    broker_us: float = 0.0  # CPU of the broker for each
    client: float = 0.0  # share of one core that the client needed
    more: dict[str, float] = field(default_factory=dict)


class Bench:
    """One broker, ready to be measured."""

    def __init__(self, target: Target, times: Times) -> None:
        self.target = target
        self.times = times
        self.host, self.port = host_port(target.url)
        self._names = 0

    def name(self) -> str:
        self._names += 1
        return f"bench-{self._names:06}"

    @contextmanager
    def connections(self, count: int) -> Iterator[list[Connection]]:
        made: list[Connection] = []
        try:
            for _ in range(count):
                made.append(Connection(self.host, self.port))
            yield made
        finally:
            for connection in made:
                connection.say_goodbye()
            for connection in made:
                connection.close()

    def delete(self, *queues: str, exchange: str = "") -> None:
        with self.connections(1) as (admin,):
            for queue in queues:
                admin.delete_queue(queue)
            if exchange:
                admin.delete_exchange(exchange)

    def cpu_seconds(self) -> float:
        if not self.target.pid:
            return 0.0
        fields = Path(f"/proc/{self.target.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def measure(self, loop: Loop, count: Callable[[], int]) -> Figure:
        """The rate over the measured seconds, after the warm ones."""
        loop.run(self.times.warm)
        return self.between(count, lambda: loop.run(self.times.measured))

    def between(self, count: Callable[[], int], work: Callable[[], None]) -> Figure:
        counted, cpu, own, began = count(), self.cpu_seconds(), time.process_time(), time.perf_counter()
        work()
        took = time.perf_counter() - began
        done = count() - counted
        if not done:
            raise LoadError("nothing was delivered")
        spent = self.cpu_seconds() - cpu
        return Figure(done / took, spent / done * 1e6, (time.process_time() - own) / took)


def transient(bench: Bench, size: Size) -> Figure:
    return _one_queue(bench, size, acks=False)


def acked(bench: Bench, size: Size) -> Figure:
    return _one_queue(bench, size, acks=True)


def confirmed(bench: Bench, size: Size) -> Figure:
    return _one_queue(bench, size, acks=True, persistent=True)


def _one_queue(bench: Bench, size: Size, *, acks: bool, persistent: bool = False) -> Figure:
    queue = bench.name()
    with bench.connections(2) as (out, back), _loop() as loop:
        out.queue(queue, durable=persistent)
        if persistent:
            out.confirms()
        if acks:
            back.prefetch(PREFETCH)
        back.consume(queue, for_good=not acks)
        publisher: Publisher
        consumer = Consumer(
            loop, back, acks=acks, body_size=size.bytes, delivered=lambda new: stopped or publisher.pump()
        )
        stopped = False

        def room() -> int:
            if stopped:
                return 0
            free = size.window - (publisher.sent - consumer.count)
            if persistent:
                free = min(free, UNCONFIRMED - (publisher.sent - publisher.confirmed))
            return free

        message = publish("", queue, bytes(size.bytes), persistent=persistent)
        publisher = Publisher(loop, out, message, chunk=size.chunk, room=room, confirmed=persistent)
        publisher.pump()
        figure = bench.measure(loop, lambda: min(consumer.count, publisher.confirmed) if persistent else consumer.count)
        stopped = True
        loop.run(QUIET_SECONDS, lambda: consumer.count == publisher.sent and publisher.settled)
        if consumer.count != publisher.sent or not publisher.settled:
            raise LoadError(f"{publisher.sent} published, {publisher.confirmed} confirmed, {consumer.count} delivered")
        consumer.check()
    bench.delete(queue)
    return figure


def fanout(bench: Bench, size: Size) -> Figure:
    exchange = bench.name()
    queues = [f"{exchange}-{number}" for number in range(FAN_OUT)]
    delivered = 0
    stopped = False
    with bench.connections(1 + FAN_OUT) as (out, *back), _loop() as loop:
        out.exchange(exchange, "fanout")
        publisher: Publisher

        def arrived(new: int) -> None:
            nonlocal delivered
            delivered += new
            publisher.pump()

        consumers = []
        for queue, connection in zip(queues, back, strict=True):
            connection.queue(queue)
            connection.bind(queue, exchange)
            connection.consume(queue, for_good=True)
            consumers.append(Consumer(loop, connection, acks=False, body_size=size.bytes, delivered=arrived))

        def room() -> int:
            return 0 if stopped else size.window // FAN_OUT - (publisher.sent - delivered // FAN_OUT)

        message = publish(exchange, "", bytes(size.bytes), persistent=False)
        publisher = Publisher(loop, out, message, chunk=size.chunk, room=room)
        publisher.pump()
        figure = bench.measure(loop, lambda: delivered)
        stopped = True
        loop.run(QUIET_SECONDS, lambda: delivered == publisher.sent * FAN_OUT)
        if delivered != publisher.sent * FAN_OUT:
            raise LoadError(f"{publisher.sent} published to {FAN_OUT} queues, {delivered} delivered")
        for consumer in consumers:
            consumer.check()
    bench.delete(*queues, exchange=exchange)
    return figure


def backlog(bench: Bench, size: Size) -> Figure:
    """In. What it leaves is what `drain` takes out."""
    queue = f"backlog-{size.name}"
    total = bench.times.backlog if size.bytes < 1000 else bench.times.backlog // 4
    total -= total % size.chunk
    with bench.connections(2) as (out, admin), _loop() as loop:
        with suppress(LoadError):
            admin.queue(queue, durable=True)
        message = publish("", queue, bytes(size.bytes), persistent=True)
        publisher = Publisher(loop, out, message, chunk=size.chunk, room=lambda: size.chunk, most=total)

        def work() -> None:
            publisher.pump()
            deadline = time.perf_counter() + 6 * QUIET_SECONDS
            loop.run(6 * QUIET_SECONDS, lambda: publisher.written)
            while admin.queue(queue, passive=True) < total:
                if time.perf_counter() > deadline:
                    raise LoadError(f"{admin.queue(queue, passive=True)} of {total} messages are in the queue")
                time.sleep(0.002)

        counts = iter((0, total))
        return bench.between(lambda: next(counts), work)


def drain(bench: Bench, size: Size) -> Figure:
    queue = f"backlog-{size.name}"
    with bench.connections(2) as (back, admin), _loop() as loop:
        total = admin.queue(queue, passive=True)
        if not total:
            raise LoadError("there is no backlog: run the scenario backlog before")
        back.prefetch(PREFETCH)
        consumers: list[Consumer] = []

        def work() -> None:
            back.consume(queue, for_good=False)
            consumers.append(Consumer(loop, back, acks=True, body_size=size.bytes, delivered=lambda new: None))
            loop.run(6 * QUIET_SECONDS, lambda: consumers[0].count >= total)

        figure = bench.between(lambda: consumers[0].count if consumers else 0, work)
        if consumers[0].count != total:
            raise LoadError(f"{consumers[0].count} of {total} messages came out")
        consumers[0].check()
    bench.delete(queue)
    return figure


def latency(bench: Bench, size: Size) -> Figure:
    queue = bench.name()
    took: list[float] = []
    with bench.connections(2) as (out, back), _loop() as loop:
        out.queue(queue)
        back.consume(queue, for_good=True)
        out.loose()
        writer = Writer(loop, out)
        loop.add(out.sock, read=lambda: None, write=writer.on_writable)
        sent = 0
        began: list[float] = []

        def arrived(new: int) -> None:
            now = time.perf_counter()
            took.extend(now - began[number] for number in range(len(took), len(took) + new))

        Consumer(loop, back, acks=False, body_size=size.bytes, delivered=arrived)
        message = publish("", queue, bytes(size.bytes), persistent=False)

        def work(messages: int) -> None:
            nonlocal sent
            next_at = time.perf_counter()
            until = sent + messages
            while sent < until:
                while (left := next_at - time.perf_counter()) > 0:
                    loop.turn(left)
                began.append(time.perf_counter())
                writer.send(message)
                sent += 1
                next_at += 1 / RATE
            loop.run(QUIET_SECONDS, lambda: len(took) == sent)

        work(int(bench.times.warm * RATE))
        warm = len(took)
        figure = bench.between(lambda: len(took), lambda: work(int(2 * bench.times.measured * RATE)))
    measured = took[warm:]
    for share, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")):
        figure.more[f"{name} µs"] = percentile(measured, share) * 1e6
    bench.delete(queue)
    return figure


def connections(bench: Bench, size: Size) -> Figure:
    count = bench.times.connections
    before = resident_bytes(bench.target.pid) if bench.target.pid else 0
    delivered = 0
    stopped = False
    began = time.perf_counter()
    with bench.connections(1 + count) as (out, *back), _loop() as loop:
        opened = time.perf_counter() - began
        held = (resident_bytes(bench.target.pid) - before) / (count + 1) if bench.target.pid else 0.0
        base = bench.name()
        queues = [f"{base}-{number:05}" for number in range(count)]
        publisher: Publisher

        def arrived(new: int) -> None:
            nonlocal delivered
            delivered += new
            publisher.pump()

        consumers = []
        for queue, connection in zip(queues, back, strict=True):
            connection.queue(queue, exclusive=True)
            connection.consume(queue, for_good=True)
            consumers.append(Consumer(loop, connection, acks=False, body_size=size.bytes, delivered=arrived))

        def room() -> int:
            return 0 if stopped else size.window - (publisher.sent - delivered)

        body = bytes(size.bytes)
        pieces = [queues[at : at + size.chunk] for at in range(0, count - count % size.chunk, size.chunk)]
        chunks = cycle([b"".join(publish("", queue, body, persistent=False) for queue in piece) for piece in pieces])
        publisher = Publisher(loop, out, chunks, chunk=size.chunk, room=room)
        publisher.pump()
        figure = bench.measure(loop, lambda: delivered)
        stopped = True
        loop.run(QUIET_SECONDS, lambda: delivered == publisher.sent)
        if delivered != publisher.sent:
            raise LoadError(f"{publisher.sent} published, {delivered} delivered")
        for consumer in consumers:
            consumer.check()
    figure.more = {"opened/s": (count + 1) / opened, "KB each": held / 1000}
    return figure


@contextmanager
def _loop() -> Iterator[Loop]:
    loop = Loop()
    try:
        yield loop
    finally:
        loop.close()


SCENARIOS: dict[str, Callable[[Bench, Size], Figure]] = {
    "transient": transient,
    "acked": acked,
    "confirmed": confirmed,
    "fanout": fanout,
    "backlog": backlog,
    "drain": drain,
    "latency": latency,
    "connections": connections,
}

# Design 4: CPU of the broker for a message of 100 B.
BUDGET_US = {"transient": 10.0, "acked": 10.0, "confirmed": 16.0, "fanout": 4.0}


def still(target: Target, stands: bool) -> None:
    """A broker that is not measured now costs nothing."""
    if target.pid and not isinstance(target, Elsewhere):
        os.kill(target.pid, signal.SIGSTOP if stands else signal.SIGCONT)


def median(figures: list[Figure]) -> Figure:
    names = figures[0].more
    return Figure(
        statistics.median(figure.rate for figure in figures),
        statistics.median(figure.broker_us for figure in figures),
        statistics.median(figure.client for figure in figures),
        {name: statistics.median(figure.more[name] for figure in figures) for name in names},
    )


Rows = list[dict[str, Any]]


def run(benches: dict[str, Bench], scenarios: list[str], sizes: list[Size], rounds: int) -> Rows:
    rows: Rows = []
    for size in sizes:
        print(f"\n{size.name}: messages a second; CPU of the broker for each; share of a core that the client needed")
        print(f"  {'':<12}" + "".join(f"{name:>30}" for name in benches) + f"{'ratio':>9}")
        found: dict[tuple[str, str], list[Figure]] = {}
        for names in _together(scenarios):
            for _ in range(rounds):
                for broker, bench in benches.items():
                    still(bench.target, False)
                    try:
                        for name in names:
                            found.setdefault((name, broker), []).append(SCENARIOS[name](bench, size))
                    except (LoadError, OSError) as error:
                        print(f"  {'/'.join(names)} on {broker}: {error or type(error).__name__}", flush=True)
                    still(bench.target, True)
            for name in names:
                figures = {broker: median(found[name, broker]) for broker in benches if found.get((name, broker))}
                rows += _print(name, size, figures, list(benches))
    return rows


def _together(scenarios: list[str]) -> list[list[str]]:
    """What goes in comes out in the same round."""
    pairs = []
    for name in scenarios:
        if name == "drain" and "backlog" in scenarios:
            continue
        pairs.append([name, "drain"] if name == "backlog" else [name])
    return [["backlog", "drain"] if names == ["drain"] else names for names in pairs]


def _print(name: str, size: Size, figures: dict[str, Figure], brokers: list[str]) -> Rows:
    cells = ""
    for broker in brokers:
        figure = figures.get(broker)
        cell = f"{figure.rate:,.0f}/s {figure.broker_us:6.1f} µs {figure.client:4.0%}" if figure else "-"
        cells += f"{cell:>30}"
    ours, theirs = figures.get("interlog"), figures.get("rabbitmq")
    ratio = f"{ours.rate / theirs.rate:8.2f}x" if ours and theirs and name != "latency" else ""
    budget = BUDGET_US.get(name) if size.bytes == 100 else None
    verdict = f"   budget {budget:g} µs: {'met' if ours.broker_us <= budget else 'MISSED'}" if budget and ours else ""
    print(f"  {name:<12}{cells}{ratio:>9}{verdict}", flush=True)
    for more in next(iter(figures.values())).more if figures else ():
        values = [figures[broker].more[more] if broker in figures else None for broker in brokers]
        cells = "".join(f"{'-' if value is None else f'{value:,.0f}':>30}" for value in values)
        ratio = f"{values[0] / values[1]:8.2f}x" if len(values) == 2 and values[0] and values[1] else ""
        print(f"    {more:<10}{cells}{ratio:>9}", flush=True)
    return [
        {"scenario": name, "size": size.name, "broker": broker, "rate": figure.rate, "broker_us": figure.broker_us}
        | {"client": figure.client, **figure.more}
        for broker, figure in figures.items()
    ]


def targets(given: argparse.Namespace, make_folder: Callable[[], Path]) -> list[Target]:
    if given.url:
        return [Elsewhere(given.only or "interlog", given.url, pid=given.pid)]
    wanted: list[Target] = []
    if given.only != "rabbitmq":
        wanted.append(Interlog(make_folder(), flags=tuple(given.flag)))
    if given.only != "interlog":
        try:
            wanted.append(Rabbit(make_folder()))
        except NoTarget as error:
            print(f"RabbitMQ is left out: {error}.")
    return wanted


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    options.add_argument("--size", action="append", choices=list(SIZES))
    options.add_argument("--only", choices=("interlog", "rabbitmq"))
    options.add_argument("--rounds", type=int, help="default 3, with --quick 1")
    options.add_argument("--url", help="a broker that runs already")
    options.add_argument("--pid", type=int, default=0, help="its process, for its CPU")
    options.add_argument("--flag", action="append", default=[], help="for interlog serve, e.g. --flag=--durability=os")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # brokers that were started are stopped then, too
    times = Times(0.5, 1.0, 20_000, 200) if given.quick else Times(1.0, 3.0, 200_000, 1000)
    sizes = [Size(name, SIZES[name]) for name in given.size or SIZES]
    began = time.monotonic()
    started: list[Target] = []
    print(machine())
    with folders(given.folder) as make_folder:
        try:
            benches: dict[str, Bench] = {}
            for target in targets(given, make_folder):
                try:
                    target.start()
                except (NoTarget, NoRabbitMQ) as error:
                    print(f"{target.name} is left out: {error}")
                    continue
                started.append(target)
                benches[target.name] = Bench(target, times)
                still(target, True)
            if not benches:
                return 1
            rows = run(benches, given.scenario or list(SCENARIOS), sizes, given.rounds or (1 if given.quick else 3))
        finally:
            for target in started:
                still(target, False)
                target.stop()
    if given.json is not None:
        import json

        given.json.write_text(json.dumps({"bench": "amqp", "machine": machine(), "rows": rows}, indent=1) + "\n")
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
