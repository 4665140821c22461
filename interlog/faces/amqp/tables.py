"""Field tables: bytes to dicts and back, with RabbitMQ's letters for the types, and within limits.

RabbitMQ's letters differ from the written standard's: b/B are 8 bits, s/u 16, I/i 32 (the second of each pair is
unsigned), l and L both signed 64. Names, and long strings that are UTF-8, are str; other long strings are bytes. What
is read is written again under the same letters (L becomes l, as RabbitMQ has it). Of a name that stands twice the last
value counts.

Bytes that are no table are a SYNTAX_ERROR. Readers named read_… run inside a method's own guard and let the READ_ERRORS
of wire.py through.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from struct import Struct, error
from typing import Any, Final

from interlog.faces.amqp.errors import AmqpError, syntax_error
from interlog.faces.amqp.values import (
    INT32_MAX,
    INT32_MIN,
    Binary,
    Float32,
    Int8,
    Int16,
    Int64,
    Sized,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
)
from interlog.faces.amqp.wire import READ_ERRORS, SIZE, short

MAX_DEPTH: Final = 32
MAX_ENTRIES: Final = 16_384  # of one table or array
MAX_BYTES: Final = 1 << 20  # of a table with all that is in it

STRING, BINARY, TABLE, ARRAY, VOID, DECIMAL = b"SxFAVD"
INT, LONG, UNUSUAL_LONG, DOUBLE, FLOAT = b"IlLdf"

# Values of fixed size: how they are read, their size, and what is made of them (None: they are as they are read).
READERS: Final[dict[int, tuple[Struct, int, type | None]]] = {
    code: (Struct(layout), Struct(layout).size, made)
    for code, layout, made in (
        (ord("t"), ">B", bool),
        (INT, ">i", None),
        (LONG, ">q", Int64),
        (UNUSUAL_LONG, ">q", Int64),
        (DOUBLE, ">d", None),
        (FLOAT, ">f", Float32),
        (ord("T"), ">Q", Timestamp),
        (ord("b"), ">b", Int8),
        (ord("B"), ">B", UInt8),
        (ord("s"), ">h", Int16),
        (ord("u"), ">H", UInt16),
        (ord("i"), ">I", UInt32),
    )
}
WRITERS: Final = {code: Struct(">B" + layout.format[1:]) for code, (layout, _, _) in READERS.items()}

DECIMAL_PARTS: Final = Struct(">Bi")  # places behind the point, and the digits: signed, as the clients have it


# How far to go from a letter past its value, by letter; 0 where the value says its size, or there is no such letter.
STEPS: Final = tuple(
    1 + READERS[code][1] if code in READERS else {VOID: 1, DECIMAL: 1 + DECIMAL_PARTS.size}.get(code, 0)
    for code in range(256)
)


# -- reading


def decode_table(data: bytes) -> Table:
    """A table with its size in front, and nothing behind it."""
    try:
        table, at = read_table(data, 0, len(data))
    except READ_ERRORS:
        raise malformed_table() from None
    if at != len(data):
        raise malformed_table()
    return table


def read_table(data: bytes, at: int, end: int) -> tuple[Table, int]:
    """The table at `at`, which must end by `end`, and where it ends."""
    stop = extent(data, at, end)
    return _read_entries(data, at + 4, stop, MAX_DEPTH), stop


def extent(data: bytes, at: int, end: int) -> int:
    """Where the table (array, string) ends whose size is at `at`."""
    (size,) = SIZE.unpack_from(data, at)
    stop: int = at + 4 + size
    if stop > end:
        raise malformed_table()
    if size > MAX_BYTES:
        raise syntax_error(f"a table, and each value in it, may have {MAX_BYTES} bytes, not {size}")
    return stop


def malformed_table() -> AmqpError:
    return syntax_error("malformed table")


def too_deep() -> AmqpError:
    return syntax_error(f"tables may be {MAX_DEPTH} deep, not deeper")


def too_many() -> AmqpError:
    return syntax_error(f"a table or array may have {MAX_ENTRIES} entries, not more")


def _read_entries(data: bytes, at: int, stop: int, depth: int) -> Table:
    if not depth:
        raise too_deep()
    table: Table = {}
    while at < stop:
        start = at + 1
        at = start + data[at]
        name = data[start:at].decode("utf-8", "surrogateescape")
        table[name], at = _read_value(data, at, stop, depth)
        if len(table) > MAX_ENTRIES:
            raise too_many()
    if at != stop:
        raise malformed_table()
    return table


def _read_array(data: bytes, at: int, stop: int, depth: int) -> list[Any]:
    if not depth:
        raise too_deep()
    array = []
    while at < stop:
        value, at = _read_value(data, at, stop, depth)
        array.append(value)
        if len(array) > MAX_ENTRIES:
            raise too_many()
    if at != stop:
        raise malformed_table()
    return array


def _read_value(data: bytes, at: int, stop: int, depth: int) -> tuple[Any, int]:
    """The value whose letter is at `at`, and where it ends: past `stop` if it is cut short."""
    code = data[at]
    at += 1
    if code == STRING:
        end = extent(data, at, stop)
        raw = data[at + 4 : end]
        try:
            return raw.decode(), end
        except UnicodeDecodeError:
            return raw, end
    reader = READERS.get(code)
    if reader is not None:
        layout, size, made = reader
        (value,) = layout.unpack_from(data, at)
        if made is not None and (made is not Int64 or INT32_MIN <= value <= INT32_MAX):
            value = made(value)
        return value, at + size
    if code == TABLE:
        end = extent(data, at, stop)
        return _read_entries(data, at + 4, end, depth - 1), end
    if code == ARRAY:
        end = extent(data, at, stop)
        return _read_array(data, at + 4, end, depth - 1), end
    if code == VOID:
        return None, at
    if code == BINARY:
        end = extent(data, at, stop)
        return Binary(data[at + 4 : end]), end
    if code == DECIMAL:
        return _decimal(*DECIMAL_PARTS.unpack_from(data, at)), at + DECIMAL_PARTS.size
    raise unknown_letter(code)


def unknown_letter(code: int) -> AmqpError:
    return syntax_error(f"there is no type of value with the letter {chr(code)!r}")


def _decimal(places: int, digits: int) -> Any:
    from decimal import Decimal  # rare, and not worth its share of every start

    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -places))


# -- walking without reading


def check_table(data: bytes, at: int, end: int) -> int:
    """Like `read_table`, but makes nothing: where the table ends."""
    stop = extent(data, at, end)
    _check(data, at + 4, stop, MAX_DEPTH, named=True)
    return stop


def _check(data: bytes, at: int, stop: int, depth: int, *, named: bool) -> None:
    if not depth:
        raise too_deep()
    count = 0
    steps = STEPS
    unpack = SIZE.unpack_from
    while at < stop:
        if named:
            at += 1 + data[at]
        code = data[at]
        step = steps[code]
        if step:
            at += step
        elif code in (STRING, BINARY):
            at += 5 + unpack(data, at + 1)[0]  # past `stop` if it is cut short, which shows below
        elif code in (TABLE, ARRAY):
            inner = at + 5
            at = extent(data, at + 1, stop)
            _check(data, inner, at, depth - 1, named=code == TABLE)
        else:
            raise unknown_letter(code)
        count += 1
    if at != stop:
        raise malformed_table()
    if count > MAX_ENTRIES:
        raise too_many()


def entries(data: bytes, at: int, stop: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Of the entries of a sound table in data[at:stop] (behind its size): name, start, start of the value, end."""
    while at < stop:
        start = at
        at += 1 + data[at]
        value = at
        step = STEPS[data[at]]
        at = at + step if step else extent(data, at + 1, stop)
        yield data[start + 1 : value], start, value, at


def find(data: bytes, at: int, stop: int, names: Container[bytes]) -> Table:
    """Only these entries of a sound table in data[at:stop] (behind its size)."""
    return {
        name.decode("utf-8", "surrogateescape"): _read_value(data, value, stop, MAX_DEPTH)[0]
        for name, _, value, _ in entries(data, at, stop)
        if name in names
    }


# -- writing


def encode_table(table: Mapping[str, Any]) -> bytes:
    """With its size in front. TypeError for values that no letter is for."""
    parts: list[bytes] = []
    _write_entries(table, parts, MAX_DEPTH)
    body = b"".join(parts)
    return SIZE.pack(len(body)) + body


def encode_entry(name: str, value: object) -> bytes:
    """One name and value, as they stand in a table."""
    parts = [short(name)]
    _write(value, parts, MAX_DEPTH)
    return b"".join(parts)


def _write_entries(table: Mapping[str, Any], parts: list[bytes], depth: int) -> None:
    if not depth:
        raise too_deep()
    for name, value in table.items():
        parts.append(short(name))
        _write(value, parts, depth)


def _write(value: object, parts: list[bytes], depth: int) -> None:
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        parts.append(b"S" + SIZE.pack(len(raw)))
        parts.append(raw)
    elif isinstance(value, bool):
        parts.append(b"t\x01" if value else b"t\x00")
    elif isinstance(value, int):
        code = value.code if isinstance(value, Sized) else INT if INT32_MIN <= value <= INT32_MAX else LONG
        try:
            parts.append(WRITERS[code].pack(code, value))
        except error:
            raise TypeError(f"{value!r} has no place in a table") from None
    elif isinstance(value, float):
        code = FLOAT if isinstance(value, Float32) else DOUBLE
        parts.append(WRITERS[code].pack(code, value))
    elif value is None:
        parts.append(b"V")
    elif isinstance(value, bytes):
        parts.append((b"x" if isinstance(value, Binary) else b"S") + SIZE.pack(len(value)))
        parts.append(value)
    elif isinstance(value, Mapping):
        inner: list[bytes] = []
        _write_entries(value, inner, depth - 1)
        _put_sized(b"F", inner, parts)
    elif isinstance(value, Sequence):
        inner = []
        if depth == 1:
            raise too_deep()
        for item in value:
            _write(item, inner, depth - 1)
        _put_sized(b"A", inner, parts)
    else:
        parts.append(_decimal_bytes(value))


def _put_sized(code: bytes, inner: list[bytes], parts: list[bytes]) -> None:
    body = b"".join(inner)
    parts.append(code + SIZE.pack(len(body)))
    parts.append(body)


def _decimal_bytes(value: object) -> bytes:
    from decimal import Decimal

    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        if isinstance(exponent, int) and -256 < exponent < 10:
            number = int("".join(map(str, digits))) * 10 ** max(0, exponent) * (-1 if sign else 1)
            if INT32_MIN <= number <= INT32_MAX:
                return b"D" + DECIMAL_PARTS.pack(max(0, -exponent), number)
    raise TypeError(f"{value!r} has no place in a table")
