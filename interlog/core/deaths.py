"""Dead letters: what is told of a message that a queue could not keep, and when it goes round in circles.

Comes in: a record that is dead in a queue, and why. Goes out: a record for the dead-letter exchange, whose history
says so. The history is a header of the record, JSON, newest first: a list of

    {"queue", "reason", "count", "time_ms", "exchange", "keys"}, "ttl" where the message had a time of its own, and
    "first" in the one it died of first
"""

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from interlog.journal.record import Headers, Record

DEATHS: Final = b"interlog.deaths"
EXCHANGE: Final = b"interlog.exchange"  # where the message was published; none: to the queue itself
EXPIRES: Final = b"interlog.expires"  # when its own time to live is over, in milliseconds since 1970
KEYS: Final = b"interlog.keys"  # all routing keys, JSON, where there is more than the record's key


class Reason(Enum):
    REJECTED = "rejected"
    EXPIRED = "expired"
    MAX_LENGTH = "maxlen"
    DELIVERY_LIMIT = "delivery_limit"


def header(record: Record, name: bytes) -> bytes | None:
    for one, value in record.headers:
        if one == name:
            return value
    return None


def deaths_of(record: Record) -> list[dict[str, Any]]:
    """The history, newest first."""
    data = header(record, DEATHS)
    if data is None:
        return []
    deaths = json.loads(data)
    return deaths if isinstance(deaths, list) else []


def exchange_of(record: Record) -> str:
    return (header(record, EXCHANGE) or b"").decode()


def keys_of(record: Record) -> list[str]:
    """All keys the message was published with, its own first."""
    data = header(record, KEYS)
    if data is not None:
        keys: list[str] = json.loads(data)
        return keys
    return [(record.key or b"").decode("utf-8", "surrogateescape")]


def expires_ms(record: Record) -> int | None:
    data = header(record, EXPIRES)
    return None if data is None else int(data)


def lasting(headers: Headers) -> Headers:
    """The headers without those the core keeps for one stay in one queue."""
    return tuple(one for one in headers if one[0] not in (DEATHS, EXCHANGE, EXPIRES, KEYS))


def bury(record: Record, queue: str, reason: Reason, now_ms: int) -> list[dict[str, Any]]:
    """The history with this death: the newest first, deaths of one queue for one reason counted together."""
    deaths = deaths_of(record)
    death: dict[str, Any] = {
        "queue": queue,
        "reason": reason.value,
        "count": 1,
        "time_ms": now_ms,
        "exchange": exchange_of(record),
        "keys": keys_of(record),
    }
    expires = expires_ms(record)
    if expires is not None and reason is Reason.EXPIRED:
        death["ttl"] = expires - record.timestamp_ms
    for at, earlier in enumerate(deaths):
        if earlier["queue"] == queue and earlier["reason"] == reason.value:
            del deaths[at]
            death = earlier | {"count": earlier["count"] + 1}
            break
    if not deaths:
        death["first"] = True
    return [death, *deaths]


def first_of(deaths: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the deaths of one message, the first it died, however often it died the same way since."""
    return next((death for death in deaths if death.get("first")), deaths[-1])


def remade(record: Record, deaths: list[dict[str, Any]], exchange: str, keys: Sequence[str], now_ms: int) -> Record:
    """The record as it is published again: it keeps what it says, not how it came, nor how long it could wait."""
    headers = list(lasting(record.headers))
    if exchange:
        headers.append((EXCHANGE, exchange.encode()))
    if len(keys) > 1:
        headers.append((KEYS, json.dumps(list(keys)).encode()))
    headers.append((DEATHS, json.dumps(deaths, separators=(",", ":")).encode()))
    return Record(keys[0].encode("utf-8", "surrogateescape"), record.value, tuple(headers), now_ms)


def goes_in_circles(queue: str, deaths: list[dict[str, Any]]) -> bool:
    """Whether the message was in this queue before and only the broker brought it back: nobody ever rejected it."""
    for death in deaths:
        if death["reason"] == Reason.REJECTED.value:
            return False
        if death["queue"] == queue:
            return True
    return False
