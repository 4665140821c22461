"""Kafka clients and brokers that are killed: some seeds in every test run, N of each mode in `dev.py soak --seeds N`.

A failure tells the seed, what happened in it and what was wrong, and the command that plays it alone again.
"""

import re
from collections.abc import Callable

import pytest

from interlog.core.producers import Before, Producers
from interlog.core.share_partitions import SharePartitions
from interlog.core.topics import Topics
from interlog.faces.kafka.connection import KafkaConnection
from interlog.journal.batch import BatchHeader
from tests.crash.kafka_engine import Mode, run_one
from tests.crash.seeds import first_failure, parametrize

SEEDS = {Mode.POWER: 15, Mode.KILL: 15, Mode.ERRORS: 8, Mode.FULL: 8, Mode.PROCESS: 2}
PIECE = {Mode.POWER: 5, Mode.KILL: 5, Mode.ERRORS: 4, Mode.FULL: 4, Mode.PROCESS: 1}  # seeds in one test
SLOW = {Mode.PROCESS: 5}  # so many times fewer in a soak


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "kafka_seeds", SEEDS, PIECE, SLOW)


def play(mode: Mode, seeds: range) -> None:
    for seed in seeds:
        run_one(seed, mode)


def test_nothing_acknowledged_is_lost(kafka_seeds: tuple[Mode, range]) -> None:
    play(*kafka_seeds)


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_over_many_seeds(soak_kafka_seeds: tuple[Mode, range]) -> None:
    play(*soak_kafka_seeds)


@pytest.mark.parametrize("mode", [Mode.POWER, Mode.KILL, Mode.ERRORS, Mode.FULL])
def test_a_seed_always_tells_the_same_story(mode: Mode) -> None:
    assert run_one(3, mode) == run_one(3, mode)


# -- the test is worth something only if it sees what is wrong


def test_it_sees_answers_that_come_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(connection: KafkaConnection, then: Callable[[bool], None], *, written: bool = False) -> None:
        then(True)

    monkeypatch.setattr(KafkaConnection, "park", at_once)
    found = first_failure(run_one, [Mode.POWER], 40)
    assert re.search("acknowledged, and is lost|committed, and does not count|cursor of .* is lost|it may be", found)
    assert "again: python -m tests.crash.kafka_engine --mode power --first" in found


def test_it_sees_batches_that_are_stored_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def unseen(producers: Producers, partition: int, header: BatchHeader) -> Before | None:
        return None

    monkeypatch.setattr(Producers, "check", unseen)
    assert re.search("something is twice|when it came again", first_failure(run_one, [Mode.KILL], 100))


def test_it_sees_what_a_share_group_gets_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharePartitions, "tell", lambda shares, namespace, group, partition: False)
    assert "delivered again" in first_failure(run_one, [Mode.KILL], 40)


def test_it_sees_transactions_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    append_marker = Topics.append_marker

    def one_by_one(topics: Topics, partition: int, batch: bytes) -> None:
        append_marker(topics, partition, batch)
        topics.storage.commit()  # type: ignore[attr-defined]

    monkeypatch.setattr(Topics, "append_marker", one_by_one)
    found = first_failure(run_one, [Mode.KILL], 400)
    assert "half of a transaction" in found or "the cursor of" in found  # its records count, its cursors do not


def test_it_sees_what_is_not_stable_told_as_if_it_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Producers, "last_stable", lambda producers, partition: producers._storage.partition(partition).log_end
    )
    assert "and said to be up to" in first_failure(run_one, [Mode.KILL], 40)
