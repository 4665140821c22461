"""The page on AMQP's compatibility says what the tables of the code say."""

import re
from pathlib import Path

from interlog.base.metrics import Metrics
from interlog.base.work import ManualWorker
from interlog.core.broker import Core
from interlog.core.policies import OPERATOR_KEYS
from interlog.faces.amqp import argument_checks, arguments, consumer_arguments, exchange_arguments
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.service import CAPABILITIES
from interlog.web import policies_api
from interlog.web.management import management
from interlog.web.status import About, Status
from tests.data_folders import SMALL
from tests.served import ROOT

PAGE = (ROOT / "docs" / "compatibility" / "amqp.md").read_text(encoding="utf-8")
KINDS = ("classic", "quorum", "stream")


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if "|" in line][2:]


def names(cell: str, pattern: str) -> list[str]:
    return re.findall(rf"`({pattern})`", cell)


def words(section: str) -> dict[str, list[str]]:
    """Argument → what the row says of it, in columns."""
    found: dict[str, list[str]] = {}
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for line in text.splitlines():
        if line.startswith("| `x-"):
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            for name in names(cells[0], "x-[a-z-]+"):
                found[name] = cells[1:]
    return found


def expected(known: argument_checks.Known, argument: str) -> tuple[str, ...]:
    if argument not in known:
        return ("–",)
    return ("yes", "in part") if known[argument][0] else ("accepted",)


def test_each_argument_of_queues_has_its_row() -> None:
    told = words("Arguments of queues")
    told.pop("x-queue-type")
    known = arguments._KNOWN
    assert set(told) == {name for kind in known.values() for name in kind}
    for name, cells in told.items():
        for kind, cell in zip(KINDS, cells, strict=False):
            assert cell in expected(known[kind], name), (name, kind)


def test_each_argument_of_consumers_has_its_row() -> None:
    told = words("Consumers")
    known = consumer_arguments._KNOWN
    assert set(told) == {name for kind in known.values() for name in kind}
    for name, cells in told.items():
        for kind, cell in zip(KINDS, cells, strict=False):
            assert cell in expected(known[kind], name), (name, kind)


def test_what_policies_can_say_is_told() -> None:
    """An argument's column says whether a policy of that name is taken, acts, and may be an operator's."""
    renamed = {"x-quorum-target-group-size": "target-group-size"}
    for name, (_, _, _, policy, operator) in words("Arguments of queues").items():
        if name == "x-queue-type":
            continue
        key = renamed.get(name, name.removeprefix("x-"))
        if policy in ("yes", "in part"):
            settings = policies_api._SETTINGS[key]
            assert (operator == "yes") == bool(set(settings) & set(OPERATOR_KEYS)), name
        elif policy == "accepted":
            assert key in policies_api._WITHOUT_EFFECT, name
        else:
            assert key not in policies_api._SETTINGS and key not in policies_api._WITHOUT_EFFECT, name
    told = set(re.findall(r"`(?:x-)?([a-z-]+)`", PAGE))
    for key in (*policies_api._SETTINGS, *policies_api._WITHOUT_EFFECT):
        assert key in told or key.startswith("ha-"), key


def test_each_type_of_exchange_has_its_row() -> None:
    section = PAGE.partition("\n## Exchanges\n")[2].partition("\n## ")[0]
    for kind in (*exchange_arguments._EXCHANGE_KINDS, "x-delayed-message"):
        assert f"`{kind}`" in section, kind


def test_each_capability_is_told() -> None:
    section = PAGE.partition("**Capabilities**")[2].partition("Those of the client")[0]
    assert set(names(section, "[a-z_.]+")) == set(CAPABILITIES)


def test_each_class_of_methods_has_its_rows() -> None:
    classes = {type.__name__ for type in m.METHODS.values()}
    told = set()
    for cells in rows("Methods"):
        for method in cells[1].replace("-", " ").split(", "):
            told.add((cells[0] + method.title().replace(" ", "")).capitalize().lower())
    requests = {name.lower() for name in classes if not name.endswith("Ok")}
    answers = {"basicgetempty"}
    assert requests - answers == told


def test_each_path_of_the_management_api_has_its_row(tmp_path: Path) -> None:
    core = Core.open(tmp_path / "data", settings=SMALL, worker=ManualWorker())
    status = Status(core.status, About("", "os", 1, 0.0, {}), core.clock, Metrics())
    there = {path for path in management(status, core)._paths if path.startswith("/api/")}
    core.close()
    told = set()
    for cells in rows("The management API"):
        if not cells[1].startswith("no"):
            told |= set(names(cells[0], "/api/[^`]+"))
    assert told == {re.sub(r"\{(\w+)\}", lambda part: part[1].upper(), path) for path in there}
