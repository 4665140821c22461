"""Field tables: there and back with their types, within limits, and never long or large over bad bytes."""

import random
import time
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.faces.amqp import tables
from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.tables import check_table, decode_table, encode_table, entries, find
from interlog.faces.amqp.values import Binary, Int64, Table, Timestamp, UInt8, type_name
from interlog.faces.amqp.wire import READ_ERRORS
from tests.unit.amqp_values import TABLES, same


@given(TABLES)
def test_goes_there_and_back_with_its_types(table: Table) -> None:
    data = encode_table(table)
    back = decode_table(data)
    assert same(back, table)
    assert encode_table(back) == data
    assert check_table(data, 0, len(data)) == len(data)


def entry(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + value


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


KNOWN = [
    (b"S\0\0\0\x03abc", "abc"),
    (b"S\0\0\0\x02\xff\xfe", b"\xff\xfe"),
    (b"x\0\0\0\x02ab", b"ab"),
    (b"t\x01", True),
    (b"t\x00", False),
    (b"b\xff", -1),
    (b"B\xff", 255),
    (b"s\xff\xfe", -2),
    (b"u\xff\xfe", 65534),
    (b"I\xff\xff\xff\xff", -1),
    (b"i\xff\xff\xff\xff", 2**32 - 1),
    (b"l" + b"\xff" * 8, -1),
    (b"L" + b"\xff" * 8, -1),
    (b"f\x3f\xc0\0\0", 1.5),
    (b"d\x3f\xf8\0\0\0\0\0\0", 1.5),
    (b"D\x02\0\0\x01\x3a", Decimal("3.14")),
    (b"D\x01\xff\xff\xff\xff", Decimal("-0.1")),
    (b"T\0\0\0\0\x65\x53\xf1\0", 1_700_000_000),
    (b"V", None),
    (b"F\0\0\0\0", {}),
    (b"A\0\0\0\x03t\x01V", [True, None]),
]


@pytest.mark.parametrize(("raw", "value"), KNOWN, ids=lambda part: str(part)[:20])
def test_known_bytes(raw: bytes, value: object) -> None:
    data = sized(entry(b"k", raw))
    assert decode_table(data) == {"k": value}
    assert encode_table(decode_table(data)) == data.replace(b"L\xff", b"l\xff")


@given(TABLES)
def test_every_truncation_is_refused(table: Table) -> None:
    data = encode_table(table)
    for size in range(len(data)):
        refused(data[:size])
        if size > 3:
            refused(sized(data[4:size]), maybe=True)  # cut, with a size that fits: may end between two entries


def refused(data: bytes, *, maybe: bool = False) -> None:
    """Refused by the reader and by the checker, or by neither."""
    read, checked = outcome(decode_table, data), outcome(whole_check, data)
    assert read == checked
    assert maybe or read == ReplyCode.SYNTAX_ERROR


def whole_check(data: bytes) -> None:
    if check_table(data, 0, len(data)) != len(data):
        raise tables.malformed_table()


def outcome(of: Any, data: bytes) -> ReplyCode | None:
    try:
        of(data)
    except AmqpError as error:
        return error.code
    except READ_ERRORS:
        return ReplyCode.SYNTAX_ERROR
    return None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_table_or_an_error(data: bytes) -> None:
    refused(data, maybe=True)
    refused(sized(data), maybe=True)


def test_hurt_tables_are_read_and_checked_alike() -> None:
    rng = random.Random(3)
    sound = encode_table(
        {"a": [1, 2**40, {"b": "text", "c": b"\xff"}], "d": {"e": [None, True, 1.5]}, "f": Timestamp(5), "g": UInt8(1)}
    )
    for _ in range(20_000):
        data = bytearray(sound)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 4, 0xFF, 0x7F, *b"SFAxtIlV", rng.randrange(256)))
        refused(bytes(data), maybe=True)


def nested(depth: int, *, arrays: bool) -> bytes:
    body = b""
    for _ in range(depth - 1):
        body = (b"A" + sized(body)) if arrays else entry(b"k", b"F" + sized(body))
    return sized(entry(b"k", body) if arrays and body else body)


@pytest.mark.parametrize("arrays", [False, True])
def test_depth_is_limited(arrays: bool) -> None:
    deepest = nested(tables.MAX_DEPTH, arrays=arrays)
    assert encode_table(decode_table(deepest)) == deepest
    for depth in (tables.MAX_DEPTH + 1, 5_000, 20_000):
        refused(nested(depth, arrays=arrays))
    value: Any = {}
    for _ in range(tables.MAX_DEPTH):
        value = [value] if arrays else {"k": value}
    with pytest.raises(AmqpError):
        encode_table({"k": value})


def test_entries_and_bytes_are_limited() -> None:
    refused(sized(entry(b"k", b"A" + sized(b"V" * (tables.MAX_ENTRIES + 1)))))
    many = b"".join(entry(b"%d" % number, b"V") for number in range(tables.MAX_ENTRIES + 1))
    refused(sized(many))
    refused(sized(entry(b"k", b"S" + sized(bytes(tables.MAX_BYTES)))))


@pytest.mark.parametrize(
    "body",
    [
        entry(b"k", b"A" + sized(b"F\0\0\0\0" * 16_000)),
        entry(b"k", b"A" + sized(b"b\x05" * 16_000)),
        b"".join(entry(number.to_bytes(2, "big"), b"V") for number in range(16_000)),
    ],
    ids=["tables", "octets", "names"],
)
def test_bad_tables_cost_little(body: bytes) -> None:
    data = sized(body)
    decode_table(data)
    began = time.process_time()
    decode_table(data)
    assert time.process_time() - began < 0.5
    tracemalloc.start()
    try:
        kept = decode_table(data)
        assert kept
        assert tracemalloc.get_traced_memory()[1] < 60 * len(data)
    finally:
        tracemalloc.stop()


def test_a_size_beyond_the_data_takes_no_memory() -> None:
    refused(b"\xff\xff\xff\xff")
    refused(sized(entry(b"k", b"S\xff\xff\xff\xffabc")))
    refused(sized(entry(b"k", b"A\x7f\xff\xff\xff")))


def test_unknown_letters_are_named() -> None:
    with pytest.raises(AmqpError, match="SYNTAX_ERROR - there is no type of value with the letter 'U'"):
        decode_table(sized(entry(b"k", b"U\0\0\0\0")))


def test_finds_entries_without_reading_the_others() -> None:
    data = encode_table({"CC": ["a", "b"], "other": {"x": 1}, "x-delay": 5, "naïve": True})
    assert find(data, 4, len(data), {b"CC", b"x-delay", b"missing"}) == {"CC": ["a", "b"], "x-delay": 5}
    spans = {name: data[value:end] for name, _, value, end in entries(data, 4, len(data))}
    assert spans["naïve".encode()] == b"t\x01"
    assert b"".join(data[start:end] for _, start, _, end in entries(data, 4, len(data))) == data[4:]


def test_names_may_be_any_bytes() -> None:
    data = sized(entry(b"\xff\x80", b"V"))
    assert encode_table(decode_table(data)) == data


@pytest.mark.parametrize(
    "value", [object(), 2**63, -(2**63) - 1, Decimal("1e40"), Decimal("NaN"), Decimal(1) / 3, {1, 2}, UInt8(256)]
)
def test_what_has_no_letter_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        encode_table({"k": value})


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"),
        (1, "signedint"),
        (2**40, "long"),
        (Int64(1), "long"),
        (UInt8(1), "unsignedbyte"),
        (Timestamp(1), "timestamp"),
        (1.0, "double"),
        ("", "longstr"),
        (b"", "longstr"),
        (Binary(b""), "binary"),
        (None, "void"),
        ({}, "table"),
        ([], "array"),
        (Decimal(1), "decimal"),
    ],
)
def test_types_have_rabbitmqs_names(value: object, name: str) -> None:
    assert type_name(value) == name
