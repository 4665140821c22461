"""AMQP clients and brokers that are killed: some seeds in every test run, N of each mode in `dev.py soak --seeds N`.

A failure tells the seed, what happened in it and what was wrong, and the command that plays it alone again.
"""

import logging
from collections.abc import Iterator

import pytest

from interlog.faces.amqp.channel import Channel
from interlog.faces.amqp.transaction import Transaction
from tests.crash.amqp_engine import Mode, run_one
from tests.crash.engine import Failure

SEEDS = {Mode.POWER: 40, Mode.KILL: 40, Mode.PROCESS: 3}
PIECE = {Mode.POWER: 10, Mode.KILL: 10, Mode.PROCESS: 1}  # seeds in one test
SOAK_FIRST = 1_000  # other seeds than those of every test run
SLOW = {Mode.PROCESS: 5}  # so many times fewer in a soak


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "amqp_seeds" in metafunc.fixturenames:
        pieces = [(mode, 0, count) for mode, count in SEEDS.items()]
    elif "amqp_soak_seeds" in metafunc.fixturenames:
        count = metafunc.config.getoption("--seeds")
        pieces = [(mode, SOAK_FIRST, max(1, count // SLOW.get(mode, 1))) for mode in Mode]
    else:
        return
    found = [
        (mode, range(start, min(start + PIECE[mode], first + count)))
        for mode, first, count in pieces
        for start in range(first, first + count, PIECE[mode])
    ]
    name = "amqp_seeds" if "amqp_seeds" in metafunc.fixturenames else "amqp_soak_seeds"
    metafunc.parametrize(name, found, ids=[f"{mode.value}-{seeds[0]}-{seeds[-1]}" for mode, seeds in found])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Brokers that are killed have much to tell, and a failure's story says it better."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def play(mode: Mode, seeds: range) -> None:
    for seed in seeds:
        run_one(seed, mode)


def test_no_confirmed_message_is_lost(amqp_seeds: tuple[Mode, range]) -> None:
    play(*amqp_seeds)


@pytest.mark.soak
def test_no_confirmed_message_is_lost_over_many_seeds(amqp_soak_seeds: tuple[Mode, range]) -> None:
    play(*amqp_soak_seeds)


@pytest.mark.parametrize("mode", [Mode.POWER, Mode.KILL])
def test_a_seed_always_tells_the_same_story(mode: Mode) -> None:
    assert run_one(3, mode) == run_one(3, mode)


# -- the test is worth something only if it sees what is wrong


def first_failure(mode: Mode, seeds: int) -> str:
    for seed in range(seeds):
        try:
            run_one(seed, mode)
        except Failure as failure:
            return str(failure)
    return "no failure"


def test_it_sees_confirms_that_come_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = Channel.settle_confirms

    def at_once(channel: Channel) -> None:
        channel._lasting = False
        settle(channel)

    monkeypatch.setattr(Channel, "settle_confirms", at_once)
    found = first_failure(Mode.POWER, 40)
    assert "was confirmed, and is lost" in found
    assert "again: python -m tests.crash.amqp_engine --mode power --first" in found


def test_it_sees_transactions_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Transaction.commit

    def in_halves(transaction: Transaction, channel: Channel) -> None:
        acknowledged, transaction._acknowledged = transaction._acknowledged, []
        commit(transaction, channel)
        channel.core.commit()
        transaction._acknowledged = acknowledged
        commit(transaction, channel)

    monkeypatch.setattr(Transaction, "commit", in_halves)
    assert "half of a transaction" in first_failure(Mode.KILL, 100)
