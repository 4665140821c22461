"""One life of a broker under test: each op is done to the core, checked against the model, and recorded.

In come ops with plain arguments; out go the tick's ops to whoever listens (the history, or a child's pipe). What time
does by itself (timers, retention, leases that end) is found out after each `poll` and recorded as ops too.
"""

from collections.abc import Callable
from typing import Any

from interlog.base.clock import ManualClock
from interlog.core.broker import Core
from interlog.core.cursors import Commit
from interlog.core.memory import record_size
from interlog.core.transactions import Admit
from interlog.journal import batch as batches
from interlog.journal.journal import Outcome, Ticket
from tests.crash.dump import HARNESS
from tests.crash.history import History
from tests.crash.model import Model, Op, PartitionModel, Place, ProducerModel, TopicModel, check
from tests.crash.records import identify, make

Emit = Callable[[list[Any]], None]
TIMEOUT_MS = 900_000  # of transactions: longer than any life


class Living:
    def __init__(self, core: Core, clock: ManualClock, history: History, model: Model, emit: Emit) -> None:
        self.core = core
        self.clock = clock
        self.history = history
        self.model = model
        self.ops: list[Op] = []
        self.tickets: list[Ticket] = []
        self.outcomes: dict[int, Outcome] = {}
        self.sequences: list[tuple[int, int]] = []  # ticks and the envelopes they are in
        self._emit = emit

    def did(self, *op: Any) -> None:
        self.ops.append(op)
        self.model.apply(op)

    def number(self) -> int:
        self.history.next_number += 1
        return self.history.next_number - 1

    # -- queues

    def put(self, ns: str, name: str, persistent: bool) -> None:
        number, now_ms = self.number(), self.clock.now_ms()
        record = make(number, now_ms)
        offset = self.core.queue(ns, name).append(record, record_size(record), persistent)
        self.did("put", ns, name, offset, number, now_ms, persistent)

    def lease(
        self, ns: str, name: str, holder: int, most: int, max_bytes: int = 0, until_ms: int | None = None
    ) -> None:
        got = []
        for offset, record, delivered, redelivered, _, _ in self.core.queue(ns, name).lease(
            holder, most, max_bytes, until_ms
        ):
            number = identify(record)
            check(number >= 0, f"offset {offset} of {name} was lent with bytes nobody wrote")
            got.append((offset, number, delivered, redelivered))
        if got:
            self.did("lease", ns, name, holder, got, until_ms)

    def ack(self, ns: str, name: str, holder: int, offsets: list[int]) -> None:
        done = self.core.queue(ns, name).ack_many(offsets, holder)
        check(done == len(offsets), f"{done} of {len(offsets)} messages were acknowledged")
        self.did("ack", ns, name, offsets)

    def release(self, ns: str, name: str, holder: int, offsets: list[int], count: bool) -> None:
        done = self.core.queue(ns, name).release(offsets, holder, count=count)
        check(done == len(offsets), f"{done} of {len(offsets)} messages went back")
        self.did("release", ns, name, offsets, count)

    def drop_head(self, ns: str, name: str, most: int) -> None:
        gone = [message[0] for message in self.core.queue(ns, name).drop_head(most)]
        self.did("take", ns, name, gone)

    def purge(self, ns: str, name: str) -> None:
        self.did("purge", ns, name, self.core.queue(ns, name).purge())

    def put_later(self, ns: str, name: str, due_ms: int) -> None:
        number, now_ms = self.number(), self.clock.now_ms()
        self.core.deliver_later(self.core.queue(ns, name), make(number, now_ms), due_ms)
        self.did("delay", ns, name, number, now_ms, due_ms)

    def put_expiring(self, ns: str, name: str, persistent: bool, expire_ms: int) -> None:
        number, now_ms = self.number(), self.clock.now_ms()
        record = make(number, now_ms)
        offset = self.core.append_expiring(self.core.queue(ns, name), record, persistent, expire_ms)
        self.did("expiring", ns, name, offset, number, now_ms, persistent, expire_ms)

    # -- topics

    def append(self, ns: str, name: str, partition: int, times_ms: list[int]) -> None:
        topic = self.core.topic(ns, name)
        records, told = self._records(ns, name, times_ms)
        appended = topic.append(partition, records)
        self._appended(ns, name, partition, appended.base, told)

    def append_batch(self, ns: str, name: str, partition: int, times_ms: list[int], codec: int) -> None:
        topic = self.core.topic(ns, name)
        records, told = self._records(ns, name, times_ms)
        appended = topic.append_batch(partition, batches.encode(records, base_offset=0, codec=codec))
        self._appended(ns, name, partition, appended.base, told)

    def _records(self, ns: str, name: str, times_ms: list[int]) -> tuple[list[Any], list[tuple[int, int]]]:
        topic = self.model.topics[ns, name]
        if topic.settings.get("timestamp") == "append":
            times_ms = [self.clock.now_ms()] * len(times_ms)
        told = [(self.number(), time_ms) for time_ms in times_ms]
        return [make(number, time_ms, keyed=topic.compacted) for number, time_ms in told], told

    def _appended(self, ns: str, name: str, partition: int, base: int, told: list[tuple[int, int]]) -> None:
        self.did("append", ns, name, partition, base, told)

    def delete_records(self, ns: str, name: str, partition: int, before: int) -> None:
        start = self.core.topic(ns, name).delete_records(partition, before)
        self.did("log_start", ns, name, partition, start)

    def set_cursor(self, ns: str, group: str, topic: tuple[str, str], partition: int, offset: int) -> None:
        id = self.core.topic(*topic).item.partitions[partition]
        self.core.cursors.commit(ns, group, [Commit(id, offset)], self.clock.now_ms())
        self.did("cursor", (ns, group, *topic, partition), offset)

    # -- producers and transactions

    def begin_producer(self, name: str, named: bool) -> None:
        """`named`: it has transactions, and what it had open is aborted."""
        if named:
            id, epoch = self.core.transactions.init("/", name, TIMEOUT_MS)
        else:
            id, epoch = self.core.producers.new_id(), 0
        self.did("producer", name, id, epoch, self.clock.now_ms())

    def append_numbered(self, producer: str, place: Place, times_ms: list[int], named: bool) -> None:
        ns, name, index = place
        found = self.model.producers[producer]
        topic = self.core.topic(ns, name)
        if named:
            self.core.transactions.add_partitions("/", producer, found.id, found.epoch, [topic.item.partitions[index]])
        records, told = self._records(ns, name, times_ms)
        batch = self._numbered(found, records, found.sequences.get(place, 0), named)
        appended = topic.append_batch(index, batch)
        self.did("numbered", producer, *place, appended.base, told, named)

    def append_again(self, producer: str, place: Place, named: bool) -> None:
        """What its producer sends again is there already, and known to be."""
        found = self.model.producers[producer]
        sequence, count, base = found.newest[place]
        records = [make(0, self.clock.now_ms())] * count
        again = self.core.topic(*place[:2]).append_batch(place[2], self._numbered(found, records, sequence, named))
        check(
            again.base == base, f"sequence {sequence} of {producer} in {place} was at {base}, and again is", again.base
        )

    def _numbered(self, producer: ProducerModel, records: list[Any], sequence: int, named: bool) -> bytes:
        return batches.encode(
            records,
            base_offset=0,
            attributes=batches.TRANSACTIONAL if named else 0,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )

    def set_cursor_later(self, producer: str, group: str, place: Place, offset: int) -> None:
        found = self.model.producers[producer]
        commit = Commit(self.core.topic(*place[:2]).item.partitions[place[2]], offset)
        self.core.transactions.commit_offsets("/", producer, found.id, found.epoch, group, [commit], Admit.ADD)
        self.did("cursor_later", producer, ("/", group, *place), offset)

    def end(self, producer: str, commit: bool) -> None:
        found = self.model.producers[producer]
        self.core.transactions.end("/", producer, found.id, found.epoch, commit=commit, bump=False)
        self.did("end", producer, commit, self.clock.now_ms())

    # -- time

    def poll(self) -> None:
        """Let time do its work. Between ticks only: the broker may end a tick of its own here."""
        assert not self.ops, "the broker may end a tick in poll: commit before"
        now_ms = self.clock.now_ms()
        self.core.poll()
        self.did("poll", now_ms)
        for (ns, name), topic in self.model.topics.items():
            for index, partition in enumerate(topic.partitions):
                start = self.core.topic(ns, name).log_start(index)
                if start != partition.start:
                    self._check_retention(topic, partition, start, now_ms)
                    self.did("log_start", ns, name, index, start)

    def _check_retention(self, topic: TopicModel, partition: PartitionModel, start: int, now_ms: int) -> None:
        settings = topic.settings
        check("delete" in settings.get("cleanup", "delete"), "retention in a topic that deletes nothing:", settings)
        if settings.get("retention_bytes", -1) < 0:
            oldest_ms = now_ms - settings.get("retention_ms", 7 * 86_400_000)
            young = [at for at, (_, time) in partition.records.items() if at < start and time >= oldest_ms]
            check(not young, "retention took records before their time:", young[:5])

    # -- the tick

    def commit(self, ask: bool = True) -> Ticket:
        """End the tick, whose number is one more than that of the last."""
        number = self.history.attempted + 1
        namespace, group, partition = HARNESS
        self.core.cursors.commit(namespace, group, [Commit(partition, number)], self.clock.now_ms())
        ops, self.ops = self.ops, []
        self.history.ticks.append(ops)
        self._emit(["tick", ops, self.history.next_number, self.clock.now_ms()])
        self.model.end_tick()
        ticket = self.core.commit()
        self.sequences.append((number, ticket.sequence))
        if ask:
            ticket.when_durable(lambda outcome: self._answered(number, outcome))
        return ticket

    def _answered(self, number: int, outcome: Outcome) -> None:
        check(outcome in (Outcome.DURABLE, Outcome.UNKNOWN), f"tick {number} was answered with {outcome}")
        last = max(self.outcomes, default=0)
        check(number > last, f"tick {number} was answered after tick {last}")
        self.outcomes[number] = outcome
        if outcome is Outcome.DURABLE:
            self.history.durable = max(self.history.durable, number)
            self._emit(["durable", number])

    def synced(self) -> int:
        """The newest tick that the journal knows to be synced."""
        durable = self.core.storage.journal.durable()
        return max((tick for tick, sequence in self.sequences if sequence <= durable), default=0)

    def abandon(self) -> None:
        """The process is gone. What this one would keep hold of must not disturb the next."""
        self.core.recovered.checkpoint.close()
