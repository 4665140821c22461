"""dev.py: when the environment is made anew, and that nothing but the lock files decides."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """dev.py for a clone of its own, with an environment that looks finished."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    (tmp_path / "requirements").mkdir()
    for name in ("run", "dev"):
        (tmp_path / "requirements" / f"{name}.lock").write_text(f"{name}==1")
    python: Path = module.venv_python()
    python.parent.mkdir(parents=True)
    python.touch()
    for name in ("run", "dev"):
        module.stamp_path(name).write_text(module.stamp(name))
    return module


def current(dev: ModuleType) -> list[str]:
    return [name for name in ("run", "dev") if dev.is_current(name, dev.stamp(name))]


def test_nothing_is_done_while_nothing_changed(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert current(dev) == ["run", "dev"]
    assert dev.set_up("dev") == dev.venv_python()
    assert capsys.readouterr().out == ""


def test_a_changed_lock_file_is_noticed(dev: ModuleType) -> None:
    dev.lock_path("dev").write_text("dev==2")
    assert current(dev) == ["run"]


def test_another_python_is_noticed(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version", "3.99.0 (main)")
    assert current(dev) == []


def test_a_clone_that_was_moved_is_noticed(dev: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    monkeypatch.setattr(dev, "ROOT", moved)
    monkeypatch.setattr(dev, "VENV", moved / ".venv")
    assert current(dev) == []
    moved.rename(tmp_path)


def test_an_environment_that_is_gone_is_noticed(dev: ModuleType) -> None:
    dev.venv_python().unlink()
    assert current(dev) == []


def test_a_python_without_pip_is_told_what_to_install(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dev.lock_path("run").write_text("run==2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert dev.main(["run"]) == 1
    assert "apt install python3-venv" in capsys.readouterr().out


@pytest.fixture
def node(dev: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are run, with an npm that is there."""
    source = tmp_path / "tests" / "interop" / "node"
    source.mkdir(parents=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        (source / name).write_text(name)
    commands: list[list[str]] = []

    def call(words: list[str], cwd: Path) -> int:
        assert (cwd / "package-lock.json").read_text() == "package-lock.json"
        commands.append(words)
        return 0

    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "call", call)
    return commands


def test_node_packages_are_installed_once(dev: ModuleType, node: list[list[str]], tmp_path: Path) -> None:
    dev.set_up_node()
    dev.set_up_node()
    assert [words[:2] for words in node] == [["/bin/npm", "ci"]]
    (tmp_path / "tests" / "interop" / "node" / "package.json").write_text("another")
    dev.set_up_node()
    assert len(node) == 2


def test_without_npm_its_tests_are_skipped_with_a_word(
    dev: ModuleType, node: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    dev.set_up_node()
    assert not node
    assert "there is no npm here" in capsys.readouterr().out


def test_commands_are_explained(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.main(["--help"]) == 0
    assert dev.main([]) == 2
    assert dev.main(["rnu"]) == 2
    assert "There is no command 'rnu'. There is: run, test, check" in capsys.readouterr().out


def test_ci_runs_what_a_person_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^python3 .*$", script, re.MULTILINE) == ["python3 dev.py check", "python3 dev.py test"]
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_lock_files_hold_what_is_asked_for_and_no_place_to_get_it_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {line for line in (ROOT / "requirements" / "run.in").read_text().splitlines() if not line.startswith("#")}
    assert {line.replace("'", '"') for line in project["dependencies"]} == asked
    locked = {}
    for name in ("run", "dev"):
        text = (ROOT / "requirements" / f"{name}.lock").read_text()
        assert not re.search(r"://|index-url|find-links|^\s*/", text, re.MULTILINE)
        locked[name] = set(re.findall(r"^([a-z0-9-]+==\S+)", text, re.MULTILINE))
        assert text.count("--hash=sha256:") >= len(locked[name])
    assert locked["run"] <= locked["dev"]
