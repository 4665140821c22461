"""A queue holding millions of messages: what it keeps in memory, and how long it takes to fill and to drain.

    python bench/_depth.py FOLDER MESSAGES

does it in a process of its own and prints what it found as one line of JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from _rig import MIB, Broker, Report, resident_bytes, trim

from interlog.journal.record import Record

BURST = 500


def fill_and_drain(folder: Path, count: int) -> None:
    found: dict[str, float] = {}
    broker = Broker(folder / "empty")
    for _ in range(20):
        broker.poll()
    trim()
    found["empty"] = resident_bytes()
    broker.close()
    del broker

    broker = Broker(folder / "deep")
    queue = broker.core.declare_queue("/", "q")
    peak = 0
    start, cpu = time.perf_counter(), time.process_time()
    for number in range(0, count, BURST):
        # Each message is an object of its own with bytes of its own, as those that come from a socket are.
        for each in range(number, min(number + BURST, count)):
            record = Record(None, each.to_bytes(100, "big"), (), 1_700_000_000_000 + each)
            queue.append(record, 100, True)
        broker.tick()
        if not number % (100 * BURST):
            peak = max(peak, resident_bytes())
    broker.tick(ahead=0)
    found["fill"], found["fill_cpu"] = time.perf_counter() - start, time.process_time() - cpu
    broker.settle()
    found["as_it_is"] = resident_bytes()
    trim()
    found["full"] = resident_bytes()
    if queue.depth != count:
        raise RuntimeError(f"the queue holds {queue.depth} messages, not {count}")

    start, cpu = time.perf_counter(), time.process_time()
    done = 0
    while done < count:
        for offset, record, *_ in queue.lease(1, BURST):
            if record.value != offset.to_bytes(100, "big"):
                raise RuntimeError(f"the message at offset {offset} is another")
            done += queue.ack(offset, 1)
        broker.tick()
        if not done % (100 * BURST):
            peak = max(peak, resident_bytes())
    broker.tick(ahead=0)
    found["drain"], found["drain_cpu"] = time.perf_counter() - start, time.process_time() - cpu
    found["peak"] = max(peak, resident_bytes())
    broker.close()
    print(json.dumps(found), flush=True)


def depth(folder: Callable[[], Path], report: Report, quick: bool, messages: int | None) -> None:
    count = messages or (200_000 if quick else 10_000_000)
    report.title(f"A queue of {count:,} messages of 100 B")
    words = [sys.executable, __file__, str(folder()), str(count)]
    found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    empty = found["empty"]
    report.row("an empty broker holds", empty / MIB, "MiB")
    report.row("above that, full", (found["full"] - empty) / MIB, "MiB", most=64.0)
    report.row("above that, full, before free memory is given back", (found["as_it_is"] - empty) / MIB, "MiB")
    report.row("above that, the most while filling and draining", (found["peak"] - empty) / MIB, "MiB")
    for name in ("fill", "drain"):
        note = f"{count / found[name]:,.0f} messages/s, {found[name + '_cpu'] / count * 1e6:.2f} us CPU each"
        report.row(f"to {name}", found[name], "s", note)


if __name__ == "__main__":
    fill_and_drain(Path(sys.argv[1]), int(sys.argv[2]))
