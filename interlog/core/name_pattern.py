"""Patterns that strangers write: regular expressions on names that take no longer than the name is long.

Comes in: a pattern in the syntax of RE2, as far as names need it. Goes out: whether a name fits it, whole; InvalidError
with a sentence where it cannot be read. There are literals, `.`, classes, groups, `|`, repetitions, `^`, `$`, `\\d`,
`\\w`, `\\s` and their opposites, `(?i)` and `(?s)`. Word boundaries, Unicode classes, back references and looking
around are refused.

A pattern becomes a machine of states; a name goes through it a character at a time, in all states at once. What a set
of states becomes with a character is remembered.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from interlog.base.errors import InvalidError

MAX_PATTERN_CHARS: Final = 4096
MAX_REPEAT: Final = 1000
MAX_STATES: Final = 2_000
MAX_DEPTH: Final = 100
_REMEMBERED: Final = 10_000  # steps, of one pattern

_Ranges = tuple[tuple[int, int], ...]
_LAST: Final = 0x10FFFF
_DIGITS: Final[_Ranges] = ((48, 57),)
_WORDS: Final[_Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES: Final[_Ranges] = ((9, 10), (12, 13), (32, 32))
_CLASSES: Final = {"d": _DIGITS, "w": _WORDS, "s": _SPACES}
_CONTROLS: Final = {"t": 9, "n": 10, "r": 13, "f": 12, "v": 11, "a": 7}


def _others(ranges: _Ranges) -> _Ranges:
    found, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    if at <= _LAST:
        found.append((at, _LAST))
    return tuple(found)


class _Characters:
    """Which characters a step takes."""

    __slots__ = ("fold", "ranges")

    def __init__(self, ranges: _Ranges, fold: bool) -> None:
        self.ranges = ranges
        self.fold = fold

    def take(self, character: str) -> bool:
        forms = {character, character.lower(), character.upper()} if self.fold else {character}
        return any(low <= ord(form) <= high for form in forms if len(form) == 1 for low, high in self.ranges)


_BEGIN: Final = "^"
_END: Final = "$"


class _Machine:
    """States by number. Each has either characters and the state behind them, or states that come with it."""

    def __init__(self) -> None:
        self.steps: list[tuple[_Characters, int] | None] = []
        self.also: list[list[tuple[int, str]]] = []  # the state, and the place where that is so: anywhere, ^ or $

    def state(self) -> int:
        if len(self.steps) >= MAX_STATES:
            raise InvalidError("the pattern repeats too much")
        self.steps.append(None)
        self.also.append([])
        return len(self.steps) - 1

    def link(self, one: int, other: int, where: str = "") -> None:
        self.also[one].append((other, where))

    def closure(self, states: Iterable[int], *, begin: bool, end: bool) -> frozenset[int]:
        found = set(states)
        todo = list(found)
        while todo:
            for other, where in self.also[todo.pop()]:
                if other not in found and (not where or (begin if where == _BEGIN else end)):
                    found.add(other)
                    todo.append(other)
        return frozenset(found)


class _Parser:
    """From text to a machine, by going down: alternatives, sequences, repetitions, single things."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.machine = _Machine()
        self.fold = False
        self.dot_all = False

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def next(self) -> str:
        character = self.peek()
        if not character:
            raise InvalidError("the pattern ends too early")
        self.at += 1
        return character

    def accept(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def parse(self) -> tuple[int, int]:
        start, end = self.alternatives(0)
        if self.peek():
            raise InvalidError(f"the pattern has a ) at {self.at + 1} that nothing opens")
        return start, end

    def alternatives(self, depth: int) -> tuple[int, int]:
        if depth > MAX_DEPTH:
            raise InvalidError("the pattern has too many groups inside groups")
        flags = self.fold, self.dot_all
        start, end = self.machine.state(), self.machine.state()
        while True:
            first, last = self.sequence(depth)
            self.machine.link(start, first)
            self.machine.link(last, end)
            if not self.accept("|"):
                break
        self.fold, self.dot_all = flags
        return start, end

    def sequence(self, depth: int) -> tuple[int, int]:
        start = last = self.machine.state()
        while self.peek() not in ("", "|", ")"):
            first, end = self.repeated(depth)
            self.machine.link(last, first)
            last = end
        return start, last

    def repeated(self, depth: int) -> tuple[int, int]:
        begun, flags = self.at, (self.fold, self.dot_all)
        piece = self.single(depth)
        counted = self.counts()
        if counted is None:
            return piece
        low, high = counted
        if self.peek() and self.peek() in "*+?":
            raise InvalidError(f"the pattern has a {self.peek()} at {self.at + 1} with nothing to repeat")
        ended = self.at

        def again() -> tuple[int, int]:
            """The same piece once more: it is read again."""
            self.at = begun
            self.fold, self.dot_all = flags
            return self.single(depth)

        machine = self.machine
        start = last = machine.state()
        pieces = [piece]
        needed = max(low, 1) if high is None else high
        while len(pieces) < needed:
            pieces.append(again())
        end = machine.state()
        for number, (first, behind) in enumerate(pieces[:needed]):
            if number >= low:
                machine.link(last, end)
            machine.link(last, first)
            last = behind
            if high is None and number == needed - 1:
                machine.link(behind, first)
        machine.link(last, end)
        self.at = ended
        return start, end

    def counts(self) -> tuple[int, int | None] | None:
        """How often the last piece may come; None: once. That of {n,m} which is no such thing is a literal."""
        character = self.peek()
        counted: tuple[int, int | None]
        if character and character in "*+?":
            self.at += 1
            counted = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        else:
            close = self.text.find("}", self.at)
            low, comma, high = self.text[self.at + 1 : close].partition(",")
            if character != "{" or close < 0 or not _is_number(low) or (high and not _is_number(high)):
                return None
            self.at = close + 1
            counted = int(low), (int(high) if high else None) if comma else int(low)
            if max(counted[0], counted[1] or 0) > MAX_REPEAT or (counted[1] is not None and counted[1] < counted[0]):
                raise InvalidError(f"the pattern repeats {low}{comma}{high} times, which cannot be")
        self.accept("?")  # lazy: the same for those who want a yes or a no
        return counted

    def single(self, depth: int) -> tuple[int, int]:
        character = self.next()
        if character == "(":
            return self.group(depth)
        if character == "[":
            return self.characters(self.character_class())
        if character == ".":
            return self.characters(((0, _LAST),) if self.dot_all else _others(((10, 10),)))
        if character in (_BEGIN, _END):
            return self.place(character)
        if character == "\\":
            return self.escape()
        if character in "*+?":
            raise InvalidError(f"the pattern has a {character} at {self.at} with nothing to repeat")
        return self.characters(((ord(character), ord(character)),))

    def characters(self, ranges: _Ranges) -> tuple[int, int]:
        start, end = self.machine.state(), self.machine.state()
        self.machine.steps[start] = _Characters(ranges, self.fold), end
        return start, end

    def place(self, where: str) -> tuple[int, int]:
        start, end = self.machine.state(), self.machine.state()
        self.machine.link(start, end, where)
        return start, end

    def group(self, depth: int) -> tuple[int, int]:
        flags = self.fold, self.dot_all
        if self.accept("?") and not self.accept(":"):
            if self.accept("P<") or self.accept("<"):
                name, found, _ = self.text[self.at :].partition(">")
                if not found or not name.isidentifier():
                    raise InvalidError("the pattern has a group of no name, or looks around, which is not possible")
                self.at += len(name) + 1
            elif self.flags():  # (?i) holds from here to the end of the group around it
                state = self.machine.state()
                return state, state
        start, end = self.alternatives(depth + 1)
        if not self.accept(")"):
            raise InvalidError("the pattern has a ( that nothing closes")
        self.fold, self.dot_all = flags
        return start, end

    def flags(self) -> bool:
        """True if nothing but flags was in the group, which is at its end."""
        value = True
        while True:
            character = self.next()
            if character == "i":
                self.fold = value
            elif character == "s":
                self.dot_all = value
            elif character == "-" and value:
                value = False
            elif character in ":)":
                return character == ")"
            else:
                raise InvalidError(f"the pattern has (?{character}, which is not known or not possible")

    def escape(self) -> tuple[int, int]:
        character = self.next()
        if character == "A":
            return self.place(_BEGIN)
        if character == "z":
            return self.place(_END)
        if character == "Q":
            text, _, _ = self.text[self.at :].partition("\\E")
            self.at = min(self.at + len(text) + 2, len(self.text))
            start = last = self.machine.state()
            for one in text:
                first, behind = self.characters(((ord(one), ord(one)),))
                self.machine.link(last, first)
                last = behind
            return start, last
        self.at -= 1
        return self.characters(self.escaped())

    def escaped(self) -> _Ranges:
        character = self.next()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else _others(ranges)
        if character in _CONTROLS:
            return ((_CONTROLS[character], _CONTROLS[character]),)
        if character == "x":
            digits = self.text[self.at : self.at + 2]
            if self.accept("{"):
                digits, _, _ = self.text[self.at :].partition("}")
                self.at += 1
            self.at += len(digits)
            code = int(digits, 16) if digits and all(one in "0123456789abcdefABCDEF" for one in digits[:8]) else -1
            if not 0 <= code <= _LAST or len(digits) > 8:
                raise InvalidError("the pattern has a \\x without the number of a character")
            return ((code, code),)
        if character.isalnum():
            raise InvalidError(f"the pattern has \\{character}, which is not known or not possible")
        return ((ord(character), ord(character)),)

    def character_class(self) -> _Ranges:
        opposite = self.accept("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            first = False
            if self.text.startswith("[:", self.at):
                raise InvalidError("the pattern has a class with a name, which is not possible")
            low = self.class_member()
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", "") and len(low) == 1:
                self.at += 1
                high = self.class_member()
                if len(high) != 1 or low[0][0] != low[0][1] or high[0][1] < low[0][0]:
                    raise InvalidError("the pattern has a range that goes from nowhere to nowhere")
                low = ((low[0][0], high[0][1]),)
            ranges.extend(low)
        self.at += 1
        return _others(tuple(ranges)) if opposite else tuple(ranges)

    def class_member(self) -> _Ranges:
        character = self.next()
        return self.escaped() if character == "\\" else ((ord(character), ord(character)),)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


class NamePattern:
    """One pattern, read."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_CHARS:
            raise InvalidError(f"a pattern has at most {MAX_PATTERN_CHARS} characters, not {len(text)}")
        self.text = text
        parser = _Parser(text)
        start, self._end = parser.parse()
        self._machine = parser.machine
        self._start = parser.machine.closure((start,), begin=True, end=False)
        self._next: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def fits(self, name: str) -> bool:
        """Whether all of the name fits."""
        states, machine = self._start, self._machine
        if not name:
            return self._end in machine.closure(states, begin=True, end=True)
        for character in name:
            key = states, character
            behind = self._next.get(key)
            if behind is None:
                behind = self._step(states, character)
                if len(self._next) >= _REMEMBERED:
                    self._next.clear()
                self._next[key] = behind
            if not behind:
                return False
            states = behind
        return self._end in machine.closure(states, begin=False, end=True)

    def _step(self, states: frozenset[int], character: str) -> frozenset[int]:
        steps = (self._machine.steps[state] for state in states)
        taken = {step[1] for step in steps if step is not None and step[0].take(character)}
        return self._machine.closure(taken, begin=False, end=False)


@lru_cache(256)
def name_pattern(text: str) -> NamePattern:
    return NamePattern(text)
