"""Permission patterns: regular expressions on names.

Comes in: a pattern as a person wrote it. Goes out: a sentence if it cannot be one, or whether a name fits it. As
RabbitMQ does it, a pattern may match anywhere in the name (`^` and `$` tie it down), and the empty one stands for
`^$`: no name but the empty one, that is nothing.

A pattern with repetitions inside repetitions, as (a+)+$, can take for ever on a name made for it. Only administrators
write patterns, and names have 255 bytes; nothing here tries to guess which patterns those are.
"""

import logging
import re
import warnings
from collections.abc import Mapping
from typing import Final

from interlog.base.errors import InvalidError

log = logging.getLogger("interlog.core")

MAX_PATTERN_BYTES: Final = 1024
_MOST_REMEMBERED: Final = 1024  # names a pattern remembers its answer for


class Pattern:
    """One pattern, and what it said of the names it was lately asked about."""

    __slots__ = ("_answers", "_search", "everything", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.everything = text in (".*", "^.*", ".*$", "^.*$")
        try:
            self._search = _compile(text).search
        except re.error as error:  # another Python accepted it when it was set
            log.error(
                "The permission pattern %r is not a regular expression any more and fits nothing: %s", text, error
            )
            self._search = re.compile(r"(?!)").search
        self._answers: dict[str, bool] = {}

    def fits(self, name: str) -> bool:
        if self.everything:
            return True
        answer = self._answers.get(name)
        if answer is None:
            answer = self._search(name) is not None
            if len(self._answers) >= _MOST_REMEMBERED:
                self._answers.clear()
            self._answers[name] = answer
        return answer


def check_pattern(what: str, text: str) -> None:
    """InvalidError with a sentence if it is no pattern."""
    if not isinstance(text, str):
        raise InvalidError(f"the {what} pattern must be text")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidError(f"the {what} pattern must be text that UTF-8 can write") from None
    if size > MAX_PATTERN_BYTES:
        raise InvalidError(f"the {what} pattern takes {size} bytes; {MAX_PATTERN_BYTES} is the limit")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python reads but warns of means something else to others
            _compile(text)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise InvalidError(f"the {what} pattern {text!r} is not a regular expression: {error}") from None


def filled(text: str, names: Mapping[str, str]) -> str:
    """The pattern, with what each {name} in it stands for, letter by letter."""
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", re.escape(value))
    return text


def _compile(text: str) -> re.Pattern[str]:
    return re.compile(text or "^$")
