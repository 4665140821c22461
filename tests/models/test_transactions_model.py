"""Transactions and producers against a model of them that is a few dicts: any order of steps, right ones and wrong
ones, ends that are asked for again, time, and starts.

What a step answers follows from the model, and so does what readers see: nothing of what is open, nothing of what was
aborted, all of what was committed, in order; and the cursors that were committed with it.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlog.core.cursors import Commit
from interlog.core.producers import ProducerError, Refusal
from interlog.core.transactions import Admit, State
from tests.crash.settings import scratch
from tests.transaction_rig import Rig

PARTITIONS = 2
TIMEOUT_MS = 10_000
NAMES = st.sampled_from(["a", "b", "c"])
HOW = st.sampled_from(["right", "right", "right", "unannounced", "stale"])


@dataclass
class Known:
    """Of one transaction."""

    id: int
    epoch: int
    last_epoch: int = -1  # the one before, where its end may be asked for again
    state: State = State.EMPTY
    since_ms: int = 0
    values: dict[int, list[bytes]] = field(default_factory=dict)  # by partition: what was written
    offsets: dict[str, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)


class TransactionsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="interlog-transactions-", dir=scratch()))
        self.rig = Rig(self.root / "data")
        self.topic = self.rig.topic("t", PARTITIONS)
        self.known: dict[str, Known] = {}
        # What each partition holds: values, with the transaction's name and whether it counts, None while it is open.
        self.logs: list[list[tuple[bytes, str, list[bool | None]]]] = [[] for _ in range(PARTITIONS)]
        self.fates: dict[str, list[bool | None]] = {}  # of what is open
        self.cursors: dict[str, int] = {}
        self.numbered = 0

    def teardown(self) -> None:
        self.rig.close()
        shutil.rmtree(self.root)

    def refused(self, error: ProducerError | None, *why: Refusal) -> None:
        if why:
            assert error is not None
            assert error.refusal in why, error
        else:
            assert error is None, error

    # -- steps

    @rule(name=NAMES, current=st.sampled_from([None, "right", "last", "stale"]))
    def init(self, name: str, current: str | None) -> None:
        known = self.known.get(name)
        had: tuple[int, int] | None = None
        if current is not None and known is not None:
            had = known.id, {"right": known.epoch, "last": known.last_epoch, "stale": known.epoch + 7}[current]
            if had[1] < 0:
                return
        error = None
        try:
            id, epoch = self.rig.transactions.init("/", name, TIMEOUT_MS, had)
        except ProducerError as caught:
            error, (id, epoch) = caught, (-1, -1)
        if known is None or had is None:
            self.refused(error)
        elif known.state is State.ONGOING:
            self.refused(error, *(() if had[1] == known.epoch else (Refusal.FENCED,)))
        elif had[1] not in (known.epoch, known.last_epoch):
            self.refused(error, Refusal.FENCED)
        else:
            self.refused(error)
        if error is not None:
            return
        last = -1
        if known is not None:
            was_open = known.state is State.ONGOING
            if was_open:
                self.settle(name, known, False)
            again = had is not None and not was_open and had[1] == known.last_epoch != known.epoch
            assert (id, epoch) == (known.id, known.epoch + (0 if again else 2 if was_open else 1))
            if had is not None and not was_open:
                last = had[1]
        self.known[name] = Known(id, epoch, last)

    @rule(name=NAMES, indexes=st.sampled_from([(0,), (1,), (0, 1), (1, 0)]), count=st.integers(1, 3), how=HOW)
    def write(self, name: str, indexes: tuple[int, ...], count: int, how: str) -> None:
        for index in indexes:
            if (known := self.known.get(name)) is not None:
                self._write(name, known, index, count, announced=how != "unannounced", stale=how == "stale")

    def _write(self, name: str, known: Known, index: int, count: int, *, announced: bool, stale: bool) -> None:
        partition = self.topic.item.partitions[index]
        epoch = known.epoch - stale
        part = known.state is State.ONGOING and index in known.values
        error = None
        try:
            how = Admit.ADD if announced else Admit.REFUSE
            self.rig.transactions.admit("/", name, known.id, epoch, [partition], how)
        except ProducerError as caught:
            error = caught
        if stale:
            self.refused(error, Refusal.FENCED)
            return
        self.refused(error, *(() if announced or part else (Refusal.NOT_OPEN,)))
        if error is not None:
            return
        self.opened(name, known)
        known.values.setdefault(index, [])
        values = []
        for _ in range(count):
            self.numbered += 1
            values.append(b"%d" % self.numbered)
        sequence = known.sequences.get(index, 0)
        first = self.rig.append(values, (known.id, epoch), sequence, index=index, transactional=True)
        assert self.rig.append(values, (known.id, epoch), sequence, index=index, transactional=True) == first
        known.sequences[index] = sequence + count
        known.values[index] += values
        self.logs[index] += [(value, name, self.fates[name]) for value in values]

    def opened(self, name: str, known: Known) -> None:
        if known.state is not State.ONGOING:
            known.state = State.ONGOING
            known.since_ms = self.rig.clock.now_ms()
            self.fates[name] = [None]

    @rule(name=NAMES, group=st.sampled_from(["g", "h"]), offset=st.integers(0, 100))
    def set_a_cursor(self, name: str, group: str, offset: int) -> None:
        if (known := self.known.get(name)) is None:
            return
        commit = Commit(self.topic.item.partitions[0], offset)
        self.rig.transactions.commit_offsets("/", name, known.id, known.epoch, group, [commit], Admit.ADD)
        self.opened(name, known)
        known.offsets[group] = offset

    @rule(name=NAMES, commit=st.booleans(), bump=st.booleans(), whose=st.sampled_from(["own", "own", "last", "stale"]))
    def end(self, name: str, commit: bool, bump: bool, whose: str) -> None:
        if (known := self.known.get(name)) is None:
            return
        epoch = {"own": known.epoch, "last": known.last_epoch, "stale": known.epoch + 3}[whose]
        if epoch < 0:
            return
        error = None
        following = (-1, -1)
        try:
            following = self.rig.transactions.end("/", name, known.id, epoch, commit=commit, bump=bump)
        except ProducerError as caught:
            error = caught
        ended = known.state in (State.COMMITTED, State.ABORTED)
        done = known.state is (State.COMMITTED if commit else State.ABORTED)
        again = bump and ended and epoch == known.last_epoch == known.epoch - 1
        if epoch != known.epoch and not again:
            self.refused(error, Refusal.FENCED)
        elif known.state is State.ONGOING:
            self.refused(error)
            self.settle(name, known, commit)
            self.move(known, bump)
            assert following == (known.id, known.epoch)
        elif done and (again or not bump):
            self.refused(error)
            assert following == (known.id, known.epoch)
        elif bump and not again and not commit:
            self.refused(error)  # nothing is open: it gives an epoch all the same
            known.state = State.ABORTED
            self.move(known, bump)
            assert following == (known.id, known.epoch)
        else:
            self.refused(error, Refusal.NOT_OPEN)

    def move(self, known: Known, bump: bool) -> None:
        if bump:
            known.last_epoch, known.epoch = known.epoch, known.epoch + 1
            known.sequences.clear()

    def settle(self, name: str, known: Known, commit: bool) -> None:
        self.fates.pop(name)[0] = commit
        if commit:
            self.cursors.update(known.offsets)
        known.state = State.COMMITTED if commit else State.ABORTED
        known.values, known.offsets = {}, {}

    # -- time and starts

    @rule(ms=st.sampled_from([10, 4_000, TIMEOUT_MS]))
    def time_passes(self, ms: int) -> None:
        self.rig.later(ms)
        for name, known in self.known.items():
            if known.state is State.ONGOING and known.since_ms + TIMEOUT_MS <= self.rig.clock.now_ms():
                self.settle(name, known, False)
                # Whoever had it is not told: it is fenced.
                known.epoch, known.last_epoch = known.epoch + 1, -1
                known.sequences.clear()

    @rule(kill=st.booleans())
    def starts_again(self, kill: bool) -> None:
        self.rig.restart(kill=kill)
        self.topic = self.rig.topic("t", PARTITIONS)

    # -- always

    @invariant()
    def readers_see_what_counts(self) -> None:
        self.rig.tick()
        for index, log in enumerate(self.logs):
            stable = next((at for at, (_, _, fate) in enumerate(log) if fate[0] is None), len(log))
            assert self.rig.read(index, committed=False) == [value for value, _, _ in log]
            assert self.rig.read(index) == [value for value, _, fate in log[:stable] if fate[0]]
        partition = self.topic.item.partitions[0]
        for group in ("g", "h"):
            cursor = self.rig.core.cursors.fetch("/", group, partition)
            assert (None if cursor is None else cursor.offset) == self.cursors.get(group)
            pending = any(group in one.offsets for one in self.known.values() if one.state is State.ONGOING)
            assert self.rig.transactions.is_pending("/", group, partition) == pending


TestTransactions = TransactionsMachine.TestCase
TestTransactions.settings = settings(max_examples=40, stateful_step_count=40)
