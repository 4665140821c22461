"""What is asked of a broker: random ops, many of them on few queues and topics, ticks, time, and background jobs.

Chosen by the seed alone, given the model: the same seed does the same things, whatever the broker makes of them.
"""

import random
from collections.abc import Callable
from typing import Protocol

from interlog.journal.codecs import Codec
from tests.crash.living import Living
from tests.crash.model import PartitionModel, Place, QueueModel, TopicModel, check

NAMESPACES = ("/", "tenant")
QUEUES = ("q1", "q2", "q3", "passing")
TOPICS = ("t1", "t2", "compacted")
TRANSACTIONS = ("tx1", "tx2")
HOLDERS = 3
MOST_MESSAGES = 400  # in one queue: beyond that consumers catch up
_CODECS = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD)


class Jobs(Protocol):
    """The worker, as far as it matters here: background jobs wait until they are told to go on."""

    def run(self, most: int | None = None) -> int: ...


class Workload:
    def __init__(self, living: Living, rng: random.Random, worker: Jobs) -> None:
        self.living = living
        self.rng = rng
        self.worker = worker
        self.full = False  # the disk is: nothing new, but consumers go on
        self._pace = rng.choice((1, 4, 12))  # ops in a tick, about
        self._lazy = rng.random() * 0.8  # how seldom background jobs get to run
        choices: list[tuple[int, Callable[[], None]]] = [
            (30, self.put),
            (14, self.lease),
            (12, self.ack),
            (5, self.release),
            (14, self.append),
            (8, self.append_batch),
            (5, self.cursor),
            (6, self.numbered),
            (8, self.transaction),
            (4, self.put_later),
            (4, self.put_expiring),
            (1, self.purge),
            (1, self.drop_head),
            (2, self.delete_records),
            (1, self.catalog),
            (1, self.alter),
        ]
        self._ops = [op for _, op in choices]
        self._weights = [weight for weight, _ in choices]
        self._consume = [self.lease, self.ack, self.ack, self.release, self.drop_head]

    def run(self, ticks: int) -> None:
        if not self.living.model.queues:
            self.found()
        else:
            self.drain_and_return()
        for _ in range(ticks):
            self.tick()

    def tick(self) -> None:
        rng, living = self.rng, self.living
        for _ in range(1 + int(rng.expovariate(1 / self._pace))):
            if self.full:
                rng.choice(self._consume)()
            else:
                rng.choices(self._ops, self._weights)[0]()
        living.commit(ask=rng.random() < 0.8)
        self.jobs()
        if rng.random() < 0.6:
            living.clock.advance(rng.choice((1, 10, 100, 100, 100, 1_000, 1_000, 5_000)))
        if rng.random() < 0.6:
            living.poll()
            self.jobs()

    def jobs(self) -> None:
        if self.rng.random() >= self._lazy:
            self.worker.run(self.rng.choice((1, 1, 2, None)))

    # -- to begin with

    def found(self) -> None:
        """Something to work on."""
        living = self.living
        for name in QUEUES:
            living.core.declare_queue("/", name, durable=name != "passing")
            living.did("queue", "/", name, name != "passing")
        for name in TOPICS:
            if ("/", name) not in living.model.topics:
                self.create_topic("/", name)
        living.commit()

    def drain_and_return(self) -> None:
        """A consumer takes all of a queue, as it does after a start, and goes away again."""
        living = self.living
        for (ns, name), queue in list(living.model.queues.items()):
            holder = 99
            for _ in range(len(queue.messages)):
                ready = len(queue.ready())
                if not ready:
                    break
                living.lease(ns, name, holder, self.rng.choice((1, 7, 100)))
                check(len(queue.ready()) < ready, f"{ready} messages of {name} are ready, but none is lent")
            held = queue.held(holder)
            if held:
                living.release(ns, name, holder, held, False)
        living.commit()

    def create_topic(self, ns: str, name: str) -> None:
        rng = self.rng
        settings: dict[str, object] = {}
        if name == "compacted":
            settings["cleanup"] = "compact"
            if rng.random() < 0.5:
                settings["delete_retention_ms"] = 1_000
        else:
            settings = self.settings()
        count = rng.choice((1, 2, 3))
        self.living.core.create_topic(ns, name, count, settings)
        self.living.did("topic", ns, name, count, settings)

    def settings(self) -> dict[str, object]:
        rng = self.rng
        settings: dict[str, object] = {"timestamp": rng.choice(("create", "append"))}
        if rng.random() < 0.5:
            settings["retention_ms"] = rng.choice((2_000, 20_000))
        if rng.random() < 0.3:
            settings["retention_bytes"] = rng.choice((3_000, 30_000))
        return settings

    # -- ops

    def a_queue(self) -> tuple[str, str, QueueModel] | None:
        queues = self.living.model.queues
        if not queues:
            return None
        ns, name = self.rng.choice(sorted(queues))
        return ns, name, queues[ns, name]

    def a_topic(self) -> tuple[str, str, TopicModel, int, PartitionModel] | None:
        topics = self.living.model.topics
        if not topics:
            return None
        ns, name = self.rng.choice(sorted(topics))
        topic = topics[ns, name]
        index = self.rng.randrange(len(topic.partitions))
        return ns, name, topic, index, topic.partitions[index]

    def put(self) -> None:
        if (found := self.a_queue()) is None:
            return
        ns, name, queue = found
        if len(queue.messages) > MOST_MESSAGES:
            self.catch_up(ns, name, queue)
        for _ in range(self.rng.choice((1, 1, 2, 8, 30))):
            self.living.put(ns, name, self.rng.random() < 0.85)

    def catch_up(self, ns: str, name: str, queue: QueueModel) -> None:
        self.living.lease(ns, name, 1, MOST_MESSAGES // 2)
        held = queue.held(1)
        if held:
            self.living.ack(ns, name, 1, held)

    def lease(self) -> None:
        if (found := self.a_queue()) is None:
            return
        rng = self.rng
        ns, name, queue = found
        if not queue.ready():
            return
        until_ms = self.living.clock.now_ms() + rng.choice((50, 2_000)) if rng.random() < 0.3 else None
        most = rng.choice((1, 3, 20, 200))
        self.living.lease(ns, name, rng.randrange(HOLDERS), most, rng.choice((0, 0, 500)), until_ms)

    def held(self) -> tuple[str, str, int, list[int]] | None:
        """Some of what somebody holds."""
        rng = self.rng
        if (found := self.a_queue()) is None:
            return None
        ns, name, queue = found
        holder = rng.randrange(HOLDERS)
        held = queue.held(holder)
        if not held:
            return None
        some = rng.randint(1, len(held))
        return ns, name, holder, held[:some] if rng.random() < 0.5 else rng.sample(held, some)

    def ack(self) -> None:
        if (found := self.held()) is not None:
            self.living.ack(*found)

    def release(self) -> None:
        if (found := self.held()) is not None:
            self.living.release(*found, self.rng.random() < 0.6)

    def purge(self) -> None:
        if (found := self.a_queue()) is not None:
            self.living.purge(*found[:2])

    def drop_head(self) -> None:
        if (found := self.a_queue()) is not None:
            self.living.drop_head(*found[:2], self.rng.choice((1, 1, 5)))

    def put_later(self) -> None:
        if (found := self.a_queue()) is not None:
            self.living.put_later(*found[:2], self._later())

    def put_expiring(self) -> None:
        if (found := self.a_queue()) is not None:
            self.living.put_expiring(*found[:2], self.rng.random() < 0.7, self._later())

    def _later(self) -> int:
        return self.living.clock.now_ms() + self.rng.choice((0, 5, 100, 2_000, 2_000, 20_000))

    def _times(self, most: int) -> list[int]:
        now_ms = self.living.clock.now_ms()
        return [now_ms - self.rng.choice((0, 0, 0, 40, 700)) for _ in range(self.rng.randint(1, most))]

    def append(self) -> None:
        if (found := self.a_topic()) is not None:
            ns, name, _, index, _ = found
            self.living.append(ns, name, index, self._times(self.rng.choice((1, 1, 3, 25))))

    def append_batch(self) -> None:
        if (found := self.a_topic()) is not None:
            ns, name, _, index, _ = found
            self.living.append_batch(ns, name, index, self._times(12), self.rng.choice(_CODECS))

    def delete_records(self) -> None:
        if (found := self.a_topic()) is None:
            return
        ns, name, topic, index, partition = found
        end = self.living.core.topic(ns, name).log_end(index)  # what this tick appended is not there yet
        if not topic.compacted and partition.start < end:
            self.living.delete_records(ns, name, index, self.rng.randint(partition.start, end))

    def cursor(self) -> None:
        if (found := self.a_topic()) is not None:
            ns, name, _, index, partition = found
            group = self.rng.choice(("a", "b"))
            self.living.set_cursor(ns, group, (ns, name), index, self.rng.randint(partition.start, partition.end))

    def a_place(self) -> Place | None:
        """A partition where producers number their batches."""
        topics = sorted(key for key, one in self.living.model.topics.items() if key[0] == "/" and not one.compacted)
        if not topics:
            return None
        ns, name = self.rng.choice(topics)
        return ns, name, self.rng.randrange(len(self.living.model.topics[ns, name].partitions))

    def numbered(self) -> None:
        rng, living = self.rng, self.living
        if (place := self.a_place()) is None:
            return
        producers = living.model.producers
        name = rng.choice(("plain1", "plain2", *TRANSACTIONS))
        named = name in TRANSACTIONS
        if name not in producers or (not named and rng.random() < 0.05):
            living.begin_producer(name, named)
        if place in producers[name].newest and (named or rng.random() < 0.4):
            living.append_again(name, place, named)
        elif not named:
            living.append_numbered(name, place, self._times(4), named)

    def transaction(self) -> None:
        """One step of it."""
        rng, living = self.rng, self.living
        name = rng.choice(TRANSACTIONS)
        found = living.model.producers.get(name)
        place = self.a_place()
        if found is None or rng.random() < 0.05:
            living.begin_producer(name, True)
        elif found.open and rng.random() < 0.3:
            living.end(name, rng.random() < 0.6)
        elif place is not None and rng.random() < 0.2:
            living.set_cursor_later(name, rng.choice(("a", "c")), place, rng.randrange(1_000))
        elif place is not None:
            living.append_numbered(name, place, self._times(4), True)

    def alter(self) -> None:
        if (found := self.a_topic()) is None or found[2].compacted:
            return
        ns, name, topic, _, _ = found
        settings = self.settings() | {"timestamp": topic.settings["timestamp"]}
        self.living.core.topics.alter(ns, name, settings)
        self.living.did("settings", ns, name, settings)

    def catalog(self) -> None:
        """Make something that is not there, or remove something that is."""
        rng, living, core, model = self.rng, self.living, self.living.core, self.living.model
        ns = rng.choice(NAMESPACES)
        if ns not in model.namespaces:
            core.create_namespace(ns)
            living.did("namespace", ns)
        elif ns != "/" and rng.random() < 0.3:
            core.delete_namespace(ns)
            living.did("no_namespace", ns)
            return
        if rng.random() < 0.6:
            name = rng.choice(QUEUES)
            if (ns, name) not in model.queues:
                core.declare_queue(ns, name, durable=name != "passing")
                living.did("queue", ns, name, name != "passing")
            elif rng.random() < 0.5:
                core.delete_queue(ns, name)
                living.did("no_queue", ns, name)
        else:
            name = rng.choice(TOPICS)
            if (ns, name) not in model.topics:
                self.create_topic(ns, name)
            elif rng.random() < 0.5:
                core.delete_topic(ns, name)
                living.did("no_topic", ns, name)
