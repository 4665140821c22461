"""The methods: every one of them there and back, and nothing but AmqpError for what is none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.faces.amqp import methods
from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.methods import METHODS, decode
from interlog.faces.amqp.wire import Method
from tests.unit.amqp_values import ANY_METHOD, methods_of

KINDS = sorted(METHODS.values(), key=lambda kind: kind.id)


def read(payload: bytes) -> Method:
    return decode(payload, 0, len(payload))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_goes_there_and_back(kind: type[Method]) -> None:
    @settings(max_examples=30)  # of each of 66
    @given(methods_of(kind))
    def there_and_back(method: Method) -> None:
        payload = method.encode()
        assert int.from_bytes(payload[:4], "big") == kind.id
        assert read(payload) == method
        assert read(payload).encode() == payload

    there_and_back()


@given(ANY_METHOD, st.binary(max_size=20), st.binary(max_size=20))
def test_is_read_in_place(method: Method, before: bytes, behind: bytes) -> None:
    payload = method.encode()
    assert decode(before + payload + behind, len(before), len(before) + len(payload)) == method


@given(ANY_METHOD, st.binary(max_size=40))
def test_every_truncation_is_refused_whatever_follows(method: Method, behind: bytes) -> None:
    payload = method.encode()
    for size in range(len(payload)):
        for data in (payload[:size], payload + behind):
            with pytest.raises(AmqpError) as caught:
                decode(data, 0, size)
            if size >= 4:
                assert caught.value.code in (ReplyCode.SYNTAX_ERROR, ReplyCode.FRAME_ERROR)
            assert caught.value.hard


@given(ANY_METHOD)
def test_one_byte_too_many_is_refused(method: Method) -> None:
    with pytest.raises(AmqpError) as caught:
        read(method.encode() + b"\0")
    assert caught.value.code == ReplyCode.FRAME_ERROR
    assert caught.value.method_id == method.id


@given(st.sampled_from(KINDS), st.binary(max_size=400))
def test_any_bytes_are_a_method_or_an_error(kind: type[Method], arguments: bytes) -> None:
    try:
        method = read(kind.id.to_bytes(4, "big") + arguments)
    except AmqpError:
        return
    assert read(method.encode()) == method or "nan" in repr(method)


def test_the_set_is_the_one_rabbitmq_serves() -> None:
    assert len(METHODS) == 66
    assert all(kind.from_client or kind.from_server for kind in KINDS)
    assert {kind.name for kind in KINDS if kind.content} == {
        "basic.publish",
        "basic.return",
        "basic.deliver",
        "basic.get-ok",
    }
    assert {kind.name for kind in KINDS if kind.from_client and kind.from_server} == {
        "connection.close",
        "connection.close-ok",
        "channel.close",
        "channel.close-ok",
        "channel.flow",
        "channel.flow-ok",
        "basic.ack",
        "basic.nack",
        "basic.cancel",
        "basic.cancel-ok",
    }
    for kind in KINDS:
        if kind.name.endswith("-ok") and kind.name not in ("connection.close-ok",):
            asked = kind.name.removesuffix("-ok")
            assert any(other.name == asked and other.synchronous for other in KINDS), kind.name


@pytest.mark.parametrize("number", [0, 0x000A0000, 0x003C0029, 0x00630001, 0xFFFFFFFF])
def test_unknown_methods_are_told_by_their_numbers(number: int) -> None:
    with pytest.raises(AmqpError) as caught:
        read(number.to_bytes(4, "big"))
    assert caught.value.code == ReplyCode.COMMAND_INVALID
    assert caught.value.method_id == number
    assert f"class {number >> 16}, method {number & 0xFFFF}" in caught.value.text


def test_names_that_are_no_utf8_are_refused_where_rabbitmq_refuses_them() -> None:
    declare = methods.QueueDeclare(queue="abc").encode().replace(b"abc", b"a\xffc")
    with pytest.raises(AmqpError) as caught:
        read(declare)
    assert caught.value.text == "FRAME_ERROR - Malformed UTF-8 in shortstr"
    assert caught.value.method_id == methods.QueueDeclare.id


def test_a_routing_key_may_be_any_bytes() -> None:
    publish = methods.BasicPublish(exchange="x", routing_key="abc").encode().replace(b"abc", b"a\xffc")
    method = read(publish)
    assert isinstance(method, methods.BasicPublish)
    assert method.routing_key.encode("utf-8", "surrogateescape") == b"a\xffc"
    assert method.encode() == publish


def test_known_bytes() -> None:
    publish = methods.BasicPublish(exchange="logs", routing_key="a.b", mandatory=True)
    assert publish.encode() == b"\x00\x3c\x00\x28\x00\x00\x04logs\x03a.b\x01"
    assert methods.BasicAck(7, True).encode() == b"\x00\x3c\x00\x50" + (7).to_bytes(8, "big") + b"\x01"
    assert methods.BasicGetEmpty().encode() == b"\x00\x3c\x00\x48\x00"
    assert methods.ChannelOpenOk().encode() == b"\x00\x14\x00\x0b\x00\x00\x00\x00"
    assert methods.ConnectionOpenOk().encode() == b"\x00\x0a\x00\x29\x00"
    assert methods.AccessRequestOk(1).encode() == b"\x00\x1e\x00\x0b\x00\x01"
    assert methods.BasicQos(0, 10, True).encode() == b"\x00\x3c\x00\x0a\x00\x00\x00\x00\x00\x0a\x01"


def test_shows_what_it_is() -> None:
    assert repr(methods.BasicCancelOk("c")) == "BasicCancelOk(consumer_tag='c')"
    assert methods.BasicCancelOk("c") != methods.BasicCancelOk("d")
    assert methods.BasicCancelOk("c") != "c"


def test_a_text_that_is_too_long_is_not_written() -> None:
    with pytest.raises(AmqpError):
        methods.BasicCancelOk("é" * 128).encode()
