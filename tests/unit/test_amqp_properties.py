"""Content properties: there and back, scanned, and spliced without touching what is not meant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.properties import (
    KINDS,
    NAMES,
    Properties,
    Scan,
    changed,
    header_payload,
    read_header,
    scan,
    with_headers,
    without,
)
from interlog.faces.amqp.tables import encode_entry, find
from interlog.faces.amqp.values import Int64
from tests.unit.amqp_values import ANY_PROPERTIES, PROPERTIES, SCALARS, SHORT, same

SCANNED = ("priority", "reply_to", "expiration", "timestamp", "user_id")


@given(ANY_PROPERTIES)
def test_goes_there_and_back(values: dict[str, Any]) -> None:
    data = Properties(**values).encode()
    back = Properties.decode(data)
    assert back.encode() == data
    for name in NAMES:
        if name != "headers":
            assert getattr(back, name) == values.get(name)
    assert (back.headers is None) == ("headers" not in values)


@given(ANY_PROPERTIES)
def test_scan_sees_what_decode_sees(values: dict[str, Any]) -> None:
    data = Properties(**values).encode()
    found = scan(data)
    assert found.delivery_mode == values.get("delivery_mode", 1)
    for name in SCANNED:
        assert getattr(found, name) == values.get(name)
    assert bool(found.headers_end) == ("headers" in values)
    if found.headers_end:
        headers = Properties.decode(data).headers
        assert headers is not None
        wanted = {name.encode() for name in headers}
        assert same(find(data, found.headers_at, found.headers_end, wanted), headers)


@given(ANY_PROPERTIES)
def test_every_truncation_is_refused(values: dict[str, Any]) -> None:
    data = Properties(**values).encode()
    for size in range(len(data)):
        refused(data[:size])
    refused(data + b"\0")


def refused(data: bytes) -> None:
    for reader in (scan, Properties.decode):
        with pytest.raises(AmqpError) as caught:
            reader(data)
        assert caught.value.code == ReplyCode.SYNTAX_ERROR


@given(st.binary(max_size=200))
def test_any_bytes_are_properties_or_an_error(data: bytes) -> None:
    outcomes: list[ReplyCode | None] = []
    for reader in (scan, Properties.decode):
        try:
            reader(data)
            outcomes.append(None)
        except AmqpError as error:
            outcomes.append(error.code)
    assert outcomes in ([None, None], [ReplyCode.SYNTAX_ERROR, ReplyCode.SYNTAX_ERROR])


@given(ANY_PROPERTIES, st.sampled_from(NAMES), st.data())
def test_one_property_changes_and_no_other(values: dict[str, Any], name: str, data: st.DataObject) -> None:
    before = Properties(**values).encode()
    value = data.draw(PROPERTIES[name])
    assert changed(before, **{name: value}) == Properties(**{**values, name: value}).encode()
    assert without(before, name) == Properties(**{**values, name: None}).encode()


@given(
    ANY_PROPERTIES,
    st.dictionaries(SHORT, SCALARS, max_size=3),
    st.lists(SHORT, max_size=2),
    st.data(),
)
def test_headers_are_spliced(
    values: dict[str, Any], updates: dict[str, Any], removals: list[str], data: st.DataObject
) -> None:
    old: dict[str, Any] = values.get("headers", {})
    if old:
        removals = [*removals, data.draw(st.sampled_from(sorted(old)))]
        updates = {**updates, data.draw(st.sampled_from(sorted(old))): 1}
    before = Properties(**values).encode()
    kept = {name: value for name, value in old.items() if name not in updates and name not in removals}
    wanted = {**values, "headers": {**kept, **updates}}
    if "headers" not in values and not updates:
        wanted = values
    assert with_headers(before, updates, removals) == Properties(**wanted).encode()


def test_untouched_headers_keep_their_very_bytes() -> None:
    body = encode_entry("old", "v") + b"\x01kL" + bytes(8) + b"\x01tt\x02" + b"\x01kV"
    data = b"\x20\x00" + len(body).to_bytes(4, "big") + body
    made = with_headers(data, {"x-delivery-count": Int64(3)}, ["old"])
    kept = b"\x01kL" + bytes(8) + b"\x01tt\x02" + b"\x01kV" + b"\x10x-delivery-countl" + (3).to_bytes(8, "big")
    assert made == b"\x20\x00" + len(kept).to_bytes(4, "big") + kept


def test_spare_flags_are_kept() -> None:
    data = b"\x10\x03\x02"
    assert scan(data) == Scan(2)
    assert changed(data, priority=4) == b"\x18\x03\x02\x04"
    assert with_headers(data, {}) == data


def test_texts_may_be_any_bytes() -> None:
    data = b"\x04\x00\x02\xff\xfe"
    back = Properties.decode(data)
    assert back.correlation_id is not None
    assert back.encode() == data


def test_the_commonest_lists_take_the_short_way() -> None:
    assert scan(b"\x00\x00") == Scan()
    assert scan(b"\x10\x00\x02") == Scan(delivery_mode=2)
    assert scan(b"\x10\x00\x01") == Scan(delivery_mode=1)


def test_content_headers() -> None:
    payload = header_payload(1 << 40, b"\x10\x00\x02")
    assert payload == b"\x00\x3c\x00\x00" + (1 << 40).to_bytes(8, "big") + b"\x10\x00\x02"
    assert read_header(b"before" + payload + b"behind", 6, 6 + len(payload)) == (60, 1 << 40, b"\x10\x00\x02")
    for size in range(14):
        with pytest.raises(AmqpError):
            read_header(payload, 0, size)
    with pytest.raises(AmqpError, match="weight"):
        read_header(b"\x00\x3c\x00\x01" + payload[4:], 0, len(payload))


def test_is_made_and_shown_by_name() -> None:
    made = Properties(type="t", headers={"a": 1})
    assert repr(made) == "Properties(headers={'a': 1}, type='t')"
    assert made == Properties(headers={"a": 1}, type="t")
    assert made != Properties()
    assert len(KINDS) == 14
    with pytest.raises(TypeError, match="no property 'kind'"):
        Properties(kind="t")
    with pytest.raises(OverflowError):
        Properties(priority=-1).encode()
