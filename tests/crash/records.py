"""Records that can be told apart: everything in a record follows from its number, so nothing can be changed unseen.

In goes a number and a time; out comes a record. `identify` is the way back: the number of a record that was read, if
each of its bytes is as it was made.
"""

import random
import zlib

from interlog.journal.record import Headers, Record

KEYS = 11
TOMBSTONE_EVERY = 9  # of the records with a key, as many mean: forget this key
_POOL = random.Random(7).randbytes(1 << 16)
_TEXT = (b"all that was acknowledged is there, in order, once. " * 1300)[: 1 << 16]


def key_of(number: int) -> bytes | None:
    mixed = zlib.crc32(b"key%d" % number)
    return b"key-%d" % (mixed % KEYS) if mixed % 5 else None


def make(number: int, timestamp_ms: int, *, keyed: bool = False) -> Record:
    """Record `number`. Most are small, a few are large; some compress well, some not at all."""
    mixed = zlib.crc32(b"%d" % number)
    size = mixed % 120 if mixed % 13 else mixed % 2800
    start = mixed % 60_000
    pool = _POOL if mixed & 64 else _TEXT
    value: bytes | None = pool[start : start + size]
    key = key_of(number)
    if keyed and key is None:
        key = b"key-%d" % (mixed % KEYS)
    if keyed and not mixed % TOMBSTONE_EVERY:
        value = None
    headers: Headers = ((b"n", b"%d" % number),)
    if mixed & 128:
        headers += ((b"empty", None), (b"h", _TEXT[start : start + mixed % 17]))
    return Record(key, value, headers, timestamp_ms)


def identify(record: Record, *, keyed: bool = False) -> int:
    """The number of the record; -1 if it is not, to the last byte, one that was made here."""
    if not record.headers or record.headers[0][0] != b"n" or not record.headers[0][1]:
        return -1
    try:
        number = int(record.headers[0][1])
    except ValueError:
        return -1
    return number if make(number, record.timestamp_ms, keyed=keyed) == record else -1
