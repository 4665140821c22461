"""The routers by themselves, each against a reference that is simple enough to be right."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import InvalidError
from interlog.core.hashing import MAX_WEIGHT, HashRouter
from interlog.core.headers_match import HeadersRouter
from interlog.core.routing import DirectRouter, End, FanoutRouter, Router
from interlog.core.topic_trie import TopicRouter, words_of

ENDS = [End(name, to_queue) for name in ("a", "b", "c") for to_queue in (True, False)]


def never() -> Mapping[str, Any]:
    raise AssertionError("headers are not asked for")


def reached(router: Router, keys: Sequence[str], headers: Mapping[Any, Any] | None = None) -> set[End]:
    return set(router.match(keys, never if headers is None else lambda: headers))


# -- topic


def topic_matches(pattern: list[str], words: list[str]) -> bool:
    """The definition, word for word."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(topic_matches(pattern[1:], words[at:]) for at in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and topic_matches(pattern[1:], words[1:])


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("aaa", "aaa", True),
        ("aaa.bbb", "aaa.bbb", True),
        ("aaa.bbb", "aaa.bbb.ccc", False),
        ("aaa.bbb", "aaa.ccc", False),
        ("aaa.bbb.ccc", "aaa.bbb.ccc", True),
        ("aaa.*", "aaa.bbb", True),
        ("aaa.*.bbb", "aaa.bbb.ccc", False),
        ("*.aaa.bbb", "aaa.bbb", False),
        ("#", "aaa.bbb.ccc", True),
        ("aaa.#", "aaa.bbb", True),
        ("aaa.#", "aaa.bbb.ccc", True),
        ("aaa.#.ccc", "aaa.ccc", True),
        ("aaa.#.ccc", "aaa.bbb.ccc", True),
        ("aaa.#.ccc", "aaa.aaa.bbb.ccc", True),
        ("#.ccc", "ccc", True),
        ("#.ccc", "aaa.bbb.ccc", True),
        # and beyond the issue's table
        ("#", "", True),
        ("*", "", False),
        ("", "", True),
        ("", "a", False),
        ("*", "a", True),
        ("*.*", "a.", True),
        ("*.*", ".", True),
        ("#.#", "", True),
        ("#.*.#", "", False),
        ("#.*.#", "a", True),
        ("a*", "ab", False),
        ("a#", "a.b", False),
        ("*", "#", True),
        ("*.b", "#.b", True),
        ("#.b", "#", False),
        ("#.b", "*.#.b", True),
        ("é.*", "é.ü", True),
    ],
)
def test_topic_cases(pattern: str, key: str, matches: bool) -> None:
    assert topic_matches(words_of(pattern), words_of(key)) == matches
    router = TopicRouter()
    router.add(ENDS[0], pattern, {})
    assert reached(router, [key]) == ({ENDS[0]} if matches else set())


patterns = st.lists(st.sampled_from(["a", "b", "", "*", "#"]), max_size=6).map(".".join)
topic_keys = st.lists(st.sampled_from(["a", "b", "c", "", "*", "#"]), max_size=6).map(".".join)
topic_bindings = st.lists(st.tuples(st.sampled_from(ENDS), patterns), max_size=12)


@given(topic_bindings, topic_bindings, st.lists(topic_keys, min_size=1, max_size=3))
def test_the_trie_is_the_definition(stay: list[tuple[End, str]], go: list[tuple[End, str]], keys: list[str]) -> None:
    router = TopicRouter()
    for end, pattern in [*go, *stay]:
        router.add(end, pattern, {})
    for end, pattern in go:
        router.remove(end, pattern, {})
    expected = {end for end, pattern in stay for key in keys if topic_matches(words_of(pattern), words_of(key))}
    assert reached(router, keys) == expected


@given(topic_bindings)
def test_a_trie_that_was_emptied_is_empty(bindings: list[tuple[End, str]]) -> None:
    router = TopicRouter()
    for end, pattern in bindings:
        router.add(end, pattern, {})
    for end, pattern in reversed(bindings):
        router.remove(end, pattern, {})
    assert router._root.children is None
    assert router._root.ends is None
    assert not router._exact._by_key


def test_patterns_made_to_be_slow_are_not() -> None:
    """By trying out, this would take longer than there is time: every # could stand for any run of words."""
    router = TopicRouter()
    router.add(ENDS[0], ".".join(["#", "a"] * 20) + ".b", {})
    router.add(ENDS[1], ".".join(["#"] * 100), {})
    assert reached(router, [".".join(["a"] * 120)]) == {ENDS[1]}
    assert reached(router, [".".join(["a"] * 120) + ".b"]) == {ENDS[0], ENDS[1]}


# -- direct and fanout


@given(
    st.lists(st.tuples(st.sampled_from(ENDS), st.sampled_from(["", "k", "l"])), max_size=10),
    st.lists(st.tuples(st.sampled_from(ENDS), st.sampled_from(["", "k", "l"])), max_size=10),
    st.lists(st.sampled_from(["", "k", "l", "m"]), min_size=1, max_size=3),
)
def test_direct_and_fanout(stay: list[tuple[End, str]], go: list[tuple[End, str]], keys: list[str]) -> None:
    direct, fanout = DirectRouter(), FanoutRouter()
    for router in (direct, fanout):
        for end, key in [*stay, *go]:
            router.add(end, key, {})
        for end, key in go:
            router.remove(end, key, {})
    assert reached(direct, keys) == {end for end, key in stay if key in keys}
    assert reached(fanout, keys) == {end for end, _ in stay}


# -- headers


def headers_match(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    """The definition: of the arguments that count, all or any hold."""

    def equal(one: object, other: object) -> bool:
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        raw = [value.encode() if isinstance(value, str) else value for value in (one, other)]
        return raw[0] == raw[1]

    how = arguments.get("x-match", "all")
    holds = [
        name in headers and (value is None or equal(value, headers[name]))
        for name, value in arguments.items()
        if name != "x-match" and (how.endswith("with-x") or not name.startswith("x-"))
    ]
    return all(holds) if how.startswith("all") else any(holds)


values = st.sampled_from([None, True, False, 0, 1, 1.0, 2.5, "a", b"a", "1", [1], ["a", None]])
some_headers = st.dictionaries(st.sampled_from(["h", "i", "j", "x-h"]), values, max_size=4)
how = st.sampled_from([{}, *({"x-match": word} for word in ("all", "any", "all-with-x", "any-with-x"))])
arguments = st.builds(lambda head, rest: {**head, **rest}, how, some_headers)
header_bindings = st.lists(st.tuples(st.sampled_from(ENDS), arguments), max_size=8)


@given(header_bindings, header_bindings, some_headers)
def test_headers_are_the_definition(
    stay: list[tuple[End, dict[str, Any]]], go: list[tuple[End, dict[str, Any]]], headers: dict[str, Any]
) -> None:
    router = HeadersRouter()
    for end, wanted in [*go, *stay]:
        router.add(end, "key", wanted)
    for end, wanted in go:
        router.remove(end, "key", wanted)
    assert reached(router, ["any"], headers) == {end for end, wanted in stay if headers_match(wanted, headers)}
    for end, wanted in stay:
        router.remove(end, "key", wanted)
    assert not router._by_need
    assert not router._always


@pytest.mark.parametrize(
    ("wanted", "said", "matches"),
    [
        ({}, {}, True),
        ({}, {"h": 1}, True),
        ({"x-match": "any"}, {"h": 1}, False),
        ({"x-match": "all", "h": 1, "i": "x"}, {"h": 1, "i": "x", "j": 0}, True),
        ({"x-match": "all", "h": 1, "i": "x"}, {"h": 1}, False),
        ({"x-match": "any", "h": 1, "i": "x"}, {"i": "x"}, True),
        ({"x-match": "any", "h": 1, "i": "x"}, {"i": "y"}, False),
        ({"h": None}, {"h": "whatever"}, True),
        ({"h": None}, {"i": None}, False),
        ({"h": 1}, {"h": 1.0}, True),
        ({"h": 1}, {"h": True}, False),
        ({"h": 1}, {"h": "1"}, False),
        ({"h": "a"}, {"h": b"a"}, True),
        ({"h": {"t": [1, b"\xff"]}}, {"h": {"t": [1, b"\xff"]}}, True),
        ({"x-h": 1}, {}, True),
        ({"x-match": "all-with-x", "x-h": 1}, {}, False),
        ({"x-match": "all-with-x", "x-h": 1}, {"x-h": 1}, True),
        ({"x-match": "any", "x-h": 1}, {"x-h": 1}, False),
        ({"x-match": "any-with-x", "x-h": 1}, {"x-h": 1, "x-match": 0}, True),
    ],
)
def test_headers_cases(wanted: dict[str, Any], said: dict[str, Any], matches: bool) -> None:
    router = HeadersRouter()
    router.check("", wanted)
    router.add(ENDS[0], "", wanted)
    assert reached(router, [""], said) == ({ENDS[0]} if matches else set())


@pytest.mark.parametrize("word", ["some", "", 1, None, ["all"]])
def test_x_match_is_one_of_four_words(word: object) -> None:
    with pytest.raises(InvalidError, match="x-match is one of all"):
        HeadersRouter().check("", {"x-match": word})


def test_headers_are_asked_for_only_where_they_matter() -> None:
    router = HeadersRouter()
    router.add(ENDS[0], "", {})
    assert router.match(["k"], never) == [ENDS[0]]


# -- consistent hash

MANY = [f"key-{number}" for number in range(20_000)]


def shares(router: HashRouter, keys: Sequence[str] = MANY) -> dict[str, list[str]]:
    return {key: [end.name for end in router.match([key], never)] for key in keys}


def hash_router(weights: Mapping[str, int], settings: Mapping[str, Any] | None = None) -> HashRouter:
    router = HashRouter(settings or {})
    for name, weight in weights.items():
        router.add(End(name, True), str(weight), {})
    return router


def test_hash_gives_everybody_a_share_by_weight() -> None:
    counts = Counter(names[0] for names in shares(hash_router({"a": 1, "b": 1, "c": 2, "d": 6})).values())
    for name, weight in {"a": 1, "b": 1, "c": 2, "d": 6}.items():
        assert counts[name] == pytest.approx(len(MANY) * weight / 10, rel=0.06), name


def test_hash_moves_only_what_it_must() -> None:
    before = shares(hash_router(dict.fromkeys("abcde", 3)))
    after = shares(hash_router(dict.fromkeys("gfedcba", 3)))
    moved = {names[0] for key, names in after.items() if names != before[key]}
    assert moved == {"f", "g"}
    router = hash_router(dict.fromkeys("abcde", 3))
    gone = next(end for end in router._weights if end.name == "c")
    router.remove(gone, "3", {})
    for key, names in shares(router).items():
        assert names == before[key] or before[key] == ["c"]


def test_hash_stays_the_same_for_ever() -> None:
    """A new version that sent keys elsewhere would break the order of what is under way."""
    router = hash_router({"a": 1, "b": 1, "c": 1})
    assert "".join(names[0] for names in shares(router, MANY[:24]).values()) == "bbacbcbccbbacbacabccaabc"


def test_hash_takes_weights_together_and_apart() -> None:
    router = hash_router({"a": 1})
    end = next(iter(router._weights))
    router.add(end, "4", {})
    router.remove(end, "1", {})
    assert router.match(["k"], never) == [end]
    router.remove(end, "4", {})
    assert router.match(["k"], never) == []


def test_hash_of_headers_and_properties() -> None:
    names = dict.fromkeys("abcdefgh", 1)
    for settings, key in (({"hash_header": "user"}, "user"), ({"hash_property": "message_id"}, ("", "message_id"))):
        router = hash_router(names, settings)
        assert not router.by_key
        found = {
            value: reached(router, ["this", "and that"], {key: value, "other": number}).pop().name
            for number in range(3)
            for value in (None, 7, "7", b"7", "x", True, 1.5)
        }
        assert found[7] == found["7"] == found[b"7"]
        assert reached(router, ["k"], {}).pop().name == found[None]
        assert len({reached(router, ["k"], {key: value}).pop().name for value in range(100)}) == 8


@pytest.mark.parametrize("key", ["", "0", "-1", "1.5", "x", " 1", "١", str(MAX_WEIGHT + 1), "9" * 30])
def test_a_weight_is_a_whole_number(key: str) -> None:
    with pytest.raises(InvalidError, match="is its weight, a number from 1 to 1000000, not"):
        HashRouter({}).check(key, {})
    HashRouter({}).check("10", {})
