"""What the broker says while it runs: a message and fields, one line each.

    log = get_log("net")
    log.info("listening", protocol="http", address="127.0.0.1:15672")

Underneath is the standard library's logging, under the name `interlog`, so that a program which embeds the broker
decides itself what becomes of the lines. `configure` is called by the command line only: to a terminal go lines for
people, to anything else one JSON object a line.
"""

import logging
import sys
import time
from typing import Any, Final, TextIO

ROOT: Final = "interlog"
LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("auto", "human", "json")

_RESERVED: Final = frozenset({"time", "level", "room", "message", "error"})
_COLOURS: Final = {"debug": "2", "warning": "33", "error": "31", "critical": "31;1"}


class Log:
    """A logger of one room. Fields are keyword arguments; their order is the order of the line."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, message: str, /, **fields: object) -> None:
        self._say(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        self._say(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        self._say(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        self._say(logging.ERROR, message, fields)

    def failure(self, message: str, error: BaseException, /, **fields: object) -> None:
        """An error nobody expected, with where it came from."""
        if self._logger.isEnabledFor(logging.ERROR):
            info = (type(error), error, error.__traceback__)
            self._logger.error("%s", message, extra={"fields": fields}, exc_info=info, stacklevel=2)

    def _say(self, level: int, message: str, fields: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", message, extra={"fields": fields}, stacklevel=3)


def get_log(room: str) -> Log:
    return Log(logging.getLogger(f"{ROOT}.{room}"))


def configure(format: str, level: str, stream: TextIO | None = None) -> None:
    """Send the broker's lines to the stream (standard error unless told) in the format asked for."""
    stream = stream if stream is not None else sys.stderr
    terminal = stream.isatty()
    handler = logging.StreamHandler(stream)
    human = format == "human" or (format == "auto" and terminal)
    handler.setFormatter(HumanFormatter(colour=terminal) if human else JsonFormatter())
    logger = logging.getLogger(ROOT)
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    # What the event loop itself complains of is worth the same line format.
    loop_logger = logging.getLogger("asyncio")
    loop_logger.handlers[:] = [handler]
    loop_logger.setLevel(logging.WARNING)
    loop_logger.propagate = False


class HumanFormatter(logging.Formatter):
    """`12:00:01.250 info    net      listening protocol=http address=127.0.0.1:15672`, local time."""

    def __init__(self, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = record.levelname.lower()
        fields = "".join(f" {key}={_human(value)}" for key, value in _fields(record).items())
        line = f"{clock}.{int(record.msecs):03d} {level:<7} {_room(record):<7} {record.getMessage()}{fields}"
        if self._colour and level in _COLOURS:
            line = f"\x1b[{_COLOURS[level]}m{line}\x1b[0m"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line; time is ISO 8601 in UTC. A field that would hide a line's own key gets a `_` behind."""

    def format(self, record: logging.LogRecord) -> str:
        import json  # the terminal form does without

        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "room": _room(record),
            "message": record.getMessage(),
        }
        for key, value in _fields(record).items():
            line[f"{key}_" if key in _RESERVED else key] = value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def _room(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{ROOT}.")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def _human(value: object) -> str:
    """A field's value in one word: quoted where it would otherwise run into its neighbours."""
    text = str(value)
    if text and text.isprintable() and not any(character in ' "=' for character in text):
        return text
    return '"' + "".join(_printable(character) for character in text) + '"'


def _printable(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
