"""What pika and py-amqp write, we read, and what we write, they read: methods, properties, tables, frames."""

import importlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.faces.amqp.frames import BODY, HEADER, METHOD, FrameReader, frame
from interlog.faces.amqp.methods import METHODS, BasicPublish, decode
from interlog.faces.amqp.properties import Properties, header_payload, read_header
from interlog.faces.amqp.tables import decode_table, encode_table
from interlog.faces.amqp.values import Table, Timestamp, UInt8
from interlog.faces.amqp.wire import Method
from tests.unit.amqp_values import INT64, PROPERTIES, SCALARS, TEXT, methods_of, tables_of

# Imported by name: neither has types that mypy could read.
pika_spec: Any = importlib.import_module("pika.spec")
pika_data: Any = importlib.import_module("pika.data")
pika_frame: Any = importlib.import_module("pika.frame")
pyamqp: Any = importlib.import_module("amqp.serialization")

KINDS = sorted(METHODS.values(), key=lambda kind: kind.id)

# What both libraries have types for; pika has none for floats when it writes.
WRITTEN = tables_of(st.booleans() | INT64 | st.text(TEXT, max_size=40) | st.none())
# They read times as datetimes, which end with the year 9999.
READ = tables_of(SCALARS.filter(lambda value: not isinstance(value, Timestamp)))
READ_BY_PIKA = tables_of(
    SCALARS.filter(lambda value: not isinstance(value, Timestamp | float))
)  # it cuts floats to ints
SECONDS = st.integers(0, 4_000_000_000).map(Timestamp)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_methods_are_pikas_to_the_byte(kind: type[Method]) -> None:
    @settings(max_examples=20)
    @given(methods_of(kind, WRITTEN))
    def the_same(method: Method) -> None:
        values = {"global_qos" if name == "global_" else name: value for name, value in method.values().items()}
        theirs = pika_spec.methods[kind.id](**values)
        assert b"".join(theirs.encode()) == method.encode()[4:]
        assert theirs.synchronous == kind.synchronous

    the_same()


@given(WRITTEN)
def test_reads_the_tables_they_write(table: Table) -> None:
    pieces: list[bytes] = []
    pika_data.encode_table(pieces, table)
    assert decode_table(b"".join(pieces)) == table
    assert decode_table(pyamqp.dumps("F", [table])) == table


@given(READ)
def test_py_amqp_reads_the_tables_we_write(table: Table) -> None:
    data = encode_table(table)
    assert pyamqp.loads("F", data, 0) == ([table], len(data))


@given(READ_BY_PIKA)
def test_pika_reads_the_tables_we_write(table: Table) -> None:
    data = encode_table(table)
    assert pika_data.decode_table(data, 0) == (table, len(data))


@given(SECONDS)
def test_they_read_the_times_we_write(seconds: Timestamp) -> None:
    data = encode_table({"at": seconds})
    moment = datetime.fromtimestamp(seconds, UTC)
    assert pika_data.decode_table(data, 0)[0]["at"].replace(tzinfo=UTC) == moment
    assert pyamqp.loads("F", data, 0)[0][0]["at"].replace(tzinfo=UTC) == moment


LISTS = st.fixed_dictionaries({}, optional={**PROPERTIES, "headers": WRITTEN})


@given(LISTS)
def test_properties_are_pikas(values: dict[str, Any]) -> None:
    # pika leaves out what is empty or 0, where we make a difference between that and nothing.
    values = {name: value for name, value in values.items() if value}
    ours = Properties(**values).encode()
    theirs = pika_spec.BasicProperties(**values)
    assert Properties.decode(b"".join(theirs.encode())).values() == values
    read = pika_spec.BasicProperties()
    read.decode(ours)
    assert {name: value for name, value in vars(read).items() if value is not None} == values


@given(LISTS)
def test_py_amqp_reads_the_properties_we_write(values: dict[str, Any]) -> None:
    data = Properties(**values).encode()
    found, at = pyamqp.decode_properties_basic(data, 0)
    assert at == len(data)
    if "headers" in values:
        values = {**values, "application_headers": values["headers"]}
        del values["headers"]
    assert found == values


@given(st.text(TEXT, max_size=40), st.binary(max_size=100))
def test_a_publish_by_pika_is_read(key: str, body: bytes) -> None:
    publish = pika_spec.Basic.Publish(exchange="x", routing_key=key, mandatory=True)
    header = pika_spec.BasicProperties(delivery_mode=2)
    reader = FrameReader()
    reader.feed(
        pika_frame.Method(3, publish).marshal()
        + pika_frame.Header(3, len(body), header).marshal()
        + pika_frame.Body(3, body).marshal()
    )
    (first, second, third) = list(reader.frames())
    assert [place[:2] for place in (first, second, third)] == [(METHOD, 3), (HEADER, 3), (BODY, 3)]
    assert decode(reader.data, first[2], first[3]) == BasicPublish("x", key, mandatory=True)
    assert read_header(reader.data, second[2], second[3]) == (60, len(body), b"\x10\x00\x02")
    assert reader.data[third[2] : third[3]] == body


def test_a_header_frame_of_ours_is_read_by_pika() -> None:
    made = frame(HEADER, 5, header_payload(9, Properties(headers={"a": UInt8(7)}, priority=3).encode()))
    size, read = pika_frame.decode_frame(made)
    assert size == len(made)
    assert (read.channel_number, read.body_size) == (5, 9)
    assert (read.properties.headers, read.properties.priority) == ({"a": 7}, 3)
