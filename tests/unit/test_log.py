import io
import json
import logging
from collections.abc import Iterator

import pytest

from interlog.base.log import HumanFormatter, configure, get_log


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("interlog", "asyncio")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(format: str, stream: io.StringIO, level: str = "info") -> list[str]:
    configure(format, level, stream)
    log = get_log("net")
    log.debug("detail", n=1)
    log.info("listening", protocol="http", address="127.0.0.1:15672")
    log.warning("odd", what="two words", quote='a"b', empty="", control="a\n\x1b[0m")
    return stream.getvalue().splitlines()


def test_auto_writes_for_people_on_a_terminal_and_json_elsewhere() -> None:
    human, machine = written("auto", Terminal()), written("auto", io.StringIO())
    assert human[0].endswith("info    net     listening protocol=http address=127.0.0.1:15672")
    assert json.loads(machine[0])["message"] == "listening"


def test_a_line_for_people_quotes_what_would_run_together() -> None:
    line = written("human", io.StringIO())[1]
    assert line.endswith(r'warning net     odd what="two words" quote="a\"b" empty="" control="a\n\x1b[0m"')


def test_a_json_line_keeps_types_and_its_own_keys() -> None:
    stream = io.StringIO()
    configure("json", "debug", stream)
    get_log("app").info("ready", in_ms=12, level="mine", addresses={"http": "x"}, path=None)
    line = json.loads(stream.getvalue())
    assert line["time"].endswith("Z")
    del line["time"]
    assert line == {
        "level": "info",
        "room": "app",
        "message": "ready",
        "in_ms": 12,
        "level_": "mine",
        "addresses": {"http": "x"},
        "path": None,
    }


def test_the_level_is_the_least_that_is_written() -> None:
    assert len(written("json", io.StringIO(), "debug")) == 3
    assert len(written("json", io.StringIO(), "warning")) == 1


def test_a_failure_comes_with_where_it_came_from() -> None:
    for format in ("human", "json"):
        stream = io.StringIO()
        configure(format, "info", stream)
        try:
            raise ValueError("boom")
        except ValueError as error:
            get_log("web").failure("a request failed", error, path="/x")
        assert "ValueError: boom" in stream.getvalue()
        assert "test_log.py" in stream.getvalue()


def test_records_of_others_are_taken_as_they_are() -> None:
    record = logging.LogRecord("asyncio", logging.WARNING, __file__, 1, "slow %s", ("callback",), None)
    assert HumanFormatter().format(record).endswith("warning asyncio slow callback")
    assert HumanFormatter(colour=True).format(record).startswith("\x1b[33m")
