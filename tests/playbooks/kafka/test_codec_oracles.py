"""Our tables against kio's classes: what is written by one is read by the other, whole, and written again the same."""

import io
from importlib import import_module
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.codec import api, decode, encode
from interlog.faces.kafka.schema.fields import Message
from interlog.faces.kafka.schema.index import MODULES
from tests.playbooks.kafka.odd_requests import Dice

SEEDS = range(3)
ERRORS = (0, 0, -1, 1, 3, 47, 133)


class Known(Dice):
    """kio reads no error that it does not know, and no time before 1970 but -1."""

    def item(self, name: str, kind: Any, version: int) -> Any:
        if name.endswith("error_code"):
            return self.random.choice(ERRORS)
        found = super().item(name, kind, version)
        return max(found, -1) if name == "log_append_time_ms" else found


def theirs(key: int, version: int, table: type[Message]) -> Any:
    """kio's class; None for versions that are too old for it."""
    part = "request" if table.__name__.endswith("Request") else "response"
    try:
        module = import_module(f"kio.schema.{MODULES[key]}.v{version}.{part}")
    except ImportError:
        return None
    return getattr(module, table.__name__)


@pytest.mark.parametrize("key", SERVED, ids=lambda key: MODULES[key])
def test_both_say_the_same(key: int) -> None:
    tables = api(key)
    assert tables is not None
    compared = 0
    for version in SERVED[key].versions:
        for table in tables:
            other = theirs(key, version, table)
            if other is None:
                continue
            read, write = entity_reader(other), entity_writer(other)
            for seed in SEEDS:
                message = Known(seed, [b"x" * 16]).message(table, version)
                ours = encode(table, version, message)
                entity, size = read(ours, 0)
                assert size == len(ours), (version, message)
                again = io.BytesIO()
                write(again, entity)
                assert again.getvalue() == ours, (version, message)
                found, at = decode(table, version, again.getvalue())
                assert at == size
                assert encode(table, version, found) == ours
                compared += 1
    assert compared >= 2 * len(SEEDS)
