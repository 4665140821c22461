"""How far a partition can be read by who wants committed transactions only, and which ranges up to there were aborted.

What lies beyond the last stable offset belongs to a transaction that is still open, or comes after such a batch.
"""

from collections.abc import Sequence

from interlog.core.broker import Core
from interlog.journal import batch as batches
from interlog.journal.partition import Partition
from interlog.journal.slices import FileRange, Slice, read_exactly, slice_bytes

COMMITTED = 1  # the isolation level


def last_stable(core: Core, partition: Partition) -> int:
    transactions = getattr(core, "transactions", None)
    return partition.log_end if transactions is None else transactions.last_stable(partition.id)


def aborted(core: Core, partition: Partition, start: int, end: int) -> list[tuple[int, int]]:
    """Producer and first offset of each transaction that was aborted and has batches in there."""
    transactions = getattr(core, "transactions", None)
    return [] if transactions is None else transactions.aborted(partition.id, start, end)


def cut(slices: Sequence[Slice], before: int) -> list[Slice]:
    """Only the batches that begin before an offset."""
    kept: list[Slice] = []
    for part in slices:
        length = _length_before(part, before)
        if length == len(part):
            kept.append(part)
            continue
        if length:
            kept.append(FileRange(part.file, part.position, length) if isinstance(part, FileRange) else part[:length])
        break
    return kept


def _length_before(part: Slice, before: int) -> int:
    at = 0
    while at < len(part):
        if isinstance(part, FileRange):
            header = batches.read_header(read_exactly(part.file, batches.HEADER_BYTES, part.position + at))
        else:
            header = batches.read_header(part, at)
        if header.base_offset >= before:
            return at
        at += header.length
    return at


def end_of(slices: Sequence[Slice], otherwise: int) -> int:
    """The offset after the last batch, if that can be told without reading much."""
    last = slices[-1]
    if isinstance(last, FileRange) and len(last) > (1 << 16):
        return otherwise
    data = slice_bytes(last)
    return max(header.next_offset for _, header in batches.batches(data))
