"""What arguments of declarations and consumers may be, and the 406 that says which one is wrong.

Comes in: a table as the client sent it, and what is known of each argument for each type of queue. Goes out: the core's
settings. RabbitMQ looks at what belongs to the type first, and then for what belongs to another; so it is done here.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from interlog.faces.amqp.errors import invalid_argument, precondition, subject
from interlog.faces.amqp.values import type_name

Table = Mapping[str, Any]
Check = Callable[[Any], str]  # what is wrong, in RabbitMQ's words; nothing if all is well
# The argument, the core's setting (none: accepted, and without effect on one node), and what it may be.
Known = Mapping[str, tuple[str, Check]]


_PERIOD: Final = re.compile(r"([0-9]{1,12})([YMDhms])")
_SECONDS: Final = {"Y": 365 * 86_400, "M": 30 * 86_400, "D": 86_400, "h": 3_600, "m": 60, "s": 1}


def period_ms(text: str) -> int | None:
    """How long "7D" is; None if it is no such text."""
    found = _PERIOD.fullmatch(text)
    return None if found is None else int(found[1]) * _SECONDS[found[2]] * 1_000


def number(least: int, most: int, too_large: str = "{{value_too_large,{}}}") -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            return f'"expected integer, got {type_name(value)}"'
        if value < least:
            return f"{{value_{'negative' if value < 0 else 'too_small' if value else 'zero'},{value}}}"
        return too_large.format(value) if value > most else ""

    return check


def text(value: Any) -> str:
    return "" if isinstance(value, str) else f"{{unacceptable_type,{type_name(value)}}}"


def flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"{{unacceptable_type,{type_name(value)}}}"


def one_of(wrong: str, *words: str) -> Check:
    def check(value: Any) -> str:
        return text(value) or ("" if value in words else wrong.format(value))

    return check


def checked(kinds: Mapping[str, Known], kind: str, name: str, vhost: str, arguments: Table) -> dict[str, Any]:
    """The settings that the arguments stand for; what no type of queue knows says nothing."""
    known = kinds[kind]
    settings: dict[str, Any] = {}
    for argument, value in arguments.items():
        if argument not in known:
            continue
        setting, check = known[argument]
        wrong = check(value)
        if wrong:
            raise invalid_argument(argument, "queue", name, vhost, wrong)
        if setting:
            settings[setting] = int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    for argument in arguments:
        if argument not in known and any(argument in others for others in kinds.values()):
            where = subject("queue", name, vhost)
            raise precondition(f"invalid arg '{argument}' for {where} of queue type rabbit_{kind}_queue")
    return settings
