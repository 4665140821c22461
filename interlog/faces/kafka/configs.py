"""Kafka's configs of a topic: one table, and what Interlog makes of each.

Comes in: names and texts as clients give them, or a topic's settings as the core keeps them. Goes out: settings for the
core, or texts to show. A config that acts is a setting of the core. One that is ignored is kept with the topic and
shown again, for tools want to find what they set, and has no effect here. One that is refused can only be what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.core.topic_settings import check_settings, settings_of

NOTES: Final = "notes"  # the core's setting that keeps what is ignored

_MAX_I32: Final = (1 << 31) - 1
_MAX_I64: Final = (1 << 63) - 1


class Kind(IntEnum):
    """As the protocol numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_NUMBERS: Final[dict[Kind, type[int] | type[float]]] = {Kind.INT: int, Kind.LONG: int, Kind.DOUBLE: float}


class Effect(Enum):
    ACTS = "acts"
    IGNORED = "accepted and ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Config:
    """One config of a topic."""

    name: str
    kind: Kind
    default: str
    effect: Effect
    doc: str
    broker: str = ""  # the broker's config of the same meaning
    least: float | None = None
    most: float | None = None
    words: tuple[str, ...] = ()
    setting: str = ""  # of the core, where it acts

    def check(self, text: str) -> str:
        """The text as it is kept; InvalidError with a sentence if it cannot be one."""
        value = text.strip()
        if self.kind in _NUMBERS:
            self._check_number(text)
        elif self.kind is Kind.BOOLEAN:
            value = value.lower()
            if value not in ("true", "false"):
                raise self._invalid(text, "it is true or false")
        elif self.words:
            parts = [part.strip() for part in value.split(",") if part] if self.kind is Kind.LIST else [value]
            if not all(part in self.words for part in parts):
                raise self._invalid(text, f"it is one of {', '.join(self.words)}")
            value = ",".join(dict.fromkeys(parts))
        if self.effect is Effect.REFUSED and value != self.default:
            raise InvalidError(f"{self.name} can only be {self.default} here: {self.doc}")
        return value

    def _check_number(self, text: str) -> None:
        try:
            number = float(text) if self.kind is Kind.DOUBLE else int(text)
        except ValueError:
            raise self._invalid(text, f"it is a number of type {self.kind.name}") from None
        least = -_MAX_I64 if self.least is None else self.least
        most = (_MAX_I32 if self.kind is Kind.INT else _MAX_I64) if self.most is None else self.most
        if not least <= number <= most:
            raise self._invalid(text, f"it is a number from {least} to {most}")

    def _invalid(self, text: str, why: str) -> InvalidError:
        return InvalidError(f"Invalid value {text} for configuration {self.name}: {why}")


_CLEANUP: Final = "cleanup.policy"
_TIMESTAMP: Final = "message.timestamp.type"
_TO_CORE: Final = {_TIMESTAMP: {"CreateTime": "create", "LogAppendTime": "append"}, _CLEANUP: {"": "keep"}}
_FROM_CORE: Final = {name: {core: text for text, core in words.items()} for name, words in _TO_CORE.items()}

_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_LEVEL: Final = "The codec's own level is used."
_NO_TIERS: Final = "there is no remote storage."
_NO_REPLICAS: Final = "There is one copy of each partition."

_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = (
    Kind.BOOLEAN,
    Kind.STRING,
    Kind.INT,
    Kind.LONG,
    Kind.DOUBLE,
    Kind.LIST,
)
_ACTS, _IGNORED, _REFUSED = Effect


def _acts(name: str, kind: Kind, setting: str, broker: str, doc: str, **more: Any) -> Config:
    default = getattr(settings_of({}), setting)
    return Config(name, kind, _text(name, default), _ACTS, doc, broker, setting=setting, **more)


def _ignored(name: str, kind: Kind, default: str, broker: str, doc: str, **more: Any) -> Config:
    return Config(name, kind, default, _IGNORED, doc, broker, **more)


def _refused(name: str, kind: Kind, default: str, doc: str, broker: str = "") -> Config:
    return Config(name, kind, default, _REFUSED, doc, broker)


def _text(name: str, value: object) -> str:
    text = str(value)
    return _FROM_CORE.get(name, {}).get(text, text)


_ROWS: Final = (
    _acts(
        _CLEANUP, _LIST, "cleanup", "log.cleanup.policy",
        "What becomes of old records: delete drops them by age and size, compact keeps the last one of each key. "
        "Neither: they stay.",
        words=("compact", "delete"),
    ),
    _ignored("compression.gzip.level", _INT, "-1", "compression.gzip.level", _LEVEL, least=-1, most=9),
    _ignored("compression.lz4.level", _INT, "9", "compression.lz4.level", _LEVEL, least=1, most=17),
    _acts(
        "compression.type", _STRING, "compression", "compression.type",
        "What batches are packed with before they are kept. producer: as they came.", words=_CODECS,
    ),
    _ignored("compression.zstd.level", _INT, "3", "compression.zstd.level", _LEVEL, least=-131072, most=22),
    _acts(
        "delete.retention.ms", _LONG, "delete_retention_ms", "log.cleaner.delete.retention.ms",
        "How long compaction keeps a record that deletes its key.", least=0,
    ),
    _ignored(
        "file.delete.delay.ms", _LONG, "60000", "log.segment.delete.delay.ms",
        "Files go once nobody reads them any more.", least=0,
    ),
    _ignored(
        "flush.messages", _LONG, str(_MAX_I64), "log.flush.interval.messages",
        "What acks=all acknowledges is synced, whatever this says.", least=1,
    ),
    _ignored(
        "flush.ms", _LONG, str(_MAX_I64), "log.flush.interval.ms",
        "What acks=all acknowledges is synced, whatever this says.", least=0,
    ),
    _ignored("follower.replication.throttled.replicas", _LIST, "", "", _NO_REPLICAS),
    _ignored(
        "index.interval.bytes", _INT, "4096", "log.index.interval.bytes", "The index has a density of its own.", least=0
    ),
    _acts(
        "interlog.durability", _STRING, "durability", "",
        "What acks=all waits for. sync: the disk; os: the operating system; default: as the broker's durability says.",
        words=("default", "sync", "os"),
    ),
    _ignored("leader.replication.throttled.replicas", _LIST, "", "", _NO_REPLICAS),
    _refused("local.retention.bytes", _LONG, "-2", _NO_TIERS, "log.local.retention.bytes"),
    _refused("local.retention.ms", _LONG, "-2", _NO_TIERS, "log.local.retention.ms"),
    _acts(
        "max.compaction.lag.ms", _LONG, "max_compaction_lag_ms", "log.cleaner.max.compaction.lag.ms",
        "How long a record may stay as it is before compaction, however little else is new.", least=1,
    ),
    _acts(
        "max.message.bytes", _INT, "max_message_bytes", "message.max.bytes",
        "The largest batch that is taken, as it comes.", least=1024, most=512 << 20,
    ),
    _acts(
        "message.timestamp.after.max.ms", _LONG, "future_ms", "log.message.timestamp.after.max.ms",
        "How far a batch's newest time may lie after the broker's, where records keep their times.", least=0,
    ),
    _acts(
        "message.timestamp.before.max.ms", _LONG, "past_ms", "log.message.timestamp.before.max.ms",
        "How far a batch's first time may lie before the broker's, where records keep their times.", least=0,
    ),
    _acts(
        _TIMESTAMP, _STRING, "timestamp", "log.message.timestamp.type",
        "Whether records keep the times they came with, or get the broker's.", words=("CreateTime", "LogAppendTime"),
    ),
    _acts(
        "min.cleanable.dirty.ratio", _DOUBLE, "min_dirty_ratio", "log.cleaner.min.cleanable.ratio",
        "Compaction begins when this part of what there is has not been compacted.", least=0, most=1,
    ),
    _acts(
        "min.compaction.lag.ms", _LONG, "min_compaction_lag_ms", "log.cleaner.min.compaction.lag.ms",
        "How long compaction leaves a record alone.", least=0,
    ),
    _ignored("min.insync.replicas", _INT, "1", "min.insync.replicas", _NO_REPLICAS, least=1),
    _ignored("preallocate", _BOOLEAN, "false", "log.preallocate", "The journal reserves its room by itself."),
    _refused("remote.log.copy.disable", _BOOLEAN, "false", _NO_TIERS),
    _refused("remote.log.delete.on.disable", _BOOLEAN, "false", _NO_TIERS),
    _refused("remote.storage.enable", _BOOLEAN, "false", _NO_TIERS),
    _acts(
        "retention.bytes", _LONG, "retention_bytes", "log.retention.bytes",
        "How much a partition may hold before its oldest records go. -1: any amount.", least=-1,
    ),
    _acts(
        "retention.ms", _LONG, "retention_ms", "log.retention.ms",
        "How old a record grows before it may go. What is older when it comes stays for five minutes. -1: any age.",
        least=-1,
    ),
    _acts(
        "segment.bytes", _INT, "segment_bytes", "log.segment.bytes",
        "How large a segment grows, though never smaller than 4 KiB. Retention by size drops whole ones.", least=14,
    ),
    _ignored(
        "segment.index.bytes", _INT, "10485760", "log.index.size.max.bytes", "Indexes have the size they need.", least=4
    ),
    _ignored("segment.jitter.ms", _LONG, "0", "log.roll.jitter.ms", "Segments are not closed all at once.", least=0),
    _acts(
        "segment.ms", _LONG, "segment_ms", "log.roll.ms",
        "Over how long a time small segments are merged. Retention by age drops whole ones.", least=1,
    ),
    _ignored(
        "unclean.leader.election.enable", _BOOLEAN, "false", "unclean.leader.election.enable", _NO_REPLICAS
    ),
)  # fmt: skip

TOPIC: Final[dict[str, Config]] = {row.name: row for row in _ROWS}


# -- a topic's, to the core and back


def config(name: str) -> Config:
    found = TOPIC.get(name)
    if found is None:
        raise InvalidError(f"Unknown topic config name: {name}")
    return found


def settings_from(configs: Mapping[str, str], kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The core's settings for these configs, and beside them what of `kept` Kafka has no word for.

    InvalidError with a sentence at what cannot be.
    """
    acting = {row.setting for row in TOPIC.values() if row.setting}
    settings = {name: value for name, value in (kept or {}).items() if name not in acting and name != NOTES}
    notes: dict[str, str] = {}
    for name, text in configs.items():
        row = config(name)
        value = row.check(text)
        if not row.setting:
            notes[name] = value
        elif name in _TO_CORE:
            settings[row.setting] = _TO_CORE[name].get(value, value)
        else:
            settings[row.setting] = _NUMBERS[row.kind](value) if row.kind in _NUMBERS else value
    if notes:
        settings[NOTES] = notes
    return check_settings(settings)


def configs_from(settings: Mapping[str, Any]) -> dict[str, str]:
    """What is set on a topic, as texts."""
    found = {row.name: _text(row.name, settings[row.setting]) for row in _ROWS if settings.get(row.setting) is not None}
    notes = settings.get(NOTES, {})
    return found | {name: text for name, text in notes.items() if name in TOPIC}
