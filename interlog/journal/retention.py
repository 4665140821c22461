"""Retention: how far a log's start may move, by age and by size. Decides only; who asks moves the start.

The start moves over whole segments, and over blocks of batches that are still in the journal: what is over its time
does not wait for a journal file to be full.
"""

from collections.abc import Iterator
from itertools import chain

from interlog.journal.partition import Partition


def retain(partition: Partition, now_ms: int, retention_ms: int | None, retention_bytes: int | None) -> int | None:
    """The new log start, or None if it stays. A limit of None, or below 0, is none.

    By time, what is dropped holds only records older than retention_ms; what has no timestamp has no age. By size,
    what stays is never less than retention_bytes, if there was as much.
    """
    start = partition.log_start
    oldest_ms = None if retention_ms is None or retention_ms < 0 else now_ms - retention_ms
    excess = None if retention_bytes is None or retention_bytes < 0 else _bytes(partition) - retention_bytes
    for end, size, newest_ms in _units(partition):
        too_old = oldest_ms is not None and 0 <= newest_ms < oldest_ms
        too_much = excess is not None and excess >= size > 0
        if not too_old and not too_much:
            break
        if excess is not None:
            excess -= size
        start = end
    return start if start > partition.log_start else None


def next_due_ms(partition: Partition, retention_ms: int | None) -> int | None:
    """When, by time, the first of what is there can go; None if it cannot before more comes."""
    if retention_ms is None or retention_ms < 0:
        return None
    for _, _, newest_ms in _units(partition):
        return newest_ms + retention_ms + 1 if newest_ms >= 0 else None
    return None


def _units(partition: Partition) -> Iterator[tuple[int, int, int]]:
    """(offset after it, bytes, newest timestamp) of what can be dropped as one, oldest first."""
    for segment in partition.segments:
        yield segment.last + 1, segment.bytes, segment.max_timestamp_ms
    # One after another and no further than asked: a window may have thousands of blocks.
    yield from chain.from_iterable(window.blocks_from(partition.log_start) for window in partition.windows)


def _bytes(partition: Partition) -> int:
    windows = sum(window.bytes_from(partition.log_start) for window in partition.windows)
    return windows + sum(segment.bytes for segment in partition.segments)
