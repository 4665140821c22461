"""Zigzag varints, as records are made of them. In: numbers. Out: bytes, seven bits each, lowest first; and back.

The hot loops of `packing` look numbers of one byte and two up in the tables themselves; what is larger comes here.
"""

from typing import Final

from interlog.base.errors import FormatError


def _pack(number: int) -> bytes:
    rest = number << 1 if number >= 0 else ~(number << 1)
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


# TABLE[n] is n packed: all numbers that take one byte or two.
TABLE: Final[list[bytes]] = [_pack(number) for number in range(8192)]


def pack_number(number: int) -> bytes:
    """A signed number of at most 64 bits."""
    return TABLE[number] if 0 <= number < 8192 else _pack(number)


# SMALL[bits] is the number that these bits, of one byte or two, stand for.
SMALL: Final[list[int]] = [bits >> 1 ^ -(bits & 1) for bits in range(16384)]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed 32-bit number and the position after it; IndexError past the end of data."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 32:
                break
            return value >> 1 ^ -(value & 1), at
    raise FormatError("a varint has more than 32 bits")


def read_varlong(data: bytes, at: int) -> tuple[int, int]:
    """A signed 64-bit number and the position after it; IndexError past the end of data."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value >> 1 ^ -(value & 1), at
    raise FormatError("a varint has more than 64 bits")
