"""Produce requests, versions 0 to 13, read by hand: where the record batches are, which stay where they are.

Before version 3 there is no transactional id; from version 9 on lengths are varints and tagged fields stand behind
each struct; from version 13 on topics have their ids in place of names. Others differ in the errors that may be
answered.
"""

import struct
from struct import Struct
from typing import Final, NamedTuple

from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.schema.reading import MOST_ELEMENTS, more_varint, skip_tags

VERSIONS: Final = range(14)
WITH_IDS: Final = 13  # versions from here on

_SHORT: Final = Struct(">h").unpack_from
_INT: Final = Struct(">i").unpack_from
_TWO_INTS: Final = Struct(">ii").unpack_from
_ACKS_TIMEOUT: Final = Struct(">hi").unpack_from
_ACKS_TIMEOUT_COUNT: Final = Struct(">hii").unpack_from

_ID_BYTES: Final = 16

_NO_SENSE: Final = (IndexError, struct.error, UnicodeDecodeError)

Partitions = list[tuple[int, memoryview | None]]
Topics = list[tuple[str | bytes, Partitions]]  # by name or, from version 13 on, by id


class Produce(NamedTuple):
    acks: int  # 0, 1, or -1 for all
    timeout_ms: int
    transactional_id: str | None
    topics: Topics  # in the request's order; the same topic or partition may be in it twice


def read_produce(version: int, data: bytes, at: int, end: int) -> Produce:
    """The request whose body is in data[at:end]; its records are views of data. WireError where it is not whole."""
    if version not in VERSIONS:
        raise WireError(f"ProduceRequest has no version {version}")
    try:
        request, at = _read_flexible(version, data, at, end) if version >= 9 else _read_plain(version, data, at, end)
    except _NO_SENSE as error:
        raise WireError(f"ProduceRequest version {version}: {error}") from None
    if at > end:
        raise WireError(f"ProduceRequest version {version} is cut short")
    return request


def _read_plain(version: int, data: bytes, at: int, end: int) -> tuple[Produce, int]:
    view = memoryview(data)
    left = MOST_ELEMENTS
    transactional_id = None
    if version >= 3:
        (size,) = _SHORT(data, at)
        at += 2
        if size >= 0:
            transactional_id = _text(data, at, at + size, end)
            at += size
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT(data, at)
    at += 10
    left = _count(topic_count, 6, at, end, left)
    topics: Topics = []
    for _ in range(topic_count):
        (size,) = _SHORT(data, at)
        at += 2
        to = at + size
        name = _text(data, at, to, end)
        (count,) = _INT(data, to)
        at = to + 4
        left = _count(count, 8, at, end, left)
        partitions: Partitions = []
        for _ in range(count):
            index, size = _TWO_INTS(data, at)
            at += 8
            if size < 0:
                partitions.append((index, None))
                continue
            to = at + size
            if to > end:
                raise WireError("records are cut short")
            partitions.append((index, view[at:to]))
            at = to
        topics.append((name, partitions))
    return Produce(acks, timeout_ms, transactional_id, topics), at


def _read_flexible(version: int, data: bytes, at: int, end: int) -> tuple[Produce, int]:
    view = memoryview(data)
    with_ids = version >= WITH_IDS
    left = MOST_ELEMENTS
    transactional_id = None
    size = data[at]
    at += 1
    if size:
        if size > 127:
            size, at = more_varint(data, at, size)
        to = at + size - 1
        transactional_id = _text(data, at, to, end)
        at = to
    acks, timeout_ms = _ACKS_TIMEOUT(data, at)
    topic_count = data[at + 6]
    at += 7
    if topic_count > 127:
        topic_count, at = more_varint(data, at, topic_count)
    left = _count(topic_count - 1, 3, at, end, left)
    topics: Topics = []
    for _ in range(topic_count - 1):
        name: str | bytes
        if with_ids:
            to = at + _ID_BYTES
            name = data[at:to]
        else:
            size = data[at]
            at += 1
            if size > 127:
                size, at = more_varint(data, at, size)
            to = at + size - 1
            name = _text(data, at, to, end)
        count = data[to]
        at = to + 1
        if count > 127:
            count, at = more_varint(data, at, count)
        left = _count(count - 1, 6, at, end, left)
        partitions: Partitions = []
        for _ in range(count - 1):
            (index,) = _INT(data, at)
            size = data[at + 4]
            at += 5
            if size > 127:
                size, at = more_varint(data, at, size)
            if size:
                to = at + size - 1
                if to > end:
                    raise WireError("records are cut short")
                partitions.append((index, view[at:to]))
                at = to
            else:
                partitions.append((index, None))
            tags = data[at]
            at += 1
            if tags:
                at, left = skip_tags(data, at, end, tags, left)
        tags = data[at]
        at += 1
        if tags:
            at, left = skip_tags(data, at, end, tags, left)
        topics.append((name, partitions))
    tags = data[at]
    at += 1
    if tags:
        at, left = skip_tags(data, at, end, tags, left)
    return Produce(acks, timeout_ms, transactional_id, topics), at


def _text(data: bytes, at: int, to: int, end: int) -> str:
    if not at <= to <= end:
        raise WireError("a name is cut short, or null")
    return data[at:to].decode()


def _count(count: int, least: int, at: int, end: int, left: int) -> int:
    """How many elements there may be beside these."""
    if count < 0 or count > left or count * least > end - at:
        raise WireError(f"an array cannot have {count} elements")
    return left - count
