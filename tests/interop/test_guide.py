"""What the guide tells those who come from RabbitMQ: its program and its commands, run as they stand there."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from interlog.testing import RunningBroker
from tests.served import PATIENCE_SECONDS, ROOT, clean_environment

PAGE = (ROOT / "docs" / "guide" / "coming-from-rabbitmq.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_program_runs(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("python")
    exec(program.replace(":5672/", f":{broker.port}/"), {})
    assert capsys.readouterr().out == "one coffee\n"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_commands_run(broker: RunningBroker, tmp_path: Path) -> None:
    command = tmp_path / "interlog"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m interlog "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    commands = "\n".join(blocks("sh")).replace("http://127.0.0.1:15672", broker.http_url)
    commands = commands.replace("curl -s", "curl -s --fail-with-body")
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-e", "-c", commands],
        env=clean_environment({"PATH": path, "INTERLOG_URL": broker.http_url}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    found = broker.call(lambda core: core.policies.of_queue("shop", "orders", "classic"))
    assert found["dead_letter_exchange"] == "graves" and found["overflow"] == "reject-publish"
    assert broker.call(lambda core: core.access.may("ann", "shop", "configure", "ann-1")) is True
