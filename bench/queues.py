"""What a queue costs a message: append, lease and ack, in microseconds of this process's CPU, best of several rounds.

python3 dev.py bench queues
"""

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from interlog.core.leases import Delta
from interlog.core.memory import MemoryBudget, record_size
from interlog.core.queue_state import QueueState
from interlog.core.queues import Queue
from interlog.core.spill import SpillFolder
from interlog.journal.files import DiskFiles
from interlog.journal.record import Record

MESSAGES = 20_000
BURST = 100
RECORD = Record(b"key", bytes(100), (), 1_700_000_000_000)
SIZE = record_size(RECORD)


class NoLog:
    """Takes everything and keeps nothing; gives back a run of the same record."""

    def __init__(self) -> None:
        self.log_end = 0

    def add_batch(self, records: Sequence[Record], base: int, last: int, offsets: Sequence[int] | None) -> None:
        self.log_end = last + 1

    def add_lease(self, payload: bytes) -> None:
        pass

    def read(self, offset: int, max_bytes: int) -> Iterable[tuple[int, Record]]:
        return [(at, RECORD) for at in range(offset, min(offset + max_bytes // SIZE, self.log_end))]


def make_queue(folder: Path, state: QueueState | None = None, log: NoLog | None = None) -> Queue:
    spill = SpillFolder(DiskFiles(), folder)
    return Queue(state or QueueState(1), log or NoLog(), spill, MemoryBudget(1 << 30))


def main() -> None:
    clock = time.process_time
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for persistent in (False, True):
            kind = "persistent" if persistent else "transient"
            steps = ("append", "flush", "lease", "ack", "ack one by one", "flush acks")
            spent: dict[str, list[float]] = {step: [] for step in steps}
            for round_ in range(7):
                queue = make_queue(folder)
                append = queue.append
                times = dict.fromkeys(spent, 0.0)
                start = clock()
                for _ in range(MESSAGES):
                    append(RECORD, SIZE, persistent)
                times["append"] = clock() - start
                start = clock()
                queue.flush()
                times["flush"] = clock() - start
                for _ in range(MESSAGES // BURST):
                    start = clock()
                    out = queue.lease(1, BURST)
                    times["lease"] += clock() - start
                    offsets = [message[0] for message in out]
                    start = clock()
                    if round_ % 2:
                        queue.ack_many(offsets, 1)
                        times["ack"] += clock() - start
                    else:
                        ack = queue.ack
                        for offset in offsets:
                            ack(offset, 1)
                        times["ack one by one"] += clock() - start
                    start = clock()
                    queue.flush()
                    times["flush acks"] += clock() - start
                for key, value in times.items():
                    if value:
                        spent[key].append(value)
            for key, values in spent.items():
                print(f"{kind:10} {key:16} {min(values) / MESSAGES * 1e6:6.3f} us a message")

        state = QueueState(2)
        state.apply_batch(0, 10_000_000 - 1)
        delta = Delta()
        delta.added_count, delta.added_bytes = 10_000_000, 10_000_000 * SIZE
        state.apply(delta)
        log = NoLog()
        log.log_end = 10_000_000
        tracemalloc.start()
        queue = make_queue(folder, state, log)
        print(f"10,000,000 deep: {tracemalloc.get_traced_memory()[0]:,} bytes when opened")
        queue.lease(1, 1)
        print(f"10,000,000 deep: {tracemalloc.get_traced_memory()[0]:,} bytes with its head read")
        tracemalloc.stop()
        queue = make_queue(folder, state, log)
        start = clock()
        for _ in range(1000):
            queue.drop_head(100)
            queue.flush()
        print(f"page-in, lease and drop {(clock() - start) / 100_000 * 1e6:.3f} us a message (reading the log aside)")

        queue = make_queue(folder)
        start = clock()
        for _ in range(300_000):
            queue.append(RECORD, SIZE, False)
        spilled = clock() - start
        print(f"spilling {spilled / 300_000 * 1e6:.3f} us a message, {queue.memory_bytes():,} bytes held for 300,000")
        start = clock()
        while queue.ready:
            queue.drop_head(100)
        print(f"reading spilled back {(clock() - start) / 300_000 * 1e6:.3f} us a message")


if __name__ == "__main__":
    main()
