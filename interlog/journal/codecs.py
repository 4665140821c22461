"""The five codecs a record batch may be packed with. In: bytes of anyone's making. Out: bytes within a limit.

Decompression is bounded before memory is spent: the output goes into a buffer of at most `limit_bytes`, so a bomb
ends in LimitError once the buffer is full, having touched no more memory than the limit (a result that fits is
copied out once, so a good batch may touch twice its size). What other clients write is read as they read it:

    gzip    up to 64 members one after another; anything else after them is refused
    snappy  the framing of the Java client (blocks behind a 16-byte header, streams may be joined), or one raw block
    lz4     the LZ4 frame format, frames may be joined; anything else after them is refused
    zstd    frames may be joined; anything else after them is refused

What is written is what the Java client writes, and what the strictest reader of each takes: snappy in 32 KiB
blocks, LZ4 in independent 64 KiB blocks without a content checksum, zstd at level 3.
"""

import mmap
import struct
import zlib
from enum import IntEnum
from typing import Final

import cramjam

from interlog.base.errors import FormatError, LimitError
from interlog.journal.files import Buffer


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


MOST_GZIP_MEMBERS: Final = 64

_ZSTD_LEVEL: Final = 3
_GZIP_BITS: Final = 31  # the largest window, with a gzip header and trailer
_SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER: Final = _SNAPPY_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable since version 1
_SNAPPY_BLOCK_BYTES: Final = 32 * 1024
# Snappy's densest element makes 64 bytes of 3: a block that claims more than this for each of its bytes lies.
_SNAPPY_MOST_RATIO: Final = 22
_SIZE: Final = struct.Struct(">i")

# The first guess at the size of the output: few batches of records compress better than this.
_GUESS_RATIO: Final = 4
_GUESS_LEAST_BYTES: Final = 4096


def compress(codec: int, data: Buffer) -> bytes:
    """The data packed with the codec; with NONE, as it is."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        packer = zlib.compressobj(wbits=_GZIP_BITS)
        return packer.compress(data) + packer.flush()
    if codec == Codec.SNAPPY:
        return _compress_snappy(data)
    if codec == Codec.LZ4:
        lz4 = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        lz4.compress(bytes(data))
        return bytes(lz4.finish())
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(bytes(data), _ZSTD_LEVEL))
    raise FormatError(f"codec {codec} is not known")


def decompress(codec: int, data: Buffer, limit_bytes: int) -> bytes:
    """The data unpacked; LimitError if it is larger than limit_bytes, FormatError if it is not of the codec."""
    if codec == Codec.NONE:
        if len(data) > limit_bytes:
            raise _beyond(limit_bytes)
        return bytes(data)
    if codec == Codec.GZIP:
        return _decompress_gzip(data, limit_bytes)
    if codec == Codec.SNAPPY:
        return _decompress_snappy(data, limit_bytes)
    if codec == Codec.LZ4 or codec == Codec.ZSTD:
        return _decompress_stream(codec, bytes(data), limit_bytes)
    raise FormatError(f"codec {codec} is not known")


def _beyond(limit_bytes: int) -> LimitError:
    return LimitError(f"the data would decompress to more than {limit_bytes} bytes, the limit")


def _decompress_gzip(data: Buffer, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = limit_bytes
    rest: Buffer = data
    # Each member copies what follows it, so without a bound on members the work would grow with their square.
    for _ in range(MOST_GZIP_MEMBERS):
        member = zlib.decompressobj(_GZIP_BITS)
        try:
            part = member.decompress(rest, left + 1)
        except zlib.error as error:
            raise FormatError(f"the gzip data is damaged: {error}") from None
        left -= len(part)
        if left < 0:
            raise _beyond(limit_bytes)
        if not member.eof:
            raise FormatError("the gzip data is cut short")
        parts.append(part)
        rest = member.unused_data
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise FormatError(f"the gzip data has more than {MOST_GZIP_MEMBERS} members")


def _compress_snappy(data: Buffer) -> bytes:
    parts: list[bytes] = [_SNAPPY_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(bytes(view[start : start + _SNAPPY_BLOCK_BYTES])))
        parts.append(_SIZE.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit_bytes: int) -> bytes:
    data = bytes(data)
    if not data.startswith(_SNAPPY_MAGIC):
        return _snappy_block(data, limit_bytes, limit_bytes)
    parts: list[bytes] = []
    left = limit_bytes
    at = 0
    end = len(data)
    while at < end:
        if data.startswith(_SNAPPY_MAGIC, at):
            at += len(_SNAPPY_HEADER)
            if at > end:
                raise FormatError("the snappy header is cut short")
            continue
        if end - at < _SIZE.size:
            raise FormatError("the size of a snappy block is cut short")
        size: int = _SIZE.unpack_from(data, at)[0]
        at += _SIZE.size
        if not 0 < size <= end - at:
            raise FormatError(f"a snappy block of {size} bytes does not fit in the {end - at} bytes that are left")
        block = _snappy_block(data[at : at + size], left, limit_bytes)
        left -= len(block)
        parts.append(block)
        at += size
    return b"".join(parts)


def _snappy_block(block: bytes, left: int, limit_bytes: int) -> bytes:
    """One raw block, at most `left` bytes of output. What it claims is judged before anything is reserved."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _SNAPPY_MOST_RATIO:
            raise FormatError(f"a snappy block of {len(block)} bytes cannot hold {size}")
        if size > left:
            raise _beyond(limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise FormatError(f"the snappy data is damaged: {error}") from None


def _decompress_stream(codec: int, data: bytes, limit_bytes: int) -> bytes:
    """LZ4 and zstd: into a small buffer, and where that is too small into one as large as the limit.

    The large one is mapped, not allocated: only the pages that the output reaches cost memory.
    """
    guess = max(len(data) * _GUESS_RATIO, _GUESS_LEAST_BYTES)
    if guess < limit_bytes:
        small = bytearray(guess)
        size = _decompress_into(codec, data, small)
        if size >= 0:
            return bytes(memoryview(small)[:size])
    with mmap.mmap(-1, max(limit_bytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as large:
        size = _decompress_into(codec, data, large)
        if size < 0 or size > limit_bytes:
            raise _beyond(limit_bytes)
        return large[:size]


def _decompress_into(codec: int, data: bytes, output: bytearray | mmap.mmap) -> int:
    """The number of bytes put into output, or -1 if there was no room for all of them."""
    try:
        if codec == Codec.LZ4:
            return cramjam.lz4.decompress_into(data, output)
        return cramjam.zstd.decompress_into(data, output)
    except cramjam.DecompressionError as error:
        # The library has one class for all; a full buffer is told by the words of Rust's own write_all.
        if "whole buffer" in str(error):
            return -1
        raise FormatError(f"the {Codec(codec).name.lower()} data is damaged: {error}") from None
