"""The page on Kafka's compatibility says what the tables say."""

import re
from dataclasses import fields
from pathlib import Path

from interlog.app.settings import Settings
from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.broker_configs import BROKER
from interlog.faces.kafka.configs import TOPIC, Config
from interlog.faces.kafka.group_configs import GROUP

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility" / "kafka.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r" *\| *", line)] for line in lines[1:]]


def code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def test_every_api_is_there_with_its_versions() -> None:
    told = [(int(number), name, versions) for number, name, versions, _ in rows("APIs")]
    assert told == [
        (
            key,
            served.module.title().replace("_", ""),
            " to ".join(str(version) for version in dict.fromkeys((served.versions[0], served.versions[-1]))),
        )
        for key, served in sorted(SERVED.items())
    ]


def _as_told(configs: dict[str, Config]) -> list[list[str]]:
    return [[code(row.name), code(row.default), row.effect.value, row.doc] for row in configs.values()]


def test_every_setting_of_topics_and_groups_is_there_with_what_becomes_of_it() -> None:
    assert rows("Settings of topics") == _as_told(TOPIC)
    assert rows("Settings of groups") == _as_told(GROUP)


def test_every_setting_of_the_broker_is_there_with_who_sets_it() -> None:
    known = {field.name for field in fields(Settings)}
    assert {row.set_by for row in BROKER.values() if row.set_by} <= known
    assert rows("Settings of the broker") == [
        [code(row.name), code(row.default), row.here, row.doc] for row in BROKER.values()
    ]
