"""The programs in examples/, as their readers run them: each prints what it says it prints."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.served import PATIENCE_SECONDS, ROOT

EXAMPLES = ROOT / "examples"
NO_DELAYS = "this broker has no delayed messages"

# Each line is one after the other on one broker; the modules beside them are what they import.
PLAYS = [
    ["producer.py", "consumer.py 3"],
    ["work_queue.py"],
    ["publish_subscribe.py"],
    ["topics.py"],
    ["rpc.py"],
    ["delayed_messages.py"],
    ["retries.py"],
    ["stream.py"],
]
IMPORTED = {"connecting.py", "orders.py"}


def promised(program: Path) -> str:
    """What its own first lines say that it prints."""
    text = program.read_text(encoding="utf-8").split('"""')[1]
    _, found, lines = text.partition("prints:\n\n")
    assert found, f"{program.name} does not say what it prints"
    return textwrap.dedent(lines)


def run(command: str, amqp_url: str) -> str:
    name, *arguments = command.split()
    ended = subprocess.run(
        [sys.executable, "-W", "error", name, *arguments],
        cwd=EXAMPLES,
        env={**os.environ, "AMQP_URL": amqp_url, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if NO_DELAYS in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("play", PLAYS, ids=" ".join)
def test_examples_print_what_they_say(play: list[str], amqp_url: str, against_rabbitmq: bool) -> None:
    for command in play:
        said = run(command, amqp_url)
        assert said == promised(EXAMPLES / command.split()[0])
    assert against_rabbitmq or run(play[0], amqp_url)  # once more: nothing is in its way


def test_no_example_is_left_out() -> None:
    there = {path.name for path in EXAMPLES.glob("*.py")}
    assert {command.split()[0] for play in PLAYS for command in play} | IMPORTED == there
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name})" in page for name in there - IMPORTED)
