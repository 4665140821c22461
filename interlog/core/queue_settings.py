"""What a queue was told: how long and how much it keeps, what becomes of what it cannot keep, who may read it.

Comes in: the settings a queue was declared with, as the catalog keeps them, and those of policies. Goes out: a frozen
`QueueSettings`, or a sentence that says what is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from interlog.base.errors import InvalidError

Kind = Literal["classic", "quorum"]
Overflow = Literal["drop-head", "reject-publish", "reject-publish-dlx"]

KINDS: Final = ("classic", "quorum")
OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")
MAX_PRIORITY: Final = 255
MAX_MS: Final = 1 << 53  # of a time to live: beyond it, a clock's sum could not be kept

# Of two values, a policy's and the queue's own, the smaller one holds; of anything else the queue's own.
_LEAST: Final = frozenset(
    ("message_ttl_ms", "expires_ms", "max_length", "max_bytes", "delivery_limit", "consumer_timeout_ms")
)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    kind: Kind = "classic"
    auto_delete: bool = False
    message_ttl_ms: int | None = None
    expires_ms: int | None = None  # the queue goes when nobody has used it for so long
    max_length: int | None = None  # ready messages
    max_bytes: int | None = None  # of ready messages' values
    overflow: Overflow = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None  # None: the keys the message came with
    max_priority: int = 0
    single_active: bool = False
    delivery_limit: int | None = None  # returned more often than this, a message is dead
    consumer_timeout_ms: int | None = None
    dedupe: bool = False  # a message is dropped while one with the same dedupe key waits

    @property
    def limited(self) -> bool:
        return self.max_length is not None or self.max_bytes is not None


_NAMES: Final = frozenset(one.name for one in fields(QueueSettings))
_NUMBERS: Final[dict[str, tuple[int, int]]] = {
    "message_ttl_ms": (0, MAX_MS),
    "expires_ms": (1, MAX_MS),
    "max_length": (0, 1 << 62),
    "max_bytes": (0, 1 << 62),
    "max_priority": (0, MAX_PRIORITY),
    "delivery_limit": (-1, 1 << 31),
    "consumer_timeout_ms": (0, MAX_MS),
}
_FLAGS: Final = frozenset(("auto_delete", "single_active", "dedupe"))
_WORDS: Final[dict[str, tuple[str, ...]]] = {"kind": KINDS, "overflow": OVERFLOWS}
DECLARED: Final = "declared"  # what the face was asked, in its own words: kept for it and not looked into


def check_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as the catalog keeps them; InvalidError names what is wrong with which."""
    for name, value in given.items():
        if name == DECLARED:
            continue
        if name not in _NAMES:
            raise InvalidError(f"{name!r} is not a setting of a queue; there are {', '.join(sorted(_NAMES))}")
        if value is None:
            continue
        if name in _NUMBERS:
            least, most = _NUMBERS[name]
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise InvalidError(f"{name} is a whole number from {least} to {most}, not {value!r}")
        elif name in _FLAGS:
            if not isinstance(value, bool):
                raise InvalidError(f"{name} is true or false, not {value!r}")
        elif name in _WORDS:
            if value not in _WORDS[name]:
                raise InvalidError(f"{name} is one of {' | '.join(_WORDS[name])}, not {value!r}")
        elif not isinstance(value, str):
            raise InvalidError(f"{name} is text, not {value!r}")
    return dict(given)


def settings_of(kept: Mapping[str, Any], policy: Mapping[str, Any] | None = None) -> QueueSettings:
    """All settings, as kept or as the policy says or else their defaults."""
    values = {name: value for name, value in kept.items() if name in _NAMES and value is not None}
    for name, value in (policy or {}).items():
        if name not in _NAMES or value is None:
            continue
        own = values.get(name)
        if own is None:
            values[name] = value
        elif name in _LEAST and own >= 0 and value >= 0:
            values[name] = min(own, value)
    return QueueSettings(**values)
