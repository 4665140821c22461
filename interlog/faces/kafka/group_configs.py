"""Kafka's configs of a group: a table like that of topics.

Comes in: names and texts, or a group's settings as the core keeps them. Goes out: settings for the core, or texts to
show. What a group does not set is as the broker says, under the broker's own name for it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from interlog.base.errors import InvalidError
from interlog.core.group_settings import EARLIEST, LATEST
from interlog.core.groups import GroupSettings
from interlog.faces.kafka.configs import Config, Effect, Kind

_ALL: Final = GroupSettings()
_DAY_MS: Final = 86_400_000
_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,8})H)?(?:(\d{1,9})M)?(?:(\d{1,10}(?:\.\d{1,3})?)S)?)?", re.I
)
_ISOLATION: Final = ("read_uncommitted", "read_committed")


def _acts(name: str, setting: str, doc: str, least: int, most: int) -> Config:
    default = str(getattr(_ALL, setting))
    return Config(name, Kind.INT, default, Effect.ACTS, doc, f"group.{name}", least, most, setting=setting)


def _text(name: str, setting: str, default: str, doc: str, words: tuple[str, ...] = ()) -> Config:
    return Config(name, Kind.STRING, default, Effect.ACTS, doc, words=words, setting=setting)


_RESET: Final = "share.auto.offset.reset"
_ROWS: Final = (
    _acts(
        "consumer.heartbeat.interval.ms", "heartbeat_ms",
        "How often a member of this group, of the newer kind, is told to send a heartbeat.", 100, 600_000,
    ),
    _acts(
        "consumer.session.timeout.ms", "session_ms",
        "How long a member of this group, of the newer kind, may be silent.", 1_000, 1_800_000,
    ),
    _text(
        _RESET, "share_start", "latest",
        "Where this share group begins to read a partition: latest, earliest, or by_duration: and how long ago.",
    ),
    _acts(
        "share.delivery.count.limit", "share_deliveries",
        "How often a record is delivered in this share group, until it is not any more.", 2, 100,
    ),
    _acts(
        "share.heartbeat.interval.ms", "share_heartbeat_ms",
        "How often a member of this share group is told to send a heartbeat.", 100, 600_000,
    ),
    _text(
        "share.isolation.level", "share_committed", _ISOLATION[0],
        "Whether this share group reads what transactions wrote that are open or were aborted.", _ISOLATION,
    ),
    _acts(
        "share.partition.max.record.locks", "share_locks",
        "How many records of a partition this share group looks after one by one.", 100, 1_000_000,
    ),
    _acts(
        "share.record.lock.duration.ms", "share_lock_ms",
        "How long a member of this share group holds the records that it was given.", 1_000, 3_600_000,
    ),
    _acts(
        "share.session.timeout.ms", "share_session_ms",
        "How long a member of this share group may be silent.", 1_000, 1_800_000,
    ),
)  # fmt: skip

GROUP: Final[dict[str, Config]] = {row.name: row for row in _ROWS}


def config(name: str) -> Config:
    found = GROUP.get(name)
    if found is None:
        raise InvalidError(f"Unknown group config name: {name}")
    return found


class _Form(NamedTuple):
    """How a setting that is a number for the core is written."""

    read: Callable[[str], int]
    show: Callable[[int], str]


def _read_reset(text: str) -> int:
    if text in ("latest", "earliest"):
        return LATEST if text == "latest" else EARLIEST
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise InvalidError(
            f"Invalid value {text} for configuration {_RESET}: it is latest, earliest or by_duration:PnDTnHnMn.nS"
        )
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round(days * _DAY_MS + hours * 3_600_000 + minutes * 60_000 + seconds * 1000)


def _show_reset(value: int) -> str:
    if value < 0:
        return "latest" if value == LATEST else "earliest"
    seconds, ms = divmod(value, 1000)
    return f"by_duration:PT{seconds}{f'.{ms:03}' if ms else ''}S"


_PLAIN: Final = _Form(int, str)
_FORMS: Final[dict[str, _Form]] = {
    "share_start": _Form(_read_reset, _show_reset),
    "share_committed": _Form(_ISOLATION.index, _ISOLATION.__getitem__),
}
_GREATER: Final = (("session_ms", "heartbeat_ms", "consumer"), ("share_session_ms", "share_heartbeat_ms", "share"))


def settings_from(configs: Mapping[str, str], of_all: GroupSettings) -> dict[str, int]:
    """The core's settings for these configs; InvalidError with a sentence at what cannot be."""
    rows = {config(name): text for name, text in configs.items()}
    settings = {row.setting: _FORMS.get(row.setting, _PLAIN).read(row.check(text)) for row, text in rows.items()}
    for session, heartbeat, kind in _GREATER:
        if settings.get(session, getattr(of_all, session)) <= settings.get(heartbeat, getattr(of_all, heartbeat)):
            raise InvalidError(f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms")
    return settings


def configs_from(settings: Mapping[str, Any]) -> dict[str, str]:
    """What is set on a group, as texts."""
    return {
        row.name: _FORMS.get(row.setting, _PLAIN).show(settings[row.setting])
        for row in _ROWS
        if row.setting in settings
    }
