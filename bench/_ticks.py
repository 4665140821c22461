"""What a tick and a poll cost: with nothing to do, with one message, with thousands of queues and topics."""

import time
from collections.abc import Callable
from pathlib import Path

from _append import ready_batch
from _rig import Broker, Report

from interlog.core.memory import record_size
from interlog.journal.record import Record

NOW_MS = 1_700_000_000_000


def cost(work: Callable[[], object], times: int, rounds: int) -> float:
    """CPU microseconds of one call, of the best round."""
    best = 1e9
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best * 1e6


def ticks(folder: Callable[[], Path], report: Report, quick: bool) -> None:
    rounds = 3 if quick else 7
    report.title("One tick")
    broker = Broker(folder(), durability="os", polls=False)
    core = broker.core
    queue = core.declare_queue("/", "q")
    topic = core.create_topic("/", "t")
    core.commit()
    report.row("commit, nothing to do", cost(core.commit, 2000, rounds), "us", most=10.0)
    record = Record(None, bytes(100), (), NOW_MS)
    size = record_size(record)

    def one() -> None:
        queue.append(record, size, True)
        core.commit()

    def consumed() -> None:
        queue.append(record, size, True)
        core.commit()
        for message in queue.lease(1, 1):
            queue.ack(message[0], 1)
        core.commit()

    def to_topic() -> None:
        topic.append(0, [record])
        core.commit()

    report.row("append of one message, commit", cost(one, 2000, rounds), "us", most=100.0)
    queue.purge()
    core.commit()
    report.row("append, commit, lease, ack, commit", cost(consumed, 2000, rounds), "us")
    report.row("topic.append of one record, commit", cost(to_topic, 2000, rounds), "us")
    broker.close()
    polls(folder, report, quick)


def polls(folder: Callable[[], Path], report: Report, quick: bool) -> None:
    """A poll comes every 100 ms: 1 ms of it is 1 % of a core."""
    queues, topics, partitions = (500, 100, 3) if quick else (5_000, 1_000, 3)
    report.title(f"With {queues:,} queues and {topics:,} topics of {partitions} partitions")
    broker = Broker(folder(), durability="os", polls=False, housekeeping_ms=1 << 40, checkpoint_ms=1 << 40)
    core = broker.core
    made = [core.declare_queue("/", f"queue-{number}") for number in range(queues)]
    for number in range(topics):
        core.create_topic("/", f"topic-{number}", partitions)
    record = Record(None, bytes(100), (), int(time.time() * 1000))
    size = record_size(record)
    core.commit()
    for queue in made:
        for _ in range(3):
            queue.append(record, size, True)
    for topic in core.topics.all():
        for index in range(partitions):
            topic.append(index, [record] * 3)
    core.commit()
    broker.worker.run()

    def poll() -> None:
        core.poll()
        broker.worker.run()

    report.row("poll, nothing happens", cost(poll, 20, 5), "us", most=1000.0)
    for queue in made:
        queue.lease(1, 1)
    core.commit()
    report.row("poll, every queue has a message out", cost(poll, 20, 5), "us", most=1000.0)
    report.row("status", cost(core.status, 5, 5), "us", most=20_000.0)
    report.row("commit, nothing to do", cost(core.commit, 2000, 3), "us", most=10.0)
    topic, batch = core.topic("/", "topic-0"), ready_batch(100)
    for _ in range(200 if quick else 2000):
        for _ in range(50):
            topic.append_batch(0, batch)
        core.commit()
    report.row("poll, one topic has 100,000 batches in the journal", cost(poll, 20, 5), "us", most=1000.0)
    broker.close()
    worst(folder, report, quick, queues)


def worst(folder: Callable[[], Path], report: Report, quick: bool, queues: int) -> None:
    """The longest that the owner's thread stands still for housekeeping while all queues are in use."""
    broker = Broker(folder(), durability="os", polls=False, housekeeping_ms=1, checkpoint_ms=1)
    core = broker.core
    made = [core.declare_queue("/", f"queue-{number}") for number in range(queues)]
    record = Record(None, bytes(100), (), NOW_MS)
    size = record_size(record)
    spent = []
    for _ in range(10):
        for queue in made:
            queue.append(record, size, True)
        core.commit()
        broker.settle()
        time.sleep(0.002)
        for _ in range(3):
            start = time.process_time()
            core.poll()
            spent.append(time.process_time() - start)
            broker.settle()
    # Of three polls one takes the changes of all queues; and now and then Python's collector looks at every object.
    taking = sorted(spent)[-10:]
    report.row("poll that begins a checkpoint of all queues, median", taking[5] * 1e3, "ms")
    report.row("the same, worst: the garbage collector included", taking[-1] * 1e3, "ms")
    broker.close()
