"""Routing by headers: a binding's arguments are what a message's headers must say.

Comes in: arguments with their ends, and a message's headers. Goes out: the ends of the bindings that match. An
argument without a value wants its header to be there; any other wants the header to have an equal value: numbers by
what they count, text and bytes by their bytes. The argument x-match says how many must hold: all (also where it is
not there) or any, without those whose names begin with "x-", or all-with-x or any-with-x. Of no arguments all hold,
and not any.

A binding that wants all is looked at only when a message has the one that the fewest others are found by, so
that a message costs what it says and not how many bindings there are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from interlog.base.errors import InvalidError
from interlog.core.exchange_objects import text_of
from interlog.core.routing import End, Headers

MATCH: Final = "x-match"  # a client's word, and the core's too: it is kept, compared and listed with the others
_ALL, _ANY = ("all", "all-with-x"), ("any", "any-with-x")
_PRESENT: Final = ("present",)

_Need = tuple[Any, object]  # a header's name, and its value or that it is there


class _Rule(NamedTuple):
    end: End
    all: bool
    needs: frozenset[_Need]


def _comparable(value: object) -> object:
    """Equal and of equal hash exactly where headers are equal."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool) or value is None:
        return ("is", value)
    if isinstance(value, bytes | int) or (isinstance(value, float) and value == value):
        return value
    return text_of(value)  # what is not a number, too: a binding with one must be found again to be removed


def _rule(end: End, arguments: Mapping[str, Any]) -> _Rule:
    match = arguments.get(MATCH, "all")
    with_x = match.endswith("-with-x")
    needs = [
        (name, _PRESENT if value is None else _comparable(value))
        for name, value in arguments.items()
        if name != MATCH and (with_x or not name.startswith("x-"))
    ]
    return _Rule(end, match in _ALL, frozenset(needs))


class HeadersRouter:
    by_key = False

    def __init__(self) -> None:
        self._counts: dict[_Rule, int] = {}  # bindings that say the same
        self._by_need: dict[_Need, dict[_Rule, None]] = {}
        self._always: dict[_Rule, None] = {}

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        match = arguments.get(MATCH, "all")
        if match not in (*_ALL, *_ANY):
            raise InvalidError(f"{MATCH} is one of {' | '.join((*_ALL, *_ANY))}, not {match!r}")

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        rule = _rule(end, arguments)
        count = self._counts.get(rule, 0)
        self._counts[rule] = count + 1
        if count:
            return
        if not rule.all:
            for need in rule.needs:
                self._by_need.setdefault(need, {})[rule] = None
        elif rule.needs:
            rarest = min(rule.needs, key=lambda need: len(self._by_need.get(need, ())))
            self._by_need.setdefault(rarest, {})[rule] = None
        else:
            self._always[rule] = None

    def remove(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        rule = _rule(end, arguments)
        self._counts[rule] -= 1
        if self._counts[rule]:
            return
        del self._counts[rule]
        self._always.pop(rule, None)
        for need in rule.needs:
            rules = self._by_need.get(need)
            if rules is not None and rule in rules:
                del rules[rule]
                if not rules:
                    del self._by_need[need]

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        found = [rule.end for rule in self._always]
        if not self._by_need:
            return found
        said: set[_Need] = set()
        for name, value in headers().items():
            said.add((name, _PRESENT))
            said.add((name, _comparable(value)))
        for one in said:
            for rule in self._by_need.get(one, ()):
                if not rule.all or rule.needs <= said:
                    found.append(rule.end)
        return found
