"""Records to bytes and back: what stands behind the header of a record batch, before it is packed with a codec.

In: records and their offsets, or bytes of anyone's making. Out: the bytes, or the records. One record is

    length (of what follows), attributes (1 byte: written 0, read as anything), timestamp delta, offset delta,
    key length, key, value length, value, header count, (key length, key, value length, value) ...

where all numbers but the attributes are varints, and a length of -1 is None. This is the hottest code of the journal:
small numbers are looked up or decoded on the spot, and what a record shares with the one before is not made again.
"""

from collections.abc import Sequence
from typing import Final

from interlog.base.errors import FormatError, InvalidError, LimitError
from interlog.journal.record import Headers, Record
from interlog.journal.varint import SMALL, TABLE, pack_number, read_varint, read_varlong

LEAST_RECORD_BYTES: Final = 7

# What the objects made of a record and of a header weigh beside their bytes: it counts against the limit, or else a
# batch of empty records would cost thirty times its size.
RECORD_COST: Final = 256
HEADER_COST: Final = 96

# Either way. What is decoded can be encoded again, beside any other record: no delta leaves 64 bits.
MOST_TIMESTAMP_MS: Final = 1 << 61
_MOST_SMALL_DELTA: Final = 64
_SMALL_BYTES: Final = 2048


def pack_one(record: Record) -> list[bytes]:
    """A record that is alone in its batch, as parts; the first is empty, for what is to stand before the records."""
    timestamp_ms = record.timestamp_ms
    if not -MOST_TIMESTAMP_MS <= timestamp_ms <= MOST_TIMESTAMP_MS:
        raise InvalidError(f"a timestamp of {timestamp_ms} is impossible")
    key = record.key
    value = record.value
    headers = record.headers
    tail = _pack_headers(headers) if headers else b"\0"
    if value is None or len(value) >= _SMALL_BYTES:
        return [b"", *_pack_large(b"\0\0\0", key, value, tail)]
    # Attributes, timestamp delta and offset delta are 0.
    if key is None:
        body = b"".join((b"\0\0\0\1", TABLE[len(value)], value, tail))
    else:
        body = b"".join((b"\0\0\0", pack_number(len(key)), key, TABLE[len(value)], value, tail))
    return [b"", pack_number(len(body)), body]


def pack_records(
    records: Sequence[Record], base_offset: int, offsets: Sequence[int] | None
) -> tuple[list[bytes], int, int]:
    """The records as parts, the first empty as in pack_one; last offset delta; largest timestamp."""
    table = TABLE
    table_size = len(table)
    join = b"".join
    parts: list[bytes] = [b""]
    base_timestamp_ms = last_timestamp_ms = max_timestamp_ms = records[0].timestamp_ms
    if not -MOST_TIMESTAMP_MS <= base_timestamp_ms <= MOST_TIMESTAMP_MS:
        raise InvalidError(f"a timestamp of {base_timestamp_ms} is impossible")
    deltas = range(len(records)) if offsets is None else _deltas(offsets, base_offset, len(records))
    start = b"\0\0"  # attributes and timestamp delta
    last_headers: Headers = ()
    tail = b"\0"  # header count and headers
    for record, delta in zip(records, deltas, strict=True):
        timestamp_ms = record.timestamp_ms
        if timestamp_ms != last_timestamp_ms:
            if not -MOST_TIMESTAMP_MS <= timestamp_ms <= MOST_TIMESTAMP_MS:
                raise InvalidError(f"a timestamp of {timestamp_ms} is impossible")
            last_timestamp_ms = timestamp_ms
            max_timestamp_ms = max(max_timestamp_ms, timestamp_ms)
            start = b"\0" + pack_number(timestamp_ms - base_timestamp_ms)
        headers = record.headers
        if headers is not last_headers:
            last_headers = headers
            tail = _pack_headers(headers)
        key = record.key
        value = record.value
        if value is None or len(value) >= _SMALL_BYTES or delta >= table_size:
            parts += _pack_large(start + pack_number(delta), key, value, tail)
            continue
        if key is None:
            body = join((start, table[delta], b"\1", table[len(value)], value, tail))
        elif len(key) < table_size:
            body = join((start, table[delta], table[len(key)], key, table[len(value)], value, tail))
        else:
            body = join((start, table[delta], pack_number(len(key)), key, table[len(value)], value, tail))
        size = len(body)
        parts += (table[size] if size < table_size else pack_number(size), body)
    return parts, deltas[-1], max_timestamp_ms


def _pack_large(start: bytes, key: bytes | None, value: bytes | None, tail: bytes) -> Sequence[bytes]:
    """A record whose value is worth not copying twice, or is None, as parts; `start` is all before the key."""
    head = start + b"\1" if key is None else b"".join((start, pack_number(len(key)), key))
    if value is None:
        return pack_number(len(head) + 1 + len(tail)), head, b"\1", tail
    head += pack_number(len(value))
    return pack_number(len(head) + len(value) + len(tail)), head, value, tail


def _deltas(offsets: Sequence[int], base_offset: int, count: int) -> Sequence[int]:
    """The offsets counted from base_offset; InvalidError unless there are count of them, rising."""
    deltas = [offset - base_offset for offset in offsets]
    if len(deltas) != count or deltas[0] < 0:
        raise InvalidError(f"{len(deltas)} offsets for {count} records from {base_offset} on")
    last = -1
    for delta in deltas:
        if delta <= last:
            raise InvalidError("the offsets of a batch must rise")
        last = delta
    return deltas


def _pack_headers(headers: Headers) -> bytes:
    table = TABLE
    parts: list[bytes] = [pack_number(len(headers))]
    for key, value in headers:
        size = len(key)
        parts += (table[size] if size < len(table) else pack_number(size), key)
        if value is None:
            parts.append(b"\1")
        else:
            size = len(value)
            parts += (table[size] if size < len(table) else pack_number(size), value)
    return b"".join(parts)


def unpack_records(
    data: bytes,
    at: int,
    end: int,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    append_time_ms: int | None,
    limit_bytes: int,
) -> list[tuple[int, Record]]:
    """Absolute offset and record, for each of the count records that fill data from at to end.

    Offsets rise and lie within the batch. With append_time_ms, all records are of that time. FormatError at anything
    that is not so; LimitError if objects and bytes would take more than limit_bytes.

    Slices and positions are not checked one by one: a position only ever grows, so where a record ends just where
    its length says, and within the batch, all of it was within. IndexError is the end of the data. (No slice begins
    beyond the end of the data: compiled by mypyc, that would not be an empty slice but a SystemError.)
    """
    left_bytes = limit_bytes - count * RECORD_COST - (end - at)
    if left_bytes < 0:
        raise LimitError(f"{count} records of {end - at} bytes take more than {limit_bytes} bytes of memory, the limit")
    timestamp_ms = base_timestamp_ms if append_time_ms is None else append_time_ms
    if abs(base_timestamp_ms) > MOST_TIMESTAMP_MS or abs(timestamp_ms) > MOST_TIMESTAMP_MS:
        raise FormatError(f"a timestamp of {base_timestamp_ms} or {timestamp_ms} is impossible")
    small = SMALL
    most_headers = left_bytes // HEADER_COST
    last_block = b"\0"  # header count and headers of the record before
    last_headers: Headers = ()
    last_delta = -1
    records: list[tuple[int, Record]] = []
    try:
        for _ in range(count):
            number = data[at]
            at += 1
            if number < 128:
                number = small[number]
            elif data[at] < 128:
                number = small[number - 128 + (data[at] << 7)]
                at += 1
            else:
                number, at = read_varint(data, at - 1)
            stop = at + number
            if number < LEAST_RECORD_BYTES - 1 or stop > end:
                raise FormatError(f"a record of {number} bytes does not fit in its batch")

            at += 1  # attributes
            number = data[at]
            at += 1
            if number < 128:
                number = small[number]
            else:
                number, at = read_varlong(data, at - 1)
                if not -MOST_TIMESTAMP_MS <= base_timestamp_ms + number <= MOST_TIMESTAMP_MS:
                    raise FormatError(f"a timestamp of {base_timestamp_ms + number} is impossible")
            if append_time_ms is None:
                timestamp_ms = base_timestamp_ms + number

            number = data[at]
            at += 1
            if number < 128:
                number = small[number]
            elif data[at] < 128:
                number = small[number - 128 + (data[at] << 7)]
                at += 1
            else:
                number, at = read_varint(data, at - 1)
            if not last_delta < number <= last_offset_delta:
                raise FormatError(f"an offset delta of {number} after {last_delta} is impossible in its batch")
            last_delta = number

            number = data[at]
            at += 1
            if number < 128:
                number = small[number]
            else:
                number, at = read_varint(data, at - 1)
            key: bytes | None = None
            if number >= 0:
                key = data[at : at + number]
                at += number
            elif number != -1:
                raise FormatError(f"a key of {number} bytes is impossible")

            number = data[at]
            at += 1
            if number < 128:
                number = small[number]
            elif data[at] < 128:
                number = small[number - 128 + (data[at] << 7)]
                at += 1
            else:
                number, at = read_varint(data, at - 1)
            value: bytes | None = None
            if number >= 0:
                value = data[at : at + number]
                at += number
            elif number != -1:
                raise FormatError(f"a value of {number} bytes is impossible")

            if at > stop:
                raise FormatError("a key or a value does not fit in its record")
            block = data[at:stop]
            if block != last_block:
                last_block = block
                last_headers = _unpack_headers(block, most_headers)
                most_headers -= len(last_headers)
            at = stop
            records.append((base_offset + last_delta, Record(key, value, last_headers, timestamp_ms)))
    except IndexError:
        raise FormatError("a record is cut short") from None
    if at != end:
        raise FormatError(f"{end - at} bytes follow the last record of the batch")
    # Small deltas were not looked at: they lead out of bounds only from a base next to them.
    if abs(base_timestamp_ms) > MOST_TIMESTAMP_MS - _MOST_SMALL_DELTA:
        for _, record in records:
            if abs(record.timestamp_ms) > MOST_TIMESTAMP_MS:
                raise FormatError(f"a timestamp of {record.timestamp_ms} is impossible")
    return records


def _unpack_headers(block: bytes, most: int) -> Headers:
    """The headers of a record; the block is their count and they, no more and no less."""
    small = SMALL
    count = block[0]
    at = 1
    if count < 128:
        count = small[count]
    else:
        count, at = read_varint(block, 0)
    if not 0 <= count <= len(block) // 2:
        raise FormatError(f"{count} headers do not fit in {len(block)} bytes")
    if count > most:
        raise LimitError("the headers would take more memory than the limit")
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        number = block[at]
        at += 1
        if number < 128:
            number = small[number]
        else:
            number, at = read_varint(block, at - 1)
        if number < 0:
            raise FormatError(f"a header key of {number} bytes is impossible")
        key = block[at : at + number]
        at += number
        number = block[at]
        at += 1
        if number < 128:
            number = small[number]
        else:
            number, at = read_varint(block, at - 1)
        if number >= 0:
            headers.append((key, block[at : at + number]))
            at += number
        elif number == -1:
            headers.append((key, None))
        else:
            raise FormatError(f"a header value of {number} bytes is impossible")
    if at != len(block):
        raise FormatError("the headers of a record do not end where the record ends")
    return tuple(headers)


def record_ends(data: bytes, count: int) -> list[int]:
    """Where each of the count records in data ends; of data that unpack_records has taken whole."""
    ends: list[int] = []
    at = 0
    for _ in range(count):
        size, at = read_varint(data, at)
        at += size
        ends.append(at)
    return ends
