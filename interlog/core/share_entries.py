"""What SHARE entries look like: how far the members of a share group have come in a partition together.

In: one of the classes below. Out: the payload, and back; FormatError if it is none. Little-endian; a text is its length
in 2 bytes and UTF-8. Each payload begins with its operation, 1 byte, and a namespace and a group:

    BEGIN    partition 4, start 8
    MARK     partition 4, start 8, count 4, then for each: first 8, last 8, state 1, delivered 4
    REMOVE   count 4, then for each: partition 4; none at all: the whole group

BEGIN forgets all that was known of the partition. MARK tells what changed: all before `start` is over, and then each
range has a new state.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from interlog.base.errors import FormatError
from interlog.core.ranges import MAX_OFFSET
from interlog.journal.files import Buffer

_LENGTH: Final = struct.Struct("<H")
_COUNT: Final = struct.Struct("<I")
_BEGIN: Final = struct.Struct("<IQ")
_MARK: Final = struct.Struct("<IQI")
_RANGE: Final = struct.Struct("<QQBI")


class Operation(IntEnum):
    """Numbers are on disk: never change one, never use one again."""

    BEGIN = 1
    MARK = 2
    REMOVE = 3


class Kept(IntEnum):
    """What is kept of a record. Numbers are on disk: never change one, never use one again."""

    AVAILABLE = 1  # to be delivered, again if it was before
    DONE = 2  # never to be delivered again


class Range(NamedTuple):
    first: int
    last: int
    state: Kept
    delivered: int  # how often


class Begin(NamedTuple):
    namespace: str
    group: str
    partition: int
    start: int


class Mark(NamedTuple):
    namespace: str
    group: str
    partition: int
    start: int
    ranges: tuple[Range, ...]


class Remove(NamedTuple):
    namespace: str
    group: str
    partitions: tuple[int, ...]


Entry = Begin | Mark | Remove

_OPERATIONS: Final[dict[type[Entry], Operation]] = {
    Begin: Operation.BEGIN,
    Mark: Operation.MARK,
    Remove: Operation.REMOVE,
}


def _text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def encode(entry: Entry) -> bytes:
    head = bytes((_OPERATIONS[type(entry)],)) + _text(entry.namespace) + _text(entry.group)
    match entry:
        case Begin():
            return head + _BEGIN.pack(entry.partition, entry.start)
        case Mark():
            return head + _MARK.pack(entry.partition, entry.start, len(entry.ranges)) + pack_ranges(entry.ranges)
        case Remove():
            count = len(entry.partitions)
            return head + struct.pack(f"<I{count}I", count, *entry.partitions)


def decode(payload: Buffer) -> Entry:
    data = bytes(payload)
    try:
        operation = Operation(data[0])
        namespace, at = _read_text(data, 1)
        group, at = _read_text(data, at)
        if operation is Operation.BEGIN:
            partition, start = _BEGIN.unpack_from(data, at)
            at += _BEGIN.size
            entry: Entry = Begin(namespace, group, partition, start)
        elif operation is Operation.MARK:
            partition, start, count = _MARK.unpack_from(data, at)
            at += _MARK.size
            end = at + count * _RANGE.size
            if end > len(data):
                raise FormatError(f"a share entry cannot hold {count} ranges in {len(data)} bytes")
            entry = Mark(namespace, group, partition, start, unpack_ranges(data[at:end]))
            at = end
        else:
            (count,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            if at + 4 * count > len(data):
                raise FormatError(f"a share entry cannot hold {count} partitions in {len(data)} bytes")
            entry = Remove(namespace, group, struct.unpack_from(f"<{count}I", data, at))
            at += 4 * count
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"a share entry cannot be read: {error}") from None
    if at != len(data):
        raise FormatError(f"a share entry has {len(data) - at} bytes too many")
    if not isinstance(entry, Remove) and entry.start > MAX_OFFSET:
        raise FormatError("a share entry reaches beyond the last possible offset")
    return entry


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length > len(data) - at:
        raise FormatError("a share entry is cut short")
    return data[at : at + length].decode(), at + length


def pack_ranges(ranges: Iterable[Range]) -> bytes:
    return b"".join([_RANGE.pack(*one) for one in ranges])


def unpack_ranges(data: bytes) -> tuple[Range, ...]:
    """FormatError if these bytes are not exactly ranges."""
    try:
        ranges = tuple(
            Range(first, last, Kept(state), delivered) for first, last, state, delivered in _RANGE.iter_unpack(data)
        )
    except (struct.error, ValueError) as error:
        raise FormatError(f"ranges of a share group cannot be read: {error}") from None
    for one in ranges:
        if not one.first <= one.last < MAX_OFFSET:
            raise FormatError(f"a share group has an impossible range, from {one.first} to {one.last}")
    return ranges
