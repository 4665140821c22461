"""Durability of a topic, where it is not the broker's: what its records' acknowledgement waits for."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.core.topics import Topic
from interlog.journal import batch as batches
from interlog.journal.journal import Outcome
from interlog.journal.record import Record
from tests.data_folders import SMALL

RECORD = Record(b"k", b"v", (), 1_700_000_000_000)


def open_core(folder: Path, durability: Literal["sync", "os"]) -> tuple[Core, ManualWorker]:
    worker = ManualWorker()
    settings = replace(SMALL, durability=durability)
    core = Core.open(
        folder, worker=worker, clock=ManualClock(1_700_000_000_000), settings=settings, rng=random.Random(1)
    )
    for name in ("default", "sync", "os"):
        core.create_topic("/", name, 1, {"durability": name})
    core.declare_queue("/", "q")
    core.ticket.when_durable(lambda _: None)
    core.commit()
    worker.run()
    return core, worker


def by_record(topic: Topic) -> None:
    topic.append(0, [RECORD])


def by_batch(topic: Topic) -> None:
    topic.append_batch(0, batches.encode([RECORD], base_offset=0, leader_epoch=-1))


@pytest.mark.parametrize("append", [by_record, by_batch])
@pytest.mark.parametrize(
    ("broker", "topics", "waits"),
    [
        ("sync", ["os"], False),
        ("sync", ["default"], True),
        ("sync", ["sync"], True),
        ("sync", ["os", "default"], True),
        ("sync", ["os", "sync"], True),
        ("os", ["os"], False),
        ("os", ["default"], False),
        ("os", ["sync"], True),
        ("os", ["default", "sync", "os"], True),
    ],
)
def test_an_acknowledgement_waits_for_what_the_topic_says(
    tmp_path: Path, append: Callable[[Topic], None], broker: Literal["sync", "os"], topics: list[str], waits: bool
) -> None:
    core, worker = open_core(tmp_path, broker)
    for name in topics:
        append(core.topics.get("/", name))
    told: list[Outcome] = []
    core.ticket.when_durable(told.append)
    core.commit()
    assert told == ([] if waits else [Outcome.DURABLE])
    worker.run()
    assert told == [Outcome.DURABLE]
    core.close()


def test_a_tick_is_as_strict_as_the_strictest_in_it(tmp_path: Path) -> None:
    core, worker = open_core(tmp_path, "sync")
    by_record(core.topics.get("/", "os"))
    core.declare_queue("/", "q").append(RECORD, 1, True)
    told: list[Outcome] = []
    core.ticket.when_durable(told.append)
    core.commit()
    assert told == []
    worker.run()
    assert told == [Outcome.DURABLE]
    core.close()
