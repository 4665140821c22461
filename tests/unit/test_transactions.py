"""Transactions: how they begin, go on and end, who is fenced, what readers see, and what is the same after a start."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interlog.base.errors import FormatError, InvalidError, LimitError
from interlog.core import transactions as module
from interlog.core.cursors import Commit
from interlog.core.producers import ProducerError, Refusal
from interlog.core.transactions import MAX_EPOCH, NEXT, Admit, State, Step, Transaction
from tests.transaction_rig import SMALL, Rig, batch

MINUTE_MS = 60_000
Producer = tuple[int, int]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data")
    yield rig
    rig.close()


def begin(rig: Rig, name: str = "tx", timeout_ms: int = MINUTE_MS, current: Producer | None = None) -> Producer:
    return rig.transactions.init("/", name, timeout_ms, current)


def put(rig: Rig, producer: Producer, values: list[bytes], sequence: int, *, index: int = 0, name: str = "tx") -> None:
    rig.transactions.admit("/", name, *producer, [rig.topic().item.partitions[index]], Admit.ADD)
    rig.append(values, producer, sequence, index=index, transactional=True)


def end(rig: Rig, producer: Producer, commit: bool, *, bump: bool = False, name: str = "tx") -> Producer:
    return rig.transactions.end("/", name, *producer, commit=commit, bump=bump)


def refused(rig: Rig, what: object, *args: object, **more: object) -> Refusal:
    before = rig.state()
    with pytest.raises(ProducerError) as caught:
        what(*args, **more)  # type: ignore[operator]
    assert rig.state() == before
    return caught.value.refusal


def state(rig: Rig, name: str = "tx") -> State:
    found = rig.transactions.find("/", name)
    assert found is not None
    return found.state


# -- what readers see


@pytest.mark.parametrize("bump", [False, True])
def test_all_of_a_commit_is_seen_at_once(rig: Rig, bump: bool) -> None:
    producer = begin(rig)
    put(rig, producer, [b"a", b"b"], 0)
    put(rig, producer, [b"c"], 0, index=1)
    rig.topic().append_batch(0, batch([b"plain"]))
    rig.tick()
    assert rig.read(0) == rig.read(1) == []
    assert rig.read(0, committed=False) == [b"a", b"b", b"plain"]
    following = end(rig, producer, True, bump=bump)
    assert following == ((0, 1) if bump else producer)
    rig.tick()
    assert rig.read(0) == [b"a", b"b", b"plain"]
    assert rig.read(1) == [b"c"]
    assert [rig.topic().log_end(index) for index in (0, 1)] == [4, 2]
    rig.restart(kill=True)
    assert rig.read(0) == [b"a", b"b", b"plain"]


def test_nothing_of_an_abort_is_seen(rig: Rig) -> None:
    producer = begin(rig)
    put(rig, producer, [b"a"], 0)
    rig.tick()
    end(rig, producer, False)
    put(rig, producer, [b"b"], 1)
    end(rig, producer, True)
    rig.tick()
    partition = rig.topic().item.partitions[0]
    assert rig.transactions.aborted(partition, 0, 10) == [(0, 0)]
    assert rig.transactions.aborted(partition, 2, 10) == []
    assert rig.read(0) == [b"b"]
    rig.restart(kill=True)
    assert rig.read(0) == [b"b"]
    rig.restart(kill=False)
    assert rig.read(0) == [b"b"]


def test_the_first_open_one_holds_back_all_after_it(rig: Rig) -> None:
    one, two = begin(rig, "one"), begin(rig, "two")
    put(rig, one, [b"1"], 0, name="one")
    put(rig, two, [b"2"], 0, name="two")
    rig.tick()
    partition = rig.topic().item.partitions[0]
    end(rig, two, False, name="two")
    rig.tick()
    assert rig.transactions.last_stable(partition) == 0
    rig.restart(kill=True)
    rig.later(2_000)
    rig.restart(kill=False)
    assert rig.transactions.last_stable(partition) == 0
    put(rig, two, [b"3"], 1, name="two")
    end(rig, one, True, name="one")
    rig.tick()
    assert rig.transactions.last_stable(partition) == 3
    assert rig.read(0) == [b"1"]
    assert rig.transactions.aborted(partition, 0, 3) == [(two[0], 1)]
    assert rig.transactions.aborted(partition, 0, 1) == []


def test_what_was_aborted_before_the_log_start_is_forgotten(rig: Rig) -> None:
    producer = begin(rig)
    for number in range(3):
        put(rig, producer, [b"a"], number)
        end(rig, producer, False)
    rig.later(2_000)
    rig.topic().delete_records(0, 4)
    partition = rig.topic().item.partitions[0]
    put(rig, producer, [b"a"], 3)
    end(rig, producer, False)
    assert rig.core.producers.aborted_ranges(partition) == [(0, 4, 5), (0, 6, 7)]
    rig.restart(kill=True)
    rig.restart(kill=False)
    assert rig.core.producers.aborted_ranges(partition) == [(0, 4, 5), (0, 6, 7)]


def test_the_log_start_may_pass_an_open_one(rig: Rig) -> None:
    producer = begin(rig)
    put(rig, producer, [b"a", b"b"], 0)
    rig.tick()
    rig.topic().delete_records(0, 1)
    assert rig.transactions.last_stable(rig.topic().item.partitions[0]) == 1
    end(rig, producer, True)
    rig.tick()
    assert rig.read(0) == [b"b"]


# -- cursors


def test_cursors_are_set_by_the_commit(rig: Rig) -> None:
    producer = begin(rig)
    partition = rig.topic().item.partitions[1]
    transactions, cursors = rig.transactions, rig.core.cursors
    transactions.add_group("/", "tx", *producer, "g")
    transactions.commit_offsets("/", "tx", *producer, "g", [Commit(partition, 5, 2, "é")], Admit.REFUSE)
    transactions.commit_offsets("/", "tx", *producer, "g", [Commit(partition, 6, 2, "é")], Admit.REFUSE)
    rig.restart(kill=True)
    rig.later(2_000)
    rig.restart(kill=False)
    assert rig.core.cursors.fetch("/", "g", partition) is None
    assert rig.transactions.is_pending("/", "g", partition)
    assert not rig.transactions.is_pending("/", "g", partition + 1)
    assert not rig.transactions.is_pending("/", "other", partition)
    end(rig, producer, True)
    cursor = rig.core.cursors.fetch("/", "g", partition)
    assert cursor is not None and (cursor.offset, cursor.leader_epoch, cursor.metadata) == (6, 2, "é")
    assert not rig.transactions.is_pending("/", "g", partition)
    rig.restart(kill=True)
    assert rig.core.cursors.fetch("/", "g", partition) == cursor
    assert cursors is not rig.core.cursors


def test_cursors_of_an_abort_are_not_set(rig: Rig) -> None:
    producer = begin(rig)
    partition = rig.topic().item.partitions[0]
    rig.transactions.commit_offsets("/", "tx", *producer, "g", [Commit(partition, 5)], Admit.ADD)
    end(rig, producer, False)
    assert rig.core.cursors.fetch("/", "g", partition) is None
    assert rig.transactions.snapshot()["pending"] == 0


def test_cursors_that_cannot_be_are_refused_when_they_come(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = begin(rig)
    commit = rig.transactions.commit_offsets
    with pytest.raises(LimitError, match="metadata"):
        commit("/", "tx", *producer, "g", [Commit(1, 5, -1, "x" * 5_000)], Admit.ADD)
    with pytest.raises(InvalidError, match="name"):
        commit("/", "tx", *producer, "", [Commit(1, 5)], Admit.ADD)
    monkeypatch.setattr(module, "MAX_PENDING", 2)
    with pytest.raises(LimitError, match="2 is the limit"):
        commit("/", "tx", *producer, "g", [Commit(number, 5) for number in range(3)], Admit.ADD)
    assert state(rig) is State.EMPTY
    assert refused(rig, commit, "/", "tx", *producer, "g", [Commit(1, 5)], Admit.REFUSE) is Refusal.NOT_OPEN
    abortable = refused(rig, commit, "/", "tx", *producer, "g", [Commit(1, 5)], Admit.REFUSE_ABORTABLE)
    assert abortable is Refusal.NOT_INCLUDED


# -- who may


def test_what_is_no_part_is_refused(rig: Rig) -> None:
    producer = begin(rig)
    partitions = rig.topic().item.partitions
    admit = rig.transactions.admit
    assert refused(rig, admit, "/", "tx", *producer, partitions, Admit.REFUSE) is Refusal.NOT_OPEN
    assert refused(rig, admit, "/", "tx", *producer, partitions, Admit.REFUSE_ABORTABLE) is Refusal.NOT_INCLUDED
    rig.transactions.add_partitions("/", "tx", *producer, partitions[:1])
    admit("/", "tx", *producer, partitions[:1], Admit.REFUSE)
    assert refused(rig, admit, "/", "tx", *producer, partitions, Admit.REFUSE) is Refusal.NOT_OPEN
    rig.append([b"a"], producer, 0, transactional=True)
    assert refused(rig, rig.append, [b"a"], producer, 0, index=1, transactional=True) is Refusal.NOT_OPEN
    assert refused(rig, rig.append, [b"b"], producer, 1) is Refusal.NOT_OPEN  # not transactional, in the middle of one
    end(rig, producer, True)
    assert refused(rig, rig.append, [b"b"], producer, 1, transactional=True) is Refusal.NOT_OPEN
    rig.append([b"b"], producer, 1)


def test_others_are_refused(rig: Rig) -> None:
    producer = begin(rig)
    add = rig.transactions.add_partitions
    ends = rig.transactions.end
    for name, id, epoch, expected in (
        ("other", *producer, Refusal.UNKNOWN_PRODUCER),
        ("tx", 99, 0, Refusal.UNKNOWN_PRODUCER),
        ("tx", producer[0], 1, Refusal.FENCED),
    ):
        assert refused(rig, add, "/", name, id, epoch, [1]) is expected
        assert refused(rig, rig.transactions.add_group, "/", name, id, epoch, "g") is expected
        for bump in (False, True):
            assert refused(rig, ends, "/", name, id, epoch, commit=False, bump=bump) is expected


def test_who_takes_over_fences_who_was_there(rig: Rig) -> None:
    old = begin(rig)
    put(rig, old, [b"old"], 0)
    rig.tick()
    new = begin(rig)
    assert new == (old[0], 2)  # the epoch between was the abort's
    rig.tick()
    assert refused(rig, rig.append, [b"old"], old, 1, transactional=True) is Refusal.STALE_EPOCH
    assert refused(rig, rig.transactions.add_partitions, "/", "tx", *old, [1]) is Refusal.FENCED
    assert refused(rig, end, rig, old, True) is Refusal.FENCED
    assert refused(rig, end, rig, old, True, bump=True) is Refusal.FENCED
    put(rig, new, [b"new"], 0)
    end(rig, new, True)
    rig.tick()
    assert rig.read(0) == [b"new"]


def test_going_on_after_an_error(rig: Rig) -> None:
    producer = begin(rig)
    bumped = begin(rig, current=producer)
    assert bumped == (producer[0], 1)
    assert begin(rig, current=producer) == bumped  # asked again
    third = begin(rig, current=bumped)
    assert refused(rig, begin, rig, current=producer) is Refusal.FENCED
    assert refused(rig, begin, rig, current=(99, 0)) is Refusal.FENCED
    other = begin(rig)
    assert other == (producer[0], 3)
    assert refused(rig, begin, rig, current=third) is Refusal.FENCED
    assert begin(rig, "new", current=(5, 5)) == (1, 0)


def test_a_zombie_that_goes_on_does_not_end_what_is_open(rig: Rig) -> None:
    zombie = begin(rig)
    producer = begin(rig)
    put(rig, producer, [b"a"], 0)
    assert refused(rig, begin, rig, current=zombie) is Refusal.FENCED
    assert state(rig) is State.ONGOING
    assert begin(rig, current=producer) == (producer[0], 3)
    assert state(rig) is State.EMPTY


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_have_bounds(rig: Rig, timeout_ms: int) -> None:
    assert refused(rig, begin, rig, timeout_ms=timeout_ms) is Refusal.BAD_TIMEOUT


def test_names_have_bounds(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidError):
        begin(rig, "x" * 40_000)
    monkeypatch.setattr(module, "MAX_TRANSACTIONS", 1)
    begin(rig)
    assert refused(rig, begin, rig, "more") is Refusal.TOO_MANY
    begin(rig)


# -- the end


def test_ends_are_answered_again(rig: Rig) -> None:
    producer = begin(rig)
    assert refused(rig, end, rig, producer, True) is Refusal.NOT_OPEN
    assert refused(rig, end, rig, producer, False) is Refusal.NOT_OPEN
    put(rig, producer, [b"a"], 0)
    end(rig, producer, True)
    before = rig.state()
    assert end(rig, producer, True) == producer
    assert rig.state() == before
    assert refused(rig, end, rig, producer, False) is Refusal.NOT_OPEN
    put(rig, producer, [b"b"], 1)
    end(rig, producer, False)
    assert end(rig, producer, False) == producer
    assert refused(rig, end, rig, producer, True) is Refusal.NOT_OPEN


def test_with_an_epoch_for_each_end_the_table_is_kafkas(rig: Rig) -> None:
    producer = begin(rig)
    assert refused(rig, end, rig, (producer[0], 1), False, bump=True) is Refusal.FENCED
    assert refused(rig, end, rig, producer, True, bump=True) is Refusal.NOT_OPEN
    second = end(rig, producer, False, bump=True)  # nothing at all, aborted: a new epoch
    assert second == (producer[0], 1)
    assert end(rig, producer, False, bump=True) == second  # asked again
    assert refused(rig, end, rig, producer, True, bump=True) is Refusal.NOT_OPEN
    third = end(rig, second, False, bump=True)
    put(rig, third, [b"a"], 0)
    fourth = end(rig, third, True, bump=True)
    assert fourth == (producer[0], 3)
    assert end(rig, third, True, bump=True) == fourth
    assert refused(rig, end, rig, third, False, bump=True) is Refusal.NOT_OPEN
    assert refused(rig, end, rig, fourth, True, bump=True) is Refusal.NOT_OPEN
    assert refused(rig, end, rig, second, True, bump=True) is Refusal.FENCED
    fifth = end(rig, fourth, False, bump=True)
    put(rig, fifth, [b"b"], 0)
    assert refused(rig, end, rig, fourth, False, bump=True) is Refusal.FENCED
    rig.tick()
    assert rig.read(0) == [b"a"]


@pytest.mark.parametrize("bump", [False, True])
def test_epochs_run_out(rig: Rig, bump: bool) -> None:
    producer = begin(rig)
    rig.transactions._all["/", "tx"].epoch = MAX_EPOCH - 2
    last = begin(rig, current=(producer[0], MAX_EPOCH - 2))
    assert last == (producer[0], MAX_EPOCH - 1)
    put(rig, last, [b"a"], 0)
    if bump:
        new = end(rig, last, True, bump=True)
        assert new == (1, 0)
        assert end(rig, last, True, bump=True) == new
        assert begin(rig, current=last) == new
    else:
        assert end(rig, last, True) == last
        new = begin(rig, current=last)
        assert new == (1, 0)
        assert begin(rig, current=last) == new
    put(rig, new, [b"b"], 0)
    end(rig, new, True)
    rig.tick()
    assert rig.read(0) == [b"a", b"b"]
    assert refused(rig, rig.append, [b"c"], last, 1, transactional=True) is Refusal.NOT_OPEN
    if bump:
        assert refused(rig, rig.append, [b"c"], last, 1) is Refusal.STALE_EPOCH


def test_the_last_epoch_can_be_fenced(rig: Rig) -> None:
    producer = begin(rig)
    rig.transactions._all["/", "tx"].epoch = MAX_EPOCH - 1
    put(rig, (producer[0], MAX_EPOCH - 1), [b"a"], 0)
    assert begin(rig) == (1, 0)
    rig.tick()
    assert rig.read(0) == []


# -- time


@pytest.mark.parametrize("how", ["running", "killed", "stopped"])
def test_what_takes_too_long_is_aborted(rig: Rig, how: str) -> None:
    producer = begin(rig, timeout_ms=5_000)
    put(rig, producer, [b"a"], 0)
    rig.tick()
    rig.later(3_000)
    if how != "running":
        rig.core.transactions.add_partitions("/", "tx", *producer, [rig.topic().item.partitions[1]])
        rig.restart(kill=how == "killed")
    rig.later(1_999)
    assert state(rig) is State.ONGOING
    rig.later(2)
    assert state(rig) is State.ABORTED
    assert rig.read(0) == []
    assert refused(rig, end, rig, producer, True) is Refusal.FENCED
    assert refused(rig, rig.append, [b"b"], producer, 1, transactional=True) is Refusal.STALE_EPOCH
    assert begin(rig) == (producer[0], 2)
    rig.restart(kill=True)


def test_an_end_in_time_is_no_timeout(rig: Rig) -> None:
    producer = begin(rig, timeout_ms=5_000)
    put(rig, producer, [b"a"], 0)
    rig.later(4_000)
    end(rig, producer, True)
    put(rig, producer, [b"b"], 1)
    rig.later(4_000)
    end(rig, producer, True)
    rig.later(10_000)
    assert state(rig) is State.COMMITTED
    assert rig.read(0) == [b"a", b"b"]
    assert len(rig.core.deadlines) == 0


def test_names_that_are_not_used_are_forgotten(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data", replace(SMALL, transaction_expiration_ms=10_000))
    producer = begin(rig, "old")
    open_one = begin(rig, "open", timeout_ms=100_000)
    put(rig, open_one, [b"a"], 0, name="open")
    rig.later(1_000)
    begin(rig, "new")
    rig.later(9_500)
    assert [one.name for one in rig.transactions.all("/")] == ["new", "open"]
    rig.restart(kill=True)
    assert refused(rig, end, rig, producer, True, name="old") is Refusal.UNKNOWN_PRODUCER
    rig.later(2_000)
    rig.restart(kill=False)
    assert [one.name for one in rig.transactions.all("/")] == ["open"]
    rig.close()


# -- what goes in the middle of it


def test_a_topic_may_go_in_the_middle(rig: Rig) -> None:
    producer = begin(rig)
    put(rig, producer, [b"a"], 0)
    other = rig.core.create_topic("/", "other", 1)
    rig.transactions.add_partitions("/", "tx", *producer, other.item.partitions)
    rig.transactions.commit_offsets("/", "tx", *producer, "g", [Commit(other.item.partitions[0], 1)], Admit.ADD)
    rig.later(1_500)
    rig.core.delete_topic("/", "other")
    rig.restart(kill=True)
    assert not rig.transactions.is_pending("/", "g", other.item.partitions[0])
    end(rig, producer, True)
    rig.restart(kill=True)
    assert rig.read(0) == [b"a"]
    assert rig.core.cursors.groups("/") == []


def test_a_namespace_takes_its_transactions_along(rig: Rig) -> None:
    rig.core.create_namespace("tenant")
    producer = rig.transactions.init("tenant", "tx", 5_000)
    rig.transactions.add_group("tenant", "tx", *producer, "g")
    begin(rig)
    rig.later(1_500)
    rig.core.delete_namespace("tenant")
    rig.later(10_000)
    assert len(rig.transactions) == 1
    rig.restart(kill=True)
    rig.restart(kill=False)


def test_names_of_namespaces_do_not_meet(rig: Rig) -> None:
    rig.core.create_namespace("tenant")
    one, other = begin(rig), rig.transactions.init("tenant", "tx", 5_000)
    assert one[0] != other[0]


def test_what_cannot_follow_is_no_entry() -> None:
    found = Transaction("/", "tx")
    for step in Step:
        for state in State:
            found.state = state
            if (state, step) in NEXT:
                found.go(step)
                assert found.state is NEXT[state, step]
            else:
                with pytest.raises(FormatError):
                    found.go(step)
