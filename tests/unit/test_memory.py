from interlog.core.memory import MemoryBudget, record_size
from interlog.journal.record import Record


class Member:
    def __init__(self, budget: MemoryBudget, held: int, stuck: int = 0) -> None:
        self.budget, self.held, self.stuck = budget, held, stuck
        self.read_lately = False
        self.asked = 0
        budget.join(self)
        budget.used += held + stuck

    def pageable_bytes(self) -> int:
        return self.held

    def page_out(self, free_bytes: int) -> int:
        self.asked += 1
        freed = min(self.held, free_bytes)
        self.held -= freed
        self.budget.used -= freed
        return freed


def test_a_message_is_as_big_as_its_value_and_large_headers() -> None:
    assert record_size(Record(None, None, (), 1)) == 0
    assert record_size(Record(b"k", b"abc", ((b"n", None), (b"nn", b"v")), 1)) == 3
    assert record_size(Record(b"k", b"abc", ((b"n", None), (b"nn", bytes(2000))), 1)) == 2007


def test_nothing_happens_below_the_paging_share() -> None:
    budget = MemoryBudget(1000)
    member = Member(budget, 800)
    assert budget.balance() == 0 and not member.asked


def test_the_largest_goes_first_and_a_queue_that_is_read_goes_last() -> None:
    budget = MemoryBudget(1000)
    small, large, read = Member(budget, 100), Member(budget, 300), Member(budget, 500)
    read.read_lately = True
    assert budget.balance() == 200
    assert (small.held, large.held, read.held) == (100, 100, 500)
    assert not read.read_lately
    budget.used += 150
    assert budget.balance() == 150 and read.held == 350  # nobody reads it any more


def test_the_alarm_is_on_while_what_cannot_be_paged_out_is_too_much() -> None:
    budget = MemoryBudget(1000)
    member = Member(budget, 10, stuck=1100)
    budget.balance()
    assert budget.over and member.asked == 1
    member.held = 5
    budget.used += 5
    budget.balance()
    assert member.asked == 1  # not again for so little
    budget.used += 200
    budget.balance()
    assert member.asked == 2
    budget.used -= 1000
    assert not budget.over


def test_who_left_is_not_asked() -> None:
    budget = MemoryBudget(1000)
    member = Member(budget, 900)
    budget.leave(member)
    assert budget.balance() == 0 and not member.asked
