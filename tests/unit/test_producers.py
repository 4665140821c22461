"""Producers that number their batches: what is taken, what is refused, what comes twice, what survives."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interlog.base.errors import InvalidError
from interlog.core import markers
from interlog.core.markers import Marker
from interlog.core.producers import MAX_SEQUENCE, ProducerError, Producers, Refusal, last_sequence
from interlog.core.topics import Appended
from interlog.journal import batch as batches
from interlog.journal.record import Record
from tests.transaction_rig import SMALL, Rig, batch

PRODUCER = (7, 0)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data")
    yield rig
    rig.close()


def refusal(rig: Rig, values: list[bytes], producer: tuple[int, int], sequence: int, *, tx: bool = False) -> Refusal:
    before = rig.state()
    with pytest.raises(ProducerError) as caught:
        rig.append(values, producer, sequence, transactional=tx)
    assert rig.state() == before
    return caught.value.refusal


@pytest.mark.parametrize("how", ["at once", "after a tick", "killed", "stopped"])
def test_a_batch_that_comes_again_answers_with_its_first_place(rig: Rig, how: str) -> None:
    first = [rig.append([b"a%d" % number, b"b"], PRODUCER, 2 * number) for number in range(7)]
    assert first[6] == Appended(12, 13, -1)
    if how == "after a tick":
        rig.tick()
    elif how != "at once":
        rig.restart(kill=how == "killed")
    for number in range(2, 7):
        assert rig.append([b"a%d" % number, b"b"], PRODUCER, 2 * number) == first[number]
    assert refusal(rig, [b"a1", b"b"], PRODUCER, 2) is Refusal.OUT_OF_ORDER  # the sixth before: forgotten
    rig.tick()
    assert rig.topic().log_end(0) == 14


def test_a_part_of_a_batch_is_not_the_batch_again(rig: Rig) -> None:
    rig.append([b"a", b"b", b"c"], PRODUCER, 0)
    assert refusal(rig, [b"a", b"b"], PRODUCER, 0) is Refusal.OUT_OF_ORDER
    assert refusal(rig, [b"b", b"c"], PRODUCER, 1) is Refusal.OUT_OF_ORDER


def test_sequences_follow_one_another_and_begin_anew_with_an_epoch(rig: Rig) -> None:
    rig.append([b"a"], PRODUCER, 0)
    assert refusal(rig, [b"c"], PRODUCER, 2) is Refusal.OUT_OF_ORDER
    rig.append([b"b"], PRODUCER, 1)
    assert refusal(rig, [b"c"], (7, 1), 2) is Refusal.OUT_OF_ORDER
    rig.append([b"c"], (7, 1), 0)
    assert refusal(rig, [b"c"], PRODUCER, 2) is Refusal.STALE_EPOCH
    assert refusal(rig, [b"a"], PRODUCER, 0) is Refusal.STALE_EPOCH  # what came before the epoch is forgotten
    rig.append([b"d"], (7, 1), 1)
    # Each partition and each producer on its own.
    rig.append([b"x"], PRODUCER, 0, index=1)
    rig.append([b"y"], (8, 0), 0)


def test_a_producer_that_a_partition_does_not_know_goes_on_wherever_it_was(rig: Rig) -> None:
    rig.append([b"a"], PRODUCER, 41)
    rig.append([b"b"], PRODUCER, 42)
    assert refusal(rig, [b"c"], PRODUCER, 0) is Refusal.OUT_OF_ORDER


def test_sequences_wrap_around(rig: Rig) -> None:
    rig.append([b"a"], PRODUCER, MAX_SEQUENCE - 2)
    over = rig.append([b"b", b"c", b"d"], PRODUCER, MAX_SEQUENCE - 1)
    assert last_sequence(MAX_SEQUENCE - 1, 3) == 0
    rig.restart(kill=True)
    assert rig.append([b"b", b"c", b"d"], PRODUCER, MAX_SEQUENCE - 1) == over
    rig.append([b"e"], PRODUCER, 1)
    rig.append([b"a"], (8, 0), MAX_SEQUENCE)
    rig.append([b"b"], (8, 0), 0)


def test_what_no_client_may_send(rig: Rig) -> None:
    topic = rig.topic()
    with pytest.raises(InvalidError, match="control"):
        topic.append_batch(0, markers.encode(7, 0, Marker(True, 0), 1))
    with pytest.raises(InvalidError, match="impossible"):
        topic.append_batch(0, batch([b"a"], (7, 0), -1))
    with pytest.raises(InvalidError, match="impossible"):
        topic.append_batch(0, batch([b"a"], (7, -1), 0))
    with pytest.raises(InvalidError, match="impossible"):
        topic.append_batch(0, batch([b"a"], transactional=True))
    gaps = batches.encode(
        [Record(None, b"a", (), 1)] * 2,
        base_offset=0,
        offsets=[0, 5],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    with pytest.raises(InvalidError, match="impossible"):
        topic.append_batch(0, gaps)
    assert refusal(rig, [b"a"], PRODUCER, 0, tx=True) is Refusal.NOT_OPEN
    assert len(rig.core.producers) == 0


def test_batches_without_a_producer_leave_no_trace(rig: Rig) -> None:
    rig.topic().append_batch(0, batch([b"a"]))
    rig.topic().append(0, [Record(None, b"b", (), 1)])
    rig.tick()
    assert len(rig.core.producers) == 0


def test_the_broker_s_time_is_answered_again(rig: Rig) -> None:
    topic = rig.core.create_topic("/", "stamped", 1, {"timestamp": "append"})
    first = topic.append_batch(0, batch([b"a"], PRODUCER, 0))
    rig.later(10)
    assert topic.append_batch(0, batch([b"a"], PRODUCER, 0)) == first == Appended(0, 0, 1_700_000_000_000)


def test_records_that_go_do_not_take_the_producer_along(rig: Rig) -> None:
    rig.append([b"a"], PRODUCER, 0)
    rig.tick()
    rig.topic().delete_records(0, -1)
    rig.restart(kill=True)
    assert rig.append([b"a"], PRODUCER, 0) == Appended(0, 0, -1)
    assert refusal(rig, [b"c"], PRODUCER, 5) is Refusal.OUT_OF_ORDER


def test_a_partition_that_goes_takes_its_producers_along(rig: Rig) -> None:
    rig.append([b"a"], PRODUCER, 0)
    rig.later(2_000)
    rig.core.delete_topic("/", "t")
    assert len(rig.core.producers) == 0
    rig.restart(kill=True)
    rig.restart(kill=False)
    rig.append([b"b"], PRODUCER, 9)
    assert len(rig.core.producers) == 1


def test_producers_are_forgotten_after_a_day(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data", replace(SMALL, producer_expiration_ms=10_000))
    rig.append([b"a"], (7, 0), 0)
    rig.append([b"a"], (8, 0), 0)
    for number in range(1, 10):
        rig.later(1_000)
        rig.append([b"b"], (8, 0), number)
        rig.restart(kill=number % 2 == 0)
    assert rig.core.producers.find(rig.topic().item.partitions[0], 7) is not None
    for _ in range(4):
        rig.later(1_000)
    assert rig.core.producers.find(rig.topic().item.partitions[0], 7) is None
    assert len(rig.core.producers) == 1
    rig.restart(kill=True)
    rig.append([b"a"], (7, 0), 12)
    rig.later(100_000)
    rig.later(1_000)
    assert len(rig.core.producers) == 0
    rig.restart(kill=True)
    rig.close()


def test_time_that_passes_while_the_broker_is_down_counts(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data", replace(SMALL, producer_expiration_ms=10_000))
    rig.append([b"a"], (7, 0), 0)
    rig.restart(kill=True)
    rig.clock.advance(20_000)
    rig.later(1)
    assert len(rig.core.producers) == 0
    rig.close()


def test_there_are_so_many_producers_and_no_more(rig: Rig) -> None:
    rig.core.producers._most = 10
    for id in range(50):
        rig.append([b"a"], (id, 0), 0)
        assert len(rig.core.producers) <= 10
    assert rig.append([b"a"], (49, 0), 0).base == 49
    rig.restart(kill=True)
    rig.restart(kill=False)


def test_producer_ids_are_given_once(rig: Rig) -> None:
    ids = [rig.core.producers.new_id() for _ in range(3)]
    rig.restart(kill=True)
    ids.append(rig.core.producers.new_id())
    rig.restart(kill=False)
    ids.append(rig.core.producers.new_id())
    assert ids == [0, 1, 2, 3, 4]


def test_only_what_changed_is_saved(rig: Rig) -> None:
    rig.append([b"a"], (7, 0), 0)
    rig.append([b"a"], (8, 0), 0)
    rows, aborted, marks = rig.core.producers.sections
    assert [row[1] for row in rows.take_changes().rows] == [7, 8]
    rig.append([b"b"], (8, 0), 1)
    assert [row[1] for row in rows.take_changes().rows] == [8]
    assert rows.take_changes().rows == aborted.take_changes().rows == []
    assert len(marks.take_changes().rows) == 2
    assert marks.take_changes().rows == []


def test_markers_read_back() -> None:
    made = markers.encode(7, 3, Marker(True, 9), 1_000)
    header = batches.check(made)
    assert (header.is_control, header.is_transactional, header.producer_id, header.producer_epoch) == (True, True, 7, 3)
    assert (header.base_sequence, header.record_count) == (-1, 1)
    assert markers.read(made) == Marker(True, 9)
    assert markers.read(markers.encode(7, 3, Marker(False, 0), 1)) == Marker(False, 0)
    ((_, record),) = batches.decode(made)
    assert (record.key, record.value) == (b"\0\0\0\1", b"\0\0\0\0\0\x09")
    assert markers.read(batch([b"a"])) is None
    assert markers.read(b"nonsense") is None


def test_a_control_batch_of_another_kind_changes_nothing(rig: Rig) -> None:
    producers = Producers(rig.core.storage, rig.clock)
    header = batches.check(markers.encode(7, 0, Marker(True, 0), 1))
    producers.take(1, header, 0, 1, None)
    assert len(producers) == 0
