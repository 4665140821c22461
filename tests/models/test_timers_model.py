"""Timers against a sorted list: through ticks, checkpoints that may fail, and crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlog.core.timers import Key, Timer, TimerKind, Timers
from interlog.journal.section import Changes, Row


class Tables:
    """What a checkpoint keeps: the committed tables, and the number of ticks they hold for."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.marks: list[Row] = []
        self.ticks = 0

    def commit(self, rows: Changes, marks: Changes, ticks: int) -> None:
        assert rows.below is not None
        below = rows.below
        self.rows = {key: row for key, row in self.rows.items() if key > below}
        for row in rows.rows:
            self.rows[(row[0], row[1])] = row  # type: ignore[index]
        self.marks = marks.rows
        self.ticks = ticks

    def read(self, after: Key, limit: int) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows) if key > after][:limit]


class Entries:
    """Where a tick's entries go."""

    def __init__(self, into: list[bytes]) -> None:
        self.into = into

    def add(self, kind: int, target: int, payload: bytes) -> None:
        self.into.append(payload)


class TimersMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tables = Tables()
        self.now_ms = 0
        self.journal: list[list[bytes]] = []  # a list of payloads for each committed tick
        self.tick: list[bytes] = []
        self.set: list[Timer] = []  # the model: all that were set and have not fired
        self.fired: list[Timer] = []
        self.committed: tuple[list[Timer], list[Timer]] = ([], [])
        self.handed: tuple[Changes, Changes, int] | None = None
        self.in_table = False  # the save under way has been committed, and the timers do not know it yet

    @initialize(near_most=st.integers(2, 12), read_rows=st.integers(1, 5), unsaved_most=st.integers(1, 8))
    def start(self, **limits: int) -> None:
        self.limits = limits
        self.timers = self.build()

    def build(self) -> Timers:
        return Timers(self.tables.read, **self.limits)  # type: ignore[arg-type]

    @rule(wait_ms=st.integers(-30, 60), kind=st.sampled_from(TimerKind), count=st.integers(1, 6))
    def add(self, wait_ms: int, kind: TimerKind, count: int) -> None:
        for offset in range(count):
            asked_ms = max(0, self.now_ms + wait_ms)
            id_ = self.timers.add(kind, asked_ms, 3, offset)
            due_ms = max(asked_ms, self.fired[-1].due_ms if self.fired else 0)
            self.set.append(Timer(due_ms, id_, kind, 3, offset))

    @rule(wait_ms=st.integers(0, 30), most=st.integers(1, 8))
    def fire(self, wait_ms: int, most: int) -> None:
        self.now_ms += wait_ms
        came = self.timers.due(self.now_ms, most)
        expected = sorted(timer for timer in self.set if timer.due_ms <= self.now_ms)
        assert came == expected[: len(came)]
        assert came or not expected
        for timer in came:
            self.set.remove(timer)
        self.fired += came

    @rule()
    def look_ahead(self) -> None:
        assert self.timers.next_due_ms() == min((timer.due_ms for timer in self.set), default=None)

    @rule()
    def commit(self) -> None:
        self.timers.flush(Entries(self.tick))
        self.journal.append(self.tick)
        self.tick = []
        self.committed = (list(self.set), list(self.fired))

    @precondition(lambda self: self.handed is None)
    @rule()
    def begin_save(self) -> None:
        self.commit()
        self.handed = (self.timers.rows.take_changes(), self.timers.marks.take_changes(), len(self.journal))

    @precondition(lambda self: self.handed is not None and not self.in_table)
    @rule()
    def save_reaches_the_table(self) -> None:
        assert self.handed is not None
        self.tables.commit(*self.handed)
        self.in_table = True

    @precondition(lambda self: self.in_table)
    @rule()
    def save_ends(self) -> None:
        self.timers.rows.saved()
        self.handed = None
        self.in_table = False

    @precondition(lambda self: self.handed is not None and not self.in_table)
    @rule()
    def save_fails(self) -> None:
        self.handed = None

    @precondition(lambda self: self.handed is None)
    @rule(wait_ms=st.integers(0, 60), count=st.integers(1, 12), late=st.booleans())
    def save_while_timers_are_set(self, wait_ms: int, count: int, late: bool) -> None:
        self.begin_save()
        if late:
            self.save_reaches_the_table()
        self.add(wait_ms, TimerKind.DELIVER, count)
        if not late:
            self.save_reaches_the_table()
        self.save_ends()

    @rule()
    def crash(self) -> None:
        self.tick = []
        self.handed = None
        self.in_table = False
        self.set, self.fired = (list(part) for part in self.committed)
        self.timers = self.build()
        self.timers.marks.load(self.tables.marks)
        for payloads in self.journal[self.tables.ticks :]:
            for payload in payloads:
                self.timers.apply(payload)

    @rule()
    def replaying_the_last_tick_again_changes_nothing(self) -> None:
        if self.journal:
            for payload in self.journal[-1]:
                self.timers.apply(payload)

    @invariant()
    def fired_in_order_and_once(self) -> None:
        keys = [(timer.due_ms, timer.id) for timer in self.fired]
        assert keys == sorted(set(keys))

    def teardown(self) -> None:
        if not hasattr(self, "timers"):
            return
        self.crash()
        while self.set:
            self.fire(1_000, 5)
        assert self.timers.next_due_ms() is None


TestTimers = TimersMachine.TestCase
TestTimers.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
