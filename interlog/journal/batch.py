"""The record batch: the unit that is written, stored and served. It is Kafka's RecordBatch v2, byte for byte.

In: records and where they stand, or bytes that claim to be a batch. Out: the bytes, or the records. All numbers are
big-endian:

    base offset        8   may be rewritten: outside the CRC
    batch length       4   of what follows this field
    leader epoch       4   may be rewritten: outside the CRC
    magic              1   2
    crc                4   CRC32C of all that follows
    attributes         2   codec (bits 0 to 2) and the flags below
    last offset delta  4
    base timestamp     8
    max timestamp      8
    producer id, producer epoch, base sequence      8, 2, 4; -1 where there is none
    record count       4
    records, one after another (see `packing`), all of them packed with the codec

`read_header` and `batches` look at headers only; `check` reads all bytes and still never unpacks them; `decode` and
`filter_records` do. A batch that passes `check` may therefore still fail in `decode`: its records may be anything.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from interlog.base import crc32c
from interlog.base.errors import FormatError, InvalidError, LimitError
from interlog.journal.codecs import Codec, compress, decompress
from interlog.journal.files import Buffer
from interlog.journal.packing import LEAST_RECORD_BYTES, pack_one, pack_records, record_ends, unpack_records
from interlog.journal.record import Record

MAGIC: Final = 2
HEADER_BYTES: Final = 61
MAX_BATCH_BYTES: Final = 576 << 20  # the largest message that a setting allows, and room for its headers
DECODE_LIMIT_BYTES: Final = 64 << 20

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_OUTER: Final = struct.Struct(">qiibI")  # up to and with the CRC
_INNER: Final = struct.Struct(">hiqqqhii")  # what the CRC covers, up to the records
_OFFSET: Final = struct.Struct(">q")
_INT: Final = struct.Struct(">i")

_LENGTH_AT: Final = 8
_EPOCH_AT: Final = 12
_MAGIC_AT: Final = 16
_COVERED_AT: Final = 21  # where the bytes under the CRC begin
_BEFORE_LENGTH: Final = 12  # batch length does not count itself and what stands before it
_UNDER_LENGTH: Final = _COVERED_AT - _BEFORE_LENGTH  # what it counts beside the bytes under the CRC

_MOST_CODEC: Final = int(Codec.ZSTD)
_FEW_PARTS: Final = 3  # as pack_one makes of a small record
_LARGE_PART_BYTES: Final = 4096


class OldMagicError(FormatError):
    """A message set of magic 0 or 1, as clients before Kafka 0.11 write."""


@dataclass(slots=True)
class BatchHeader:
    base_offset: int
    length: int  # of the whole batch
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> int:
        """A Codec, or a number that is none."""
        return self.attributes & CODEC_MASK

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header at position, magic and length in bounds; the batch may reach beyond data. FormatError if none."""
    left = len(data) - position
    if left > _MAGIC_AT and data[position + _MAGIC_AT] != MAGIC:
        magic = data[position + _MAGIC_AT]
        if magic < MAGIC:
            raise OldMagicError(f"a message set of magic {magic}; only record batches of magic 2 are known")
        raise FormatError(f"no record batch begins here: its magic would be {magic}, not {MAGIC}")
    if left < HEADER_BYTES:
        raise FormatError("the batch header is cut short")
    (
        base_offset,
        size,
        leader_epoch,
        _,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = _HEADER.unpack_from(data, position)
    if size < HEADER_BYTES - _BEFORE_LENGTH:
        raise FormatError(f"a batch length of {size} is impossible")
    return BatchHeader(
        base_offset,
        size + _BEFORE_LENGTH,
        leader_epoch,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )


def check(data: Buffer, position: int = 0, limit_bytes: int = MAX_BATCH_BYTES) -> BatchHeader:
    """The header of the whole and sound batch at position; its records are not unpacked.

    FormatError says what is wrong; LimitError if the batch is longer than limit_bytes.
    """
    header = read_header(data, position)
    length = header.length
    if length > limit_bytes:
        raise LimitError(f"a batch of {length} bytes is larger than {limit_bytes}, the limit")
    _check_sane(data, position, header)
    crc: int = crc32c.crc32c(memoryview(data)[position + _COVERED_AT : position + length])
    if crc != header.crc:
        raise FormatError("the batch's CRC does not match its bytes")
    return header


def _check_sane(data: Buffer, position: int, header: BatchHeader) -> None:
    length = header.length
    if length > len(data) - position:
        raise FormatError(f"the batch is cut short: {len(data) - position} of {length} bytes")
    codec = header.attributes & CODEC_MASK
    if codec > _MOST_CODEC:
        raise FormatError(f"codec {codec} is not known")
    count = header.record_count
    last_delta = header.last_offset_delta
    if count < 0:
        raise FormatError(f"a record count of {count} is impossible")
    if last_delta < 0 or last_delta < count - 1:
        raise FormatError(f"{count} records do not fit in a last offset delta of {last_delta}")
    if not codec and count * LEAST_RECORD_BYTES > length - HEADER_BYTES:
        raise FormatError(f"{count} records do not fit in a batch of {length} bytes")


def batches(data: Buffer, position: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from position to end, CRCs not checked. FormatError at what is not one."""
    if end is None:
        end = len(data)
    while position < end:
        header = read_header(data, position)
        if header.length > end - position:
            raise FormatError(f"the batch is cut short: {end - position} of {header.length} bytes")
        yield position, header
        position += header.length


def stamp(batch: Buffer, base_offset: int, leader_epoch: int) -> bytes:
    """The whole batch at another base offset and epoch. Neither is under the CRC, so it stays as it is."""
    view = memoryview(batch)
    return b"".join((_OFFSET.pack(base_offset), view[_LENGTH_AT:_EPOCH_AT], _INT.pack(leader_epoch), view[_MAGIC_AT:]))


def set_log_append_time(batch: Buffer, now_ms: int) -> bytes:
    """The whole batch with all of its records at now_ms, the broker's time."""
    header = read_header(batch)
    header.attributes |= LOG_APPEND_TIME
    header.max_timestamp_ms = now_ms
    return _rebuild(header, memoryview(batch)[HEADER_BYTES : header.length])


def repack(batch: Buffer, codec: int, limit_bytes: int = DECODE_LIMIT_BYTES) -> Buffer:
    """The whole batch, packed with this codec: itself if it is already. FormatError or LimitError as `decode`.

    The records are unpacked and read once, so that no bytes are kept which nobody could read.
    """
    header = read_header(batch)
    if header.attributes & CODEC_MASK == codec:
        return batch
    limit_bytes += header.length
    body = _body(batch, HEADER_BYTES, header.length, header, limit_bytes)
    _unpack(body, 0, -1, header, limit_bytes)
    header.attributes = header.attributes & ~CODEC_MASK | codec
    return _rebuild(header, compress(codec, body))


def _rebuild(header: BatchHeader, body: Buffer) -> bytes:
    """A batch of this header and body, with length and CRC made anew."""
    inner = _INNER.pack(
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    crc: int = crc32c.crc32c(body, crc32c.crc32c(inner))
    size = len(body) + len(inner) + _UNDER_LENGTH
    return b"".join((_OUTER.pack(header.base_offset, size, header.leader_epoch, MAGIC, crc), inner, body))


def encode(
    records: Sequence[Record],
    *,
    base_offset: int,
    leader_epoch: int = -1,
    offsets: Sequence[int] | None = None,
    codec: int = Codec.NONE,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One batch of one record or more.

    `offsets` are the records' absolute offsets, rising, where they do not simply follow base_offset. `attributes`
    are flags beside the codec. Timestamps may go either way from record to record.
    """
    count = len(records)
    if not count:
        raise InvalidError("a batch needs at least one record")
    base_timestamp_ms = records[0].timestamp_ms
    if count == 1 and offsets is None:
        parts = pack_one(records[0])
        last_delta = 0
        max_timestamp_ms = base_timestamp_ms
    else:
        parts, last_delta, max_timestamp_ms = pack_records(records, base_offset, offsets)
    if codec:
        attributes |= codec
        parts = [b"", compress(codec, b"".join(parts))]
    try:
        parts[0] = _INNER.pack(
            attributes,
            last_delta,
            base_timestamp_ms,
            max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        if len(parts) > _FEW_PARTS and (size := sum(map(len, parts))) > _LARGE_PART_BYTES * len(parts):
            # Large parts are worth not copying twice.
            crc = 0
            for part in parts:
                crc = crc32c.crc32c(part, crc)
            return b"".join((_OUTER.pack(base_offset, size + _UNDER_LENGTH, leader_epoch, MAGIC, crc), *parts))
        covered = b"".join(parts)
        crc = crc32c.crc32c(covered)
        return _OUTER.pack(base_offset, len(covered) + _UNDER_LENGTH, leader_epoch, MAGIC, crc) + covered
    except struct.error as error:
        raise InvalidError(f"a number does not fit in the batch header: {error}") from None


def decode(
    data: Buffer, position: int = 0, *, limit_bytes: int = DECODE_LIMIT_BYTES, verify: bool = True
) -> list[tuple[int, Record]]:
    """Absolute offset and record, for each record of the batch at position.

    Offsets rise and lie within the batch. FormatError at anything that is not so, or not a batch; LimitError if
    the records would take limit_bytes more memory than the batch itself does: their bytes unpacked, and a fixed cost
    for each record and header. So what was stored can be read whatever its size, and only what swells is refused.
    `verify=False` leaves the CRC unread, for bytes that were checked before.
    """
    if verify:
        header = check(data, position)
    else:
        header = read_header(data, position)
        _check_sane(data, position, header)
    start = position + HEADER_BYTES
    end = position + header.length
    limit_bytes += header.length
    if header.attributes & CODEC_MASK or not isinstance(data, bytes):
        return _unpack(_body(data, start, end, header, limit_bytes), 0, -1, header, limit_bytes)
    return _unpack(data, start, end, header, limit_bytes)


def _body(data: Buffer, start: int, end: int, header: BatchHeader, limit_bytes: int) -> bytes:
    """The records between start and end, no longer packed with the codec."""
    body = memoryview(data)[start:end]
    # An emptied batch has no bytes for a codec to unpack.
    return decompress(header.attributes & CODEC_MASK, body, limit_bytes) if start < end else b""


def _unpack(data: bytes, start: int, end: int, header: BatchHeader, limit_bytes: int) -> list[tuple[int, Record]]:
    return unpack_records(
        data,
        start,
        end if end >= 0 else len(data),
        header.record_count,
        header.base_offset,
        header.last_offset_delta,
        header.base_timestamp_ms,
        header.max_timestamp_ms if header.attributes & LOG_APPEND_TIME else None,
        limit_bytes,
    )


def filter_records(
    batch: Buffer,
    keep: Callable[[int, Record], bool],
    *,
    keep_empty: bool = False,
    limit_bytes: int = DECODE_LIMIT_BYTES,
) -> bytes | None:
    """The whole batch with only the records that `keep` wants; None if it wants none.

    Base offset, last offset delta, timestamps, producer fields, attributes and codec stay those of the batch, so
    that offsets and sequences mean what they did; records keep their bytes. With keep_empty, a batch of no records
    is given in place of None: it holds the place of its producer's last sequence.
    """
    header = check(batch)
    limit_bytes += header.length
    body = _body(batch, HEADER_BYTES, header.length, header, limit_bytes)
    records = _unpack(body, 0, -1, header, limit_bytes)
    wanted: list[bytes] = []
    start = 0
    for (offset, record), stop in zip(records, record_ends(body, header.record_count), strict=True):
        if keep(offset, record):
            wanted.append(body[start:stop])
        start = stop
    if len(wanted) == len(records):
        return bytes(memoryview(batch)[: header.length])
    if not wanted:
        if not keep_empty:
            return None
        header.attributes &= ~CODEC_MASK
    header.record_count = len(wanted)
    return _rebuild(header, compress(header.attributes & CODEC_MASK, b"".join(wanted)))
