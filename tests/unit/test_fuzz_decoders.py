"""Any bytes at all: the decoders end in an answer or in FormatError or LimitError, soon and in little memory."""

import random
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator

import crc32c
import pytest

from interlog.base.errors import FormatError, LimitError
from interlog.journal import batch, envelope
from interlog.journal.codecs import Codec, compress, decompress
from interlog.journal.record import Record
from interlog.journal.varint import pack_number

LIMIT_BYTES = 1 << 20
# Beside the limit: the input, copies of it, and what the tests themselves keep.
SLACK_BYTES = 1 << 20


def sample_records() -> list[Record]:
    return [
        Record(
            None if n % 4 == 0 else b"key-%d" % n,
            None if n % 7 == 6 else b"value " * n,
            ((b"name", b"%d" % n), (b"none", None))[: n % 3],
            1_700_000_000_000 + (n * n) % 300 - 150,
        )
        for n in range(12)
    ]


def sound_batches() -> list[bytes]:
    made = [batch.encode(sample_records(), base_offset=50, codec=codec) for codec in Codec]
    made.append(batch.encode(sample_records()[:1], base_offset=0))
    made.append(batch.encode(sample_records()[:3], base_offset=7, offsets=[9, 400, 100_000]))
    made.append(batch.set_log_append_time(made[0], 5))
    return made


def sound_envelopes() -> list[bytes]:
    made = []
    for count in range(4):
        builder = envelope.EnvelopeBuilder()
        for number in range(count):
            builder.add(number, number * 1000, b"payload " * number * 3)
        made.append(b"".join(builder.finish(shard=0, epoch=1, sequence=count, durable=0, time_ms=9)))
    return made


INTERESTING = (0, 1, 2, 3, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def mutate(rng: random.Random, sound: list[bytes]) -> bytes:
    """One of the sound ones, hurt in one to four ways."""
    data = bytearray(rng.choice(sound))
    for _ in range(rng.randrange(1, 5)):
        way = rng.randrange(7)
        at = rng.randrange(len(data) + 1)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = rng.choice(INTERESTING)
        elif way == 2:
            del data[at : at + rng.randrange(1, 20)]
        elif way == 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        elif way == 4:
            other = rng.choice(sound)
            start = rng.randrange(len(other))
            data[at : at + rng.randrange(40)] = other[start : start + rng.randrange(40)]
        elif way == 5:
            data[at : at + rng.randrange(11)] = b"\xff" * rng.randrange(1, 11)
        elif way == 6 and rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def reseal_batch(data: bytes) -> bytes:
    """Length, magic and CRC made right, so that what is inside is reached."""
    if len(data) < batch.HEADER_BYTES:
        return data
    made = bytearray(data)
    struct.pack_into(">i", made, 8, len(made) - 12)
    made[16] = 2
    struct.pack_into(">I", made, 17, crc32c.crc32c(made[21:]))
    return bytes(made)


def reseal_inside(rng: random.Random, codec: Codec, inside: list[bytes]) -> bytes:
    """Hurt records, packed well: what is behind the codec is reached."""
    body = compress(codec, mutate(rng, inside))
    header = struct.pack(
        ">qiibIhiqqqhii", 0, 0, 0, 2, 0, codec, 2**31 - 1, 0, 0, -1, -1, -1, rng.choice((1, 11, 12, 13))
    )
    return reseal_batch(header + body)


def reseal_envelope(data: bytes) -> bytes:
    size = envelope.HEADER_BYTES
    if len(data) < size:
        return data
    made = bytearray(data)
    made[:6] = b"ILOG\x01\x00"
    struct.pack_into("<I", made, 8, len(made))
    struct.pack_into("<I", made, size - 4, crc32c.crc32c(made[size:], crc32c.crc32c(made[: size - 4])))
    return bytes(made)


def outcome(decoder: Callable[[bytes], object], data: bytes) -> bool:
    """Whether the decoder took the data; anything but an answer or one of the two errors fails the test."""
    try:
        decoder(data)
    except (FormatError, LimitError):
        return False
    except BaseException as error:
        pytest.fail(f"{type(error).__name__}: {error} at {data.hex()}")
    return True


def run(decoder: Callable[[bytes], object], inputs: Iterator[bytes]) -> int:
    """How many of the inputs were taken; all of them within time and memory."""
    taken = 0
    tracemalloc.start()
    try:
        for data in inputs:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            start = time.perf_counter()
            taken += outcome(decoder, data)
            assert time.perf_counter() - start < 1, data.hex()
            grown = tracemalloc.get_traced_memory()[1] - before
            assert grown < 2 * LIMIT_BYTES + SLACK_BYTES, data.hex()
    finally:
        tracemalloc.stop()
    return taken


def read_batch(data: bytes) -> None:
    decoded: list[tuple[int, Record]] | None = None
    try:
        decoded = batch.decode(data, limit_bytes=LIMIT_BYTES, verify=False)
    except (FormatError, LimitError):
        pass
    else:
        header = batch.read_header(data)
        offsets = [offset for offset, _ in decoded]
        assert len(offsets) == header.record_count
        assert offsets == sorted(set(offsets))
        if offsets:
            assert header.base_offset <= offsets[0]
            assert offsets[-1] <= header.last_offset
            # What was taken can be written again, and means the same.
            again = batch.encode(
                [record for _, record in decoded], base_offset=0, offsets=[o - offsets[0] for o in offsets]
            )
            assert [record for _, record in batch.decode(again)] == [record for _, record in decoded]
    checked = batch.decode(data, limit_bytes=LIMIT_BYTES)
    assert checked == decoded
    kept = batch.filter_records(data, lambda offset, _record: offset % 2 == 0, limit_bytes=LIMIT_BYTES)
    if kept is not None:
        assert batch.decode(kept) == [pair for pair in checked if pair[0] % 2 == 0]


def walk_batches(data: bytes) -> None:
    for position, header in batch.batches(data):
        assert position + header.length <= len(data)
        batch.check(data, position)


def read_envelope(data: bytes) -> None:
    header = envelope.check(data)
    end = envelope.HEADER_BYTES
    for entry in envelope.entries(data, 0, header):
        assert entry.position == end + envelope.ENTRY_BYTES
        end = entry.position + len(entry.payload)
    assert end == header.length <= len(data)


def test_random_bytes() -> None:
    rng = random.Random(11)

    def inputs() -> Iterator[bytes]:
        for _ in range(1500):
            yield rng.randbytes(rng.randrange(rng.choice((8, 80, 400))))

    assert run(batch.read_header, inputs()) < 100
    assert run(envelope.read_header, inputs()) == 0
    assert run(read_batch, (reseal_batch(data) for data in inputs())) < 100
    run(read_envelope, (reseal_envelope(data) for data in inputs()))


def test_hurt_batches() -> None:
    rng = random.Random(12)
    sound = sound_batches()
    assert run(read_batch, (mutate(rng, sound) for _ in range(2500))) < 500


def test_hurt_batches_with_a_right_crc() -> None:
    rng = random.Random(13)
    sound = sound_batches()
    taken = run(read_batch, (reseal_batch(mutate(rng, sound)) for _ in range(4000)))
    assert 100 < taken < 3500  # both ends are reached


def test_hurt_records_behind_each_codec() -> None:
    rng = random.Random(14)
    inside = [made[batch.HEADER_BYTES :] for made in sound_batches()[:1]]
    for codec in Codec:
        run(read_batch, (reseal_inside(rng, codec, inside) for _ in range(500)))


def test_hurt_runs_of_batches() -> None:
    rng = random.Random(15)
    sound = [b"".join(rng.sample(sound_batches(), 3)) for _ in range(10)]
    run(walk_batches, (mutate(rng, sound) for _ in range(1500)))


def test_hurt_envelopes() -> None:
    rng = random.Random(16)
    sound = sound_envelopes()
    assert run(read_envelope, (mutate(rng, sound) for _ in range(1500))) < 300


def test_hurt_envelopes_with_a_right_crc() -> None:
    rng = random.Random(17)
    sound = sound_envelopes()
    taken = run(read_envelope, (reseal_envelope(mutate(rng, sound)) for _ in range(3000)))
    assert 100 < taken < 2900


def bodies_that_grow() -> Iterator[tuple[str, bytes, int]]:
    """Records bytes, each a way to make much of little, and the record count to go with them."""
    rows = LIMIT_BYTES // 8
    yield "empty records", b"\x0c\0\0\0\1\1\0" * rows, rows
    yield "zeros", bytes(LIMIT_BYTES), 1
    yield "a header count", b"\xfe\xff\x7f\0\0\0\1\1\xfe\xff\x7f" + bytes(LIMIT_BYTES - 20), 1
    headers = LIMIT_BYTES // 2 - 20
    inner = b"\0\0\0\1\1" + pack_number(headers) + b"\0\1" * headers
    yield "empty headers", pack_number(len(inner)) + inner, 1
    record = b"\0\0\0\1\1\x80\x01" + b"\0\1" * 64
    record = pack_number(len(record)) + record
    yield "headers again and again", record * 5000, 5000
    yield "more than the limit", bytes(LIMIT_BYTES * 20), 1


@pytest.mark.parametrize("codec", Codec)
def test_small_batches_that_grow(codec: Codec) -> None:
    for name, body, count in bodies_that_grow():
        header = struct.pack(">qiibIhiqqqhii", 0, 0, 0, 2, 0, codec, 2**31 - 1, 0, 0, -1, -1, -1, count)
        data = reseal_batch(header + compress(codec, body))
        assert run(read_batch, iter([data])) == 0, name


def test_a_codec_given_bytes_of_another() -> None:
    for codec in Codec:
        for other in Codec:
            if codec and other and codec != other:
                with pytest.raises(FormatError):
                    decompress(codec, compress(other, b"interlog" * 99), LIMIT_BYTES)
