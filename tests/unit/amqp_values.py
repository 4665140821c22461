"""Hypothesis strategies for what AMQP carries, shared by the tests of its codecs."""

import inspect
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from interlog.faces.amqp.methods import METHODS
from interlog.faces.amqp.values import (
    Binary,
    Float32,
    Int8,
    Int16,
    Int64,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
)
from interlog.faces.amqp.wire import Method

# A short string has 255 bytes: 63 characters of any kind, or 255 plain ones.
PLAIN = st.characters(min_codepoint=32, max_codepoint=126)
TEXT = st.characters(exclude_categories=["Cs"])
SHORT = st.text(TEXT, max_size=63) | st.text(PLAIN, max_size=255)

OCTET, SHORT_INT, LONG, LONG_LONG = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

OCTETS = {"version_major", "version_minor"}
SHORT_INTS = {"channel_max", "heartbeat", "reply_code", "class_id", "method_id", "prefetch_count", "ticket"}
LONG_LONGS = {"delivery_tag"}

COMMON_SCALARS: st.SearchStrategy[Any] = (
    st.booleans() | INT64 | st.floats(allow_nan=False) | st.text(TEXT, max_size=40) | st.none()
)
DECIMALS = st.builds(lambda digits, places: Decimal(digits).scaleb(-places), INT32, st.integers(0, 40))
SCALARS: st.SearchStrategy[Any] = (
    COMMON_SCALARS
    | st.binary(max_size=40).map(lambda raw: raw + b"\xff")  # no UTF-8: else it would come back as a str
    | st.binary(max_size=40).map(Binary)
    | st.integers(-(2**7), 2**7 - 1).map(Int8)
    | OCTET.map(UInt8)
    | st.integers(-(2**15), 2**15 - 1).map(Int16)
    | SHORT_INT.map(UInt16)
    | LONG.map(UInt32)
    | INT32.map(Int64)
    | LONG_LONG.map(Timestamp)
    | st.floats(width=32, allow_nan=False).map(Float32)
    | DECIMALS
)


def tables_of(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Table]:
    def inside(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(values, max_size=4) | st.dictionaries(SHORT, values, max_size=4)

    return st.dictionaries(SHORT, st.recursive(scalars, inside, max_leaves=12), max_size=6)


TABLES = tables_of(SCALARS)
COMMON_TABLES = tables_of(COMMON_SCALARS)


def field(name: str, annotation: str, tables: st.SearchStrategy[Table]) -> st.SearchStrategy[Any]:
    if annotation == "int":
        if name in OCTETS:
            return OCTET
        if name in SHORT_INTS:
            return SHORT_INT
        return LONG_LONG if name in LONG_LONGS else LONG
    return {"str": SHORT, "bytes": st.binary(max_size=300), "bool": st.booleans()}.get(annotation, tables)


def methods_of(kind: type[Method], tables: st.SearchStrategy[Table] = TABLES) -> st.SearchStrategy[Method]:
    """Any value of one method."""
    slots: tuple[str, ...] = kind.__slots__
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:] if slots else []
    return st.builds(kind, **{p.name: field(p.name, str(p.annotation), tables) for p in parameters})


ANY_METHOD = st.sampled_from(sorted(METHODS.values(), key=lambda kind: kind.id)).flatmap(methods_of)

PROPERTIES: dict[str, st.SearchStrategy[Any]] = {
    "content_type": SHORT,
    "content_encoding": SHORT,
    "headers": TABLES,
    "delivery_mode": OCTET,
    "priority": OCTET,
    "correlation_id": SHORT,
    "reply_to": SHORT,
    "expiration": SHORT,
    "message_id": SHORT,
    "timestamp": LONG_LONG,
    "type": SHORT,
    "user_id": SHORT,
    "app_id": SHORT,
    "cluster_id": SHORT,
}
ANY_PROPERTIES = st.fixed_dictionaries({}, optional=PROPERTIES)


def same(left: object, right: object) -> bool:
    """Equal, and of the same types all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left == right and left.as_tuple().exponent == right.as_tuple().exponent
    return left == right
