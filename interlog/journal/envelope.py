"""The envelope: everything that happened in one tick, all or nothing.

header (44 bytes, little-endian)
  magic     4   b"ILOG"
  version   1
  flags     1   none yet
  shard     2
  length    4   of the whole envelope, header included
  epoch     4   of the start that wrote it
  sequence  8   one more than the envelope before
  durable   8   the newest sequence known to be synced when this one was written
  time_ms   8   broker time
  crc       4   CRC32C of all the other bytes of the envelope, begun from a salt. Each journal file has its own,
              so that neither what a recycled file held before nor a payload made to look so passes for one
entries, one after another
  kind      1   an EntryKind
  target    4   the partition or object the entry is about; 0 where there is none
  length    4   of the payload
  payload
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from interlog.base import crc32c
from interlog.base.errors import FormatError
from interlog.journal.files import Buffer

MAGIC = b"ILOG"
VERSION = 1
MAX_ENVELOPE_BYTES = 1 << 30

_HEADER = struct.Struct("<4sBBHIIQQq")
_CRC = struct.Struct("<I")
_ENTRY = struct.Struct("<BII")
HEADER_BYTES = _HEADER.size + _CRC.size
ENTRY_BYTES = _ENTRY.size


class EntryKind(IntEnum):
    """What an entry says. Numbers are on disk: never change one, never use one again."""

    START = 1  # an epoch begins: payload is JSON about the start
    BATCH = 2  # target: partition; payload: one RecordBatch v2, base offset stamped
    LEASE = 3  # target: partition; payload: what was acknowledged, returned, lent (core/leases.py)
    CURSOR = 4  # payload: group positions (core/cursors.py)
    CATALOG = 5  # payload: JSON, a change of the catalog (core/catalog.py)
    TIMER = 6  # payload: timers set and fired (core/timers.py)
    LOG_START = 7  # target: partition; payload: the offset that the log now starts at
    TRANSACTION = 8  # payload: producers and transactions (core/transaction_entries.py)
    TREE = 9  # reserved
    SHARE = 10  # payload: what members of share groups have read together (core/share_entries.py)
    SEEN = 11  # payload: a key of a message, as an exchange remembers it (core/seen_keys.py)


@dataclass(slots=True)
class Header:
    shard: int
    length: int
    epoch: int
    sequence: int
    durable: int
    time_ms: int


@dataclass(slots=True)
class Entry:
    kind: int
    target: int
    position: int  # of the payload, counted from the envelope's first byte
    payload: memoryview


class EnvelopeBuilder:
    """Gathers one tick's entries without joining them; `finish` gives the buffers to write."""

    __slots__ = ("_buffers", "entries", "length")

    def __init__(self) -> None:
        self._buffers: list[Buffer] = [b""]
        self.length = HEADER_BYTES
        self.entries = 0

    def add(self, kind: int, target: int, payload: Buffer) -> int:
        """Add one entry; the answer is where its payload stands, counted from the envelope's first byte."""
        size = len(payload)
        self._buffers.append(_ENTRY.pack(kind, target, size))
        self._buffers.append(payload)
        position = self.length + ENTRY_BYTES
        self.length = position + size
        self.entries += 1
        return position

    def finish(
        self, *, shard: int, epoch: int, sequence: int, durable: int, time_ms: int, salt: int = 0
    ) -> list[Buffer]:
        header = _HEADER.pack(MAGIC, VERSION, 0, shard, self.length, epoch, sequence, durable, time_ms)
        buffers = self._buffers
        crc = crc32c.crc32c(header, salt)
        for buffer in buffers:
            crc = crc32c.crc32c(buffer, crc)
        buffers[0] = header + _CRC.pack(crc)
        return buffers


def read_header(data: Buffer, position: int = 0) -> Header:
    """The header at position, its fields in bounds but its CRC not yet checked; FormatError if there is none."""
    if len(data) - position < HEADER_BYTES:
        raise FormatError("the envelope header is cut short")
    magic, version, flags, shard, length, epoch, sequence, durable, time_ms = _HEADER.unpack_from(data, position)
    if magic != MAGIC:
        raise FormatError("no envelope begins here")
    if version != VERSION or flags:
        raise FormatError(f"envelope version {version} with flags {flags} is not known to this version of Interlog")
    if not HEADER_BYTES <= length <= MAX_ENVELOPE_BYTES:
        raise FormatError(f"an envelope of {length} bytes is impossible")
    return Header(shard, length, epoch, sequence, durable, time_ms)


def check(data: Buffer, position: int = 0, salt: int = 0) -> Header:
    """The header of the whole and sound envelope at position; FormatError where there is none."""
    header = read_header(data, position)
    end = position + header.length
    if end > len(data):
        raise FormatError("the envelope is cut short")
    view = memoryview(data)
    body = position + HEADER_BYTES
    crc = crc32c.crc32c(view[body:end], crc32c.crc32c(view[position : body - _CRC.size], salt))
    if crc != _CRC.unpack_from(data, body - _CRC.size)[0]:
        raise FormatError("the envelope's CRC does not match its bytes")
    return header


def entries(data: Buffer, position: int, header: Header) -> Iterator[Entry]:
    """The entries of a checked envelope at position. FormatError if they do not fill it exactly."""
    view = memoryview(data)
    end = position + header.length
    at = position + HEADER_BYTES
    while at < end:
        if end - at < ENTRY_BYTES:
            raise FormatError("an entry header is cut short")
        kind, target, size = _ENTRY.unpack_from(data, at)
        at += ENTRY_BYTES
        if size > end - at:
            raise FormatError("an entry is longer than its envelope")
        yield Entry(kind, target, at - position, view[at : at + size])
        at += size
