"""Message sets of magic 0 and 1, as clients before Kafka 0.11 write them: read, and never written.

Comes in: the records of an old produce request. Goes out: records as they are kept now. FormatError where the bytes
are no message set, LimitError where they unpack to too much.

A message: offset 8, size 4, CRC32 of what follows 4, magic 1, attributes 1 (the codec in bits 0 to 2), with magic 1 a
timestamp 8, then key and value, each behind its length 4 (-1: null). The value of a packed one is a message set.
"""

from struct import Struct
from struct import error as StructError
from typing import Final
from zlib import crc32

from interlog.base.errors import FormatError
from interlog.journal.batch import DECODE_LIMIT_BYTES
from interlog.journal.codecs import Codec, decompress
from interlog.journal.files import Buffer
from interlog.journal.record import Record

_HEAD: Final = Struct(">qiIbb")
_BEFORE_CRC: Final = 12
_COVERED_AT: Final = 16
_LONG: Final = Struct(">q")
_INT: Final = Struct(">i")
_CODEC_MASK: Final = 0x07
MOST_RECORDS: Final = 1 << 18


def read_message_set(data: Buffer, limit_bytes: int = DECODE_LIMIT_BYTES) -> list[Record]:
    records: list[Record] = []
    try:
        _read(memoryview(data), records, limit_bytes, packed=False)
    except StructError:
        raise FormatError("a message is cut short") from None
    return records


def _read(data: memoryview, records: list[Record], limit_bytes: int, *, packed: bool) -> None:
    at = 0
    while at < len(data):
        _, size, crc, magic, attributes = _HEAD.unpack_from(data, at)
        end = at + _BEFORE_CRC + size
        if magic not in (0, 1):
            raise FormatError(f"a message of magic {magic} among old ones")
        if not at + _HEAD.size <= end <= len(data):
            raise FormatError("a message is cut short")
        if crc32(data[at + _COVERED_AT : end]) != crc:
            raise FormatError("a message's CRC does not match its bytes")
        at += _HEAD.size
        timestamp_ms = -1
        if magic:
            (timestamp_ms,) = _LONG.unpack_from(data, at)
            at += _LONG.size
        key, at = _field(data, at, end)
        value, at = _field(data, at, end)
        if at != end:
            raise FormatError("a message has bytes behind its value")
        codec = attributes & _CODEC_MASK
        if not codec:
            if len(records) >= MOST_RECORDS:
                raise FormatError(f"there are more than {MOST_RECORDS} messages")
            records.append(Record(key, value, (), timestamp_ms))
            continue
        if packed or codec > Codec.LZ4 or value is None:
            raise FormatError(f"a message packed with codec {codec} cannot be unpacked")
        _read(memoryview(decompress(codec, value, limit_bytes)), records, limit_bytes, packed=True)


def _field(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _INT.unpack_from(data, at)
    at += _INT.size
    if size < 0:
        return None, at
    if at + size > end:
        raise FormatError("a message's key or value is cut short")
    return bytes(data[at : at + size]), at + size
