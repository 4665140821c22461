"""AMQP clients and brokers that are killed: some seeds in every test run, N of each mode in `dev.py soak --seeds N`.

A failure tells the seed, what happened in it and what was wrong, and the command that plays it alone again.
"""

import pytest

from interlog.faces.amqp.channel import Channel
from interlog.faces.amqp.transaction import Transaction
from tests.crash.amqp_engine import Mode, run_one
from tests.crash.seeds import first_failure, parametrize

SEEDS = {Mode.POWER: 40, Mode.KILL: 40, Mode.PROCESS: 3}
PIECE = {Mode.POWER: 10, Mode.KILL: 10, Mode.PROCESS: 1}  # seeds in one test
SLOW = {Mode.PROCESS: 5}  # so many times fewer in a soak


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "amqp_seeds", SEEDS, PIECE, SLOW)


def play(mode: Mode, seeds: range) -> None:
    for seed in seeds:
        run_one(seed, mode)


def test_no_confirmed_message_is_lost(amqp_seeds: tuple[Mode, range]) -> None:
    play(*amqp_seeds)


@pytest.mark.soak
def test_no_confirmed_message_is_lost_over_many_seeds(soak_amqp_seeds: tuple[Mode, range]) -> None:
    play(*soak_amqp_seeds)


@pytest.mark.parametrize("mode", [Mode.POWER, Mode.KILL])
def test_a_seed_always_tells_the_same_story(mode: Mode) -> None:
    assert run_one(3, mode) == run_one(3, mode)


# -- the test is worth something only if it sees what is wrong


def test_it_sees_confirms_that_come_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = Channel.settle_confirms

    def at_once(channel: Channel) -> None:
        channel._lasting = False
        settle(channel)

    monkeypatch.setattr(Channel, "settle_confirms", at_once)
    found = first_failure(run_one, [Mode.POWER], 40)
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
    assert "half of a transaction" in first_failure(run_one, [Mode.KILL], 400)
