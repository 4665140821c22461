"""Which limits operators set, and for whom: by user, by client id, by both, or by address.

Comes in: what a request names an entity, and what is to hold for it. Goes out: checked entities and values, or the
KafkaError that the request gets. None in place of a name: for everybody for whom nothing else is said.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from interlog.faces.kafka.acls import is_address
from interlog.faces.kafka.errors import ErrorCode, KafkaError


class Of(StrEnum):
    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class Key(StrEnum):
    """In a second: bytes, bytes, percent of the broker's thread, partitions made or deleted, new connections."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"
    CONNECTION = "connection_creation_rate"


OF_CLIENTS: Final = (Key.PRODUCE, Key.FETCH, Key.REQUEST, Key.MUTATION)
MOST_LETTERS: Final = 300  # of a name
_WHOLE: Final = {Key.PRODUCE: (1 << 63) - 1, Key.FETCH: (1 << 63) - 1, Key.CONNECTION: (1 << 31) - 1}

Entity = tuple[tuple[str, str | None], ...]  # in order of the types


def invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    found: dict[str, str | None] = {}
    for type, name in parts:
        if type in found:
            raise invalid(f"Invalid client quota entity, duplicate entity entry {type}")
        if type not in list(Of):
            raise invalid(f"Unhandled client quota entity type: {type}")
        if name == "":
            raise invalid(f"Empty {type} not supported")
        if name is not None and len(name) > MOST_LETTERS:
            raise invalid(f"A {type} has at most {MOST_LETTERS} letters")
        found[type] = name
    if not found:
        raise invalid("Invalid empty client quota entity")
    if Of.IP in found:
        if len(found) > 1:
            raise invalid("Invalid quota entity combination, ip should not be combined with user or client-id")
        address = found[Of.IP]
        if address is not None and not is_address(address):
            raise invalid(f"{address} is not a valid IP")
    return tuple(sorted(found.items()))


def changed(whose: Entity, kept: Mapping[str, float], changes: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """What is set for an entity, and what is to be set: None takes away."""
    values = dict(kept)
    seen: set[str] = set()
    for key, value in changes:
        if key in seen:
            raise invalid(f"Duplicate quota key {key}")
        seen.add(key)
        if value is None:
            values.pop(key, None)
        else:
            _check(whose, key, value)
            values[key] = value
    return values


def _check(whose: Entity, key: str, value: float) -> None:
    allowed = (Key.CONNECTION,) if whose[0][0] == Of.IP else OF_CLIENTS
    if key not in allowed:
        raise invalid(f"Invalid configuration key {key}")
    if not value > 0:
        raise invalid(f"Quota {key} must be greater than 0")
    most = _WHOLE.get(Key(key))
    if value > (most or 1e300):
        raise invalid(f"Proposed value for {key} is too large")
    if most and value % 1 > 1e-6:
        raise invalid(f"{key} cannot be a fractional value.")
