"""Routing by a hash: each message goes to one end, the same for the same key, in shares as the bindings' weights are.

Comes in: ends with their weights (a binding's key, a whole number), and what of a message is hashed: its key, a header
or a property. Goes out: one end. What is hashed falls into one of 65,536 slots, and for each slot the ends draw lots
that depend on nothing but the slot and the end: so a new end takes its share from all others and nothing moves
between those, an end that goes leaves its share to all others, and order and history do not matter. A slot's lots are
drawn when it is first asked for, which costs a microsecond or so an end.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import log
from typing import Any, Final
from zlib import crc32

from interlog.base.errors import InvalidError
from interlog.core.exchange_objects import HASH_HEADER, HASH_PROPERTY
from interlog.core.routing import NO_ENDS, End, Headers

MAX_WEIGHT: Final = 1_000_000
_SLOTS: Final = 1 << 16


def _weight(key: str) -> int:
    """Of a binding's key; 0 if it is none."""
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 10 else 0


def _slot(value: object) -> int:
    text = "" if value is None else value
    mixed = crc32(text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass"))
    return (mixed ^ mixed >> 16) % _SLOTS


def _lot(end: End, weight: int, slot: int) -> float:
    """The time of a first event of rate `weight`: the smallest of some is an end's as often as its weight says."""
    name = end.name.encode("utf-8", "surrogatepass")
    drawn = blake2b(b"%d %d " % (slot, end.to_queue) + name, digest_size=8).digest()
    return -log((int.from_bytes(drawn, "big") + 1) / (1 << 64)) / weight


class HashRouter:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        header, key = settings.get(HASH_HEADER), settings.get(HASH_PROPERTY)
        self._of: object = header if header is not None else ("", key) if key is not None else None
        self.by_key = self._of is None
        self._weights: dict[End, int] = {}  # of all bindings to it
        self._slots: dict[int, list[End]] = {}

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        if not 1 <= _weight(key) <= MAX_WEIGHT:
            raise InvalidError(f"the key of this binding is its weight, a number from 1 to {MAX_WEIGHT}, not {key!r}")

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        self._weights[end] = self._weights.get(end, 0) + _weight(key)
        self._slots.clear()

    def remove(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        self._weights[end] -= _weight(key)
        if not self._weights[end]:
            del self._weights[end]
        self._slots.clear()

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        if not self._weights:
            return NO_ENDS
        slot = _slot((keys[0] if keys else "") if self.by_key else headers().get(self._of))
        ends = self._slots.get(slot)
        if ends is None:
            weights = self._weights
            first = min(weights, key=lambda end: (_lot(end, weights[end], slot), end.name, end.to_queue))
            ends = self._slots[slot] = [first]
        return ends
