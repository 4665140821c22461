"""What the broker must hold, as plain dicts: the ops of ticks 1 to k come in, the state after tick k goes out.

An op is a tuple of a name and plain values (it also travels as JSON from a child process). `Model.apply` checks each
op against what a correct broker could have answered, so that a wrong answer of the living broker is found at once;
`crash` forgets what need not survive; `dump` is compared with the dump of a recovered broker (see dump.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Op = tuple[Any, ...]
Dump = dict[str, Any]


class Wrong(AssertionError):
    """The broker did what a correct one cannot do."""


def check(holds: bool, what: str, *details: object) -> None:
    if not holds:
        raise Wrong(" ".join([what, *map(str, details)]))


@dataclass(slots=True)
class Message:
    number: int
    timestamp_ms: int
    stored: bool
    delivered: int = 0
    redelivered: bool = False
    returned: bool = False
    holder: int | None = None
    until_ms: int | None = None


@dataclass(slots=True)
class QueueModel:
    durable: bool
    messages: dict[int, Message] = field(default_factory=dict)  # by offset, ascending
    next_offset: int = 0
    end: int = 0  # one beyond the last offset of finished ticks that is never given again
    lent: int = 0  # one beyond the last message that was ever lent
    new: list[int] = field(default_factory=list)  # stored messages of the tick under way
    timed: int = 0  # one beyond the last offset that a lasting timer was set for in the tick under way

    def ready(self) -> list[int]:
        """Offsets in the order they must be lent."""
        back = [at for at, message in self.messages.items() if message.holder is None and message.returned]
        rest = [at for at, message in self.messages.items() if message.holder is None and not message.returned]
        return sorted(back) + rest

    def held(self, holder: int) -> list[int]:
        return [at for at, message in self.messages.items() if message.holder == holder]

    def put(self, offset: int, number: int, timestamp_ms: int, persistent: bool) -> None:
        check(offset == self.next_offset, f"a message got offset {offset}, not", self.next_offset)
        stored = persistent and self.durable
        self.messages[offset] = Message(number, timestamp_ms, stored)
        self.next_offset = offset + 1
        if stored:
            self.new.append(offset)

    def lease(self, holder: int, got: Iterable[Sequence[int]], until_ms: int | None) -> None:
        """`got`: offset, number, delivery count, redelivered."""
        ready = self.ready()
        for at, (offset, number, delivered, redelivered) in enumerate(got):
            check(
                at < len(ready) and ready[at] == offset,
                f"offset {offset} was lent, next were",
                ready[at : at + 3],
                [self.messages[x] for x in ready[at : at + 1]],
            )
            message = self.messages[offset]
            check(message.number == number, f"offset {offset} was lent as message {number}, it is", message.number)
            check(message.delivered == delivered, f"offset {offset}: delivery count {delivered} is", message.delivered)
            # What was lent before a crash may or may not be known to have been; what never was must not be said to be.
            check(not redelivered or offset < self.lent, f"offset {offset} is called redelivered and never was lent")
            check(bool(redelivered) or not message.redelivered, f"offset {offset} is not called redelivered")
            message.holder = holder
            message.until_ms = until_ms
        for offset, *_ in got:
            self.lent = max(self.lent, offset + 1)

    def ack(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            message = self.messages.pop(offset, None)
            check(message is not None and message.holder is not None, f"offset {offset} was acknowledged, but not held")

    def release(self, offsets: Iterable[int], count: bool) -> None:
        for offset in offsets:
            message = self.messages.get(offset)
            check(message is not None and message.holder is not None, f"offset {offset} went back, but was not held")
            assert message is not None
            message.holder = message.until_ms = None
            message.returned = message.redelivered = True
            message.delivered += count

    def take(self, offsets: Iterable[int]) -> None:
        """Ready messages that went for good, in the order they would have been lent."""
        ready = self.ready()
        for at, offset in enumerate(offsets):
            check(
                at < len(ready) and ready[at] == offset, f"offset {offset} was dropped, next were", ready[at : at + 3]
            )
            del self.messages[offset]

    def purge(self, number: int) -> None:
        ready = self.ready()
        check(len(ready) == number, f"{number} messages were purged, ready were", len(ready))
        for offset in ready:
            del self.messages[offset]

    def end_tick(self) -> None:
        for offset in self.new:
            if offset in self.messages:
                self.end = max(self.end, offset + 1)
        # A timer may outlive its message; the offset must not become another's, whom the timer would then hit.
        self.end = max(self.end, self.timed)
        self.new.clear()

    def crash(self) -> None:
        self.messages = {at: message for at, message in self.messages.items() if message.stored}
        for message in self.messages.values():
            message.holder = message.until_ms = None
            message.returned = False
            message.redelivered = message.delivered > 0
        self.next_offset = self.end

    def dump(self) -> Dump:
        live = [(at, message.number, message.timestamp_ms) for at, message in self.messages.items()]
        counts = {at: message.delivered for at, message in self.messages.items() if message.delivered}
        return {"live": live, "counts": counts, "next": self.next_offset, "depth": len(live), "ready": len(live)}


@dataclass(slots=True)
class TimerModel:
    """A delayed message (`delivers`), or one that is to expire."""

    due_ms: int
    order: int
    queue: QueueModel
    durable: bool
    delivers: bool
    number: int  # of the message, or the offset that expires
    timestamp_ms: int = 0


MARKER = -1  # the number of what ends a transaction in a partition

Place = tuple[str, str, int]  # namespace, topic, partition


@dataclass(slots=True)
class ProducerModel:
    """One that numbers its batches; under a transactional id, with what is open."""

    id: int
    epoch: int
    sequences: dict[Place, int] = field(default_factory=dict)  # the next ones
    newest: dict[Place, tuple[int, int, int]] = field(default_factory=dict)  # sequence, records and offset of a batch
    open: bool = False
    places: dict[Place, None] = field(default_factory=dict)
    cursors: dict[tuple[Any, ...], int] = field(default_factory=dict)


@dataclass(slots=True)
class PartitionModel:
    start: int = 0
    end: int = 0
    records: dict[int, tuple[int, int]] = field(default_factory=dict)  # offset -> number, timestamp
    open: dict[int, int] = field(default_factory=dict)  # producer -> first offset of its transaction
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first offset, offset of its end

    def append(self, base: int, records: Iterable[Sequence[int]]) -> None:
        check(base == self.end, f"a batch got base offset {base}, not", self.end)
        for number, timestamp_ms in records:
            self.records[self.end] = (number, timestamp_ms)
            self.end += 1

    def set_start(self, offset: int) -> None:
        check(self.start <= offset <= self.end, f"the log start went to {offset}, out of", (self.start, self.end))
        self.start = offset
        self.records = {at: record for at, record in self.records.items() if at >= offset}

    def dump(self) -> Dump:
        records = [(at, number, timestamp_ms) for at, (number, timestamp_ms) in self.records.items()]
        stable = max(self.start, min(self.open.values(), default=self.end))
        aborted = [one for one in self.aborted if one[2] >= self.start]
        return {"start": self.start, "end": self.end, "stable": stable, "aborted": aborted, "records": records}

    def finish(self, producer: int, committed: bool, timestamp_ms: int) -> None:
        first = self.open.pop(producer, None)
        if first is not None and not committed:
            self.aborted.append((producer, first, self.end))
        self.append(self.end, [(MARKER, timestamp_ms)])


@dataclass(slots=True)
class TopicModel:
    partitions: list[PartitionModel]
    settings: dict[str, Any]

    @property
    def compacted(self) -> bool:
        return "compact" in str(self.settings.get("cleanup", ""))


class Model:
    """The whole broker."""

    def __init__(self) -> None:
        self.namespaces: set[str] = {"/"}
        self.queues: dict[tuple[str, str], QueueModel] = {}
        self.topics: dict[tuple[str, str], TopicModel] = {}
        self.cursors: dict[tuple[Any, ...], int] = {}
        self.producers: dict[str, ProducerModel] = {}
        self.timers: list[TimerModel] = []
        self.fired_ms = 0  # no timer fires for a time before this one any more
        self._timers_set = 0

    def apply(self, op: Op) -> None:
        try:
            getattr(self, "on_" + op[0])(*op[1:])
        except Wrong as wrong:
            raise Wrong(f"{wrong} (in {str(op)[:200]})") from None

    def end_tick(self) -> None:
        for queue in self.queues.values():
            queue.end_tick()

    def crash(self) -> None:
        self.queues = {name: queue for name, queue in self.queues.items() if queue.durable}
        for queue in self.queues.values():
            queue.crash()
        self.timers = [timer for timer in self.timers if timer.durable]

    def dump(self) -> Dump:
        return {
            "namespaces": sorted(self.namespaces),
            "queues": {"/".join(name): queue.dump() for name, queue in sorted(self.queues.items())},
            "topics": {
                "/".join(name): {
                    "settings": topic.settings,
                    "compacted": topic.compacted,
                    "partitions": [partition.dump() for partition in topic.partitions],
                }
                for name, topic in sorted(self.topics.items())
            },
            "cursors": {"/".join(map(str, key)): offset for key, offset in sorted(self.cursors.items())},
            "delayed": sum(timer.delivers for timer in self.timers),
        }

    # -- ops

    def on_namespace(self, name: str) -> None:
        self.namespaces.add(name)

    def on_no_namespace(self, name: str) -> None:
        self.namespaces.discard(name)
        for key in [key for key in self.queues if key[0] == name]:
            self.on_no_queue(*key)
        for key in [key for key in self.topics if key[0] == name]:
            self.on_no_topic(*key)
        for cursor in [cursor for cursor in self.cursors if cursor[0] == name]:
            del self.cursors[cursor]

    def on_queue(self, namespace: str, name: str, durable: bool) -> None:
        self.queues[namespace, name] = QueueModel(durable)

    def on_no_queue(self, namespace: str, name: str) -> None:
        del self.queues[namespace, name]

    def on_put(self, ns: str, name: str, offset: int, number: int, timestamp_ms: int, persistent: bool) -> None:
        self.queues[ns, name].put(offset, number, timestamp_ms, persistent)

    def on_lease(self, ns: str, name: str, holder: int, got: Sequence[Sequence[int]], until_ms: int | None) -> None:
        self.queues[ns, name].lease(holder, got, until_ms)

    def on_ack(self, ns: str, name: str, offsets: Iterable[int]) -> None:
        self.queues[ns, name].ack(offsets)

    def on_release(self, ns: str, name: str, offsets: Iterable[int], count: bool) -> None:
        self.queues[ns, name].release(offsets, count)

    def on_take(self, ns: str, name: str, offsets: Iterable[int]) -> None:
        self.queues[ns, name].take(offsets)

    def on_purge(self, ns: str, name: str, number: int) -> None:
        self.queues[ns, name].purge(number)

    def on_topic(self, namespace: str, name: str, partitions: int, settings: dict[str, Any]) -> None:
        self.topics[namespace, name] = TopicModel([PartitionModel() for _ in range(partitions)], dict(settings))

    def on_no_topic(self, namespace: str, name: str) -> None:
        del self.topics[namespace, name]
        for cursor in [cursor for cursor in self.cursors if cursor[2:4] == (namespace, name)]:
            del self.cursors[cursor]
        for producer in self.producers.values():
            for known in (producer.sequences, producer.newest, producer.places):
                for place in [place for place in known if place[:2] == (namespace, name)]:
                    del known[place]
            for cursor in [cursor for cursor in producer.cursors if cursor[2:4] == (namespace, name)]:
                del producer.cursors[cursor]

    def on_settings(self, namespace: str, name: str, settings: dict[str, Any]) -> None:
        self.topics[namespace, name].settings = dict(settings)

    def on_append(self, ns: str, name: str, partition: int, base: int, records: Sequence[Sequence[int]]) -> None:
        self.topics[ns, name].partitions[partition].append(base, records)

    def on_log_start(self, namespace: str, name: str, partition: int, offset: int) -> None:
        self.topics[namespace, name].partitions[partition].set_start(offset)

    def on_cursor(self, key: Sequence[Any], offset: int) -> None:
        """`key`: namespace, group, and the topic's namespace, name and partition."""
        self.cursors[tuple(key)] = offset

    # -- producers and transactions

    def on_producer(self, name: str, id: int, epoch: int, now_ms: int) -> None:
        """It begins, or begins anew: what was open is aborted."""
        before = self.producers.get(name)
        if before is not None and before.open:
            self.on_end(name, False, now_ms)
        self.producers[name] = ProducerModel(id, epoch)

    def on_numbered(
        self, producer: str, ns: str, name: str, partition: int, base: int, records: Sequence[Sequence[int]], part: bool
    ) -> None:
        """`part`: of a transaction."""
        found, place = self.producers[producer], (ns, name, partition)
        log = self.topics[ns, name].partitions[partition]
        log.append(base, records)
        sequence = found.sequences.get(place, 0)
        found.sequences[place] = sequence + len(records)
        found.newest[place] = (sequence, len(records), base)
        if part:
            found.open = True
            found.places[place] = None
            log.open.setdefault(found.id, base)

    def on_cursor_later(self, producer: str, key: Sequence[Any], offset: int) -> None:
        """When the transaction is committed."""
        found = self.producers[producer]
        found.open = True
        found.cursors[tuple(key)] = offset

    def on_end(self, producer: str, committed: bool, now_ms: int) -> None:
        found = self.producers[producer]
        for ns, name, partition in found.places:
            self.topics[ns, name].partitions[partition].finish(found.id, committed, now_ms)
        if committed:
            self.cursors.update(found.cursors)
        found.open = False
        found.places.clear()
        found.cursors.clear()

    # -- time

    def on_delay(self, ns: str, name: str, number: int, timestamp_ms: int, due_ms: int) -> None:
        self._set_timer(self.queues[ns, name], True, True, number, timestamp_ms, due_ms)

    def on_expiring(
        self, ns: str, name: str, offset: int, number: int, timestamp_ms: int, persistent: bool, expire_ms: int
    ) -> None:
        queue = self.queues[ns, name]
        queue.put(offset, number, timestamp_ms, persistent)
        durable = persistent and queue.durable
        if durable:
            queue.timed = offset + 1
        self._set_timer(queue, durable, False, offset, timestamp_ms, expire_ms)

    def _set_timer(
        self, queue: QueueModel, durable: bool, delivers: bool, number: int, timestamp_ms: int, due_ms: int
    ) -> None:
        self._timers_set += 1
        due_ms = max(due_ms, self.fired_ms)
        self.timers.append(TimerModel(due_ms, self._timers_set, queue, durable, delivers, number, timestamp_ms))

    def on_poll(self, now_ms: int) -> None:
        """What is due happens, in the order of the times it was set for; then leases end."""
        due = sorted((timer for timer in self.timers if timer.due_ms <= now_ms), key=lambda t: (t.due_ms, t.order))
        self.timers = [timer for timer in self.timers if timer.due_ms > now_ms]
        alive = {id(queue) for queue in self.queues.values()}
        for timer in due:
            if timer.durable:
                self.fired_ms = max(self.fired_ms, timer.due_ms)
            queue = timer.queue
            if id(queue) not in alive:
                continue
            if timer.delivers:
                queue.put(queue.next_offset, timer.number, timer.timestamp_ms, True)
            else:
                message = queue.messages.get(timer.number)
                if message is not None and message.holder is None:
                    del queue.messages[timer.number]
        for queue in self.queues.values():
            over = [at for at, m in queue.messages.items() if m.until_ms is not None and m.until_ms <= now_ms]
            queue.release(over, True)
