"""What the documents say of the code, held against the code."""

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from interlog.testing import RunningBroker
from tests.data_folders import Filling

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def documented_tables() -> dict[str, list[tuple[str, str, bool]]]:
    """Table → (column, type, whether it is part of the key), as the guide has them."""
    page = (ROOT / "docs" / "guide" / "data-folder.md").read_text(encoding="utf-8")
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for section in page.split("\n### ")[1:]:
        rows = re.findall(r"^\| `(\w+)` \| (\w+)(, key)? \|", section, re.MULTILINE)
        found[section.partition("\n")[0]] = [
            (name, "" if type == "any" else type, bool(key)) for name, type, key in rows
        ]
    return found


def test_the_guide_has_every_table_and_column_of_meta_db(tmp_path: Path) -> None:
    filling = Filling(tmp_path / "data")
    filling.kill()
    database = sqlite3.connect(tmp_path / "data" / "meta.db")
    made = {}
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = database.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,))
        made[table] = [(name, type, bool(key)) for name, type, key in columns]
    database.close()
    assert documented_tables() == made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" in link or (page.parent / link).exists(), link


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\((\d+-[^)]+)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in folder.glob("[0-9]*.md"))


def test_the_examples_of_the_guide_run(capsys: pytest.CaptureFixture[str], broker: RunningBroker) -> None:
    page = (ROOT / "docs" / "guide" / "getting-started.md").read_text(encoding="utf-8")
    client, example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(client.replace(":5672/", f":{broker.port}/"), {})
    assert capsys.readouterr().out == "Hello, world\n"
    names: dict[str, object] = {}
    exec(example.replace("asyncio.run(main())", ""), names)
    asyncio.run(names["main"]())  # type: ignore[operator]
    assert "'http': '127.0.0.1:" in capsys.readouterr().out
