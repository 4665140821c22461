"""Everything a broker holds, read from it without changing it, in the shape of the model's dump (see model.py)."""

from collections.abc import Iterator
from typing import Any

from interlog.base.errors import InterlogError
from interlog.core.broker import Core
from interlog.core.catalog_objects import TopicItem
from interlog.core.memory import record_size
from interlog.core.queues import Queue
from interlog.core.topics import Topic
from interlog.journal import batch as batches
from interlog.journal.partition import slice_bytes
from interlog.journal.record import Record
from tests.crash.model import Dump
from tests.crash.records import identify

HARNESS = ("/", "harness", 1_000_000)  # namespace, group and partition of the cursor that counts the ticks
BULK_BYTES = 20_000
_SAMPLES = 8  # offsets and times of a partition that are looked up one by one


def read_tick(core: Core) -> int:
    """How many ticks the core holds."""
    cursor = core.cursors.fetch(*HARNESS)
    return 0 if cursor is None else cursor.offset


def dump(core: Core) -> Dump:
    return {
        "namespaces": sorted(namespace.name for namespace in core.catalog.namespaces()),
        "queues": {f"{item.namespace}/{item.name}": _queue(core, queue) for item, queue in core.queues()},
        "topics": {f"{item.namespace}/{item.name}": _topic(core, item) for item in core.catalog.topics()},
        "cursors": _cursors(core),
        "delayed": core.delayed,
    }


def _cursors(core: Core) -> dict[str, int]:
    names = {
        partition: f"{item.namespace}/{item.name}/{index}"
        for item in core.catalog.topics()
        for index, partition in enumerate(item.partitions)
    }
    found = {}
    for namespace in core.catalog.namespaces():
        for group in core.cursors.groups(namespace.name):
            for partition, cursor in core.cursors.fetch_group(namespace.name, group).items():
                if (namespace.name, group, partition) != HARNESS:
                    found[f"{namespace.name}/{group}/{names.get(partition, partition)}"] = cursor.offset
    return found


def _queue(core: Core, queue: Queue) -> Dump:
    state = queue.state
    live = []
    size = 0
    for offset, record in _stored(core, state.partition):
        if offset not in state.ranges:
            live.append((offset, identify(record), record.timestamp_ms))
            size += record_size(record)
    counts = {offset: count for offset, count in state.counts.items() if offset not in state.ranges}
    out: Dump = {"live": live, "counts": counts, "next": queue.next_offset, "depth": queue.depth, "ready": queue.ready}
    if queue.bytes != size:
        out["trouble"] = [f"the queue counts {queue.bytes} bytes; its messages have {size}"]
    return out


def _stored(core: Core, partition: int) -> Iterator[tuple[int, Record]]:
    log = core.storage.partition(partition)
    offset = log.log_start
    while offset < log.log_end:
        before = offset
        for at, record in core.storage.read_records(partition, offset, BULK_BYTES):
            yield at, record
            offset = at + 1
        if offset == before:
            return


def _topic(core: Core, item: TopicItem) -> Dump:
    topic = core.topic(item.namespace, item.name)
    keyed = topic.settings.compacts
    return {
        "settings": dict(item.settings),
        "partitions": [_partition(core, topic, index, keyed) for index in range(len(item.partitions))],
    }


def _partition(core: Core, topic: Topic, index: int, keyed: bool) -> Dump:
    start, end = topic.log_start(index), topic.log_end(index)
    id = topic.item.partitions[index]
    stable = core.transactions.last_stable(id)
    aborted = [one for one in core.producers.aborted_ranges(id) if one[2] >= start]
    records: list[tuple[int, int, int]] = []
    offset = start
    while offset < end:
        found = list(read(topic, index, offset, BULK_BYTES))
        records += [(at, identify(record, keyed=keyed), record.timestamp_ms) for at, record, _ in found]
        after = max((next_offset for _, _, next_offset in found), default=end)
        offset = max(after, offset + 1)
    trouble = [*_one_by_one(topic, index, records, keyed), *_by_time(topic, index, records)]
    out: Dump = {"start": start, "end": end, "stable": stable, "aborted": aborted, "records": records}
    if trouble:
        out["trouble"] = trouble
    return out


def read(topic: Topic, index: int, offset: int, max_bytes: int) -> Iterator[tuple[int, Record, int]]:
    """Offset, record and the offset after its batch, as a consumer would take them apart."""
    for part in topic.read(index, offset, max_bytes):
        data = slice_bytes(part)
        for position, header in batches.batches(data):
            for at, record in batches.decode(data, position):
                if at >= offset:
                    yield at, record, header.next_offset


def _one_by_one(topic: Topic, index: int, records: list[tuple[int, int, int]], keyed: bool) -> Iterator[str]:
    for at in _some(records):
        offset, number, timestamp_ms = records[at]
        found: Any = next(read(topic, index, offset, 1), None)
        if found is None or (found[0], identify(found[1], keyed=keyed), found[1].timestamp_ms) != records[at]:
            yield f"read alone, offset {offset} is {found}, not message {number} of {timestamp_ms}"


def _by_time(topic: Topic, index: int, records: list[tuple[int, int, int]]) -> Iterator[str]:
    for at in _some(records):
        for time_ms in (records[at][2], records[at][2] + 1):
            found = topic.offset_for_time(index, time_ms)
            wanted = next(((offset, time) for offset, _, time in records if time >= time_ms), None)
            if found != wanted:
                yield f"the first record of {time_ms} or later is {wanted}, not {found}"


def _some(records: list[Any]) -> range:
    return range(0, len(records), max(1, len(records) // _SAMPLES))


def raises(core: Core) -> InterlogError | None:
    """The error that reading everything ends in, if it does."""
    try:
        dump(core)
    except InterlogError as error:
        return error
    return None
