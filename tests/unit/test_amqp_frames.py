"""Frames out of arbitrary cuts: what was put in comes out whole, in order, and bad ones are refused at once."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.frames import (
    BODY,
    FIRST_PAYLOAD_BYTES,
    HEAD,
    HEADER,
    HEARTBEAT,
    HEARTBEAT_FRAME,
    METHOD,
    NO_LIMIT,
    PROTOCOL_HEADER,
    FrameReader,
    frame,
    method_frame,
    payload_limit,
)

KINDS = st.sampled_from([METHOD, HEADER, BODY, HEARTBEAT])
FRAMES = st.lists(st.tuples(KINDS, st.integers(0, 65535), st.binary(max_size=60)), max_size=8)

Frame = tuple[int, int, bytes]


def taken(reader: FrameReader) -> list[Frame]:
    return [(kind, channel, reader.data[start:end]) for kind, channel, start, end in reader.frames()]


@given(FRAMES, st.lists(st.integers(1, 30), max_size=60))
def test_any_cut_gives_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    stream = b"".join(frame(*each) for each in frames)
    reader = FrameReader()
    got: list[Frame] = []
    at = 0
    for size in [*cuts, len(stream)]:
        reader.feed(stream[at : at + size])
        at += size
        got += taken(reader)
    assert got == frames
    assert reader.pending_bytes == 0


@given(FRAMES.filter(bool), st.integers(0, 7), st.binary(max_size=10))
def test_a_loop_left_early_is_taken_up_again(frames: list[Frame], leave_at: int, more: bytes) -> None:
    reader = FrameReader()
    reader.feed(b"".join(frame(*each) for each in frames))
    got = []
    for kind, channel, start, end in reader.frames():
        got.append((kind, channel, reader.data[start:end]))
        if len(got) > leave_at:
            break
    reader.feed(frame(BODY, 1, more))
    got += taken(reader)
    assert got == [*frames, (BODY, 1, more)]


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), max_size=8))
def test_any_bytes_are_frames_or_an_error(data: bytes, cuts: list[int]) -> None:
    reader = FrameReader()
    at = 0
    failure: AmqpError | None = None
    try:
        for size in [*cuts, len(data)]:
            reader.feed(data[at : at + size])
            at += size
            for _, _, start, end in reader.frames():
                assert 0 <= start <= end <= len(reader.data)
    except AmqpError as error:
        failure = error
    assert failure is None or failure.code == ReplyCode.FRAME_ERROR


def refusal(data: bytes, limit: int = FIRST_PAYLOAD_BYTES) -> AmqpError:
    reader = FrameReader(limit)
    reader.feed(data)
    with pytest.raises(AmqpError) as caught:
        taken(reader)
    assert caught.value.code == ReplyCode.FRAME_ERROR
    assert caught.value.hard
    return caught.value


def test_bad_frames_are_refused_in_rabbitmqs_words() -> None:
    bad_end = frame(METHOD, 1, b"abc")[:-1] + b"\x00"
    assert refusal(bad_end).text == 'FRAME_ERROR - type 1, all octets = <<"abc">>: {invalid_frame_end_marker,0}'
    assert refusal(frame(5, 0, b"\x01\x02")).text == "FRAME_ERROR - type 5, all octets = <<1,2>>: unknown_frame"
    assert refusal(b"GET / HTTP/1.1\r\n\r\n").text.startswith("FRAME_ERROR - type 71")


def test_a_frame_that_is_too_large_is_refused_by_its_head_alone() -> None:
    head = HEAD.pack(BODY, 1, FIRST_PAYLOAD_BYTES + 1)
    assert refusal(head).text == "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,8193,8184}"
    reader = FrameReader(payload_limit(FIRST_PAYLOAD_BYTES))
    reader.feed(frame(BODY, 1, bytes(FIRST_PAYLOAD_BYTES)))
    assert len(taken(reader)) == 1


def test_frames_before_a_bad_one_are_given_first() -> None:
    reader = FrameReader()
    reader.feed(frame(METHOD, 1, b"one") + frame(7, 1, b"two"))
    found = reader.frames()
    assert next(found)[:2] == (METHOD, 1)
    with pytest.raises(AmqpError):
        next(found)


def test_the_limit_may_change_between_two_frames() -> None:
    reader = FrameReader(10)
    reader.feed(frame(METHOD, 0, b"tune-ok") + frame(BODY, 1, bytes(20)))
    found = reader.frames()
    next(found)
    reader.limit = payload_limit(0)
    assert reader.limit == NO_LIMIT
    assert next(found)[0] == BODY


def test_a_large_frame_in_many_pieces_costs_what_its_bytes_cost() -> None:
    size = 4 << 20
    stream = frame(BODY, 1, bytes(size))
    reader = FrameReader(NO_LIMIT)
    began = time.process_time()
    got = 0
    for at in range(0, len(stream), 256):
        reader.feed(stream[at : at + 256])
        got += len(taken(reader))
    assert got == 1
    assert time.process_time() - began < 2  # squared, it would be minutes


def test_known_bytes() -> None:
    assert PROTOCOL_HEADER == b"AMQP\0\0\x09\x01"
    assert frame(HEARTBEAT, 0, b"") == HEARTBEAT_FRAME == b"\x08\0\0\0\0\0\0\xce"
    assert method_frame(258, b"xy") == b"\x01\x01\x02\0\0\0\x02xy\xce"
