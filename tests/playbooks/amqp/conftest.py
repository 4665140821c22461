"""A broker and a client for each playbook."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.playbooks.amqp.play import Client, Play, playing


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    yield from playing(tmp_path / "data")


@pytest.fixture
def client(play: Play) -> Client:
    return play.connect()
