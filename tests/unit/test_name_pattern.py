import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import InvalidError
from interlog.core.name_pattern import NamePattern

ATOMS = [
    *(
        "a",
        "b",
        "ab",
        ".",
        "[ab]",
        "[^a]",
        "[a-c]",
        "(a|b)",
        "(?:ab|a)",
        r"\w",
        r"\W",
        r"\d",
        r"\.",
        "-",
        "{",
        "a{,2}x",
    ),
    *(
        "a*",
        "b+",
        "a?",
        "(ab)*",
        "a{2}",
        "a{1,3}",
        "b{0,2}",
        "(a|b){2,}",
        "(a*)*",
        "(?i:A)",
        "^",
        "$",
        r"\A",
        "a+?",
        "|",
    ),
]


@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=6).map("".join), st.text("abcA.-{,}x1", max_size=8))
def test_it_says_what_pythons_expressions_say(pattern: str, name: str) -> None:
    expected = re.fullmatch(pattern.replace("a{,2}x", r"a\{,2}x"), name) is not None
    assert NamePattern(pattern).fits(name) == expected


@pytest.mark.parametrize(
    ("pattern", "fits", "not_fits"),
    [
        ("", "", "a"),
        ("orders", "orders", "orders-1"),
        ("^orders-.*$", "orders-1", "my-orders-1"),
        (r"(?i)ORDERS-\d{2,4}", "oRders-123", "orders-1"),
        (r"\Qa.b\E", "a.b", "axb"),
        (r"[\w.-]+", "a.b-c_9", "a/b"),
        (r"[^\d]*", "abc", "a1"),
        ("[]a]+", "]a", "b"),
        (r"\x41\x{42}", "AB", "ab"),
        ("(?P<name>a)|b", "b", "c"),
        ("a.c", "a\x00c", "a\nc"),
        ("(?s)a.c", "a\nc", "ac"),
        ("(?s-i:A).*", "Ab", "ab"),
        ("(a|b|ab)*c", "ababc", "abab"),
        ("é+", "éé", "e"),
    ],
)
def test_patterns_and_names(pattern: str, fits: str, not_fits: str) -> None:
    assert NamePattern(pattern).fits(fits)
    assert not NamePattern(pattern).fits(not_fits)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "[", "[a", "[b-a]", r"[a-\d]x[", "*", "a**", "+a", r"\b", r"\1", r"\p{L}", "[[:alpha:]]"),
        *("(?=a)", "(?<=a)b", "(?P<1>a)", "(?x)a", "\\", r"\x", r"\x{110000}", r"\xzz", "a{5,2}", "x{1001}"),
        *("(a{100}){100}", "(" * 200 + ")" * 200, "a" * 5000, "(?i"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(InvalidError, match="pattern"):
        NamePattern(pattern)


@given(st.text(r"()[]{}|*+?.\^$aidswPQEx:<>-,019", max_size=30))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        NamePattern(text).fits("aid")
    except InvalidError:
        pass


def test_a_pattern_made_to_take_for_ever_does_not() -> None:
    for text in ("(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){20}b"):
        assert not NamePattern(text).fits("a" * 249)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlog.core.name_pattern._REMEMBERED", 10)
    pattern = NamePattern("[a-z]+[0-9]")
    for number in range(100):
        assert pattern.fits(f"name{chr(97 + number % 26)}{number % 10}")
    assert len(pattern._next) <= 10
