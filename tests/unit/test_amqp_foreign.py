"""Records of other protocols as AMQP messages: what has no place of its own stands in headers, and nothing breaks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.faces.amqp import foreign
from interlog.faces.amqp.messages import PROPERTIES, stream_wire_of
from interlog.faces.amqp.properties import Properties
from interlog.journal.record import Record

FRAME_BYTES = 4_088


def told(record: Record, offset: int = 5) -> tuple[bytes, bytes, Properties]:
    exchange, key, properties = stream_wire_of(record, offset, FRAME_BYTES)
    return exchange, key, Properties.decode(properties)


def headers(record: Record) -> dict[str, Any]:
    found = told(record)[2].headers
    assert found is not None
    return found


def test_the_time_to_the_millisecond() -> None:
    properties = told(Record(b"k", b"v", (), 1_234_567))[2]
    assert properties.timestamp == 1_234
    assert properties.headers == {"timestamp_in_ms": 1_234_567, "x-stream-offset": 5}


@pytest.mark.parametrize(
    ("key", "routing_key", "shown"),
    [
        (None, b"", None),
        (b"plain", b"plain", None),
        ("ключ".encode(), "ключ".encode(), None),
        (b"k" * 255, b"k" * 255, None),
        (b"", b"", b""),
        (b"\xff\x00", "�\x00".encode(), b"\xff\x00"),
        (b"k" * 256, b"k" * 255, b"k" * 256),
        (b"k" * 254 + "ü".encode(), b"k" * 254, b"k" * 254 + "ü".encode()),
    ],
)
def test_keys(key: bytes | None, routing_key: bytes, shown: bytes | None) -> None:
    record = Record(key, b"v", (), 0)
    assert told(record)[1] == routing_key
    assert headers(record).get(foreign.KEY) == shown


def test_a_key_that_no_frame_has_room_for_is_counted_as_left_out() -> None:
    found = headers(Record(b"\xff" * 10_000, b"v", (), 0))
    assert foreign.KEY not in found and found[foreign.LEFT_OUT] == 1


def test_headers() -> None:
    record = Record(b"k", None, ((b"a", b"1"), (b"a", None), (b"a", b"3"), (b"b", None), (b"interlog.x", b"!")), 0)
    found = headers(record)
    assert (found["a"], found["b"], found[foreign.TOMBSTONE]) == (["1", None, "3"], None, True)
    assert "interlog.x" not in found


def test_what_the_message_says_itself_comes_before_what_is_said_of_it() -> None:
    assert headers(Record(b"k", b"v", ((b"timestamp_in_ms", b"mine"),), 7))["timestamp_in_ms"] == "mine"


names = st.sampled_from([b"a", PROPERTIES, b"interlog.exchange", b"interlog.deaths", b"interlog.keys"]) | st.binary()
values = st.none() | st.binary() | st.sampled_from([b"\0\0", b"[]", b"[{}]", b'[{"queue": 1}]', b"e" * 256])


@given(
    st.none() | st.binary(max_size=600),
    st.none() | st.binary(),
    st.lists(st.tuples(names, values), max_size=6),
    st.integers(-1, 2**62),
)
def test_any_record_is_a_message(
    key: bytes | None, value: bytes | None, pairs: list[tuple[bytes, bytes | None]], at_ms: int
) -> None:
    exchange, routing_key, properties = told(Record(key, value, tuple(pairs), at_ms))
    assert exchange[0] == len(exchange) - 1 <= 255
    assert len(routing_key) <= 255
    assert properties.headers is not None and properties.headers["x-stream-offset"] == 5
