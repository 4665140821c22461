"""What clients say many times over, read in one go: whole publishes, and acknowledgements of single deliveries.

In comes the place of the first one in the reader's data; what follows and is like it is taken along, and the reader's
place moved behind it. Whatever is unusual in any way ends a run and is left to the channel, which knows what to do.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from interlog.faces.amqp.frames import BODY, FRAME_END, HEAD, HEAD_BYTES, HEADER, METHOD, FrameReader
from interlog.faces.amqp.messages import BASIC_CLASS, CONTENT_HEAD_BYTES
from interlog.journal.record import Record

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel
    from interlog.faces.amqp.publish import Known, Route

PUBLISH: Final = b"\x00\x3c\x00\x28"
ACK: Final = b"\x00\x3c\x00\x50"
ACK_BYTES: Final = 13  # of its payload
_IDS: Final = 4
_FLAGS: Final = 2  # no properties are shorter
_HEADER_FRAME: Final = Struct(">BHIHHQ")  # its head, class, weight, size of the body
_HEADER_HEAD_BYTES: Final = HEAD_BYTES + CONTENT_HEAD_BYTES
_ACK_FRAME: Final = Struct(">BHI4sQBB")


def take_publishes(channel: "Channel", reader: FrameReader, start: int, end: int) -> bool:
    """Whole messages, from the one whose method's payload is at start on; False if not even that one was taken."""
    if not channel.takes_runs:
        return False
    connection = channel.connection
    data, number = reader.data, channel.number
    size = len(data)
    most = min(reader.limit, connection.settings.max_message_bytes)
    now_ms, generation = connection.now_ms, channel.core.generation
    find = connection.routes.get
    unpack_header, unpack_head = _HEADER_FRAME.unpack_from, HEAD.unpack_from
    records: list[Record] = []
    sizes: list[int] = []
    same: tuple[Route, Known] | None = None
    room = 0  # how many of them may still go the same way in this turn
    while True:
        route = find(data[start:end])
        if route is None or not route.takes_runs or route.generation != generation:
            break
        header = end + 1
        if size - header < _HEADER_HEAD_BYTES:
            break
        kind, channel_number, length, class_id, _, body_size = unpack_header(data, header)
        at = header + HEAD_BYTES + length  # where the header frame ends
        if (
            kind != HEADER
            or channel_number != number
            or class_id != BASIC_CLASS
            or length < CONTENT_HEAD_BYTES + _FLAGS
            or body_size > most
            or at >= size
            or data[at] != FRAME_END
        ):
            break
        known = route.known.get(data[header + _HEADER_HEAD_BYTES : at])
        if known is None:
            break
        at += 1
        body = b""
        if body_size:
            if size - at < HEAD_BYTES:
                break
            kind, channel_number, length = unpack_head(data, at)
            at += HEAD_BYTES
            to = at + body_size
            if kind != BODY or channel_number != number or length != body_size or to >= size or data[to] != FRAME_END:
                break
            body = data[at:to]
            at = to + 1
        if same is None or same[0] is not route or same[1] is not known:
            if same is not None:
                _send_on(channel, *same, records, sizes)
                records, sizes = [], []
            same = (route, known)
            room = connection.room_for(route)
        records.append(Record(route.key, body, known[0], now_ms))
        sizes.append(body_size + known[1])
        reader.at = at
        if len(records) >= room or size - at < HEAD_BYTES + _IDS:
            break
        kind, channel_number, length = unpack_head(data, at)
        start = at + HEAD_BYTES
        end = start + length
        if kind != METHOD or channel_number != number or data[start : start + _IDS] != PUBLISH:
            break
        if length > reader.limit or end >= size or data[end] != FRAME_END:
            break
    if same is not None:
        _send_on(channel, *same, records, sizes)
    return same is not None


def _send_on(channel: "Channel", route: "Route", known: "Known", records: list[Record], sizes: list[int]) -> None:
    """To where they all go."""
    assert route.target is not None
    channel.connection.routed += len(records) * len(route.target.queues)
    result, refused = route.target.publish_run(records, sizes, known[2])
    channel.took(len(records), result, refused)


def take_acks(channel: "Channel", reader: FrameReader, tag: int) -> bool:
    """Acknowledgements of one delivery each, from this one on; False if no other follows it."""
    data, at = reader.data, reader.at
    head = HEAD.pack(METHOD, channel.number, ACK_BYTES) + ACK
    if channel.transaction is not None or data[at : at + len(head)] != head:
        return False
    tags = [tag]
    size, frame_bytes = len(data), _ACK_FRAME.size
    unpack = _ACK_FRAME.unpack_from
    number = channel.number
    while size - at >= frame_bytes:
        kind, channel_number, length, ids, tag, bits, last = unpack(data, at)
        if kind != METHOD or channel_number != number or ids != ACK or length != ACK_BYTES or bits & 1:
            break
        if last != FRAME_END:
            break
        tags.append(tag)
        at += frame_bytes
    reader.at = at
    channel.ack_each(tags)
    return True
