"""Messages of magic 0 and 1, as clients before Kafka 0.11 write them, made by hand for tests."""

import struct
from zlib import crc32

from interlog.journal.codecs import compress


def _field(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def message(
    value: bytes | None,
    key: bytes | None = None,
    magic: int = 1,
    *,
    attributes: int = 0,
    time_ms: int = 1,
    offset: int = 0,
) -> bytes:
    time = struct.pack(">q", time_ms) if magic else b""
    covered = struct.pack(">bb", magic, attributes) + time + _field(key) + _field(value)
    return struct.pack(">qiI", offset, len(covered) + 4, crc32(covered)) + covered


def packed(messages: bytes, codec: int, magic: int = 1) -> bytes:
    """A message that holds others, packed with a codec."""
    return message(compress(codec, messages), None, magic, attributes=codec)
