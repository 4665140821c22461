"""A broker and a client for each playbook."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.playbooks.kafka.play")

from tests.playbooks.kafka.play import Client, Play, playing  # noqa: E402 (it must be rewritten first)


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    yield from playing(tmp_path / "data")


@pytest.fixture
def client(play: Play) -> Client:
    return play.connect()
