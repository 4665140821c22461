"""One partition of a share group against a model that keeps every record by itself.

Members take, say what became of what they hold, are silent for too long, and go; records are skipped, and the log's
start moves. After every step both agree on each record, and what was told of the changes makes the same of an older
copy: so does a replay.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlog.core.share_entries import Kept, pack_ranges, unpack_ranges
from interlog.core.share_partition import SharePartition, State, Verdict

MEMBERS = st.sampled_from(["a", "b"])
OFFSETS = st.integers(0, 40)
LENGTHS = st.integers(1, 12)
LIMIT = 3
LOCK_S = 10.0


@dataclass
class One:
    """A record."""

    state: State = State.AVAILABLE
    delivered: int = 0
    holder: str = ""
    until_s: float = 0.0

    def give_back(self) -> None:
        self.state = State.DONE if self.delivered >= LIMIT else State.AVAILABLE
        self.holder, self.until_s = "", 0.0


class ShareMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = SharePartition(5)
        self.copy = SharePartition(5)  # by what is told
        self.start = 5
        self.records: dict[int, One] = {}  # all from the start on that were looked at
        self.now_s = 0.0

    def touched(self, first: int, last: int) -> list[tuple[int, One]]:
        if last >= self.start:
            for offset in range(max([self.start, *(one + 1 for one in self.records)]), last + 1):
                self.records[offset] = One()
        return [(offset, self.records[offset]) for offset in range(max(first, self.start), last + 1)]

    @rule(member=MEMBERS, first=OFFSETS, length=LENGTHS, most=st.none() | st.integers(1, 5))
    def take(self, member: str, first: int, length: int, most: int | None) -> None:
        last = first + length - 1
        expected: dict[int, int] = {}
        for offset, one in self.touched(first, last):
            if one.state is State.AVAILABLE and (most is None or len(expected) < most):
                one.state, one.holder, one.until_s = State.HELD, member, self.now_s + LOCK_S
                one.delivered += 1
                expected[offset] = one.delivered
        taken = self.real.take(first, last, member, self.now_s + LOCK_S, most)
        assert {offset: times for one, end, times in taken for offset in range(one, end + 1)} == expected

    @rule(member=MEMBERS, first=OFFSETS, length=LENGTHS, verdict=st.sampled_from(Verdict))
    def settle(self, member: str, first: int, length: int, verdict: Verdict) -> None:
        last = first + length - 1
        mine = [self.records.get(offset) for offset in range(max(first, self.start), last + 1)]
        holds = all(one is not None and one.state is State.HELD and one.holder == member for one in mine)
        assert self.real.holds(member, first, last) == holds
        if not holds:
            return
        self.real.settle(member, [(first, last, verdict)], LIMIT, self.now_s + LOCK_S)
        for one in mine:
            assert one is not None
            if verdict is Verdict.RENEW:
                one.until_s = self.now_s + LOCK_S
            elif verdict is Verdict.RELEASE:
                one.give_back()
            else:
                one.state, one.holder = State.DONE, ""

    @rule(first=OFFSETS, length=LENGTHS)
    def skip(self, first: int, length: int) -> None:
        self.real.skip(first, first + length - 1)
        for _, one in self.touched(first, first + length - 1):
            if one.state is State.AVAILABLE:
                one.state = State.DONE

    @rule(member=MEMBERS)
    def go(self, member: str) -> None:
        held = [one for one in self.records.values() if one.state is State.HELD and one.holder == member]
        assert self.real.release(member, LIMIT) == bool(held)
        for one in held:
            one.give_back()

    @rule(seconds=st.sampled_from([1.0, 5.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        due = [one for one in self.records.values() if one.state is State.HELD and one.until_s <= self.now_s]
        first = self.real.next_due()
        assert (first is not None and first <= self.now_s) == bool(due)
        assert self.real.expire(self.now_s, LIMIT) == bool(due)
        for one in due:
            one.give_back()

    @rule(start=OFFSETS)
    def move_start(self, start: int) -> None:
        self.real.move_start(start)
        self.start = max(self.start, start)
        self.records = {offset: one for offset, one in self.records.items() if offset >= self.start}

    @rule()
    def save_and_load(self) -> None:
        self.tell()
        loaded = SharePartition(self.copy.start)
        loaded.apply(self.copy.start, unpack_ranges(pack_ranges(self.copy.kept())))
        assert list(loaded.kept()) == list(self.copy.kept())
        self.copy = loaded

    def tell(self) -> None:
        told = self.real.take_changes()
        if told is not None:
            self.copy.apply(told[0], unpack_ranges(pack_ranges(told[1])))

    @invariant()
    def they_agree(self) -> None:
        while self.start in self.records and self.records[self.start].state is State.DONE:
            del self.records[self.start]
            self.start += 1
        real = self.real
        assert real.start == self.start
        assert real.end == max([self.start, *(one + 1 for one in self.records)])
        states = [one.state for one in self.records.values()]
        assert (real.done, real.held) == (states.count(State.DONE), states.count(State.HELD))
        free = [offset for offset, one in sorted(self.records.items()) if one.state is State.AVAILABLE]
        assert real.next_available() == (free[0] if free else real.end)
        kept = {offset: one for one in real.kept() for offset in range(one.first, one.last + 1)}
        for offset, one in self.records.items():
            before = one.delivered - (one.state is State.HELD)
            if one.state is State.DONE:
                assert kept[offset].state is Kept.DONE
            elif before:
                assert (kept[offset].state, kept[offset].delivered) == (Kept.AVAILABLE, before)
            else:
                assert offset not in kept

    @rule()
    def what_is_told_is_enough(self) -> None:
        self.tell()
        assert (self.copy.start, list(self.copy.kept())) == (self.real.start, list(self.real.kept()))


TestShare = ShareMachine.TestCase
TestShare.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
