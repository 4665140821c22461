"""npm's kafkajs: node/kafka.js at work, one process a scenario."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.served import ROOT

PROGRAM = Path(__file__).parent / "node" / "kafka.js"
MODULES = ROOT / ".venv" / "node" / "node_modules"  # dev.py puts them there
SCENARIOS = re.findall(r"^  async (\w+)\(\)", PROGRAM.read_text(encoding="utf-8"), re.MULTILINE)
PATIENCE_SECONDS = 30

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (MODULES / "kafkajs").is_dir(),
    reason="needs Node.js with npm's kafkajs: install Node.js 18 or newer, then python3 dev.py test gets kafkajs",
)


def test_there_is_work_to_do() -> None:
    assert len(SCENARIOS) >= 6


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kafkajs_at_work(scenario: str, address: str) -> None:
    result = subprocess.run(
        ["node", str(PROGRAM), scenario, address],
        env={**os.environ, "NODE_PATH": str(MODULES), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
