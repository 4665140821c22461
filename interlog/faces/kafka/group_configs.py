"""Kafka's configs of a group: a table like that of topics.

Comes in: names and texts, or a group's settings as the core keeps them. Goes out: settings for the core, or texts to
show. What a group does not set is as the broker says, under the broker's own name for it.
"""

from collections.abc import Mapping
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.core.groups import GroupSettings
from interlog.faces.kafka.configs import Config, Effect, Kind

_ALL: Final = GroupSettings()


def _acts(name: str, setting: str, doc: str, least: int, most: int) -> Config:
    default = str(getattr(_ALL, setting))
    return Config(name, Kind.INT, default, Effect.ACTS, doc, f"group.{name}", least, most, setting=setting)


_ROWS: Final = (
    _acts(
        "consumer.heartbeat.interval.ms", "heartbeat_ms",
        "How often a member of this group, of the newer kind, is told to send a heartbeat.", 100, 600_000,
    ),
    _acts(
        "consumer.session.timeout.ms", "session_ms",
        "How long a member of this group, of the newer kind, may be silent.", 1_000, 1_800_000,
    ),
)  # fmt: skip

GROUP: Final[dict[str, Config]] = {row.name: row for row in _ROWS}


def config(name: str) -> Config:
    found = GROUP.get(name)
    if found is None:
        raise InvalidError(f"Unknown group config name: {name}")
    return found


def settings_from(configs: Mapping[str, str], of_all: GroupSettings) -> dict[str, int]:
    """The core's settings for these configs; InvalidError with a sentence at what cannot be."""
    rows = {config(name): text for name, text in configs.items()}
    settings = {row.setting: int(row.check(text)) for row, text in rows.items()}
    session_ms = settings.get("session_ms", of_all.session_ms)
    heartbeat_ms = settings.get("heartbeat_ms", of_all.heartbeat_ms)
    if session_ms <= heartbeat_ms:
        raise InvalidError("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")
    return settings


def configs_from(settings: Mapping[str, Any]) -> dict[str, str]:
    """What is set on a group, as texts."""
    return {row.name: str(settings[row.setting]) for row in _ROWS if row.setting in settings}
