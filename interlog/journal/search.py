"""Finding sound envelopes where nobody says that there are any.

In comes a journal file and what an envelope must be to count; out come those that are whole, in the order they stand.
"""

from collections.abc import Iterator

from interlog.base.errors import FormatError
from interlog.journal.envelope import MAGIC, Header, check, read_header
from interlog.journal.files import File

_CHUNK_BYTES = 1 << 20
# No more than this many times the file's bytes go through a CRC, whatever the bytes pretend to be.
_MOST_PASSES = 8


def sound_envelopes(
    file: File, at: int, salt: int, shard: int, sequence: int, epoch: int
) -> Iterator[tuple[Header, int]]:
    """Sound envelopes anywhere in the file from `at` on, of at least this sequence and epoch."""
    ranges = file.written(at)  # before any of it is read: what was read may count as written
    data = file.map()
    budget = _MOST_PASSES * len(data)
    for start, stop in ranges:
        at = max(at, start)
        while (at := _find_magic(data, at, stop)) >= 0:
            try:
                header = read_header(data, at)
                likely = header.shard == shard and header.sequence >= sequence and header.epoch >= epoch
                if likely and header.durable < header.sequence and at + header.length <= len(data) and budget > 0:
                    budget -= header.length
                    check(data, at, salt)
                    yield header, at
                    at += header.length
                    continue
            except FormatError:
                pass
            at += len(MAGIC)
        at = stop


def _find_magic(data: memoryview, at: int, stop: int) -> int:
    while at < stop:
        found = bytes(data[at : min(at + _CHUNK_BYTES, stop)]).find(MAGIC)
        if found >= 0:
            return at + found
        at += _CHUNK_BYTES - len(MAGIC) + 1
    return -1
