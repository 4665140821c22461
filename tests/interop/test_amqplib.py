"""npm's amqplib: node/work.js at work, one process a scenario."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.served import ROOT

FOLDER = Path(__file__).parent / "node"
MODULES = ROOT / ".venv" / "node" / "node_modules"  # dev.py puts them there
SCENARIOS = re.findall(r"^  async (\w+)\(connection\)", (FOLDER / "work.js").read_text(encoding="utf-8"), re.MULTILINE)
PATIENCE_SECONDS = 30

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (MODULES / "amqplib").is_dir(),
    reason="needs Node.js with npm's amqplib: install Node.js 18 or newer, then python3 dev.py test gets amqplib",
)


def test_there_is_work_to_do() -> None:
    assert len(SCENARIOS) >= 9


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_amqplib_at_work(scenario: str, amqp_url: str, named: Callable[[str], str]) -> None:
    result = subprocess.run(
        ["node", str(FOLDER / "work.js"), scenario, amqp_url, named(scenario)],
        env={**os.environ, "NODE_PATH": str(MODULES)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
