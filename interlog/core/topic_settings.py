"""The settings of a topic: what may be set, what it may be, and what it is where nobody set it.

Comes in: names and values as callers give them, or as the catalog kept them. Goes out: checked values. What is not
known is refused: a setting that does nothing would be a promise that is not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.journal.codecs import Codec
from interlog.journal.compaction import CompactionSettings
from interlog.journal.segment import SEGMENT_BYTES

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 86_400_000
_MAX_I64: Final = (1 << 63) - 1

# name: (least, most, default); -1 is no limit where it is allowed
_NUMBERS: Final = {
    "retention_ms": (-1, _MAX_I64, 7 * _DAY_MS),
    "retention_bytes": (-1, _MAX_I64, -1),
    "segment_bytes": (14, (1 << 31) - 1, SEGMENT_BYTES),
    "segment_ms": (1, _MAX_I64, 7 * _DAY_MS),
    "min_compaction_lag_ms": (0, _MAX_I64, 0),
    "max_compaction_lag_ms": (1, _MAX_I64, _MAX_I64),
    "delete_retention_ms": (0, _MAX_I64, _DAY_MS),
    "max_message_bytes": (1024, 512 << 20, 16 << 20),
    "past_ms": (0, _MAX_I64, _MAX_I64),
    "future_ms": (0, _MAX_I64, _HOUR_MS),
}
_SHARES: Final = {"min_dirty_ratio": 0.5}  # from 0 to 1
_WORDS: Final = {
    "cleanup": ("delete", "compact", "compact,delete", "delete,compact", "keep"),
    "timestamp": ("create", "append"),
    "durability": ("default", "sync", "os"),
    "compression": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
}
_LIMITS: Final = ("retention_ms", "retention_bytes")
_NOTES: Final = "notes"  # names and texts that a face keeps with the topic, and that mean nothing here
ALLOWED: Final = (*_NUMBERS, *_SHARES, *_WORDS, _NOTES)

_MOST_NOTES: Final = 100
_MOST_NOTE_LETTERS: Final = 1_000
_STRICT: Final = {"default": None, "sync": True, "os": False}
_CODECS: Final = {"uncompressed": Codec.NONE} | {codec.name.lower(): codec for codec in Codec if codec}


@dataclass(frozen=True, slots=True)
class TopicSettings:
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int
    max_message_bytes: int  # of one batch
    past_ms: int  # how far a ready batch's times may lie before the broker's,
    future_ms: int  # and how far after it, where the topic keeps the times of its records
    min_dirty_ratio: float  # of what there is, how much must be new for a compaction
    cleanup: str
    timestamp: str
    durability: str
    compression: str

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup

    @property
    def append_time(self) -> bool:
        return self.timestamp == "append"

    @property
    def strict(self) -> bool | None:
        """Whether its records last only once they are synced; None: as the broker's durability says."""
        return _STRICT[self.durability]

    @property
    def codec(self) -> Codec | None:
        """What batches are packed with before they are kept; None: as they came."""
        return _CODECS.get(self.compression)

    def in_time(self, oldest_ms: int, newest_ms: int, now_ms: int) -> bool:
        """Whether records of these times may come in now."""
        return newest_ms - now_ms <= self.future_ms and (oldest_ms < 0 or now_ms - oldest_ms <= self.past_ms)


def check_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as the catalog keeps them: only those that were given. InvalidError says what is allowed."""
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if name in _NUMBERS:
            least, most, _ = _NUMBERS[name]
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise InvalidError(f"topic setting {name} is a whole number from {least} to {most}, not {value!r}")
        elif name in _SHARES:
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
                raise InvalidError(f"topic setting {name} is a number from 0 to 1, not {value!r}")
        elif name in _WORDS:
            if name == "cleanup" and isinstance(value, str):
                value = ",".join(dict.fromkeys(word.strip() for word in value.split(",")))
            if value not in _WORDS[name]:
                raise InvalidError(f"topic setting {name} is one of {' | '.join(_WORDS[name])}, not {value!r}")
        elif name == _NOTES:
            _check_notes(value)
        else:
            raise InvalidError(f"{name!r} is not a topic setting; there are {', '.join(ALLOWED)}")
        kept[name] = value
    return kept


def _check_notes(notes: object) -> None:
    if not isinstance(notes, Mapping) or len(notes) > _MOST_NOTES:
        raise InvalidError(f"topic setting {_NOTES} is at most {_MOST_NOTES} names with their texts")
    for name, text in notes.items():
        if not isinstance(name, str) or not isinstance(text, str) or len(name) + len(text) > _MOST_NOTE_LETTERS:
            raise InvalidError(f"a note of a topic is a name and a text of at most {_MOST_NOTE_LETTERS} letters")


def settings_of(
    kept: Mapping[str, Any], policy: Mapping[str, Any] | None = None, defaults: Mapping[str, Any] | None = None
) -> TopicSettings:
    """All settings, as kept or as the policy says or else their defaults; of two limits the smaller one.

    `defaults` are those that were set in place of the ones here. What an older version did not know to refuse has no
    effect.
    """
    if policy:
        limits = {name: lower_limit(kept.get(name, -1), policy[name]) for name in _LIMITS if name in policy}
        kept = {**policy, **kept, **limits}
    if defaults:
        kept = {**defaults, **kept}
    values = {name: kept.get(name, default) for name, (_, _, default) in _NUMBERS.items()}
    values |= {name: kept.get(name, default) for name, default in _SHARES.items()}
    return TopicSettings(**values, **{name: kept.get(name, words[0]) for name, words in _WORDS.items()})


def lower_limit(one: int, other: int) -> int:
    """Of two limits; below zero there is none."""
    return max(one, other) if min(one, other) < 0 else min(one, other)


def compaction_of(kept: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> CompactionSettings | None:
    """How a topic is compacted; None if it is not."""
    settings = settings_of(kept, None, defaults)
    if not settings.compacts:
        return None
    return CompactionSettings(
        min_dirty_ratio=settings.min_dirty_ratio,
        min_compaction_lag_ms=settings.min_compaction_lag_ms,
        max_compaction_lag_ms=settings.max_compaction_lag_ms,
        delete_retention_ms=settings.delete_retention_ms,
    )
