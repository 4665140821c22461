"""Kafka: Interlog beside a real Kafka, in one run.

    python3 dev.py bench kafka                                 both brokers, everything
    python3 dev.py bench kafka --quick --scenario requests     a short look at one
    python3 dev.py bench kafka --only interlog                 without the peer

`produce` and `consume` are librdkafka's, by confluent-kafka, with its defaults. All else comes from raw sockets in this
process: one loop, requests made beforehand, answers counted as they pass, so that the client is not what is measured.
Its own CPU is in the table ("client"; librdkafka's threads count too). Each broker stands still (SIGSTOP) while the
other is measured, and they take turns in every round; a figure is the median of the rounds. "µs" is CPU time of the
broker's process, user and system, for each of what is counted. The real Kafka needs Java and Maven: where they, or its
jars, cannot be had, it is left out with a word.

Interlog answers acks=all once what was sent is synced to the disk; Kafka does so once it is written.

produce     librdkafka producing: 100 B, 1 KiB, 10 KiB; 1 and 16 partitions; none, lz4, zstd; messages
consume     ... and reading it all again
requests    produce requests of one record of 100 B, on one partition, 5 in flight: as a client that does not wait
batches     the same with larger batches: what a request costs, and what its bytes cost
tail        fetches of the newest batch, one after another; of waiting ones, that are woken by each batch; and what
            a batch costs where ten wait for it
latency     one record to produce until it is fetched, at 1,000 a second, acks=all, on two connections
metadata    all of a topic of 1,000 partitions, and 100 topics of 10
groups      20 members: until they share a topic from nothing, and after one has left
waiting     10,000 connections: what they hold while they do nothing, what they cost while each waits for its own
            topic, and what a wait costs that ends without anything
start       from the command to the open port, in an empty folder
"""

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _kafka as wire
from _amqp import LoadError, Loop, Writer
from _kafka import Asker, Connection, Member
from _rig import compiled, cpu_seconds, folders, machine, open_files, parser, percentile, resident_bytes
from _sides import Figure, NothingDoneError, between, median, still
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.peers import kafka as peer
from tests.peers.targets import Interlog, NoTarget

SIZES = {"100 B": 100, "1 KiB": 1024, "10 KiB": 10240}
PARTITIONS = (1, 16)
BATCHES = {"16 KiB": 16 << 10, "128 KiB": 128 << 10, "1 MiB": 1 << 20}
IN_FLIGHT = 5  # what clients allow themselves
FAN_OUT = 10
RATE = 1000
MEMBERS = 20
BEAT_SECONDS = 0.01
QUIET_SECONDS = 30.0  # for what is under way to arrive
QUEUED_BYTES = 64 << 20  # by librdkafka, at most
HEADER_BYTES = 61

# Design 4: CPU of the broker for a request, beside the copying of its bytes.
PRODUCE_US, FETCH_US = 80.0, 60.0
IDLE_KB = 20.0
START_MS = 150.0


@dataclass
class Times:
    warm: float
    measured: float
    waiting: int


class Broker(Protocol):
    name: str
    pid: int
    host: str
    port: int

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Ours:
    name = "interlog"

    def __init__(self, folder: Path, flags: tuple[str, ...]) -> None:
        self._target = Interlog(folder, flags=flags)
        self.pid = self.port = 0
        self.host = ""

    def start(self) -> None:
        self._target.start()
        self.pid = self._target.pid
        host, _, port = self._target.kafka.rpartition(":")
        self.host, self.port = host, int(port)

    def stop(self) -> None:
        self._target.stop()


class Theirs:
    name = "kafka"

    def __init__(self, folder: Path) -> None:
        self._node = peer.Kafka(folder, settings={"num.io.threads": "8", "max.connections.per.ip": "100000"})
        self.pid, self.host, self.port = 0, "127.0.0.1", self._node.port

    def start(self) -> None:
        self._node.start()
        self.pid = self._node.pid

    def stop(self) -> None:
        self._node.stop()


class Bench:
    """One broker, ready to be measured."""

    def __init__(self, broker: Broker, times: Times, make_folder: Callable[[], Path]) -> None:
        self.broker = broker
        self.times = times
        self.make_folder = make_folder
        self._names = 0

    @property
    def address(self) -> str:
        return f"{self.broker.host}:{self.broker.port}"

    def connect(self) -> Connection:
        return Connection(self.broker.host, self.broker.port)

    @contextmanager
    def connections(self, count: int) -> Iterator[list[Connection]]:
        made: list[Connection] = []
        try:
            for _ in range(count):
                made.append(self.connect())
            yield made
        finally:
            for connection in made:
                connection.close()

    @contextmanager
    def topics(self, *partitions: int) -> Iterator[list[str]]:
        """New topics, one for each number of partitions, which are led; they go at the end."""
        names = []
        with self.connections(1) as (admin,):
            for count in partitions:
                self._names += 1
                names.append(f"bench-{self._names:06}")
                admin.create(names[-1], count)
            for name, count in zip(names, partitions, strict=True):
                admin.wait_until_led(name, count)
            try:
                yield names
            finally:
                admin.delete(*names)

    def between(self, count: Callable[[], int], work: Callable[[], None]) -> Figure:
        return between(self.broker.pid, count, work)

    def measure(self, loop: Loop, count: Callable[[], int]) -> Figure:
        """The rate over the measured seconds, after the warm ones."""
        loop.run(self.times.warm)
        return self.between(count, lambda: loop.run(self.times.measured))


Figures = dict[str, Figure]
Work = Callable[[Bench], Figures]


@contextmanager
def looping() -> Iterator[Loop]:
    loop = Loop()
    try:
        yield loop
    finally:
        loop.close()


# -- librdkafka


def values(size: int) -> list[bytes]:
    """Records as they are: half of each is words that come again, half is not."""
    rng = random.Random(1)
    words = [b'"field-%02d":"value-%03d",' % (number, rng.randrange(1000)) for number in range(40)]
    made = []
    for _ in range(1000):
        text = b"".join(rng.choices(words, k=size // 44 + 1))[: size // 2]
        made.append(text + rng.randbytes(size - len(text)))
    return made


def librdkafka(size: int, partitions: int, codec: str, bench: Bench) -> Figures:
    label = f"{_name(size)} x {partitions}, {codec}"
    with bench.topics(partitions) as (topic,):
        produced, total = _produce(bench, topic, size, codec)
        return {f"produce {label}": produced, f"consume {label}": _consume(bench, topic, partitions, total)}


def _produce(bench: Bench, topic: str, size: int, codec: str) -> tuple[Figure, int]:
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bench.address,
            "compression.codec": codec,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, message: failed.append(error),
            "log_level": 3,
        }
    )
    some = values(size)
    chunk = max(10, min(1000, (1 << 20) // size))
    messages = [{"value": value} for value in some[:chunk]]
    most = min(500_000, QUEUED_BYTES // size)
    sent = 0

    def send(seconds: float) -> None:
        nonlocal sent
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            if len(producer) > most:
                producer.poll(0.001)
                continue
            sent += producer.produce_batch(topic, messages)
            producer.poll(0)

    send(bench.times.warm)
    figure = bench.between(lambda: sent - len(producer), lambda: send(bench.times.measured))
    producer.flush(QUIET_SECONDS)
    if failed or len(producer):
        raise LoadError(f"{len(failed) or len(producer)} messages could not be produced: {failed[:1]}")
    return figure, sent


def _consume(bench: Bench, topic: str, partitions: int, total: int) -> Figure:
    consumer = Consumer(
        {
            "bootstrap.servers": bench.address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # By default it does nothing for a second once it has read enough ahead: that would be what is measured.
            "fetch.queue.backoff.ms": 1,
            "log_level": 3,
        }
    )
    count = 0

    def work() -> None:
        nonlocal count
        deadline = time.perf_counter() + 6 * QUIET_SECONDS
        while count < total and time.perf_counter() < deadline:
            for message in (got := consumer.consume(10_000, 0.5)):
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise LoadError(f"a message could not be read: {error}")
            count += len(got)

    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    try:
        figure = bench.between(lambda: count, work)
    finally:
        consumer.close()
    if count != total:
        raise LoadError(f"{count} of {total} messages could be read")
    return figure


def _name(size: int) -> str:
    return next(name for name, known in SIZES.items() if known == size)


# -- raw requests


def requests(bench: Bench) -> Figures:
    one = wire.batch([bytes(100)])
    found = {}
    ways = (("all", wire.ALL, 1, IN_FLIGHT), ("1", wire.LEADER, 1, IN_FLIGHT), ("all", wire.ALL, 1, 1))
    for name, acks, connections, in_flight in (*ways, ("all", wire.ALL, 20, 1)):
        with bench.topics(1) as (topic,):
            where = f"{connections} connections" if connections > 1 else f"{in_flight} in flight"
            found[f"requests acks={name}, {where}"] = _requests(
                bench, wire.produce(topic, {0: one}, acks), in_flight, connections
            )
    return found


def batches(bench: Bench) -> Figures:
    """A request of one batch, and beside it the cost of its bytes alone."""
    found = {}
    for name, size in BATCHES.items():
        rng = random.Random(size)
        count = max(1, size // 1100)
        made = wire.batch([rng.randbytes(size // count - 40) for _ in range(count)])
        with bench.topics(1) as (topic,):
            figure = _requests(bench, wire.produce(topic, {0: made}), IN_FLIGHT)
            figure.more["MiB/s"] = figure.rate * len(made) / (1 << 20)
            found[f"batches of {name}"] = figure
    with bench.topics(16) as (topic,):
        made = wire.batch([bytes(100)] * 100)
        spread = dict.fromkeys(range(16), made)
        found["batches for 16 partitions at once"] = _requests(bench, wire.produce(topic, spread), IN_FLIGHT)
    return found


def _requests(bench: Bench, request: bytes, in_flight: int, connections: int = 1) -> Figure:
    with bench.connections(connections) as made, looping() as loop:
        askers = [
            Asker(loop, connection, request, in_flight=in_flight, answered=wire.check_produced) for connection in made
        ]
        for asker in askers:
            asker.pump()
        figure = bench.measure(loop, lambda: sum(asker.count for asker in askers))
        _settle(loop, askers)
    return figure


def _settle(loop: Loop, askers: list[Asker]) -> None:
    for asker in askers:
        asker.stopped = True
    loop.run(QUIET_SECONDS, lambda: all(asker.settled for asker in askers))
    if not all(asker.settled for asker in askers):
        raise LoadError("not all requests were answered")


def tail(bench: Bench) -> Figures:
    found = {}
    kib = wire.batch([bytes(1000)])
    with bench.topics(1) as (topic,), bench.connections(1) as (connection,), looping() as loop:
        id = connection.topic_id(topic)
        for _ in range(100):
            connection.sock.sendall(wire.produce(topic, {0: kib}))
            connection.answer()
        asker = Asker(loop, connection, wire.fetch(id, {0: 99}, wait_ms=500), answered=_check_one)
        asker.pump()
        found["tail fetch of the newest batch"] = bench.measure(loop, lambda: asker.count)
        _settle(loop, [asker])
    alone = _followed(bench, 0)
    found["tail of one that waits, with its batch"] = one = _followed(bench, 1)
    one.more["µs without the batch"] = one.broker_us - alone.broker_us
    found[f"tail of {FAN_OUT} that wait, with their batch"] = many = _followed(bench, FAN_OUT)
    many.more["µs of each that waits"] = (many.broker_us - alone.broker_us) / FAN_OUT
    return found


def _check_one(head: memoryview) -> None:
    end, records = wire.fetched(head)
    if not records:
        raise LoadError(f"a fetch found nothing before {end}")


def _followed(bench: Bench, readers: int) -> Figure:
    """Batches produced one after another, each when all that wait have the one before, and so wait again."""
    kib = wire.batch([bytes(1000)])
    with bench.topics(1) as (topic,), bench.connections(1 + readers) as (out, *back), looping() as loop:
        id = out.topic_id(topic)
        followers: list[Asker] = []

        def answered(head: memoryview) -> None:
            if all(follower.count >= producer.count for follower in followers) and producer.settled:
                producer.pump()

        def produced(head: memoryview) -> None:
            wire.check_produced(head)
            answered(head)

        def wants(connection: Connection) -> Iterator[bytes]:
            offset = 0
            while True:
                yield wire.fetch(id, {0: offset}, wait_ms=10_000)
                offset += 1

        producer = Asker(loop, out, wire.produce(topic, {0: kib}), answered=produced)
        producer.by_hand = True
        for connection in back:
            followers.append(Asker(loop, connection, wants(connection), answered=partial(_follow, answered)))
            followers[-1].pump()
        producer.pump()
        figure = bench.measure(loop, lambda: producer.count)
        producer.stopped = True
        loop.run(QUIET_SECONDS, lambda: producer.settled and all(one.count == producer.count for one in followers))
    return figure


def _follow(then: Callable[[memoryview], None], head: memoryview) -> None:
    _check_one(head)
    then(head)


def latency(bench: Bench) -> Figures:
    value = bytearray(100)
    took: list[float] = []
    with bench.topics(1) as (topic,), bench.connections(2) as (out, back), looping() as loop:
        id = back.topic_id(topic)
        request = wire.produce(topic, {0: wire.batch([bytes(value)])})
        out.sock.setblocking(False)
        writer = Writer(loop, out)
        loop.add(out.sock, read=lambda: out.sock.recv(1 << 16) and None, write=writer.on_writable)
        began: list[float] = []

        def answered(head: memoryview) -> None:
            now = time.perf_counter()
            end, records = wire.fetched(head)
            if not records:
                return
            new = end - len(took)  # an answer has room for all there is
            took.extend(now - began[number] for number in range(len(took), len(took) + new))

        def wants() -> Iterator[bytes]:
            while True:
                yield wire.fetch(id, {0: len(took)}, wait_ms=500)

        Asker(loop, back, wants(), answered=answered).pump()

        def work(messages: int) -> None:
            next_at = time.perf_counter()
            until = len(began) + messages
            while len(began) < until:
                while (left := next_at - time.perf_counter()) > 0:
                    loop.turn(left)
                began.append(time.perf_counter())
                writer.send(request)
                next_at += 1 / RATE
            loop.run(QUIET_SECONDS, lambda: len(took) == len(began))
            if len(took) != len(began):
                raise LoadError(f"{len(took)} of {len(began)} records arrived")

        work(int(bench.times.warm * RATE))
        warm = len(took)
        figure = bench.between(lambda: len(took), lambda: work(int(2 * bench.times.measured * RATE)))
    measured = took[warm:]
    for share, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")):
        figure.more[f"{name} µs"] = percentile(measured, share) * 1e6
    return {"latency at 1,000 a second": figure}


def metadata(bench: Bench) -> Figures:
    found = {}
    ways = (("1 topic of 1,000 partitions", (1000,)), ("100 topics of 10 partitions", (10,) * 100))
    for name, partitions in ways:
        with bench.topics(*partitions) as topics, bench.connections(1) as (connection,), looping() as loop:
            asker = Asker(loop, connection, wire.metadata(topics))
            asker.pump()
            figure = bench.measure(loop, asker.counted)
            figure.more["µs to the answer"] = 1e6 / figure.rate
            found[f"metadata: {name}"] = figure
            _settle(loop, [asker])
    return found


def groups(bench: Bench) -> Figures:
    group = f"bench-{time.time_ns()}"
    found = {}
    with bench.topics(MEMBERS) as (topic,), bench.connections(MEMBERS + 1) as (admin, *connections), looping() as loop:
        admin.wait_for_coordinator(group)
        members = [Member(loop, connection, group, topic, BEAT_SECONDS) for connection in connections]

        def until_stable(among: list[Member]) -> None:
            deadline = time.perf_counter() + QUIET_SECONDS
            while not _are_stable(among):
                if time.perf_counter() > deadline:
                    raise LoadError(f"{sum(bool(m.stable_since) for m in among)} of {len(among)} members are stable")
                loop.turn(BEAT_SECONDS)
                for member in members:
                    member.beat()

        def join() -> None:
            for member in members:
                member.begin(time.perf_counter)
            until_stable(members)

        def leave() -> None:
            members[-1].leave()
            until_stable(members[:-1])

        for name, work in (("20 members join", join), ("one of them leaves", leave)):
            counts = iter((0, 1))
            figure = bench.between(lambda counts=counts: next(counts), work)
            figure.more["ms until all share"] = 1000 / figure.rate
            found[f"groups: {name}"] = figure
    return found


def _are_stable(members: list[Member]) -> bool:
    generation = members[0].generation
    leading = max(member.count for member in members if member.generation == generation)
    return leading == len(members) and all(m.stable_since and m.generation == generation for m in members)


def waiting(bench: Bench) -> Figures:
    count, pid = bench.times.waiting, bench.broker.pid
    topics, seconds = 100, bench.times.measured
    found = {}
    with bench.topics(*(1,) * topics) as names, bench.connections(topics) as warm:
        ids = [connection.topic_id(name) for name, connection in zip(names, warm, strict=True)]
        for connection in warm:  # what the first ones need, the broker has once
            connection.sock.sendall(wire.fetch(ids[0], {0: 0}, wait_ms=1))
            connection.answer()
        time.sleep(0.5)
        before = resident_bytes(pid) if pid else 0
        with bench.connections(count) as made, looping() as loop:
            for connection in made:
                connection.call(18, 3, wire.compact(b"load") + wire.compact(b"1") + b"\0")
            figure = Figure(more={})
            figure.more["KB of one that does nothing"] = (resident_bytes(pid) - before) / count / 1000 if pid else 0.0
            for connection, id in zip(made, _again(ids), strict=False):
                connection.sock.sendall(wire.fetch(id, {0: 0}, wait_ms=300_000))
            time.sleep(1.0)
            figure.more["KB of one that waits"] = (resident_bytes(pid) - before) / count / 1000 if pid else 0.0
            cpu = cpu_seconds(pid) if pid else 0.0
            time.sleep(seconds)
            figure.broker = ((cpu_seconds(pid) if pid else 0.0) - cpu) / seconds
            figure.more["% of a core while all wait"] = figure.broker * 100
            found[f"waiting: {count:,} connections"] = figure
        some = min(200, count)
        with bench.connections(some) as made, looping() as loop:
            askers = [
                Asker(loop, connection, wire.fetch(id, {0: 0}, wait_ms=100), answered=wire.fetched)
                for connection, id in zip(made, _again(ids), strict=False)
            ]
            for asker in askers:
                asker.pump()
            found["waiting: polls that end with nothing"] = bench.measure(
                loop, lambda: sum(asker.count for asker in askers)
            )
            _settle(loop, askers)
    return found


def _again(ids: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from ids


def start(bench: Bench) -> Figures:
    """Of another broker than the one that is measured else."""
    if not isinstance(bench.broker, Ours):
        return {}
    took, spent = [], []
    compiled()
    for _ in range(5):
        other = Ours(bench.make_folder(), ())
        began = time.perf_counter()
        other.start()
        took.append(time.perf_counter() - began)
        spent.append(cpu_seconds(other.pid))
        other.stop()
    return {"start": Figure(more={"ms to the open port": min(took) * 1000, "ms of CPU": min(spent) * 1000})}


SCENARIOS: dict[str, list[Work]] = {
    "produce": [
        partial(librdkafka, size, partitions, codec)
        for size in SIZES.values()
        for partitions in PARTITIONS
        for codec in wire.CODECS
    ],
    "requests": [requests],
    "batches": [batches],
    "tail": [tail],
    "latency": [latency],
    "metadata": [metadata],
    "groups": [groups],
    "waiting": [waiting],
    "start": [start],
}


# -- side by side


class Table:
    def __init__(self, brokers: list[str]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.judged = self.missed = 0
        self._brokers = brokers
        print("\nwhat is counted, a second; CPU of the broker for each, its share of a core; the client's share")
        print(f"  {'':<42}" + "".join(f"{name:>38}" for name in brokers) + f"{'ratio':>9}", flush=True)

    def add(self, name: str, figures: Figures) -> None:
        ours, theirs = figures.get("interlog"), figures.get("kafka")
        cells = "".join(f"{_cell(figures.get(broker)):>38}" for broker in self._brokers)
        rated = ours is not None and theirs is not None and ours.rate and not name.startswith("latency")
        ratio = f"{ours.rate / theirs.rate:8.2f}x" if rated and ours and theirs else ""
        print(f"  {name:<42}{cells}{ratio:>9}{self._verdict(name, ours, theirs)}".rstrip(), flush=True)
        for more in next(iter(figures.values())).more:
            found = {broker: figure.more[more] for broker, figure in figures.items()}
            cells = "".join(f"{f'{found[broker]:,.1f}' if broker in found else '-':>38}" for broker in self._brokers)
            ratio = f"{found['interlog'] / found['kafka']:8.2f}x" if len(found) == 2 and found["kafka"] else ""
            verdict = self._more_verdict(name, more, found)
            print(f"    {more:<40}{cells}{ratio:>9}{verdict}".rstrip(), flush=True)
        for broker, figure in figures.items():
            self.rows.append(
                {"name": name, "broker": broker, "rate": figure.rate, "broker_us": figure.broker_us}
                | {"broker_share": figure.broker, "client": figure.client, **figure.more}
            )

    def _verdict(self, name: str, ours: Figure | None, theirs: Figure | None) -> str:
        if ours is None:
            return ""
        if name.startswith("requests acks=all, 5"):
            return self._most(ours.broker_us, PRODUCE_US, "µs")
        if name.startswith("tail fetch"):
            return self._most(ours.broker_us, FETCH_US, "µs")
        if name.startswith("produce") and theirs is not None:
            return self._say(ours.rate >= theirs.rate, "as fast as Kafka")
        if name.startswith("consume"):
            return self._say(ours.client > ours.broker, "bounded by the client")
        return ""

    def _more_verdict(self, name: str, more: str, found: dict[str, float]) -> str:
        if "interlog" not in found:
            return ""
        ours = found["interlog"]
        if more == "p99 µs" and "kafka" in found:
            return self._say(ours < found["kafka"], "below Kafka's")
        if more == "KB of one that does nothing":
            return self._most(ours, IDLE_KB, "KB")
        if more == "µs of each that waits":
            return self._most(ours, FETCH_US, "µs")
        if more == "ms to the open port":
            return self._most(ours, START_MS, "ms")
        return ""

    def _most(self, value: float, most: float, unit: str) -> str:
        return self._say(value <= most, f"at most {most:g} {unit}")

    def _say(self, good: bool, what: str) -> str:
        self.judged += 1
        self.missed += not good
        return f"   {what}: {'met' if good else 'MISSED'}"


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if not figure.rate:
        return ""
    return f"{figure.rate:,.0f}/s {figure.broker_us:8,.1f} µs {figure.broker:4.0%} {figure.client:4.0%}"


def run(benches: dict[str, Bench], scenarios: list[str], rounds: int) -> Table:
    table = Table(list(benches))
    for scenario in scenarios:
        for work in SCENARIOS[scenario]:
            found: dict[str, dict[str, list[Figure]]] = {}
            for _ in range(rounds):
                for name, bench in benches.items():
                    still(bench.broker.pid, False)
                    try:
                        for row, figure in work(bench).items():
                            found.setdefault(row, {}).setdefault(name, []).append(figure)
                    except (LoadError, NothingDoneError, OSError) as error:
                        print(f"  {scenario} on {name}: {error or type(error).__name__}", flush=True)
                    still(bench.broker.pid, True)
            for row, figures in found.items():
                table.add(row, {name: median(several) for name, several in figures.items()})
    return table


def brokers(given: argparse.Namespace, make_folder: Callable[[], Path]) -> list[Broker]:
    wanted: list[Broker] = []
    if given.only != "kafka":
        wanted.append(Ours(make_folder(), tuple(given.flag)))
    if given.only != "interlog":
        try:
            wanted.append(Theirs(make_folder()))
        except peer.NoKafka as error:
            print(f"Kafka is left out: {error}.")
    return wanted


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    options.add_argument("--only", choices=("interlog", "kafka"))
    options.add_argument("--rounds", type=int, help="default 3, with --quick 1")
    options.add_argument("--flag", action="append", default=[], help="for interlog serve, e.g. --flag=--durability=os")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # brokers that were started are stopped then, too
    times = Times(0.5, 1.0, 1_000) if given.quick else Times(1.0, 3.0, 10_000)
    if open_files() < times.waiting + 300:
        print(f"This process may open too few files for {times.waiting:,} connections: ulimit -n.")
        return 1
    began = time.monotonic()
    started: list[Broker] = []
    print(machine())
    with folders(given.folder) as make_folder:
        try:
            benches: dict[str, Bench] = {}
            for broker in brokers(given, make_folder):
                try:
                    broker.start()
                except (NoTarget, peer.NoKafka) as error:
                    print(f"{broker.name} is left out: {error}")
                    continue
                started.append(broker)
                benches[broker.name] = Bench(broker, times, make_folder)
                still(broker.pid, True)
            if not benches:
                return 1
            table = run(benches, given.scenario or list(SCENARIOS), given.rounds or (1 if given.quick else 3))
        finally:
            for broker in started:
                still(broker.pid, False)
                broker.stop()
    print(f"\n{table.judged - table.missed} of {table.judged} targets met; {time.monotonic() - began:.0f} s")
    if given.json is not None:
        import json

        told = {"bench": "kafka", "machine": machine(), "rows": table.rows}
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
