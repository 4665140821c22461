"""Envelopes: what is put in comes out, and no bytes but sound ones are taken."""

import random
import struct

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.base.errors import FormatError
from interlog.journal import envelope
from interlog.journal.envelope import HEADER_BYTES, EntryKind, EnvelopeBuilder, check, entries, read_header

ENTRY = st.tuples(st.integers(0, 255), st.integers(0, 2**32 - 1), st.binary(max_size=300))


def build(gathered: list[tuple[int, int, bytes]], sequence: int = 7) -> bytes:
    builder = EnvelopeBuilder()
    for kind, target, payload in gathered:
        builder.add(kind, target, payload)
    return b"".join(builder.finish(shard=1, epoch=3, sequence=sequence, durable=5, time_ms=1_700_000_000_000))


SOUND = build([(EntryKind.CURSOR, 0, b"abc"), (EntryKind.BATCH, 9, b"x" * 100), (EntryKind.LEASE, 1, b"")])


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    gathered=st.lists(ENTRY, max_size=8),
    shard=st.integers(0, 2**16 - 1),
    epoch=st.integers(0, 2**32 - 1),
    sequence=st.integers(0, 2**64 - 1),
    durable=st.integers(0, 2**64 - 1),
    time_ms=st.integers(-(2**63), 2**63 - 1),
    before=st.binary(max_size=40),
    after=st.binary(max_size=40),
)
def test_what_is_put_in_comes_out(
    gathered: list[tuple[int, int, bytes]],
    shard: int,
    epoch: int,
    sequence: int,
    durable: int,
    time_ms: int,
    before: bytes,
    after: bytes,
) -> None:
    builder = EnvelopeBuilder()
    positions = [builder.add(kind, target, payload) for kind, target, payload in gathered]
    length = builder.length
    assert builder.entries == len(gathered)
    written = b"".join(builder.finish(shard=shard, epoch=epoch, sequence=sequence, durable=durable, time_ms=time_ms))
    assert len(written) == length
    data = before + written + after
    header = check(data, len(before))
    assert header == read_header(data, len(before))
    assert (header.shard, header.length, header.epoch) == (shard, length, epoch)
    assert (header.sequence, header.durable, header.time_ms) == (sequence, durable, time_ms)
    found = list(entries(memoryview(data), len(before), header))
    assert [(entry.kind, entry.target, bytes(entry.payload)) for entry in found] == gathered
    assert [entry.position for entry in found] == positions
    for entry, (_, _, payload) in zip(found, gathered, strict=True):
        assert written[entry.position : entry.position + len(payload)] == payload


def test_an_empty_envelope_is_a_header() -> None:
    data = build([])
    assert len(data) == HEADER_BYTES
    assert list(entries(data, 0, check(data))) == []


def test_payloads_may_be_views() -> None:
    builder = EnvelopeBuilder()
    builder.add(EntryKind.BATCH, 1, memoryview(b"abcdef")[1:4])
    builder.add(EntryKind.BATCH, 2, bytearray(b"gh"))
    data = b"".join(builder.finish(shard=0, epoch=1, sequence=1, durable=0, time_ms=0))
    assert [bytes(entry.payload) for entry in entries(data, 0, check(data))] == [b"bcd", b"gh"]


def test_each_flipped_bit_is_found() -> None:
    for place in range(len(SOUND)):
        for bit in range(8):
            data = bytearray(SOUND)
            data[place] ^= 1 << bit
            with pytest.raises(FormatError):
                check(data)


def test_each_shorter_envelope_is_refused() -> None:
    for size in range(len(SOUND)):
        with pytest.raises(FormatError, match="cut short"):
            check(SOUND[:size])


def test_a_newer_version_and_unknown_flags_are_named() -> None:
    for place, value in ((4, 2), (5, 1)):
        data = bytearray(SOUND)
        data[place] = value
        with pytest.raises(FormatError, match="not known to this version"):
            read_header(data)


def test_impossible_lengths_are_refused() -> None:
    for length in (0, HEADER_BYTES - 1, envelope.MAX_ENVELOPE_BYTES + 1, 2**32 - 1):
        data = bytearray(SOUND)
        struct.pack_into("<I", data, 8, length)
        with pytest.raises(FormatError, match="impossible"):
            read_header(data)


def sealed(data: bytearray) -> bytes:
    """The same bytes with length and CRC made right, as a faulty writer could have left them."""
    struct.pack_into("<I", data, 8, len(data))
    crc = crc32c.crc32c(data[HEADER_BYTES:], crc32c.crc32c(data[: HEADER_BYTES - 4]))
    struct.pack_into("<I", data, HEADER_BYTES - 4, crc)
    return bytes(data)


def test_entries_that_do_not_fill_the_envelope_are_refused() -> None:
    between = {entry.position - envelope.ENTRY_BYTES for entry in entries(SOUND, 0, check(SOUND))}
    for size in range(HEADER_BYTES + 1, len(SOUND)):
        data = sealed(bytearray(SOUND[:size]))
        walk = entries(data, 0, check(data))
        if size in between:
            assert list(walk)
        else:
            with pytest.raises(FormatError, match="entry"):
                list(walk)


def test_random_entries_never_reach_beyond_the_envelope() -> None:
    rng = random.Random(3)
    for _ in range(500):
        body = bytearray(rng.randbytes(rng.randrange(120)))
        for place in range(5, len(body) - 4, 9):
            if rng.random() < 0.8:
                struct.pack_into("<I", body, place, rng.randrange(40))
        data = sealed(bytearray(SOUND[:HEADER_BYTES]) + body)
        header = check(data)
        try:
            for entry in entries(data + bytes(100), 0, header):
                assert HEADER_BYTES < entry.position <= header.length - len(entry.payload)
        except FormatError:
            pass
