"""Meters of quotas: what they measure, and how long they have somebody wait."""

import pytest

from interlog.faces.kafka.quota_rates import Bucket, Rate


def test_a_burst_within_ten_seconds_worth_costs_nothing() -> None:
    rate = Rate()
    assert rate.add(1_000, 100, 0.0) == 0
    assert rate.add(1, 100, 0.0) > 0


def test_what_is_too_much_is_waited_for() -> None:
    rate = Rate()
    # 2,000 in ten seconds where 1,000 may come: twice as much as may be, so as long again.
    assert rate.add(2_000, 100, 0.0) == pytest.approx(10_000)


def test_who_waited_as_told_is_let_in_again() -> None:
    rate = Rate()
    wait_ms = rate.add(2_000, 100, 0.0)
    assert rate.add(0, 100, wait_ms / 1000 + 1.1) == 0


def test_windows_that_are_over_count_no_more() -> None:
    rate = Rate()
    for second in range(5):
        rate.add(200, 100, float(second))
    assert rate.add(0, 100, 4.5) == 0  # 1,000 in 10.5 s
    assert rate.add(500, 100, 5.0) > 0
    assert not rate.is_idle(100, 15.9)
    assert rate.is_idle(100, 16.1)
    assert rate.add(900, 100, 16.1) == 0


def test_a_steady_stream_just_below_the_limit_passes() -> None:
    rate = Rate()
    assert all(rate.add(9.8, 100, tick / 10) == 0 for tick in range(600))


def test_a_stream_of_twice_the_limit_is_slowed_to_it() -> None:
    rate, now_s, sent = Rate(), 0.0, 0
    while now_s < 120:
        sent += 200
        now_s += 1 + rate.add(200, 100, now_s) / 1000
    assert 90 < sent / now_s < 110


def test_a_bucket_holds_eleven_seconds_worth_and_lends_once() -> None:
    bucket = Bucket()
    assert bucket.is_idle(2, 0.0)
    assert bucket.add(22, 2, 0.0) == 0
    assert bucket.wait_ms(2, 0.0) == 0  # empty, and nothing owed
    assert bucket.add(10, 2, 0.0) == pytest.approx(5_000)
    assert bucket.wait_ms(2, 4.0) == pytest.approx(1_000)
    assert bucket.wait_ms(2, 5.0) == 0
    assert not bucket.is_idle(2, 15.0)
    assert bucket.is_idle(2, 16.0)
