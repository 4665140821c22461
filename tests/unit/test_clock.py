"""The machine's clock goes back; the broker's never does."""

import time

import pytest

from interlog.base.clock import SystemClock


class Machine:
    """The machine's two clocks, in the test's hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_ns = 1_700_000_000_000_000_000
        self.monotonic_ns = 5_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda: self.wall_ns)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.monotonic_ns)

    def advance(self, ms: int) -> None:
        self.wall_ns += ms * 1_000_000
        self.monotonic_ns += ms * 1_000_000

    def set(self, ms: int) -> None:
        self.wall_ns += ms * 1_000_000


def test_time_goes_on_at_its_pace_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    told: list[int] = []
    clock = SystemClock(told.append)
    start_ms = clock.now_ms()
    machine.set(-60_000)
    assert clock.now_ms() == start_ms
    machine.advance(500)
    assert clock.now_ms() == start_ms + 500
    assert (clock.set_back_ms, told) == (60_000, [60_000])
    machine.set(-2_000)
    clock.now_ms()
    assert told == [60_000, 62_000]
    machine.set(62_000)
    machine.advance(100)
    assert clock.now_ms() == start_ms + 600
    assert clock.set_back_ms == 0


def test_a_clock_that_is_set_forward_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock = SystemClock()
    start_ms = clock.now_ms()
    machine.set(60_000)
    assert clock.now_ms() == start_ms + 60_000


def test_little_corrections_are_not_worth_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    told: list[int] = []
    clock = SystemClock(told.append)
    for _ in range(50):
        machine.advance(1_000)
        machine.set(-10)
        clock.now_ms()
    assert told == []
