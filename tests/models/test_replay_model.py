"""The same envelopes give the same state: a broker that lives, and the same one read back, hold the same to the last
field.

Any order of what the core can do; at any time the folder is copied and opened again, from checkpoint and journal, and
from the journal alone from its beginning, twice. Every part of the state that lasts must be as it is in the one that
lives. Transient messages and leases are no part of it, nor are queues that are not durable.
"""

import logging
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core, CoreSettings
from interlog.core.catalog_objects import QueueItem, TopicItem
from interlog.core.cursors import Commit
from interlog.core.delays import PARTITION as DELAYS
from interlog.core.group_settings import EARLIEST, keep_settings
from interlog.core.memory import record_size
from interlog.core.producers import ProducerError, Refusal
from interlog.core.queues import Queue
from interlog.core.share_delivery import Said, Wish
from interlog.core.share_partition import Verdict
from interlog.core.timers import Timers
from interlog.core.transactions import Admit
from interlog.journal.record import Record
from tests.crash.settings import scratch
from tests.faults import FaultyFiles
from tests.transaction_rig import batch

NAMESPACES = st.sampled_from(["/", "/", "tenant"])
NAMES = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(["user", "note"])
PICK = st.integers(0, 1000)
DELAY_MS = st.sampled_from([0, 5, 100, 5_000])

# No file is ever let go of: the journal reaches back to the beginning, and the spill files are small.
SETTINGS = CoreSettings(
    journal_file_bytes=1 << 20,
    checkpoint_ms=500,
    checkpoint_bytes=1 << 20,
    queue_memory_bytes=2_000,
    memory_bytes=64_000,
    tail_bytes=1_000,
    min_free_bytes=0,
    housekeeping_ms=1_000_000_000,
    producer_expiration_ms=3_000,
    transaction_expiration_ms=5_000,
)

State = dict[str, Any]


def state_of(core: Core) -> State:
    """All that lasts, out of the objects themselves: what a dump by way of the doors does not show is here too."""
    catalog, storage = core.catalog, core.storage
    spaces = ["", *(namespace.name for namespace in catalog.namespaces())]
    queues = [DELAYS]
    for item in catalog.queues():
        if item.durable:
            queues += item.partitions
    return {
        "namespaces": catalog.namespaces(),
        "topics": list(catalog.topics()),
        "queues": [item for item in catalog.queues() if item.durable],
        "objects": [item for space in spaces for kind in ("note", "user") for item in catalog.objects(kind, space)],
        "next partition": catalog._next_partition,
        "queue states": {partition: core._states.state(partition).snapshot() for partition in queues},
        "partitions": {id: _partition(core, id) for id in sorted(storage.partitions)},
        "cursors": {
            (namespace.name, group): core.cursors.fetch_group(namespace.name, group)
            for namespace in catalog.namespaces()
            for group in sorted(core.cursors.groups(namespace.name))
        },
        "cursor count": len(core.cursors),
        "shares": {
            (namespace.name, group, partition): (share.start, list(share.kept()))
            for namespace in catalog.namespaces()
            for group in core.share_partitions.groups(namespace.name)
            for partition, share in core.share_partitions.of_group(namespace.name, group).items()
        },
        "share count": len(core.share_partitions),
        "timers": _timers(core.timers),
        "delayed": core.delayed,
        "producers": core.producers.snapshot(),
        "transactions": core.transactions.snapshot(),
    }


def _partition(core: Core, id: int) -> State:
    partition = core.storage.partitions[id]
    records: list[tuple[int, Record]] = []
    offset = partition.log_start
    while offset < partition.log_end:
        found = list(core.storage.read_records(id, offset, 10_000))
        records += found
        offset = found[-1][0] + 1 if found else partition.log_end
    return {
        "start": partition.log_start,
        "end": partition.log_end,
        "stored end": partition.stored_end,
        "epochs": partition.epochs,
        "records": records,
    }


def _timers(timers: Timers) -> State:
    packed = {one for one in (*timers._near, *timers._far, *timers._unsaved) if one > timers._mark_bound}
    rows = timers._read(timers.watermark, 1_000_000)
    keys = {(int.from_bytes(one[:8], "big"), int.from_bytes(one[8:16], "big")) for one in packed}
    keys |= {(int(str(row[0])), int(str(row[1]))) for row in rows}
    # Ids of timers that need not last are given to others after a start, so the next one is no part of it.
    assert timers._next_id > timers.watermark[1]
    return {"mark": timers.watermark, "waiting": sorted(keys)}


class ReplayMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        logging.disable(logging.WARNING)
        self.root = Path(tempfile.mkdtemp(prefix="interlog-replay-", dir=scratch()))
        self.files = FaultyFiles(self.root / "trash")  # without faults: for its syncs cost nothing
        self.clock = ManualClock()
        self.number = 0
        self.numbered: dict[tuple[int, int, int], int] = {}  # by producer, epoch and partition: the next sequence
        self.plain: list[int] = []  # ids of producers without a name
        self.named: dict[str, tuple[int, int]] = {}  # what the producer of each transaction was told last

    def teardown(self) -> None:
        if hasattr(self, "core"):
            self.core.recovered.checkpoint.close()
        self.files.close()
        shutil.rmtree(self.root)
        logging.disable(logging.NOTSET)

    @initialize(topics=st.integers(1, 3))
    def begin(self, topics: int) -> None:
        self.worker = ManualWorker()
        self.core = self.open(self.root / "data", self.worker)
        self.core.declare_queue("/", "a")
        self.core.create_topic("/", "b", topics)
        keep_settings(self.core.catalog, "/", "b", {"share_start": EARLIEST, "share_lock_ms": 200})

    def open(self, path: Path, worker: ManualWorker) -> Core:
        return Core.open(
            path, settings=SETTINGS, clock=self.clock, worker=worker, files=self.files, rng=random.Random(1)
        )

    def record(self) -> Record:
        self.number += 1
        return Record(b"%d" % self.number, b"x" * (self.number * 37 % 300), (), self.clock.now_ms())

    def a_queue(self, pick: int) -> Queue | None:
        queues = [queue for _, queue in self.core.queues()]
        return queues[pick % len(queues)] if queues else None

    def a_topic(self, pick: int) -> tuple[str, str] | None:
        topics = list(self.core.catalog.topics())
        return (topics[pick % len(topics)].namespace, topics[pick % len(topics)].name) if topics else None

    # -- the catalog

    @rule(namespace=NAMESPACES, name=NAMES, queue=st.booleans(), durable=st.booleans(), count=st.integers(1, 3))
    def make(self, namespace: str, name: str, queue: bool, durable: bool, count: int) -> None:
        catalog = self.core.catalog
        if namespace not in [one.name for one in catalog.namespaces()]:
            self.core.create_namespace(namespace)
        if catalog.find(namespace, name) is not None:
            return
        if queue:
            self.core.declare_queue(namespace, name, durable=durable, settings={"count": count})
        else:
            self.core.create_topic(namespace, name, count, {"retention_ms": 1_000} if durable else {})

    @rule(pick=PICK, really=st.integers(0, 3))
    def remove(self, pick: int, really: int) -> None:
        items: list[QueueItem | TopicItem] = [*self.core.catalog.queues(), *self.core.catalog.topics()]
        if items and not really:
            item = items[pick % len(items)]
            if isinstance(item, QueueItem):
                self.core.delete_queue(item.namespace, item.name)
            else:
                self.core.delete_topic(item.namespace, item.name)

    @rule(really=st.integers(0, 5))
    def remove_namespace(self, really: int) -> None:
        if not really and any(namespace.name == "tenant" for namespace in self.core.catalog.namespaces()):
            self.core.delete_namespace("tenant")

    @rule(kind=KINDS, inside=st.booleans(), name=NAMES, durable=st.booleans(), value=st.integers(0, 9))
    def put_object(self, kind: str, inside: bool, name: str, durable: bool, value: int) -> None:
        space = "/" if inside else ""
        before = self.core.catalog.object(kind, space, name)
        if value == 0 and before is not None:
            self.core.catalog.discard(kind, space, name)
        elif before is None or before.durable == durable:
            self.core.catalog.put(kind, space, name, {"value": value}, durable=durable)
        # No object of a kind that does not last may be there when states are compared.
        found = self.core.catalog.object(kind, space, name)
        if found is not None and not found.durable:
            self.core.catalog.discard(kind, space, name)

    @rule(pick=PICK, grow=st.booleans())
    def change_topic(self, pick: int, grow: bool) -> None:
        if (found := self.a_topic(pick)) is None:
            return
        topic = self.core.topic(*found)
        if grow and len(topic) < 5:
            self.core.topics.grow(*found, len(topic) + 1)
        else:
            self.core.topics.alter(*found, {"retention_bytes": 500 + pick})

    # -- queues

    @rule(pick=PICK, kinds=st.lists(st.sampled_from([True, True, False]), min_size=1, max_size=12))
    def put(self, pick: int, kinds: list[bool]) -> None:
        if (queue := self.a_queue(pick)) is None:
            return
        for persistent in kinds:
            record = self.record()
            queue.append(record, record_size(record), persistent)

    @rule(pick=PICK, holder=st.integers(1, 2), most=st.integers(1, 9), ends=st.booleans())
    def lease(self, pick: int, holder: int, most: int, ends: bool) -> None:
        if (queue := self.a_queue(pick)) is not None:
            queue.lease(holder, most, until_ms=self.clock.now_ms() + 50 if ends else None)

    @rule(pick=PICK, holder=st.integers(1, 2), how=st.sampled_from(["ack", "ack", "some", "release", "count", "all"]))
    def answer(self, pick: int, holder: int, how: str) -> None:
        if (queue := self.a_queue(pick)) is None:
            return
        held = sorted(queue._leases.held.get(holder, ()))
        if how == "ack":
            queue.ack_many(held, holder)
        elif how == "some":
            queue.ack_many(held[::2], holder)
        elif how == "all":
            queue.release_holder(holder, count=True)
        else:
            queue.release(held[1::2], holder, count=how == "count")

    @rule(pick=PICK, how=st.sampled_from(["drop", "purge", "take", "page out"]))
    def lose(self, pick: int, how: str) -> None:
        if (queue := self.a_queue(pick)) is None:
            return
        if how == "drop":
            queue.drop_head(1 + pick % 3)
        elif how == "purge" and not pick % 5:
            queue.purge()
        elif how == "take":
            queue.take(queue.next_offset - 1 - pick % 5)
        elif how == "page out":
            self.core.commit()
            queue.page_out(1_000)

    # -- later

    @rule(pick=PICK, wait_ms=DELAY_MS, expires=st.booleans(), persistent=st.booleans())
    def later(self, pick: int, wait_ms: int, expires: bool, persistent: bool) -> None:
        if (queue := self.a_queue(pick)) is None:
            return
        due_ms = self.clock.now_ms() + wait_ms
        if expires:
            self.core.append_expiring(queue, self.record(), persistent, due_ms)
        elif (item := self.core.catalog.owner(queue.state.partition)) and isinstance(item, QueueItem) and item.durable:
            # Delayed messages of queues that pass are told of as delayed until they are due, in every life.
            self.core.deliver_later(queue, self.record(), due_ms)

    @rule(ms=st.sampled_from([1, 10, 100, 1_000]), times=st.integers(1, 3))
    def time_passes(self, ms: int, times: int) -> None:
        for _ in range(times):
            self.clock.advance(ms)
            self.core.commit()
            self.core.poll()

    # -- topics and cursors

    @rule(pick=PICK, count=st.integers(1, 6))
    def append(self, pick: int, count: int) -> None:
        if (found := self.a_topic(pick)) is not None:
            topic = self.core.topic(*found)
            topic.append(pick % len(topic), [self.record() for _ in range(count)])

    @rule(pick=PICK)
    def delete_records(self, pick: int) -> None:
        if (found := self.a_topic(pick)) is None:
            return
        self.core.commit()
        topic = self.core.topic(*found)
        start, end = topic.log_start(pick % len(topic)), topic.log_end(pick % len(topic))
        topic.delete_records(pick % len(topic), start + (end - start) // 2)

    @rule(pick=PICK, namespace=NAMESPACES, group=NAMES, how=st.integers(0, 6))
    def move_cursor(self, pick: int, namespace: str, group: str, how: int) -> None:
        cursors, now_ms = self.core.cursors, self.clock.now_ms()
        if (found := self.a_topic(pick)) is None or namespace not in [n.name for n in self.core.catalog.namespaces()]:
            return
        partition = self.core.topic(*found).item.partitions[0]
        if how == 0:
            cursors.remove(namespace, group, [partition])
        elif how == 1:
            cursors.expire(now_ms, 500)
        elif how == 2 and group in cursors.groups(namespace):
            cursors.remove_group(namespace, group)
        else:
            cursors.commit(namespace, group, [Commit(partition, pick, 3, "é" * (pick % 4))], now_ms)

    # -- producers and transactions

    @rule(pick=PICK, count=st.integers(1, 4), how=st.sampled_from(["next", "next", "again", "gap", "new"]))
    def append_numbered(self, pick: int, count: int, how: str) -> None:
        """A batch of a producer that numbers them; one that comes again is where it was."""
        if (found := self.a_topic(pick)) is None:
            return
        if how == "new" or not self.plain:
            self.plain.append(self.core.producers.new_id())
        producer = self.plain[pick % len(self.plain)], 0
        self._append_numbered(found, pick, producer, count, again=how == "again", gap=how == "gap")

    def _append_numbered(
        self,
        name: tuple[str, str],
        pick: int,
        producer: tuple[int, int],
        count: int,
        *,
        transactional: bool = False,
        again: bool = False,
        gap: bool = False,
    ) -> None:
        topic = self.core.topic(*name)
        index = pick % len(topic)
        key = (*producer, topic.item.partitions[index])
        sequence = self.numbered.get(key, 0)
        made = batch([b"%d" % number for number in range(count)], producer, sequence + gap, transactional=transactional)
        try:
            first = topic.append_batch(index, made)
        except ProducerError:
            return  # it was forgotten, fenced, or does not follow
        self.numbered[key] = sequence + gap + count
        if again:
            assert topic.append_batch(index, made) == first

    @rule(name=NAMES, pick=PICK, on=st.booleans(), timeout_ms=st.sampled_from([50, 10_000]))
    def take_over(self, name: str, pick: int, on: bool, timeout_ms: int) -> None:
        current = self.named.get(name) if on else None
        try:
            self.named[name] = self.core.transactions.init("/", name, timeout_ms, current)
        except ProducerError:
            self.named.pop(name)

    @rule(name=NAMES, pick=PICK, count=st.integers(0, 3), group=NAMES)
    def go_on(self, name: str, pick: int, count: int, group: str) -> None:
        """Batches, or cursors, as part of a transaction."""
        if name not in self.named or (found := self.a_topic(pick)) is None or found[0] != "/":
            return
        transactions, producer = self.core.transactions, self.named[name]
        partition = self.core.topic(*found).item.partitions[pick % len(self.core.topic(*found))]
        try:
            if count:
                transactions.admit("/", name, *producer, [partition], Admit.ADD)
                self._append_numbered(found, pick, producer, count, transactional=True, again=not pick % 3)
            else:
                transactions.commit_offsets("/", name, *producer, group, [Commit(partition, pick)], Admit.ADD)
        except ProducerError:
            del self.named[name]  # its time was up

    @rule(name=NAMES, commit=st.booleans(), bump=st.booleans(), again=st.booleans())
    def end(self, name: str, commit: bool, bump: bool, again: bool) -> None:
        if name not in self.named:
            return
        transactions, producer = self.core.transactions, self.named[name]
        try:
            following = transactions.end("/", name, *producer, commit=commit, bump=bump)
            if again:
                assert transactions.end("/", name, *producer, commit=commit, bump=bump) == following
            self.named[name] = following
        except ProducerError as error:
            if error.refusal is not Refusal.NOT_OPEN:
                del self.named[name]

    @rule(pick=PICK, name=NAMES, commit=st.booleans())
    def end_what_hangs(self, pick: int, name: str, commit: bool) -> None:
        """In one partition, whatever becomes of the rest."""
        if (found := self.a_topic(pick)) is None or name not in self.named:
            return
        partition = self.core.topic(*found).item.partitions[0]
        try:
            self.core.transactions.end_in(partition, *self.named[name], commit=commit, coordinator_epoch=pick % 3)
        except ProducerError:
            return

    @rule(pick=PICK, group=NAMES, member=NAMES, how=st.integers(0, 9))
    def share(self, pick: int, group: str, member: str, how: int) -> None:
        if (found := self.a_topic(pick)) is None:
            return
        core = self.core
        key = found[0], group, core.topic(*found).item.partitions[0]
        share = core.share_partitions.find(*key)
        if how == 0:
            core.share_partitions.remove(key[0], group, [key[2]])
        elif how == 1:
            core.share_partitions.remove_group(key[0], group)
        elif how == 2:
            core.deliveries.release(key[0], group, member)
        elif share is not None and how < 6:
            held = [offset for offset in range(share.start, share.end) if share.holds(member, offset, offset)]
            verdicts = list(Verdict)
            said = [Said(one, one, verdicts[(pick + one) % len(verdicts)]) for one in held]
            assert core.deliveries.settle(key, member, said)
        else:
            core.deliveries.begin(key)
            core.deliveries.take(key, member, Wish(1 + pick % 7, 10_000, strict=pick % 2 == 0))

    # -- ticks, checkpoints, starts

    @rule()
    def tick(self) -> None:
        self.core.commit()

    @rule(most=st.sampled_from([1, 2, None]))
    def background(self, most: int | None) -> None:
        self.worker.run(most)

    @rule()
    def save_a_checkpoint(self) -> None:
        self.clock.advance(600)
        for _ in range(3):
            self.core.commit()
            self.core.poll()
            self.worker.run()

    @precondition(lambda self: not self.core.storage.journal.closed_files())
    @rule()
    def reads_back_the_same(self) -> None:
        self.core.commit()
        living = state_of(self.core)
        for how in ("checkpoint and journal", "journal alone", "journal alone, again"):
            path = self.root / "copy"
            shutil.copytree(self.root / "data", path)
            if how != "checkpoint and journal":
                for meta in path.glob("meta*"):
                    meta.unlink()
            core = self.open(path, ManualWorker())
            assert core.recovered.replayed >= 0
            found = state_of(core)
            for part, value in living.items():
                assert found[part] == value, (how, part)
            core.recovered.checkpoint.close()
            core._folder.release()
            shutil.rmtree(path)

    def storm(self, dice: random.Random, steps: int) -> None:
        """Many steps at random, with weights: what needs a long story to show is seldom found by single rules."""
        ops: list[tuple[int, Callable[[], None]]] = [
            (6, lambda: self.make(space(), name(), dice.random() < 0.6, dice.random() < 0.8, dice.randint(1, 3))),
            (3, lambda: self.remove(pick(), dice.randrange(4))),
            (1, lambda: self.remove_namespace(dice.randrange(6))),
            (2, lambda: self.put_object(kind(), dice.random() < 0.5, name(), dice.random() < 0.8, dice.randrange(4))),
            (2, lambda: self.change_topic(pick(), dice.random() < 0.3)),
            (20, lambda: self.put(pick(), [dice.random() < 0.7 for _ in range(dice.randint(1, 12))])),
            (14, lambda: self.lease(pick(), dice.randint(1, 2), dice.randint(1, 9), dice.random() < 0.3)),
            (14, lambda: self.answer(pick(), dice.randint(1, 2), dice.choice(("ack", "some", "release", "count")))),
            (8, lambda: self.lose(pick(), dice.choice(("drop", "purge", "take", "take", "page out")))),
            (10, lambda: self.later(pick(), dice.choice((0, 5, 100, 5_000)), dice.random() < 0.5, dice.random() < 0.8)),
            (6, lambda: self.time_passes(dice.choice((1, 10, 100, 1_000)), dice.randint(1, 3))),
            (8, lambda: self.append(pick(), dice.randint(1, 6))),
            (2, lambda: self.delete_records(pick())),
            (8, lambda: self.move_cursor(pick(), space(), name(), dice.randrange(7))),
            (8, lambda: self.append_numbered(pick(), dice.randint(1, 4), dice.choice(("next", "again", "gap", "new")))),
            (6, lambda: self.take_over(name(), pick(), dice.random() < 0.5, dice.choice((50, 10_000, 10_000)))),
            (12, lambda: self.go_on(name(), pick(), dice.randrange(4), name())),
            (8, lambda: self.end(name(), dice.random() < 0.6, dice.random() < 0.5, dice.random() < 0.3)),
            (1, lambda: self.end_what_hangs(pick(), name(), dice.random() < 0.5)),
            (12, lambda: self.share(pick(), name(), name(), dice.randrange(10))),
            (16, self.tick),
            (6, lambda: self.background(dice.choice((1, 2, None)))),
            (4, self.save_a_checkpoint),
            (3, self.reads_back_the_same),
            (2, lambda: self.starts_again(dice.random() < 0.3)),
        ]
        weights = [weight for weight, _ in ops]

        def pick() -> int:
            return dice.randrange(1000)

        def name() -> str:
            return dice.choice("abc")

        def space() -> str:
            return dice.choice(("/", "/", "tenant"))

        def kind() -> str:
            return dice.choice(("user", "note"))

        for _ in range(steps):
            dice.choices(ops, weights)[0][1]()
        self.reads_back_the_same()

    @rule(clean=st.booleans())
    def starts_again(self, clean: bool) -> None:
        self.core.commit()
        before = state_of(self.core)
        if clean:
            self.core.close()
        else:
            self.core.recovered.checkpoint.close()
            self.core._folder.release()
        self.worker = ManualWorker()
        self.core = self.open(self.root / "data", self.worker)
        after = state_of(self.core)
        for part, value in before.items():
            assert after[part] == value, part


TestReplay = ReplayMachine.TestCase
TestReplay.settings = settings(
    max_examples=60, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@pytest.mark.parametrize("first", range(0, 80, 10))
def test_storms_read_back_the_same(first: int) -> None:
    for seed in range(first, first + 10):
        machine = ReplayMachine()
        try:
            dice = random.Random(seed)
            machine.begin(dice.randint(1, 3))
            machine.storm(dice, 120)
        finally:
            machine.teardown()
