"""The settings of a topic: what may be set, what it may be, and what it is where nobody set it.

Comes in: names and values as callers give them, or as the catalog kept them. Goes out: checked values. What is not
known is refused: a setting that does nothing would be a promise that is not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.journal.compaction import CompactionSettings

_DAY_MS: Final = 86_400_000
_MAX_I64: Final = (1 << 63) - 1

# name: (least, most, default); -1 is no limit where it is allowed
_NUMBERS: Final = {
    "retention_ms": (-1, _MAX_I64, 7 * _DAY_MS),
    "retention_bytes": (-1, _MAX_I64, -1),
    "segment_bytes": (1024, (1 << 31) - 1, 256 << 20),
    "segment_ms": (1, _MAX_I64, 7 * _DAY_MS),
    "min_compaction_lag_ms": (0, _MAX_I64, 0),
    "delete_retention_ms": (0, _MAX_I64, _DAY_MS),
    "max_message_bytes": (1024, 512 << 20, 16 << 20),
}
_WORDS: Final = {
    "cleanup": ("delete", "compact", "compact,delete"),
    "timestamp": ("create", "append"),
    "durability": ("default", "sync", "os"),
}
ALLOWED: Final = (*_NUMBERS, *_WORDS)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    min_compaction_lag_ms: int
    delete_retention_ms: int
    max_message_bytes: int  # of one batch
    cleanup: str
    timestamp: str
    durability: str

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup

    @property
    def append_time(self) -> bool:
        return self.timestamp == "append"


def check_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as the catalog keeps them: only those that were given. InvalidError says what is allowed."""
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if name in _NUMBERS:
            least, most, _ = _NUMBERS[name]
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise InvalidError(f"topic setting {name} is a whole number from {least} to {most}, not {value!r}")
        elif name in _WORDS:
            if name == "cleanup" and isinstance(value, str):
                value = ",".join(sorted({word.strip() for word in value.split(",")}))
            if value not in _WORDS[name]:
                raise InvalidError(f"topic setting {name} is one of {' | '.join(_WORDS[name])}, not {value!r}")
        else:
            raise InvalidError(f"{name!r} is not a topic setting; there are {', '.join(ALLOWED)}")
        kept[name] = value
    return kept


def settings_of(kept: Mapping[str, Any]) -> TopicSettings:
    """All settings, as kept or else their defaults. What an older version did not know to refuse has no effect."""
    values = {name: kept.get(name, default) for name, (_, _, default) in _NUMBERS.items()}
    return TopicSettings(**values, **{name: kept.get(name, words[0]) for name, words in _WORDS.items()})


def compaction_of(kept: Mapping[str, Any]) -> CompactionSettings | None:
    """How a topic is compacted; None if it is not."""
    settings = settings_of(kept)
    if not settings.compacts:
        return None
    return CompactionSettings(
        min_compaction_lag_ms=settings.min_compaction_lag_ms, delete_retention_ms=settings.delete_retention_ms
    )
