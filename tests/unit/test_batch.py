"""Record batches: what is encoded is decoded, byte for byte what Kafka's clients read and write."""

import struct

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.base.errors import FormatError, InvalidError, LimitError
from interlog.journal import batch as batch_module
from interlog.journal.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    OldMagicError,
    batches,
    check,
    decode,
    encode,
    filter_records,
    read_header,
    set_log_append_time,
    stamp,
)
from interlog.journal.codecs import Codec, compress
from interlog.journal.packing import MOST_TIMESTAMP_MS
from interlog.journal.record import Record
from interlog.journal.varint import pack_number, read_varint, read_varlong

NOW_MS = 1_700_000_000_000

# Three records of a transactional, idempotent producer, as kafka-python writes them.
GOLDEN = bytes.fromhex(
    "00000000000000000000005600000000"
    "0254bdc14f0010000000020000018bcfe568000000018bcfe568c8"
    "0000000000000fa0000500000011"
    "00000003"
    "2a000000066b65790a76616c75650402680231026e01"
    "0c0013020100000e00900304000100"
)
GOLDEN_RECORDS = [
    Record(b"key", b"value", ((b"h", b"1"), (b"n", None)), NOW_MS),
    Record(None, b"", (), NOW_MS - 10),
    Record(b"", None, (), NOW_MS + 200),
]

SMALL = st.one_of(st.none(), st.binary(max_size=80))
RECORD = st.builds(
    Record,
    SMALL,
    st.one_of(SMALL, st.binary(min_size=8000, max_size=8400), st.just(bytes(70_000))),
    st.lists(st.tuples(st.binary(max_size=70), SMALL), max_size=4).map(tuple),
    st.one_of(st.integers(NOW_MS - 200, NOW_MS + 200), st.integers(-MOST_TIMESTAMP_MS, MOST_TIMESTAMP_MS)),
)


def records(count: int) -> list[Record]:
    return [Record(b"k%d" % n, b"v" * n, ((b"n", b"%d" % n),) if n % 3 else (), NOW_MS + n % 7) for n in range(count)]


def resealed(batch: bytes | bytearray) -> bytes:
    """The batch with length and CRC made right for its bytes."""
    data = bytearray(batch)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 17, crc32c.crc32c(data[21:]))
    return bytes(data)


def with_body(body: bytes, *, count: int = 1, last_offset_delta: int = 0, attributes: int = 0) -> bytes:
    header = struct.pack(">qiibIhiqqqhii", 0, 0, 0, 2, 0, attributes, last_offset_delta, 0, 0, -1, -1, -1, count)
    return resealed(header + body)


# ---- round trips


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    written=st.lists(RECORD, min_size=1, max_size=12),
    gaps=st.lists(st.integers(1, 20_000), min_size=12, max_size=12),
    base_offset=st.integers(0, 2**62),
    first_gap=st.integers(0, 3),
    gapped=st.booleans(),
    codec=st.sampled_from(Codec),
    before=st.binary(max_size=20),
)
def test_what_is_encoded_is_decoded(
    written: list[Record],
    gaps: list[int],
    base_offset: int,
    first_gap: int,
    gapped: bool,
    codec: Codec,
    before: bytes,
) -> None:
    offsets = [base_offset + n for n in range(len(written))]
    if gapped:
        offsets = [base_offset + first_gap + sum(gaps[:n]) for n in range(len(written))]
    made = encode(written, base_offset=base_offset, leader_epoch=3, offsets=offsets if gapped else None, codec=codec)
    for data in (before + made + b"after", memoryview(before + made), bytearray(before + made)):
        assert decode(data, len(before)) == list(zip(offsets, written, strict=True))
        assert decode(data, len(before), verify=False) == list(zip(offsets, written, strict=True))
        assert check(data, len(before)) == check(made)
        assert read_header(data, len(before)) == check(made)
    header = check(made)
    assert header.length == len(made)
    assert header.base_offset == base_offset
    assert header.last_offset == offsets[-1]
    assert header.next_offset == offsets[-1] + 1
    assert header.codec == codec
    assert header.record_count == len(written)
    assert header.base_timestamp_ms == written[0].timestamp_ms
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in written)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 8191, 8192, 8193, 20_000])
def test_batches_of_many_sizes(count: int) -> None:
    written = [Record(b"k", b"%d" % n, (), NOW_MS + n) for n in range(count)]
    assert decode(encode(written, base_offset=5)) == [(5 + n, record) for n, record in enumerate(written)]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 2047, 2048, 8191, 8192, 1 << 20, (1 << 20) + 1])
def test_keys_values_and_headers_of_many_sizes(size: int) -> None:
    for record in (
        Record(bytes(size), b"v", (), 0),
        Record(None, bytes(size), (), 0),
        Record(b"k", bytes(size), (), 0),
        Record(None, None, ((bytes(size), bytes(size)),), 0),
        Record(None, b"", ((b"", None),) * min(size, 10_000), 0),
    ):
        assert decode(encode([record], base_offset=1)) == [(1, record)]
        assert decode(encode([record, record], base_offset=1)) == [(1, record), (2, record)]


def test_one_record_takes_the_same_bytes_on_both_paths() -> None:
    for record in (*GOLDEN_RECORDS, Record(b"k" * 9000, b"v" * 9000, ((b"h", b"x" * 9000),), 5)):
        assert encode([record], base_offset=9) == encode([record], base_offset=9, offsets=[9])


def test_values_are_bytes_of_their_own() -> None:
    data = bytearray(encode([Record(b"key", b"value", (), 0)], base_offset=0))
    ((_, record),) = decode(memoryview(data))
    data[HEADER_BYTES:] = bytes(len(data) - HEADER_BYTES)
    assert (record.key, record.value) == (b"key", b"value")
    assert type(record.key) is type(record.value) is bytes


def test_golden_bytes() -> None:
    made = encode(
        GOLDEN_RECORDS,
        base_offset=0,
        leader_epoch=0,
        attributes=TRANSACTIONAL,
        producer_id=4000,
        producer_epoch=5,
        base_sequence=17,
    )
    assert made == GOLDEN
    assert decode(GOLDEN) == list(enumerate(GOLDEN_RECORDS))
    header = check(GOLDEN)
    assert header == BatchHeader(0, len(GOLDEN), 0, 0x54BDC14F, TRANSACTIONAL, 2, NOW_MS, NOW_MS + 200, 4000, 5, 17, 3)
    assert header.is_transactional
    assert not header.is_control
    assert not header.log_append_time


def test_the_attributes_of_a_record_are_ignored() -> None:
    data = bytearray(GOLDEN)
    data[HEADER_BYTES + 1] = 0xFF
    assert decode(resealed(data)) == list(enumerate(GOLDEN_RECORDS))


def test_what_cannot_be_encoded_is_refused() -> None:
    record = Record(None, b"v", (), 0)
    with pytest.raises(InvalidError, match="at least one"):
        encode([], base_offset=0)
    for second, base_offset, offsets, producer_epoch in (
        (record, 0, [1], -1),
        (record, 0, [1, 1], -1),
        (record, 5, [4, 5], -1),
        (record, 0, [0, 2**31], -1),
        (record, 2**63, None, -1),
        (record, 0, None, 2**15),
        (Record(None, b"v", (), MOST_TIMESTAMP_MS + 1), 0, None, -1),
        (Record(None, b"v", (), -MOST_TIMESTAMP_MS - 1), 0, None, -1),
    ):
        for codec in (Codec.NONE, Codec.GZIP):
            with pytest.raises(InvalidError):
                encode(
                    [record, second],
                    base_offset=base_offset,
                    offsets=offsets,
                    producer_epoch=producer_epoch,
                    codec=codec,
                )
            if offsets is None:
                with pytest.raises(InvalidError):
                    encode([second], base_offset=base_offset, producer_epoch=producer_epoch, codec=codec)


# ---- headers


def test_old_message_sets_are_told_apart() -> None:
    data = bytearray(30)  # an old message may be shorter than a header of today
    for magic in (0, 1):
        data[16] = magic
        with pytest.raises(OldMagicError, match=f"magic {magic}"):
            read_header(data)
        with pytest.raises(OldMagicError):
            check(data)
    data[16] = 3
    with pytest.raises(FormatError, match="3, not 2") as caught:
        read_header(data)
    assert not isinstance(caught.value, OldMagicError)


def test_a_batch_cut_short_is_refused() -> None:
    for size in range(len(GOLDEN)):
        with pytest.raises(FormatError, match="cut short"):
            check(GOLDEN[:size])
        with pytest.raises(FormatError, match="cut short"):
            decode(GOLDEN[:size], verify=False)
    for size in range(HEADER_BYTES):
        with pytest.raises(FormatError, match="cut short"):
            read_header(GOLDEN[:size])
    assert read_header(GOLDEN[:HEADER_BYTES]).length == len(GOLDEN)


def test_each_flipped_bit_under_the_crc_is_found() -> None:
    for place in range(16, len(GOLDEN)):
        for bit in range(8):
            data = bytearray(GOLDEN)
            data[place] ^= 1 << bit
            with pytest.raises(FormatError):
                check(data)


def test_headers_that_make_no_sense_are_refused() -> None:
    for place, form, value, words in (
        (8, ">i", 48, "impossible"),
        (8, ">i", -1, "impossible"),
        (21, ">h", 5, "codec 5"),
        (21, ">h", 7, "codec 7"),
        (57, ">i", -1, "impossible"),
        (57, ">i", 4, "do not fit"),
        (57, ">i", 2**31 - 1, "do not fit"),
        (23, ">i", 1, "do not fit"),
        (23, ">i", -1, "do not fit"),
    ):
        data = bytearray(GOLDEN)
        struct.pack_into(form, data, place, value)
        if place != 8:
            data = bytearray(resealed(data))
        with pytest.raises(FormatError, match=words):
            check(data)
        with pytest.raises(FormatError, match=words):
            decode(data, verify=False)
    # More records than bytes for them.
    with pytest.raises(FormatError, match="do not fit"):
        check(with_body(b"x" * 20, count=3, last_offset_delta=2))


def test_a_batch_beyond_the_limit_is_refused() -> None:
    assert check(GOLDEN, limit_bytes=len(GOLDEN)).length == len(GOLDEN)
    with pytest.raises(LimitError, match=str(len(GOLDEN) - 1)):
        check(GOLDEN, limit_bytes=len(GOLDEN) - 1)


def test_check_never_unpacks() -> None:
    batch = with_body(b"this is not gzip", attributes=Codec.GZIP)
    assert check(batch).codec == Codec.GZIP
    with pytest.raises(FormatError, match="gzip"):
        decode(batch)


def test_batches_are_hopped_over() -> None:
    made = [encode(records(count), base_offset=count * 10, codec=Codec(count)) for count in (1, 2, 3)]
    data = b"xx" + b"".join(made) + b"yy"
    ends = len(data) - 2
    found = list(batches(data, 2, ends))
    assert [data[at : at + header.length] for at, header in found] == made
    assert [header.base_offset for _, header in found] == [10, 20, 30]
    assert list(batches(b"")) == []
    for end in (ends - 1, ends + 2):
        walk = batches(data, 2, end)
        with pytest.raises(FormatError, match="cut short"):
            list(walk)


def test_stamping_changes_base_offset_and_epoch_only() -> None:
    for batch in (GOLDEN, bytearray(GOLDEN), memoryview(GOLDEN)):
        stamped = stamp(batch, 2**62, 77)
        assert type(stamped) is bytes
        header = check(stamped)
        assert (header.base_offset, header.leader_epoch, header.last_offset) == (2**62, 77, 2**62 + 2)
        assert stamp(stamped, 0, 0) == GOLDEN
    assert [offset for offset, _ in decode(stamp(GOLDEN, 100, 1))] == [100, 101, 102]


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_is_that_of_all_records(codec: Codec) -> None:
    written = records(5)
    batch = encode(written, base_offset=3, codec=codec, attributes=CONTROL, producer_id=4)
    later = set_log_append_time(memoryview(batch), NOW_MS + 99)
    header = check(later)
    assert header.log_append_time
    assert header.is_control
    assert header.attributes == codec | CONTROL | LOG_APPEND_TIME
    assert header.max_timestamp_ms == NOW_MS + 99
    assert header.producer_id == 4
    assert later[HEADER_BYTES:] == batch[HEADER_BYTES:]
    assert [(offset, record.value, record.timestamp_ms) for offset, record in decode(later)] == [
        (3 + n, record.value, NOW_MS + 99) for n, record in enumerate(written)
    ]


# ---- filtering


@pytest.mark.parametrize("codec", Codec)
def test_filtering_keeps_offsets_and_everything_else(codec: Codec) -> None:
    written = records(30)
    offsets = [100 + 3 * n for n in range(30)]
    batch = encode(
        written,
        base_offset=98,
        leader_epoch=6,
        offsets=offsets,
        codec=codec,
        attributes=TRANSACTIONAL,
        producer_id=8,
        producer_epoch=1,
        base_sequence=44,
    )
    left = filter_records(memoryview(batch), lambda offset, record: offset % 2 == 0 and record.key != b"k4")
    assert left is not None
    assert decode(left) == [
        (offset, record)
        for offset, record in zip(offsets, written, strict=True)
        if offset % 2 == 0 and record.key != b"k4"
    ]
    was, now = check(batch), check(left)
    assert now.record_count == 14
    now.length, now.crc, now.record_count = was.length, was.crc, was.record_count
    assert now == was
    assert filter_records(batch, lambda _offset, _record: True) == batch


@pytest.mark.parametrize("codec", Codec)
def test_filtering_all_away(codec: Codec) -> None:
    batch = encode(records(3), base_offset=7, codec=codec, producer_id=8, base_sequence=5)
    assert filter_records(batch, lambda _offset, _record: False) is None
    empty = filter_records(batch, lambda _offset, _record: False, keep_empty=True)
    assert empty is not None
    header = check(empty)
    assert (header.base_offset, header.next_offset, header.record_count, header.length) == (7, 10, 0, HEADER_BYTES)
    assert (header.producer_id, header.base_sequence, header.codec) == (8, 5, Codec.NONE)
    assert decode(empty) == []
    assert filter_records(empty, lambda _offset, _record: False, keep_empty=True) == empty


def test_an_empty_batch_with_a_codec_is_read() -> None:
    assert decode(with_body(b"", count=0, attributes=Codec.ZSTD)) == []


# ---- what the records may do wrong


def record_bytes(*, timestamp: bytes = b"\0", offset: bytes = b"\0", rest: bytes = b"\1\1\0") -> bytes:
    body = b"\0" + timestamp + offset + rest
    return pack_number(len(body)) + body


def test_records_that_make_no_sense_are_refused() -> None:
    good = record_bytes()
    assert decode(with_body(good)) == [(0, Record(None, None, (), 0))]
    for name, body, count in (
        ("bytes after the last record", good + b"\0", 1),
        ("a record of no bytes", b"\0" + bytes(9), 1),
        ("a record of negative length", b"\1" + bytes(9), 1),
        ("a record beyond the batch", pack_number(90) + good[1:] + bytes(9), 1),
        ("a length of 35 bits", b"\xff\xff\xff\xff\x7f" + bytes(9), 1),
        ("a length of 6 bytes", b"\x80\x80\x80\x80\x80\x01" + bytes(9), 1),
        ("a key of -2 bytes", record_bytes(rest=b"\3\1\0"), 1),
        ("a value of -2 bytes", record_bytes(rest=b"\1\3\0"), 1),
        ("a key beyond the record", record_bytes(rest=b"\x7e\1\0"), 1),
        ("a value beyond the record", record_bytes(rest=b"\1\x7e\0"), 1),
        ("no header count", record_bytes(rest=b"\1\2\0"), 1),
        ("bytes after the headers", record_bytes(rest=b"\1\1\0\0"), 1),
        ("a negative header count", record_bytes(rest=b"\1\1\1"), 1),
        ("a header count that lies", record_bytes(rest=b"\1\1" + pack_number(2**31 - 1)), 1),
        ("a header key of None", record_bytes(rest=b"\1\1\2\1\1"), 1),
        ("a header value of -2 bytes", record_bytes(rest=b"\1\1\2\0\3"), 1),
        ("a header cut short", record_bytes(rest=b"\1\1\2\0"), 1),
        ("a header key beyond the record", record_bytes(rest=b"\1\1\2\x7e\1"), 1),
        ("an offset delta beyond the batch", record_bytes(offset=b"\2"), 1),
        ("a negative offset delta", record_bytes(offset=b"\1"), 1),
        ("offsets that do not rise", good + good, 2),
        ("a timestamp of 70 bits", record_bytes(timestamp=b"\xff" * 9 + b"\x7f"), 1),
        ("a timestamp of 11 bytes", record_bytes(timestamp=b"\xff" * 10 + b"\1"), 1),
        ("a timestamp delta beyond reason", record_bytes(timestamp=pack_number(2**63 - 1)), 1),
    ):
        batch = with_body(body, count=count, last_offset_delta=count - 1)
        check(batch)
        try:
            decode(batch)
        except FormatError:
            continue
        pytest.fail(f"{name} was taken")


@pytest.mark.parametrize("sign", [1, -1])
def test_timestamps_are_bounded_so_that_all_can_be_encoded_again(sign: int) -> None:
    ends = [Record(None, b"", (), sign * (MOST_TIMESTAMP_MS - n)) for n in (0, 1, 63, 2**61, 2**62)]
    assert [record for _, record in decode(encode(ends, base_offset=0))] == ends
    for delta in (sign, sign * 63, sign * 1000, sign * 2**62):
        data = bytearray(with_body(record_bytes(timestamp=pack_number(delta))))
        struct.pack_into(">q", data, 27, sign * MOST_TIMESTAMP_MS)
        with pytest.raises(FormatError, match="timestamp"):
            decode(resealed(data))
    for place, attributes in ((27, 0), (35, LOG_APPEND_TIME), (27, LOG_APPEND_TIME)):
        data = bytearray(with_body(record_bytes(), attributes=attributes))
        struct.pack_into(">q", data, place, sign * (MOST_TIMESTAMP_MS + 1))
        with pytest.raises(FormatError, match="timestamp"):
            decode(resealed(data))


def test_a_record_never_reaches_into_the_next_batch() -> None:
    lying = with_body(record_bytes(rest=b"\1" + pack_number(100) + b"\0"))
    with pytest.raises(FormatError):
        decode(lying + GOLDEN)
    short = with_body(pack_number(30) + b"\0\0\0\1\1\0" + bytes(2))
    with pytest.raises(FormatError):
        decode(short + GOLDEN)


def test_the_limit_of_decode_counts_bytes_records_and_headers() -> None:
    plain = encode([Record(None, bytes(5000), (), 0)], base_offset=0)
    packed = encode([Record(None, bytes(5000), (), 0)], base_offset=0, codec=Codec.GZIP)
    for batch in (plain, packed):
        assert len(decode(batch, limit_bytes=6000)) == 1
    assert len(decode(plain, limit_bytes=1000)) == 1  # it takes what it has taken already
    with pytest.raises(LimitError):
        decode(packed, limit_bytes=4000)
    many = encode([Record(None, None, (), 0)] * 1000, base_offset=0, codec=Codec.ZSTD)
    with pytest.raises(LimitError, match="1000 records"):
        decode(many, limit_bytes=100_000)
    headers = encode([Record(None, None, ((b"", None),) * 1000, 0)], base_offset=0, codec=Codec.ZSTD)
    with pytest.raises(LimitError, match="headers"):
        decode(headers, limit_bytes=50_000)
    with pytest.raises(LimitError):
        decode(with_body(compress(Codec.GZIP, bytes(100_000)), attributes=Codec.GZIP), limit_bytes=50_000)


# ---- varints


@settings(derandomize=True, max_examples=300, deadline=None)
@given(number=st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-200, 200), st.integers(-20_000, 20_000)))
def test_numbers_come_back(number: int) -> None:
    packed = pack_number(number)
    assert read_varint(b"x" + packed + b"\xff", 1) == (number, 1 + len(packed))
    assert read_varlong(b"x" + packed + b"\xff", 1) == (number, 1 + len(packed))
    far = number << 32 | 5
    assert read_varlong(pack_number(far), 0) == (far, len(pack_number(far)))


def test_the_ends_of_the_numbers() -> None:
    for number, packed in (
        (0, "00"),
        (-1, "01"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ):
        assert pack_number(number).hex() == packed
        assert read_varint(bytes.fromhex(packed), 0)[0] == number
    for number in (2**63 - 1, -(2**63)):
        assert read_varlong(pack_number(number), 0) == (number, 10)
        with pytest.raises(FormatError):
            read_varint(pack_number(number), 0)


# ---- the oracle


def require_oracle(codec: Codec) -> None:
    """Skip without kafka-python, or where it lacks the library for the codec."""
    oracle = pytest.importorskip("kafka.codec", reason="kafka-python is the oracle")
    if codec and not getattr(oracle, f"has_{codec.name.lower()}")():
        pytest.skip(f"kafka-python finds no library for {codec.name}")


def oracle_write(written: list[Record], codec: int) -> bytes:
    oracle = pytest.importorskip("kafka.record.default_records", reason="kafka-python is the oracle")
    builder = oracle.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=7,
        producer_epoch=2,
        base_sequence=3,
        batch_size=1 << 24,
    )
    for offset, record in enumerate(written):
        headers = [(key.decode(), value) for key, value in record.headers]
        assert builder.append(offset, record.timestamp_ms, record.key, record.value, headers)
    return bytes(builder.build())


def oracle_samples() -> list[list[Record]]:
    return [
        records(1),
        records(200),
        GOLDEN_RECORDS,
        [Record(b"key", bytes(300_000), ((b"\xc3\xa9", b"\xff\x00"),), NOW_MS)],
        [Record(None, b"%d" % n * 50, (), NOW_MS - n * 1000) for n in range(300)],
    ]


@pytest.mark.parametrize("codec", Codec)
def test_what_kafka_python_writes_is_read(codec: Codec) -> None:
    require_oracle(codec)
    for written in oracle_samples():
        batch = oracle_write(written, codec)
        header = check(batch)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 3)
        assert decode(batch) == list(enumerate(written))


@pytest.mark.parametrize("codec", Codec)
def test_what_is_written_kafka_python_reads(codec: Codec) -> None:
    require_oracle(codec)
    oracle = pytest.importorskip("kafka.record.memory_records", reason="kafka-python is the oracle")
    for written in oracle_samples():
        mine = encode(
            written,
            base_offset=0,
            leader_epoch=0,
            codec=codec,
            producer_id=7,
            producer_epoch=2,
            base_sequence=3,
        )
        if codec == Codec.NONE:
            assert mine == oracle_write(written, codec)
        stamped = stamp(mine, 1000, 4)
        read = oracle.MemoryRecords(stamped + set_log_append_time(stamped, NOW_MS))
        for time_ms in (None, NOW_MS):
            batch = read.next_batch()
            assert batch.validate_crc()
            assert [
                Record(
                    record.key,
                    record.value,
                    tuple((key.encode(), value) for key, value in record.headers),
                    record.timestamp,
                )
                for record in batch
            ] == [
                Record(record.key, record.value, record.headers, record.timestamp_ms if time_ms is None else time_ms)
                for record in written
            ]
        assert read.next_batch() is None


def test_offsets_with_gaps_are_read_by_kafka_python() -> None:
    oracle = pytest.importorskip("kafka.record.memory_records", reason="kafka-python is the oracle")
    made = encode(records(4), base_offset=10, offsets=[12, 13, 20, 900], codec=Codec.GZIP)
    left = filter_records(made, lambda offset, _record: offset != 13)
    assert left is not None
    batch = oracle.MemoryRecords(left).next_batch()
    assert [record.offset for record in batch] == [12, 20, 900]
    assert batch.next_offset == 901


def test_the_limit_of_a_batch_is_under_that_of_its_length_field() -> None:
    assert batch_module.MAX_BATCH_BYTES < 2**31
