"""A queue against a plain list: any order of appends, leases, answers, paging, ticks and crashes."""

import random
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlog.core.leases import Message
from interlog.core.memory import record_size
from interlog.core.queue_state import QueueState
from interlog.journal.record import Record
from tests.queue_fakes import World, make_record, put, replay

WEIGHTS = {
    "append": 10,
    "lease": 12,
    "ack": 8,
    "answer_many": 6,
    "leave": 2,
    "time_passes": 2,
    "extend": 2,
    "drop_head": 4,
    "expire_head": 1,
    "take": 4,
    "peek": 2,
    "purge": 0.4,
    "page_out": 4,
    "tick": 9,
    "checkpoint": 2,
    "crash": 0.7,
}


@dataclass
class Item:
    offset: int
    record: Record
    persistent: bool
    count: int = 0
    redelivered: bool = False
    holder: int | None = None
    until_ms: int | None = None


class QueueMachine(RuleBasedStateMachine):
    @initialize(share=st.sampled_from([1500, 1, 1000, 4000, 1 << 20]), block=st.sampled_from([1000, 1, 3000]))
    def begin(self, share: int, block: int) -> None:
        self.world = World(share, block, 3 * block)
        self.items: list[Item] = []
        self.safe: list[Item] = []  # as they would be after a crash
        self.lent = 0
        self.safe_lent = 0
        self.end = 0
        self.now = 0
        self.number = 0
        self.next = 0
        self.took = False

    def ready(self) -> list[Item]:
        return [item for item in self.items if item.holder is None]

    def leased(self) -> list[Item]:
        return [item for item in self.items if item.holder is not None]

    def same(self, got: list[Message], items: list[Item]) -> None:
        expected = [(item.offset, item.record, item.count, item.redelivered) for item in items]
        assert [message[:4] for message in got] == expected

    def gone(self, items: list[Item]) -> None:
        offsets = {item.offset for item in items}
        self.items = [item for item in self.items if item.offset not in offsets]

    def back(self, items: list[Item], count: bool) -> None:
        for item in items:
            item.holder = item.until_ms = None
            item.redelivered = True
            item.count += count

    @rule(
        kinds=st.lists(st.booleans(), min_size=1, max_size=12),
        size=st.sampled_from([1, 30, 900]),
        headers=st.integers(0, 1),
    )
    def append(self, kinds: list[bool], size: int, headers: int) -> None:
        for persistent in kinds:
            record = make_record(self.number, size, headers)
            self.number += 1
            offset = put(self.world.queue, record, persistent)
            assert offset == self.next
            self.next += 1
            self.items.append(Item(offset, record, persistent))

    @rule(
        holder=st.integers(1, 3),
        most=st.integers(1, 9),
        limit=st.sampled_from([0, 0, 40, 1000]),
        lasts=st.sampled_from([None, 1, 5]),
    )
    def lease(self, holder: int, most: int, limit: int, lasts: int | None) -> None:
        expected: list[Item] = []
        size = 0
        for item in self.ready()[:most]:
            size += record_size(item.record)
            if limit and expected and size > limit:
                break
            expected.append(item)
        until_ms = None if lasts is None else self.now + lasts
        self.same(self.world.queue.lease(holder, most, limit, until_ms), expected)
        for item in expected:
            item.holder, item.until_ms = holder, until_ms
            self.lent = max(self.lent, item.offset + 1)

    @precondition(lambda self: any(item.holder is not None for item in self.items))
    @rule(pick=st.integers(0, 50), named=st.booleans())
    def ack(self, pick: int, named: bool) -> None:
        leased = self.leased()
        item = leased[pick % len(leased)]
        assert item.holder is not None
        assert not self.world.queue.ack(item.offset, item.holder + 1)
        assert not self.world.queue.ack(self.next + 5)
        assert self.world.queue.ack(item.offset, item.holder if named else None)
        assert not self.world.queue.ack(item.offset)
        self.gone([item])

    @rule(
        holder=st.sampled_from([None, 1, 2, 3]),
        how=st.sampled_from(["ack", "range", "release", "count"]),
        mask=st.integers(0, 255),
    )
    def answer_many(self, holder: int | None, how: str, mask: int) -> None:
        mine = [item for item in self.leased() if holder in (None, item.holder)]
        queue = self.world.queue
        if how == "range":
            first = max(0, self.next - mask // 4)
            last = first + mask % 16
            mine = [item for item in mine if first <= item.offset <= last]
            assert queue.ack_range(first, last, holder) == len(mine)
            self.gone(mine)
            return
        chosen = [item for at, item in enumerate(mine) if mask >> (at % 8) & 1]
        offsets = [item.offset for item in chosen]
        if how == "ack":
            assert queue.ack_many(offsets, holder) == len(chosen)
            self.gone(chosen)
        else:
            assert queue.release(offsets, holder, count=how == "count") == len(chosen)
            self.back(chosen, how == "count")

    @rule(holder=st.integers(1, 3), count=st.booleans())
    def leave(self, holder: int, count: bool) -> None:
        mine = [item for item in self.leased() if item.holder == holder]
        assert self.world.queue.release_holder(holder, count=count) == len(mine)
        self.back(mine, count)

    @rule(ms=st.integers(0, 4))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        ended = [item for item in self.leased() if item.until_ms is not None and item.until_ms <= self.now]
        assert sorted(self.world.queue.expire_leases(self.now)) == [item.offset for item in ended]
        self.back(ended, True)
        ends = [item.until_ms for item in self.leased() if item.until_ms is not None]
        assert self.world.queue.next_lease_end_ms() == (min(ends) if ends else None)

    @precondition(lambda self: any(item.holder is not None for item in self.items))
    @rule(pick=st.integers(0, 50), ms=st.integers(0, 9))
    def extend(self, pick: int, ms: int) -> None:
        leased = self.leased()
        item = leased[pick % len(leased)]
        assert item.holder is not None
        assert not self.world.queue.extend(item.offset, 1, item.holder + 1)
        assert self.world.queue.extend(item.offset, self.now + ms, item.holder)
        item.until_ms = self.now + ms

    @rule(most=st.integers(1, 12))
    def drop_head(self, most: int) -> None:
        expected = self.ready()[:most]
        self.same(self.world.queue.drop_head(most), expected)
        self.gone(expected)

    @rule(odd=st.integers(0, 2))
    def expire_head(self, odd: int) -> None:
        expected = []
        for item in self.ready():
            if item.record.timestamp_ms % 3 == odd:
                break
            expected.append(item)
        got = self.world.queue.expire_head(lambda _, record: record.timestamp_ms % 3 != odd)
        self.same(got, expected)
        self.gone(expected)

    @rule(back=st.integers(-2, 40))
    def take(self, back: int) -> None:
        offset = max(0, self.next - back)
        found = [item for item in self.ready() if item.offset == offset]
        got = self.world.queue.take(offset)
        self.same([got] if got else [], found)
        self.gone(found)
        self.took = self.took or bool(found)

    @rule()
    def peek(self) -> None:
        got = self.world.queue.peek_head()
        self.same([got] if got else [], self.ready()[:1])

    @rule()
    def purge(self) -> None:
        ready = self.ready()
        assert self.world.queue.purge() == len(ready)
        self.gone(ready)

    @rule(share=st.sampled_from([1, 700, 1 << 30]))
    def page_out(self, share: int) -> None:
        before = self.world.queue.memory_bytes()
        freed = self.world.queue.page_out(share)
        assert self.world.queue.memory_bytes() == before - freed

    @rule(lent=st.booleans())
    def tick(self, lent: bool) -> None:
        wrote = self.world.queue.flush()
        stored = [item for item in self.items if item.persistent]
        if stored:
            self.end = max(self.end, stored[-1].offset + 1)
        self.end = max(self.end, self.world.queue.state.end)
        if lent:
            self.world.queue.write_lent()
        if lent or wrote:
            self.safe_lent = max(self.safe_lent, min(self.lent, self.end))
        self.world.log.commit()
        self.safe = [replace(item) for item in stored]
        state = self.world.queue.state
        snapshot = state.snapshot()
        assert replay(QueueState(7), self.world.log.entries).snapshot() == snapshot
        assert snapshot.end == self.world.log.log_end
        assert snapshot.lent == self.safe_lent
        assert (snapshot.depth, snapshot.bytes) == (len(stored), sum(record_size(item.record) for item in stored))
        assert dict(snapshot.counts) == {item.offset: item.count for item in stored if item.count}
        alive = {item.offset for item in stored}
        assert not any(offset in state.ranges for offset in alive)
        for base, last, _ in self.world.log.batches:
            has = any(base <= offset <= last for offset in alive)
            # After a take out of turn, unstored offsets beside it go only with the next stored message.
            assert self.world.queue.wanted(base, last) == has or (self.took and not has)
        if not alive:
            assert snapshot.floor == snapshot.end and not snapshot.ranges
            self.took = False
        held = self.world.queue.memory_bytes()
        assert self.world.budget.used == held

    @rule()
    def checkpoint(self) -> None:
        self.world.checkpoint()

    @rule()
    def crash(self) -> None:
        before = replay(QueueState(7), self.world.log.entries).snapshot()
        self.world.crash()
        assert self.world.queue.state.snapshot() == before
        self.items = [replace(item, holder=None, until_ms=None) for item in self.safe]
        self.safe = [replace(item) for item in self.items]
        for item in self.items:
            item.redelivered = item.count > 0 or item.offset < self.safe_lent
        self.lent = self.safe_lent
        self.next = self.end = self.world.log.log_end

    @rule(seed=st.integers(0, 1 << 32), steps=st.integers(1, 60))
    def storm(self, seed: int, steps: int) -> None:
        """Many steps at once, weighted towards deep queues: where a generator seldom goes by itself."""
        dice = random.Random(seed)
        drawn = dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=steps)
        number = dice.randrange
        for name in drawn:
            if name == "append":
                bias = dice.choice([0.0, 0.5, 0.5, 0.9, 1.0])
                kinds = [dice.random() < bias for _ in range(number(1, 15))]
                self.append(kinds=kinds, size=dice.choice([1, 30, 30, 900]), headers=number(2))
            elif name == "lease":
                limit, lasts = dice.choice([0, 0, 40, 1000]), dice.choice([None, 1, 5])
                self.lease(holder=number(1, 4), most=number(1, 10), limit=limit, lasts=lasts)
            elif name in ("ack", "extend"):
                if self.leased():
                    self.ack(pick=number(50), named=number(2) > 0) if name == "ack" else self.extend(
                        pick=number(50), ms=number(10)
                    )
            elif name == "answer_many":
                how = dice.choice(["ack", "range", "release", "count"])
                self.answer_many(holder=dice.choice([None, 1, 2, 3]), how=how, mask=number(256))
            elif name == "leave":
                self.leave(holder=number(1, 4), count=number(2) > 0)
            elif name == "time_passes":
                self.time_passes(ms=number(5))
            elif name == "drop_head":
                self.drop_head(most=number(1, 6))
            elif name == "expire_head":
                self.expire_head(odd=number(3))
            elif name == "take":
                self.take(back=number(40))
            elif name == "page_out":
                self.page_out(share=dice.choice([1, 700, 1 << 30]))
            elif name == "tick":
                self.tick(lent=number(2) > 0)
            else:
                getattr(self, name)()
            self.counters()

    @invariant()
    def counters(self) -> None:
        if not hasattr(self, "world"):
            return
        queue = self.world.queue
        ready = self.ready()
        assert (queue.ready, queue.leased) == (len(ready), len(self.items) - len(ready))
        assert queue.ready_bytes == sum(record_size(item.record) for item in ready)
        assert queue.bytes == sum(record_size(item.record) for item in self.items)
        assert not self.world.damage

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.tick(True)
            self.crash()
            self.drop_head(len(self.items) + 1)
            self.tick(False)
            assert self.world.queue.depth == 0
            self.world.queue.close()
            assert self.world.budget.used == 0 and not self.world.files.content


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(
    max_examples=200, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_storms_leave_queue_and_list_the_same() -> None:
    for seed in range(400):
        dice = random.Random(seed)
        machine = QueueMachine()
        machine.begin(share=dice.choice([1, 1000, 1500, 4000]), block=dice.choice([1, 1000, 3000]))
        machine.storm(seed=seed, steps=100)
        machine.teardown()
