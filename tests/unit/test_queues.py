from collections.abc import Iterable

import pytest

from interlog.base.errors import DamageError, FormatError
from interlog.core.leases import Delta, Message
from interlog.core.memory import MemoryBudget
from interlog.core.queue_state import QueuesSection, QueueState
from interlog.journal.record import Record
from tests.queue_fakes import World, make_record, put, replay


def offsets(messages: Iterable[Message]) -> list[int]:
    return [message[0] for message in messages]


def fill(world: World, kinds: str) -> None:
    for number, kind in enumerate(kinds):
        put(world.queue, make_record(number), kind == "P")


def test_persistent_and_transient_messages_keep_one_order() -> None:
    world = World()
    fill(world, "PTPTT")
    world.tick()
    assert offsets(world.queue.lease(1, 9)) == [0, 1, 2, 3, 4]
    assert [batch[:2] for batch in world.log.batches] == [(0, 2)]


def test_a_tick_writes_one_batch_and_one_entry() -> None:
    world = World()
    fill(world, "PPP")
    world.queue.flush()
    tick = world.log.commit()
    assert tick[0] == (0, 2) and len(tick) == 2 and isinstance(tick[1], bytes)
    world.queue.lease(1, 3)
    world.queue.ack_many([0, 1, 2], 1)
    assert world.tick()
    assert len(world.log.entries) == 3
    assert world.queue.state.snapshot() == (3, (), (), 3, 3, 0, 0)


def test_a_big_tick_is_several_batches() -> None:
    world = World(share_bytes=1 << 30)
    for number in range(5):
        put(world.queue, make_record(number, 600 << 10))
    world.tick()
    assert [batch[:2] for batch in world.log.batches] == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]


def test_transient_messages_write_nothing() -> None:
    world = World()
    fill(world, "TT")
    assert not world.tick()
    world.queue.lease(1, 2)
    world.queue.ack_range(0, 1)
    assert not world.tick() and not world.log.entries


def test_a_queue_that_is_not_durable_stores_nothing() -> None:
    world = World()
    world.durable = False
    world.crash()
    fill(world, "PP")
    assert not world.tick() and world.queue.ready == 2
    world.crash()
    assert world.queue.ready == 0


def test_what_is_gone_in_its_own_tick_is_never_written() -> None:
    world = World()
    fill(world, "PPP")
    world.queue.drop_head(2)
    world.tick()
    assert [batch[:2] for batch in world.log.batches] == [(2, 2)]
    fill(world, "PP")
    world.queue.purge()
    world.tick()
    assert world.queue.state.snapshot() == (3, (), (), 0, 3, 0, 0)
    put(world.queue, make_record(9))
    world.tick()
    assert world.queue.state.ranges.floor == 5


def test_a_lease_gives_one_message_even_if_it_is_too_big() -> None:
    world = World()
    for size in (500, 10, 10, 10):
        put(world.queue, make_record(3, size))
    assert offsets(world.queue.lease(1, 9, 100)) == [0]
    assert offsets(world.queue.lease(1, 9, 25)) == [1, 2]
    world.queue.release_holder(1, count=False)
    assert offsets(world.queue.lease(1, 9, 100)) == [0]
    assert offsets(world.queue.lease(1, 2)) == [1, 2]


def test_returned_messages_come_first_in_order_and_marked() -> None:
    world = World()
    fill(world, "PTPTP")
    world.queue.lease(1, 4)
    assert world.queue.release([2, 1], 1, count=True) == 2
    assert world.queue.release([0], 1, count=False) == 1
    assert world.queue.release([0], 1, count=False) == 0
    got = world.queue.lease(2, 9)
    assert [(m[0], m[2], m[3]) for m in got] == [(0, 0, True), (1, 1, True), (2, 1, True), (4, 0, False)]


def test_only_the_holder_can_answer() -> None:
    world = World()
    fill(world, "PP")
    world.queue.lease(1, 1)
    assert not world.queue.ack(0, 2)
    assert not world.queue.ack(1)
    assert world.queue.ack_many([0, 1], 2) == 0
    assert world.queue.ack(0, 1)
    assert not world.queue.ack(0, 1)
    assert (world.queue.ready, world.queue.leased, world.queue.depth) == (1, 0, 1)


def test_delivery_counts_and_the_redelivered_mark_survive() -> None:
    world = World()
    fill(world, "PPPT")
    world.queue.lease(1, 3)
    world.queue.release([1], 1, count=True)
    world.tick()
    world.crash()
    got = world.queue.lease(1, 9)
    assert [(m[0], m[2], m[3]) for m in got] == [(0, 0, True), (1, 1, True), (2, 0, True)]


def test_how_far_it_was_lent_goes_with_a_tick_that_is_written_anyway() -> None:
    world = World()
    fill(world, "PP")
    world.tick()
    world.queue.lease(1, 1)
    assert not world.tick()  # no envelope for that alone
    world.queue.write_lent()
    world.queue.write_lent()
    assert len(world.log.commit()) == 1
    world.crash()
    assert [m[3] for m in world.queue.lease(1, 2)] == [True, False]


def test_offsets_of_lost_transient_messages_are_used_again_and_old_acks_do_not_hit_them() -> None:
    world = World()
    fill(world, "PTT")
    world.tick()
    world.queue.lease(1, 3)
    world.queue.ack_range(0, 2)
    world.tick()
    world.crash()
    assert world.queue.next_offset == 1
    fill(world, "P")
    world.tick()
    world.crash()
    assert [(m[0], m[3]) for m in world.queue.lease(1, 2)] == [(1, False)]


def test_leases_end_by_given_time() -> None:
    world = World()
    fill(world, "PTP")
    world.queue.lease(1, 3, until_ms=100)
    assert world.queue.extend(1, 200)
    assert not world.queue.extend(1, 200, 5)
    assert not world.queue.extend(7, 200)
    assert world.queue.next_lease_end_ms() == 100
    assert world.queue.expire_leases(100) == [0, 2]
    assert world.queue.next_lease_end_ms() == 200
    assert [m[2] for m in world.queue.lease(1, 9)] == [1, 1]


def test_heads_expire_and_are_dropped_only_from_the_head() -> None:
    world = World(share_bytes=1)
    fill(world, "PTPTPT")
    world.tick()
    assert offsets(world.queue.expire_head(lambda _, record: record.timestamp_ms < 2)) == [0, 1]
    head = world.queue.peek_head()
    assert head is not None and head[0] == 2
    assert offsets(world.queue.drop_head(2)) == [2, 3]
    assert world.queue.ready == 2
    world.tick()
    world.crash()
    assert offsets(world.queue.lease(1, 9)) == [4]


def test_purge_leaves_what_is_leased_and_reads_nothing() -> None:
    world = World(share_bytes=1000)
    fill(world, "PT" * 20)
    world.tick()
    world.queue.lease(1, 2)
    reads = world.log.reads
    assert world.queue.purge() == 38
    assert (world.queue.ready, world.queue.leased, world.log.reads) == (0, 2, reads)
    world.tick()
    assert not world.files.content
    assert (world.queue.state.depth, list(world.queue.state.ranges)) == (1, [(1, 38)])
    world.queue.ack(0)
    world.tick()
    assert not world.queue.wanted(0, 38)
    fill(world, "P")
    assert offsets(world.queue.lease(1, 9)) == [40]


def test_a_message_is_taken_from_wherever_it_is() -> None:
    world = World(share_bytes=1000)
    fill(world, "PT" * 10)
    world.tick()
    fill(world, "PT")
    world.queue.lease(1, 2)
    world.queue.release([0], 1, count=False)
    for offset in (0, 3, 8, 15, 20, 21):
        got = world.queue.take(offset)
        assert got is not None and got[0] == offset
        assert world.queue.take(offset) is None
    assert world.queue.take(1) is None  # leased
    world.tick()
    left = [2, *(offset for offset in range(4, 20) if offset not in (8, 15))]
    assert offsets(world.queue.lease(2, 50)) == left


def test_a_deep_queue_costs_memory_for_its_share_only() -> None:
    world = World(share_bytes=5_000, block_bytes=4_000, file_bytes=40_000)
    for _ in range(40):
        fill(world, "PT" * 25)
        world.tick()
        assert world.queue.memory_bytes() < 12_000
    assert world.queue.ready == 2000
    assert world.budget.used == world.queue.memory_bytes()
    got: list[int] = []
    while messages := world.queue.lease(1, 7):
        got += offsets(messages)
        assert world.queue.memory_bytes() < 30_000
        assert world.queue.ack_many(offsets(messages), 1) == len(messages)
        world.tick()
    assert got == list(range(2000))
    assert not world.files.content and world.queue.state.snapshot()[:2] == (1999, ())


def test_the_budget_pages_out_the_head() -> None:
    world = World(share_bytes=1 << 20)
    budget = world.budget = MemoryBudget(10_000)
    world.crash()
    world.budget = budget
    fill(world, "PT" * 15)
    world.tick()
    assert world.queue.memory_bytes() > 0
    freed = world.queue.page_out(5_000)
    assert freed >= 3_000
    fill(world, "PT")
    assert offsets(world.queue.lease(1, 99)) == list(range(32))


def test_a_full_disk_keeps_the_head_in_memory() -> None:
    world = World()
    fill(world, "TTTTT")
    world.files.full = True
    assert world.queue.page_out(1 << 20) == 0
    assert offsets(world.queue.lease(1, 9)) == [0, 1, 2, 3, 4]


def test_stored_messages_that_cannot_be_read_are_an_error_not_silence() -> None:
    world = World(share_bytes=1)
    fill(world, "PPP")
    world.tick()
    assert offsets(world.queue.lease(1, 1)) == [0]
    lost = world.log.batches.pop()
    with pytest.raises(DamageError, match="2 messages"):
        world.queue.lease(1, 1)
    world.log.batches.append(lost)
    assert offsets(world.queue.lease(1, 5)) == [1, 2]


def test_the_state_is_the_same_from_rows_and_from_the_whole_journal() -> None:
    world = World()
    fill(world, "PTPPTP")
    world.tick()
    world.queue.lease(1, 4)
    world.queue.ack_many([2], 1)
    world.queue.release([3], 1, count=True)
    world.tick()
    world.checkpoint()
    assert not world.section.take_changes().rows  # nothing new
    world.queue.ack(0)
    world.tick()
    expected = world.queue.state.snapshot()
    world.crash()
    assert world.queue.state.snapshot() == expected == replay(QueueState(7), world.log.entries).snapshot()


def test_a_removed_queue_leaves_the_checkpoint_even_if_it_was_never_opened() -> None:
    section = QueuesSection()
    section.load([QueueState(3).row(), QueueState(4).row()])
    section.state(3)
    section.remove(3)
    section.remove(4)
    section.remove(5)
    changes = section.take_changes()
    assert changes.removals == [(3,), (4,)] and not changes.rows


def test_rows_and_entries_that_make_no_sense_are_refused() -> None:
    row = QueueState(3).row()
    for at in range(1, len(row)):
        with pytest.raises(FormatError):
            QueueState(3).load((*row[:at], "x", *row[at + 1 :]))
    delta = Delta()
    delta.ranges, delta.acked_count = [(0, 0)], 1
    state = QueueState(3)
    state.apply_batch(0, 0)
    with pytest.raises(FormatError, match="takes more"):
        state.apply_lease(delta.encode())
    with pytest.raises(FormatError):
        QueuesSection().load([("x",)])


def test_closing_gives_its_memory_back() -> None:
    world = World(share_bytes=1)
    fill(world, "TTTT" * 10)
    world.queue.flush()
    assert world.budget.used and world.files.content
    world.queue.close()
    assert not world.budget.used and not world.files.content


def test_a_record_is_shared_not_copied() -> None:
    world = World()
    record = Record(b"k", b"v", (), 5)
    put(world.queue, record)
    assert world.queue.lease(1, 1)[0][1] is record
