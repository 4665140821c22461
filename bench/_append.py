"""Appending, acknowledging, and the time of one durable append; beside what the disk itself can do."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from _rig import KIB, MIB, Broker, Disk, Report, percentile

from interlog.core.broker import Core, CoreSettings
from interlog.core.memory import record_size
from interlog.journal import batch as batches
from interlog.journal.record import Record
from interlog.net.worker import ThreadWorker

Folder = Callable[[], Path]
NOW_MS = 1_700_000_000_000
BURST_BYTES = 64 * KIB  # what a driver reads at once: so much is in one tick,
BURST_REQUESTS = 256  # and not more than so many
AHEAD = 5  # ticks that are waited for at a time: clients have several requests in flight


def ready_batch(size: int) -> bytes:
    """A batch of one record, of this many bytes, or the smallest there is."""
    value = os.urandom(max(size - batches.HEADER_BYTES - 12, 0))
    return batches.encode([Record(None, value, (), NOW_MS)], base_offset=0)


def batch_of_records(size: int, record_bytes: int) -> tuple[bytes, int]:
    """A batch of about this many bytes of records, as a producer's client makes it; and how many there are."""
    count = max(size // (record_bytes + 8), 1)
    records = [Record(None, os.urandom(record_bytes), (), NOW_MS) for _ in range(count)]
    return batches.encode(records, base_offset=0), count


def throughput(
    folder: Path, durability: str, per_tick: int, put: str, payload: bytes, seconds: float
) -> tuple[float, float]:
    """Appends per second, and CPU microseconds each (all threads)."""
    broker = Broker(folder, durability=durability)
    core = broker.core
    topic = core.create_topic("/", "t")
    queue = core.declare_queue("/", "q")
    records = [Record(None, bytes(payload), (), NOW_MS) for _ in range(per_tick)]
    size = record_size(records[0])
    broker.tick(ahead=0)
    done = 0
    cpu, start = time.process_time(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        if put == "batch":
            for _ in range(per_tick):
                topic.append_batch(0, payload)
        elif put == "topic":
            topic.append(0, records)
        else:
            for record in records:
                queue.append(record, size, True)
        broker.tick()
        done += per_tick
    broker.tick(ahead=0)
    took, spent = time.perf_counter() - start, time.process_time() - cpu
    broker.close()
    shutil.rmtree(folder)  # gigabytes, on a disk that others may need as well
    return done / took, spent / done * 1e6


def appends(folder: Folder, report: Report, quick: bool) -> None:
    seconds, rounds = (0.5, 1) if quick else (2.0, 3)
    for size in (100, KIB, MIB):
        name = {100: "100 B", KIB: "1 KiB", MIB: "1 MiB"}[size]
        if size < MIB:
            batch, records = ready_batch(size), 1
        else:
            batch, records = batch_of_records(size, KIB)
        per_tick = max(min(BURST_BYTES // len(batch), BURST_REQUESTS), 1)
        report.title(f"Batches of {name}: {len(batch):,} bytes, {records:,} records, {per_tick} in a tick")
        for durability in ("sync", "os"):
            raw = grouped = best = cpu = 0.0
            throughput(folder(), durability, per_tick, "batch", batch, seconds / 4)  # the first to touch memory pays
            for _ in range(rounds):
                # In turns, so that what else goes on on the machine is shared.
                disk = Disk(folder(), 2048 * MIB if size == MIB else 256 * MIB)
                raw = max(raw, disk.write(len(batch), seconds / 2, sync=durability == "sync")[0])
                if durability == "sync":
                    writes = disk.overlapped(len(batch) * per_tick, seconds / 2, AHEAD)
                    grouped = max(grouped, writes * per_tick)
                disk.close()
                rate, spent = throughput(folder(), durability, per_tick, "batch", batch, seconds)
                if rate > best:
                    best, cpu = rate, spent
            sync = "write + fdatasync" if durability == "sync" else "write"
            report.row(f"disk: {sync}", raw, "/s", f"{raw * len(batch) / 1e6:,.1f} MB/s")
            if grouped:
                note = f"{grouped * len(batch) / 1e6:,.1f} MB/s, {per_tick} to a write, {AHEAD} writes ahead"
                report.row("disk: writes and fdatasyncs overlapped", grouped, "/s", note)
            note = f"{best * len(batch) / 1e6:,.1f} MB/s, {cpu:,.1f} us CPU a batch"
            report.row(f"topic.append_batch, {durability}", best * records, "records/s", note)
            target = 50.0 if size == MIB else None
            report.row(f"of the disk's own speed, {durability}", best / raw * 100, "%", "one by one")
            if grouped:
                share = best / grouped * 100
                report.row(
                    "of the disk's own speed, overlapped as well", share, "%", "judged by the faster", least=target
                )
    report.title("Records of 100 B, 256 in a tick")
    for put, name in (("topic", "topic.append"), ("queue", "queue.append")):
        for durability in ("sync", "os"):
            best = cpu = 0.0
            for _ in range(rounds):
                rate, spent = throughput(folder(), durability, BURST_REQUESTS, put, bytes(100), seconds)
                if rate > best:
                    best, cpu = rate, spent
            note = f"{best * 100 / 1e6:,.1f} MB/s, {cpu:,.2f} us CPU a record"
            report.row(f"{name}, {durability}", best, "records/s", note)


def acknowledgements(folder: Folder, report: Report, quick: bool) -> None:
    report.title("A queue with messages of 100 B")
    count, rounds = (20_000, 1) if quick else (200_000, 3)
    record = Record(None, bytes(100), (), NOW_MS)
    size = record_size(record)
    for burst in (1, 100):
        best: tuple[float, float] = (0.0, 0.0)
        fill = append_lease_ack = 1e9
        total = count if burst > 1 else count // 20
        for _ in range(rounds):
            broker = Broker(folder())
            queue = broker.core.declare_queue("/", "q")
            cpu = time.process_time()
            for _ in range(0, total, 100):
                for _ in range(100):
                    queue.append(record, size, True)
                broker.tick()
            broker.tick(ahead=0)
            fill = min(fill, (time.process_time() - cpu) / total * 1e6)
            cpu, start = time.process_time(), time.perf_counter()
            done = 0
            while done < total:
                for message in queue.lease(1, burst):
                    done += queue.ack(message[0], 1)
                broker.tick()
            broker.tick(ahead=0)
            took, spent = time.perf_counter() - start, time.process_time() - cpu
            best = max(best, (done / took, spent / done * 1e6))
            append_lease_ack = min(append_lease_ack, fill + spent / done * 1e6)
            broker.close()
        report.row(
            f"lease + ack, durable, {burst} in a tick, {AHEAD} ticks ahead",
            best[0],
            "acks/s",
            f"{best[1]:,.2f} us CPU each",
        )
        if burst > 1:
            note = f"append {fill:.2f}, ticks and syncs of 100 messages included"
            report.row("append + lease + ack, CPU of a message", append_lease_ack, "us", note, most=8.0)
    record_path(folder, report, quick)


def record_path(folder: Folder, report: Report, quick: bool) -> None:
    """Publish, then deliver and acknowledge in the tick after: what an AMQP queue with a consumer does."""
    total, rounds = (20_000, 1) if quick else (100_000, 5)
    record = Record(None, bytes(100), (), NOW_MS)
    size = record_size(record)
    best = 1e9
    for _ in range(rounds):
        broker = Broker(folder(), durability="os")
        queue = broker.core.declare_queue("/", "q")
        broker.tick()
        cpu = time.process_time()
        for _ in range(0, total, 100):
            for _ in range(100):
                queue.append(record, size, True)
            broker.tick()
            for message in queue.lease(1, 100):
                queue.ack(message[0], 1)
        broker.tick()
        best = min(best, (time.process_time() - cpu) / total * 1e6)
        broker.close()
    report.row("the same, consumed as it comes, no sync", best, "us", "100 messages in a tick", most=4.0)


def latency(folder: Folder, report: Report, quick: bool) -> None:
    report.title("One durable append: one message of 100 B, one tick, wait for the sync")
    seconds = 1.0 if quick else 4.0
    disk = Disk(folder(), 64 * MIB)
    _, raw = disk.write(512, seconds, sync=True)
    disk.close()
    broker = Broker(folder())
    queue = broker.core.declare_queue("/", "q")
    record = Record(None, bytes(100), (), NOW_MS)
    took = []
    start = now = time.perf_counter()
    cpu = time.process_time()
    while now - start < seconds:
        queue.append(record, 100, True)
        broker.tick(ahead=0)
        before, now = now, time.perf_counter()
        took.append(now - before)
    spent = (time.process_time() - cpu) / len(took) * 1e6
    broker.close()
    looped = asyncio.run(_through_the_loop(folder(), seconds))
    for name, times, note in (
        ("disk: write of 512 B + fdatasync", raw, ""),
        ("append, commit, sync in a thread", took, f"{spent:,.0f} us CPU"),
        ("the same through an event loop and its worker", looped, ""),
    ):
        report.row(f"{name}, p50", percentile(times, 0.5) * 1e3, "ms", note)
        report.row(f"{name}, p99", percentile(times, 0.99) * 1e3, "ms")


async def _through_the_loop(folder: Path, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    worker = ThreadWorker(loop)
    core = Core.open(folder, settings=CoreSettings(), worker=worker)
    queue = core.declare_queue("/", "q")
    record = Record(None, bytes(100), (), NOW_MS)
    took = []
    start = now = time.perf_counter()
    while now - start < seconds:
        durable = loop.create_future()
        queue.append(record, 100, True)
        core.ticket.when_durable(durable.set_result)
        core.commit()
        await durable
        before, now = now, time.perf_counter()
        took.append(now - before)
    worker.drain()
    core.close()
    worker.close()
    return took
