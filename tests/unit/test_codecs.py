"""Codecs: what is packed comes back, damage is told, and no bomb costs more memory than the limit."""

import gzip
import os
import random
import struct
import time
import zlib
from pathlib import Path

import cramjam
import pytest

from interlog.base.errors import FormatError, LimitError
from interlog.journal import codecs
from interlog.journal.codecs import Codec, compress, decompress

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
MIB = 1 << 20


def samples() -> list[bytes]:
    rng = random.Random(1)
    return [b"", b"a", b"ab" * 40_000, rng.randbytes(100_000), rng.randbytes(3000) * 30, bytes(2 * MIB)]


@pytest.mark.parametrize("codec", Codec)
def test_what_is_packed_comes_back(codec: Codec) -> None:
    for sample in samples():
        packed = compress(codec, sample)
        assert type(packed) is bytes
        unpacked = decompress(codec, memoryview(packed), len(sample))
        assert type(unpacked) is bytes
        assert unpacked == sample
        assert compress(codec, memoryview(sample)) == packed


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    for sample in samples():
        if sample:
            with pytest.raises(LimitError, match=str(len(sample) - 1)):
                decompress(codec, compress(codec, sample), len(sample) - 1)


@pytest.mark.parametrize("codec", PACKED)
def test_damage_is_a_format_error(codec: Codec) -> None:
    packed = compress(codec, b"interlog " * 1000)
    for size in range(len(packed)):
        if codec == Codec.SNAPPY and size == 16:
            continue  # a stream of no blocks
        with pytest.raises(FormatError):
            decompress(codec, packed[:size], MIB)
    with pytest.raises(FormatError):
        decompress(codec, packed + b"tail", MIB)
    with pytest.raises(FormatError):
        decompress(codec, b"not packed at all, by any means of packing", MIB)


@pytest.mark.parametrize("codec", PACKED)
def test_any_bytes_end_in_data_or_in_one_of_two_errors(codec: Codec) -> None:
    rng = random.Random(2)
    packed = compress(codec, b"".join(b"%d interlog " % number for number in range(500)))
    for turn in range(400):
        if turn % 4 == 0:
            data = rng.randbytes(rng.randrange(200))
        else:
            mutable = bytearray(packed)
            for _ in range(rng.randrange(1, 5)):
                mutable[rng.randrange(min(len(mutable), 1 << rng.randrange(4, 12)))] = rng.randrange(256)
            data = bytes(mutable)
        try:
            assert len(decompress(codec, data, 10_000)) <= 10_000
        except (FormatError, LimitError):
            pass


def bombs() -> list[tuple[str, Codec, bytes]]:
    """Small data that unpacks to a GiB or claims to."""
    member = zlib.compressobj(9, wbits=31)
    gz = b"".join(member.compress(bytes(16 * MIB)) for _ in range(16)) + member.flush()
    # zstd: a frame of 2,000 blocks that each repeat one byte 128 KiB times; then one that claims 2^60 bytes.
    block = struct.pack("<I", (128 * 1024) << 3 | 1 << 1)[:3] + b"x"
    zst = b"\x28\xb5\x2f\xfd" + b"\x00\x58" + block * 2000 + b"\x01\x00\x00"
    claim = b"\x28\xb5\x2f\xfd" + b"\xe0" + struct.pack("<Q", 1 << 60) + block * 2000 + b"\x01\x00\x00"
    lz = compress(Codec.LZ4, bytes(MIB)) * 256
    blocks = compress(Codec.SNAPPY, bytes(MIB)) * 256
    raw = bytes(cramjam.snappy.compress_raw(bytes(256 * MIB)))
    return [
        ("gzip", Codec.GZIP, gz),
        ("zstd", Codec.ZSTD, zst),
        ("zstd that claims", Codec.ZSTD, claim),
        ("lz4", Codec.LZ4, lz),
        ("snappy in blocks", Codec.SNAPPY, blocks),
        ("snappy, raw", Codec.SNAPPY, raw),
        ("snappy that claims", Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(1000)),
    ]


def peak_kib() -> int:
    """The most memory this process has had since it was last forgotten."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_kib()


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory cannot be measured")
def test_a_bomb_is_stopped_at_the_limit() -> None:
    made = bombs()
    compress(Codec.ZSTD, b"warm")
    for name, codec, bomb in made:
        before_kib = forget_peak()
        start = time.perf_counter()
        with pytest.raises((LimitError, FormatError) if "claims" in name else LimitError):
            decompress(codec, bomb, 8 * MIB)
        assert peak_kib() - before_kib < 24 * 1024, name
        assert time.perf_counter() - start < 2, name


def test_joined_gzip_members_are_read_up_to_a_bound() -> None:
    member = gzip.compress(b"abc", mtime=0)
    assert decompress(Codec.GZIP, member * codecs.MOST_GZIP_MEMBERS, MIB) == b"abc" * codecs.MOST_GZIP_MEMBERS
    with pytest.raises(FormatError, match="members"):
        decompress(Codec.GZIP, member * (codecs.MOST_GZIP_MEMBERS + 1), MIB)
    with pytest.raises(LimitError):
        decompress(Codec.GZIP, member * 3, 8)


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_joined_streams_are_read(codec: Codec) -> None:
    assert decompress(codec, compress(codec, b"abc") * 3, 9) == b"abcabcabc"
    with pytest.raises(LimitError):
        decompress(codec, compress(codec, b"abc") * 3, 8)


def test_snappy_is_framed_as_the_java_client_does_and_read_raw_too() -> None:
    packed = compress(Codec.SNAPPY, bytes(40_000))
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    first = struct.unpack_from(">i", packed, 16)[0]
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw" * 9)), MIB) == b"raw" * 9


def test_lz4_blocks_are_independent_and_the_content_has_no_checksum() -> None:
    packed = compress(Codec.LZ4, bytes(200_000))
    assert packed[:4] == b"\x04\x22\x4d\x18"
    flags = packed[4]
    assert flags >> 6 == 1  # version
    assert flags & 0x20  # independent blocks: the Java client reads no others
    assert not flags & 0x04
    assert packed[5] == 0x40  # blocks of 64 KiB


def test_an_unknown_codec_is_a_format_error() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(FormatError, match=str(codec)):
            decompress(codec, b"", 10)
        with pytest.raises(FormatError, match=str(codec)):
            compress(codec, b"")


@pytest.mark.parametrize("codec", PACKED)
def test_against_the_kafka_python_client(codec: Codec) -> None:
    kafka = pytest.importorskip("kafka.codec", reason="kafka-python is the oracle")
    name = codec.name.lower()
    if not getattr(kafka, f"has_{name}")():
        pytest.skip(f"kafka-python finds no library for {name}")
    encode = getattr(kafka, f"{name}_encode")
    decode = getattr(kafka, f"{name}_decode")
    for sample in samples()[1:]:
        assert decompress(codec, encode(sample), len(sample)) == sample
        # kafka-python reads zstd frames without a content size up to a megabyte only
        if codec != Codec.ZSTD or len(sample) <= MIB:
            assert bytes(decode(compress(codec, sample))) == sample
