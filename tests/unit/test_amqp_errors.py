"""Errors: the codes, what they end, and RabbitMQ's words."""

import pytest

from interlog.faces.amqp import errors
from interlog.faces.amqp.errors import AmqpError, ReplyCode, argument, cut_text
from interlog.faces.amqp.values import Int64

SOFT = {311, 312, 313, 403, 404, 405, 406}


@pytest.mark.parametrize("code", list(ReplyCode))
def test_codes_end_what_the_protocol_says(code: ReplyCode) -> None:
    error = AmqpError(code, "why")
    assert error.hard == (code not in SOFT)
    assert error.text == f"{code.name} - why"
    assert str(error) == error.text


TEXTS = [
    (errors.not_found("queue", "q", "/"), 404, "NOT_FOUND - no queue 'q' in vhost '/'"),
    (errors.no_previous_queue(), 404, "NOT_FOUND - no previously declared queue"),
    (
        errors.inequivalent("queue", "q", "/", "durable", False, True),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': "
        "received 'false' but current is 'true'",
    ),
    (
        errors.inequivalent("exchange", "x", "/", "type", "fanout", "direct"),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': "
        "received 'fanout' but current is 'direct'",
    ),
    (
        errors.inequivalent("queue", "q", "/", "x-max-length", *argument(None, Int64(10))),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': "
        "received none but current is the value '10' of type 'long'",
    ),
    (
        errors.inequivalent("queue", "q", "/", "x-queue-type", *argument("quorum", None)),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': "
        "received the value 'quorum' of type 'longstr' but current is none",
    ),
    (
        errors.inequivalent("queue", "q", "/", "x-message-ttl", *argument(5, 10)),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': "
        "received '5' but current is '10'",
    ),
    (
        errors.access_refused("configure", "queue", "q", "/", "guest"),
        403,
        "ACCESS_REFUSED - configure access to queue 'q' in vhost '/' refused for user 'guest'",
    ),
    (
        errors.topic_refused("write", "a.b", "x", "/", "guest"),
        403,
        "ACCESS_REFUSED - write access to topic 'a.b' in exchange 'x' in vhost '/' refused for user 'guest'",
    ),
    (errors.exclusive_use("q", "/"), 403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"),
    (errors.in_use("exchange", "x", "/"), 406, "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"),
    (errors.not_empty("q", "/"), 406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"),
    (errors.unknown_delivery_tag(7), 406, "PRECONDITION_FAILED - unknown delivery tag 7"),
    (errors.unknown_exchange_type("no"), 503, "COMMAND_INVALID - unknown exchange type 'no'"),
    (errors.no_reply_consumer(), 406, "PRECONDITION_FAILED - fast reply consumer does not exist"),
    (errors.vhost_not_found("v"), 530, "NOT_ALLOWED - vhost v not found"),
    (errors.vhost_refused("v", "u"), 530, "NOT_ALLOWED - access to vhost 'v' refused for user 'u'"),
    (errors.consumer_tag_taken("c"), 530, "NOT_ALLOWED - attempt to reuse consumer tag 'c'"),
    (
        errors.bad_negotiation("frame_max", 100, 8192, higher=False),
        530,
        "NOT_ALLOWED - negotiated frame_max = 100 is lower than the minimum allowed value (8192)",
    ),
    (errors.channel_not_open(), 504, "CHANNEL_ERROR - expected 'channel.open'"),
    (errors.not_implemented("immediate=true"), 540, "NOT_IMPLEMENTED - immediate=true"),
    (
        errors.connection_forced(),
        320,
        "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
    ),
    (
        errors.reserved_name("queue", "amq.x"),
        403,
        "ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'",
    ),
]


@pytest.mark.parametrize(("error", "code", "text"), TEXTS, ids=lambda part: str(part)[:40])
def test_texts_are_rabbitmqs(error: AmqpError, code: int, text: str) -> None:
    assert error.text == text
    assert error.code == code


def test_a_locked_queues_text_is_whole() -> None:
    error = errors.locked("q", "/")
    assert error.code == ReplyCode.RESOURCE_LOCKED
    assert error.text.endswith("property value does not match that of the original declaration.")


def test_texts_fit_a_short_string() -> None:
    error = errors.not_found("queue", "é" * 200, "/")
    assert len(error.text.encode()) <= 255
    assert error.text.endswith("é...")
    assert cut_text("short") == "short"
    assert len(cut_text("\udcff" * 300).encode("utf-8", "surrogateescape")) <= 255


def test_refused_logins_end_the_connection() -> None:
    assert errors.login_refused("PLAIN").hard
    assert errors.login_refused("PLAIN").code == ReplyCode.ACCESS_REFUSED
