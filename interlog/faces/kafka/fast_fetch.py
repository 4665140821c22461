"""Fetch responses, versions 0 to 18, written by hand: headers around slices, which stay what they are.

What versions add: 1 the throttle time, 4 the last stable offset and aborted transactions, 5 the log start, 7 sessions,
11 the preferred replica, 12 varints and tagged fields, 13 topic ids in place of names, 16 endpoints.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.faces.kafka.schema.writing import ONE, varint
from interlog.journal.slices import Slice

VERSIONS: Final = range(19)

_INT: Final = Struct(">i").pack
_SHORT: Final = Struct(">h").pack
_TOP: Final = Struct(">ihi").pack
_HEAD_0: Final = Struct(">ihq").pack
_HEAD_4: Final = Struct(">ihqq").pack
_HEAD_5: Final = Struct(">ihqqq").pack
_TWO_INTS: Final = Struct(">ii").pack
_TWO_LONGS: Final = Struct(">qq").pack
_TAGGED_LONGS: Final = Struct(">qqB").pack
_PREFERRED_EMPTY: Final = Struct(">iBB").pack

_NO_TAGS: Final = b"\0"
_EMPTY_12: Final = _PREFERRED_EMPTY(-1, 1, 0)  # no preferred replica, no records, no tags

Range = tuple[int, int]


class FetchedPartition:
    """What is answered for one partition."""

    __slots__ = (
        "aborted",
        "diverging",
        "error_code",
        "high_watermark",
        "index",
        "last_stable_offset",
        "leader",
        "log_start_offset",
        "preferred_replica",
        "slices",
    )

    def __init__(
        self,
        index: int,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        slices: Sequence[Slice] = (),
        *,
        aborted: Sequence[Range] | None = None,
        preferred_replica: int = -1,
        diverging: Range | None = None,
        leader: Range | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.slices = slices
        self.aborted = aborted  # (producer id, first offset) each; None: nobody asked for them
        self.preferred_replica = preferred_replica
        self.diverging = diverging  # epoch and its end offset
        self.leader = leader  # id and epoch


class FetchedTopic:
    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, partitions: Sequence[FetchedPartition], topic_id: bytes = NO_UUID) -> None:
        self.name = name  # written before version 13
        self.partitions = partitions
        self.topic_id = topic_id  # written from then on


class Endpoint:
    """Of a leader that is named in the response."""

    __slots__ = ("host", "node_id", "port", "rack")

    def __init__(self, node_id: int, host: str, port: int, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


def write_fetch(
    version: int,
    topics: Sequence[FetchedTopic],
    *,
    throttle_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[Slice]:
    """The response's body, in parts: the slices as they are, and bytes between them."""
    if version not in VERSIONS:
        raise WireError(f"FetchResponse has no version {version}")
    parts: list[Slice] = []
    if version >= 12:
        _write_flexible(version, parts, topics, _TOP(throttle_ms, error_code, session_id), endpoints)
        return parts
    top = b""
    if version >= 7:
        top = _TOP(throttle_ms, error_code, session_id)
    elif version >= 1:
        top = _INT(throttle_ms)
    _write_plain(version, parts, topics, top)
    return parts


def _write_plain(version: int, parts: list[Slice], topics: Sequence[FetchedTopic], top: bytes) -> None:
    between = bytearray(top + _INT(len(topics)))  # bytes not yet in parts
    for topic in topics:
        name = topic.name.encode("utf-8", "surrogateescape")
        between += _SHORT(len(name)) + name + _INT(len(topic.partitions))
        for p in topic.partitions:
            if version >= 5:
                head = _HEAD_5(p.index, p.error_code, p.high_watermark, p.last_stable_offset, p.log_start_offset)
            elif version >= 4:
                head = _HEAD_4(p.index, p.error_code, p.high_watermark, p.last_stable_offset)
            else:
                head = _HEAD_0(p.index, p.error_code, p.high_watermark)
            between += head
            if version >= 4:
                if p.aborted is None:
                    between += b"\xff\xff\xff\xff"
                else:
                    between += _INT(len(p.aborted)) + b"".join([_TWO_LONGS(*each) for each in p.aborted])
            if version >= 11:
                between += _INT(p.preferred_replica)
            slices = p.slices
            if not slices:
                between += b"\0\0\0\0"
                continue
            size = sum([len(part) for part in slices]) if len(slices) > 1 else len(slices[0])
            between += _INT(size)
            parts.append(bytes(between))
            parts += slices
            between.clear()
    if between:
        parts.append(bytes(between))


def _write_flexible(
    version: int, parts: list[Slice], topics: Sequence[FetchedTopic], top: bytes, endpoints: Sequence[Endpoint]
) -> None:
    between = bytearray(top + varint(len(topics) + 1))  # bytes not yet in parts
    for topic in topics:
        if version >= 13:
            between += topic.topic_id + varint(len(topic.partitions) + 1)
        else:
            name = topic.name.encode("utf-8", "surrogateescape")
            between += varint(len(name) + 1) + name + varint(len(topic.partitions) + 1)
        for p in topic.partitions:
            between += _HEAD_5(p.index, p.error_code, p.high_watermark, p.last_stable_offset, p.log_start_offset)
            if p.aborted is None:
                between += b"\0"
            else:
                between += varint(len(p.aborted) + 1) + b"".join([_TAGGED_LONGS(*each, 0) for each in p.aborted])
            slices = p.slices
            plain = p.diverging is None and p.leader is None
            if not slices and plain and p.preferred_replica < 0:
                between += _EMPTY_12
                continue
            size = sum([len(part) for part in slices]) + 1
            between += _INT(p.preferred_replica) + varint(size)
            if slices:
                parts.append(bytes(between))
                parts += slices
                between.clear()
            between += _NO_TAGS if plain else _partition_tags(p)
        between += _NO_TAGS
    between += _endpoints(endpoints) if endpoints and version >= 16 else _NO_TAGS
    parts.append(bytes(between))


def _partition_tags(p: FetchedPartition) -> bytes:
    tags = []
    if p.diverging is not None:
        tags.append(b"\x00\x0d" + Struct(">iqB").pack(*p.diverging, 0))
    if p.leader is not None:
        tags.append(b"\x01\x09" + _TWO_INTS(*p.leader) + _NO_TAGS)
    return ONE[len(tags)] + b"".join(tags)


def _endpoints(endpoints: Sequence[Endpoint]) -> bytes:
    made = varint(len(endpoints) + 1)
    for each in endpoints:
        host = each.host.encode()
        made += _INT(each.node_id) + varint(len(host) + 1) + host + _INT(each.port)
        rack = None if each.rack is None else each.rack.encode()
        made += (b"\0" if rack is None else varint(len(rack) + 1) + rack) + _NO_TAGS
    return b"\x01\x00" + varint(len(made)) + made
