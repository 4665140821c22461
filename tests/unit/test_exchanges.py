"""Exchanges over a real catalog: live, replayed from its entries, and loaded from its rows; and a model of it all."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlog.base.errors import InequivalentError, InterlogError, InUseError, InvalidError, NotFoundError, RefusedError
from interlog.core.catalog import Catalog
from interlog.core.exchange_objects import binding_name, binding_parts
from interlog.core.exchanges import Binding, Destinations, Exchange, Exchanges
from interlog.core.policies import Policies
from interlog.core.topic_trie import words_of
from tests.unit.test_catalog import FakeStorage, Table
from tests.unit.test_routing import headers_match, topic_matches

BUILT_IN = ["", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.topic"]


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


@pytest.fixture
def catalog(storage: FakeStorage) -> Catalog:
    catalog = Catalog(storage)
    for name in ("a", "b", "c"):
        catalog.create_queue("/", name)
    catalog.create_queue("/", "brief", durable=False)
    catalog.create_topic("/", "topic", 3)
    return catalog


@pytest.fixture
def exchanges(catalog: Catalog) -> Exchanges:
    return Exchanges(catalog)


def no_headers() -> Mapping[str, Any]:
    raise AssertionError("headers are not asked for")


def queues(exchanges: Exchanges, exchange: str, *keys: str, headers: Mapping[Any, Any] | None = None) -> list[str]:
    found = exchanges.route("/", exchange, keys or ("",), no_headers if headers is None else lambda: headers)
    assert found.found == bool(found.queues)
    return list(found.queues)


def replayed(storage: FakeStorage) -> Exchanges:
    catalog = Catalog(FakeStorage())
    exchanges = Exchanges(catalog)
    for payload in storage.payloads:
        catalog.apply(payload)
    return exchanges


def loaded(catalog: Catalog) -> Exchanges:
    table = Table()
    table.save(catalog.take_changes())
    fresh = Catalog(FakeStorage())
    exchanges = Exchanges(fresh)
    fresh.load(table.sorted())
    return exchanges


# -- declared and deleted


def test_every_namespace_has_the_built_in_exchanges(catalog: Catalog, exchanges: Exchanges) -> None:
    catalog.create_namespace("other")
    for namespace in ("/", "other"):
        found = exchanges.all(namespace)
        assert [one.name for one in found] == BUILT_IN
        assert all(one.durable and not one.auto_delete and one.namespace == namespace for one in found)
    assert exchanges.get("/", "").kind == "direct"
    assert exchanges.get("/", "amq.match").kind == "headers"
    assert exchanges.get("/", "amq.rabbitmq.trace").internal
    assert exchanges.bindings_from("other", "amq.topic") == []
    with pytest.raises(NotFoundError, match="no namespace nowhere"):
        exchanges.all("nowhere")
    with pytest.raises(NotFoundError, match="no namespace nowhere"):
        exchanges.route("nowhere", "", ["a"], no_headers)
    with pytest.raises(NotFoundError, match="there is no exchange e in namespace /"):
        exchanges.route("/", "e", ["a"], no_headers)


def test_what_is_declared_is_there_and_stays_as_it_is(exchanges: Exchanges) -> None:
    made = exchanges.declare("/", "e", "topic", auto_delete=True, internal=True, delayed=True, alternate="other")
    assert made == Exchange("/", "e", "topic", True, True, True, True, "other", {})
    assert exchanges.get("/", "e") is made
    again = exchanges.declare("/", "e", "topic", auto_delete=True, internal=True, delayed=True, alternate="other")
    assert again is made
    assert exchanges.exists("/", "e")
    assert not exchanges.exists("/", "f")


@pytest.mark.parametrize(
    ("otherwise", "what", "wanted", "found"),
    [
        ({"kind": "fanout"}, "kind", "fanout", "consistent-hash"),
        ({"durable": False}, "durable", False, True),
        ({"auto_delete": True}, "auto_delete", True, False),
        ({"internal": True}, "internal", True, False),
        ({"delayed": True, "kind": "fanout"}, "delayed", True, False),
        ({"alternate": "b"}, "alternate", "b", "a"),
        ({"alternate": None}, "alternate", None, "a"),
        ({"settings": {}}, "hash_header", None, "h"),
        ({"settings": {"hash_header": "i"}}, "hash_header", "i", "h"),
    ],
)
def test_what_was_declared_otherwise_is_refused(
    exchanges: Exchanges, otherwise: dict[str, Any], what: str, wanted: object, found: object
) -> None:
    given: dict[str, Any] = {"kind": "consistent-hash", "alternate": "a", "settings": {"hash_header": "h"}}
    made = exchanges.declare("/", "e", **given)
    with pytest.raises(InequivalentError, match="exchange e in namespace / exists") as error:
        exchanges.declare("/", "e", **(given | otherwise))
    assert (error.value.what, error.value.wanted, error.value.found) == (what, wanted, found)
    given["settings"] = {"hash_header": "h", "declared": {"other": "words"}}
    assert exchanges.declare("/", "e", **given) is made


def test_the_faces_own_words_are_kept_and_come_back(catalog: Catalog, exchanges: Exchanges) -> None:
    words = {
        "b": b"\x00\xff",
        "f": float("inf"),
        "n": None,
        "l": [1, {"x": b""}, True],
        "t": {"float": "1"},
        "d": Decimal("1.50"),
    }
    made = exchanges.declare("/", "e", "direct", settings={"declared": words})
    assert made.settings == {"declared": words}
    assert loaded(catalog).get("/", "e") == made


Refused = Callable[[Exchanges], object]


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda e: e.declare("/", "", "direct"), RefusedError, "the default exchange is there already"),
        (lambda e: e.declare("/", "amq.mine", "direct"), RefusedError, "names that begin with amq. are reserved"),
        (lambda e: e.declare("/", "amq.topic", "direct"), InequivalentError, "its kind is 'topic', not 'direct'"),
        (lambda e: e.declare("/", "amq.topic", "topic", durable=False), InequivalentError, "durable"),
        (lambda e: e.declare("/", "e", "strange"), InvalidError, "'strange' is not a kind of exchange"),
        (lambda e: e.declare("/", "é" * 128, "direct"), InvalidError, "1 to 255 bytes, not 256"),
        (lambda e: e.declare("/", "\ud800", "direct"), InvalidError, "UTF-8"),
        (lambda e: e.declare("/", "e", "direct", alternate="é" * 128), InvalidError, "not 256"),
        (lambda e: e.declare("/", "e", "direct", settings={"x": 1}), InvalidError, "'x' is not a setting"),
        (lambda e: e.declare("/", "e", "topic", settings={"hash_header": "h"}), InvalidError, "of kind topic"),
        (lambda e: e.declare("/", "e", "consistent-hash", settings={"hash_header": 1}), InvalidError, "is text"),
        (
            lambda e: e.declare("/", "e", "consistent-hash", settings={"hash_property": "user_id"}),
            InvalidError,
            "one of message_id | correlation_id | timestamp, not 'user_id'",
        ),
        (
            lambda e: e.declare("/", "e", "consistent-hash", settings={"hash_header": "h", "hash_property": "x"}),
            InvalidError,
            "not both",
        ),
        (lambda e: e.delete("/", ""), RefusedError, "cannot be deleted"),
        (lambda e: e.delete("/", "amq.direct"), RefusedError, "amq.direct is the broker's own"),
        (lambda e: e.delete("/", "e"), NotFoundError, "there is no exchange e"),
        (lambda e: e.bind("/", "", "a", "a"), RefusedError, "default exchange"),
        (lambda e: e.unbind("/", "", "a", "a"), RefusedError, "default exchange"),
        (lambda e: e.bind("/", "amq.direct", "", "a", to_queue=False), RefusedError, "default exchange"),
        (lambda e: e.bind("/", "e", "a", "k"), NotFoundError, "there is no exchange e"),
        (lambda e: e.bind("/", "amq.direct", "q", "k"), NotFoundError, "there is no queue q"),
        (lambda e: e.bind("/", "amq.direct", "e", "k", to_queue=False), NotFoundError, "there is no exchange e"),
        (lambda e: e.bind("/", "amq.direct", "a", "é" * 128), InvalidError, "at most 255 bytes"),
        (lambda e: e.bind("/", "amq.direct", "a", "\ud800"), InvalidError, "UTF-8"),
        (lambda e: e.bind("/", "amq.direct", "a", "k", {"x": object()}), InvalidError, "object is not a plain type"),
        (lambda e: e.bind("/", "amq.direct", "a", "k", {"x": "\ud800"}), InvalidError, "cannot be kept"),
        (lambda e: e.bind("/", "amq.headers", "a", "k", {"x-match": "some"}), InvalidError, "x-match is one of"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    storage: FakeStorage, exchanges: Exchanges, act: Refused, error: type[InterlogError], says: str
) -> None:
    entries = len(storage.payloads)
    with pytest.raises(error, match=says.replace("|", r"\|")):
        act(exchanges)
    assert len(storage.payloads) == entries
    assert [one.name for one in exchanges.all("/")] == BUILT_IN


def test_built_in_exchanges_can_be_declared_as_they_are(exchanges: Exchanges) -> None:
    assert exchanges.declare("/", "amq.topic", "topic").kind == "topic"
    assert exchanges.declare("/", "amq.rabbitmq.trace", "topic", internal=True).internal


def test_a_deleted_exchange_takes_its_bindings_along(catalog: Catalog, exchanges: Exchanges) -> None:
    exchanges.declare("/", "e", "fanout")
    exchanges.bind("/", "e", "a", "")
    exchanges.bind("/", "amq.fanout", "e", "", to_queue=False)
    exchanges.bind("/", "amq.fanout", "b", "")
    with pytest.raises(InUseError, match="exchange e in namespace / has bindings"):
        exchanges.delete("/", "e", if_unused=True)
    assert queues(exchanges, "amq.fanout") == ["a", "b"]
    exchanges.delete("/", "e")
    assert queues(exchanges, "amq.fanout") == ["b"]
    assert catalog.objects("exchange", "/") == []
    assert len(catalog.objects("binding", "/")) == 1
    exchanges.declare("/", "e", "direct")
    assert exchanges.bindings_from("/", "e") == []
    exchanges.bind("/", "amq.fanout", "e", "", to_queue=False)
    exchanges.delete("/", "e", if_unused=True)  # to be led to is no use


# -- bindings


def test_a_binding_is_its_ends_key_and_arguments(storage: FakeStorage, exchanges: Exchanges) -> None:
    exchanges.declare("/", "a", "direct")  # a queue's name, too
    for arguments in ({}, {"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}, {"n": b"1"}):
        for _ in range(2):
            exchanges.bind("/", "amq.direct", "a", "k", arguments)
    exchanges.bind("/", "amq.direct", "a", "k", to_queue=False)
    exchanges.bind("/", "a", "b", "k")
    found = exchanges.bindings_from("/", "amq.direct")
    assert len(found) == 7
    assert len({one.id for one in found if one.to_queue}) == 6
    assert queues(exchanges, "amq.direct", "k") == ["a", "b"]
    assert exchanges.bindings_to("/", "a", False) == [Binding("amq.direct", False, "a", "k", {})]
    assert [one.source for one in exchanges.bindings_to("/", "a", True)] == ["", *["amq.direct"] * 6]
    for arguments in ({"n": 1}, {"n": 1.0}, {}, {"n": 2}):
        exchanges.unbind("/", "amq.direct", "a", "k", arguments)
    kept = [one.arguments["n"] for one in exchanges.bindings_from("/", "amq.direct") if one.to_queue]
    assert sorted(map(repr, kept)) == ["'1'", "True", "b'1'"]
    entries = len(storage.payloads)
    exchanges.unbind("/", "amq.direct", "a", "other")
    exchanges.unbind("/", "amq.direct", "nobody", "k")
    exchanges.unbind("/", "nothing", "a", "k")
    assert len(storage.payloads) == entries


def test_ids_can_stand_in_a_path() -> None:
    assert Binding("e", True, "q", "").id == "~"
    assert Binding("e", True, "q", "a.b-c_1").id == "a.b-c_1"
    assert Binding("e", True, "q", "~").id == "%7E"
    assert Binding("e", True, "q", "a b/#").id == "a+b%2F%23"
    first, *others = (Binding("e", True, "q", "k", {"n": n}).id for n in (1, 2, 1))
    assert first.startswith("k~")
    assert [one == first for one in others] == [False, True]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(texts, st.booleans(), texts, texts, st.dictionaries(texts, st.integers(), max_size=1))
def test_names_of_bindings_say_all_of_them(
    source: str, to_queue: bool, destination: str, key: str, arguments: dict[str, int]
) -> None:
    name = binding_name(source, to_queue, destination, key, arguments)
    assert binding_parts(name) == (source, to_queue, destination, key)


def test_bindings_by_headers_of_any_type_come_and_go(catalog: Catalog, exchanges: Exchanges) -> None:
    values = [float("nan"), float("inf"), Decimal("1.5"), Decimal("1.50"), b"\xff", {"t": [None]}, [1], "é", 1 << 70]
    for value in values:
        exchanges.bind("/", "amq.headers", "a", "", {"h": value})
    for one in (exchanges, loaded(catalog)):
        for value in values:
            assert queues(one, "amq.headers", headers={"h": value}) == ["a"]
        for value in (1.5, 2, None, "x", [1.5], {}):
            assert queues(one, "amq.headers", headers={"h": value}) == []
        for value in values:
            one.unbind("/", "amq.headers", "a", "", {"h": value})
        assert one.bindings_from("/", "amq.headers") == []
        assert queues(one, "amq.headers", headers={"h": 1}) == []


def test_the_longest_names_fit(exchanges: Exchanges, catalog: Catalog) -> None:
    longest = "\x01" * 255
    catalog.create_queue("/", longest)
    exchanges.declare("/", longest, "direct")
    exchanges.bind("/", longest, longest, longest, {"n": "x" * 5_000})
    assert queues(exchanges, longest, longest) == [longest]
    assert queues(loaded(catalog), longest, longest) == [longest]


def test_the_default_exchange_knows_queues_and_topics_by_name(exchanges: Exchanges, catalog: Catalog) -> None:
    assert queues(exchanges, "", "a") == ["a"]
    assert queues(exchanges, "", "b", "topic", "b", "nobody") == ["b", "topic"]
    assert queues(exchanges, "", "nobody") == []
    generation = exchanges.generation
    catalog.create_queue("/", "nobody")
    assert exchanges.generation > generation
    assert queues(exchanges, "", "nobody") == ["nobody"]
    implied = [Binding("", True, name, name) for name in ("a", "b", "brief", "c", "nobody", "topic")]
    assert exchanges.bindings_from("/", "") == implied
    assert exchanges.bindings_to("/", "a", True) == implied[:1]
    exchanges.bind("/", "amq.direct", "a", "k")
    assert exchanges.bindings("/") == [*implied, Binding("amq.direct", True, "a", "k")]


def test_bindings_last_where_both_ends_do(storage: FakeStorage, catalog: Catalog, exchanges: Exchanges) -> None:
    exchanges.declare("/", "passing", "fanout", durable=False)
    exchanges.declare("/", "lasting", "fanout")
    for source in ("passing", "lasting", "amq.fanout"):
        for name in ("a", "brief", "topic"):
            exchanges.bind("/", source, name, "")
    exchanges.bind("/", "amq.fanout", "lasting", "", to_queue=False)
    exchanges.bind("/", "amq.fanout", "passing", "", to_queue=False)
    for after in (replayed(storage), loaded(catalog)):
        assert not after.exists("/", "passing")
        assert queues(after, "lasting") == ["a", "topic"]
        made = [one for one in after.bindings("/") if one.source]
        assert [(one.source, one.destination) for one in made] == [
            ("amq.fanout", "lasting"),
            ("amq.fanout", "a"),
            ("amq.fanout", "topic"),
            ("lasting", "a"),
            ("lasting", "topic"),
        ]


def test_queues_are_dropped_before_they_go(storage: FakeStorage, catalog: Catalog, exchanges: Exchanges) -> None:
    exchanges.declare("/", "auto", "direct", auto_delete=True)
    exchanges.declare("/", "auto2", "direct", auto_delete=True)
    exchanges.bind("/", "auto", "a", "k")
    exchanges.bind("/", "auto", "a", "l")
    exchanges.bind("/", "auto2", "a", "k")
    exchanges.bind("/", "auto2", "b", "k")
    exchanges.bind("/", "amq.direct", "a", "k")
    exchanges.drop_queue("/", "a")
    exchanges.drop_queue("/", "a")
    catalog.remove("/", "a")
    for one in (exchanges, replayed(storage), loaded(catalog)):
        assert not one.exists("/", "auto")
        assert queues(one, "auto2", "k") == ["b"]
        assert queues(one, "amq.direct", "k") == []
        assert one.bindings_to("/", "a", True) == []


def test_auto_delete_follows_the_last_binding_from_it(exchanges: Exchanges) -> None:
    for name in ("x", "y", "z"):
        exchanges.declare("/", name, "fanout", auto_delete=True)
    exchanges.bind("/", "x", "y", "", to_queue=False)
    exchanges.bind("/", "y", "z", "", to_queue=False)
    exchanges.bind("/", "z", "a", "")
    exchanges.bind("/", "z", "b", "")
    exchanges.bind("/", "amq.fanout", "x", "", to_queue=False)
    exchanges.unbind("/", "z", "a", "")
    assert queues(exchanges, "amq.fanout") == ["b"]
    exchanges.unbind("/", "z", "b", "")
    assert [one.name for one in exchanges.all("/")] == BUILT_IN
    assert exchanges.bindings_from("/", "amq.fanout") == []


def test_auto_delete_in_a_circle(exchanges: Exchanges) -> None:
    for name in ("x", "y"):
        exchanges.declare("/", name, "fanout", auto_delete=True)
    exchanges.bind("/", "x", "x", "", to_queue=False)
    exchanges.bind("/", "x", "y", "", to_queue=False)
    exchanges.bind("/", "y", "x", "", to_queue=False)
    exchanges.delete("/", "x")
    assert [one.name for one in exchanges.all("/")] == BUILT_IN


def test_a_namespace_goes_with_its_exchanges(catalog: Catalog, exchanges: Exchanges) -> None:
    catalog.create_namespace("n")
    catalog.create_queue("n", "q")
    exchanges.declare("n", "e", "fanout")
    exchanges.bind("n", "e", "q", "")
    assert exchanges.route("n", "e", [""], no_headers).queues == ("q",)
    catalog.remove_namespace("n")
    with pytest.raises(NotFoundError, match="no namespace n"):
        exchanges.route("n", "e", [""], no_headers)
    catalog.create_namespace("n")
    assert [one.name for one in exchanges.all("n")] == BUILT_IN
    assert exchanges.bindings("n") == []


# -- routing


def test_routes_say_what_they_depend_on(exchanges: Exchanges) -> None:
    exchanges.declare("/", "later", "direct", delayed=True)
    exchanges.bind("/", "later", "b", "k")
    exchanges.bind("/", "amq.direct", "a", "k")
    exchanges.bind("/", "amq.headers", "a", "", {"h": 1})
    assert exchanges.route("/", "amq.direct", ["k"], no_headers) == Destinations(("a",), True, True, False)
    assert exchanges.route("/", "amq.direct", ["x"], no_headers) == Destinations((), False, True, False)
    assert exchanges.route("/", "later", ["k"], no_headers) == Destinations(("b",), True, True, True)
    assert exchanges.route("/", "amq.headers", ["k"], lambda: {"h": 1}) == Destinations(("a",), True, False, False)
    assert exchanges.route("/", "amq.headers", ["k"], dict) == Destinations((), False, False, False)
    exchanges.bind("/", "amq.direct", "amq.headers", "k", to_queue=False)
    found = exchanges.route("/", "amq.direct", ["k"], dict)
    assert found == Destinations(("a",), True, False, False)
    exchanges.bind("/", "amq.direct", "later", "k", to_queue=False)
    assert exchanges.route("/", "amq.direct", ["k"], dict) == Destinations(("a", "b"), True, False, False)


def test_exchanges_lead_to_exchanges_and_circles_are_cut(exchanges: Exchanges) -> None:
    for name in ("x", "y", "z"):
        exchanges.declare("/", name, "topic", internal=name != "x")
    exchanges.bind("/", "x", "y", "#", to_queue=False)
    exchanges.bind("/", "x", "y", "k.*", to_queue=False)
    exchanges.bind("/", "y", "z", "*.l", to_queue=False)
    exchanges.bind("/", "z", "x", "#", to_queue=False)
    exchanges.bind("/", "z", "z", "#", to_queue=False)
    for name, queue in (("x", "c"), ("y", "b"), ("z", "a"), ("z", "b")):
        exchanges.bind("/", name, queue, "k.#")
        exchanges.bind("/", name, queue, "#")
    assert queues(exchanges, "x", "k.l") == ["a", "b", "c"]
    assert queues(exchanges, "z", "k.m") == ["a", "b", "c"]
    exchanges.unbind("/", "x", "y", "#", to_queue=False)
    assert queues(exchanges, "x", "m") == ["c"]


def test_what_matches_nothing_goes_to_the_alternate(exchanges: Exchanges) -> None:
    exchanges.declare("/", "first", "direct", alternate="second")
    exchanges.declare("/", "second", "direct", alternate="third")
    exchanges.declare("/", "third", "fanout", alternate="first")
    exchanges.bind("/", "first", "a", "k")
    exchanges.bind("/", "second", "b", "l")
    assert queues(exchanges, "first", "k") == ["a"]
    assert queues(exchanges, "first", "l") == ["b"]
    assert queues(exchanges, "first", "m") == []
    assert queues(exchanges, "first", "m", "k") == ["a"]
    exchanges.bind("/", "third", "c", "")
    assert queues(exchanges, "first", "m") == ["c"]
    exchanges.bind("/", "amq.fanout", "first", "", to_queue=False)
    exchanges.bind("/", "amq.fanout", "brief", "")
    assert queues(exchanges, "amq.fanout", "m") == ["brief", "c"]
    exchanges.delete("/", "third")
    assert queues(exchanges, "first", "m") == []
    exchanges.declare("/", "by name", "fanout", alternate="")
    assert queues(exchanges, "by name", "topic") == ["topic"]


def test_a_policy_can_say_the_alternate(catalog: Catalog, storage: FakeStorage) -> None:
    policies = Policies(catalog)
    exchanges = Exchanges(catalog, policies)
    exchanges.declare("/", "told", "direct", alternate="amq.fanout")
    exchanges.declare("/", "untold", "direct")
    exchanges.bind("/", "amq.fanout", "a", "")
    exchanges.bind("/", "amq.topic", "b", "#")
    generation = exchanges.generation
    policies.put("/", "p", "told$", {"alternate": "amq.topic"}, apply_to="exchanges")
    assert exchanges.generation > generation
    for one in (exchanges, replayed(storage)):
        assert queues(one, "told", "k") == ["a"]
        assert queues(one, "untold", "k") == ["b"]
    policies.remove("/", "p")
    assert queues(exchanges, "untold", "k") == []


def test_a_hash_exchange_takes_weights_and_properties(exchanges: Exchanges) -> None:
    exchanges.declare("/", "e", "consistent-hash", settings={"hash_property": "correlation_id"})
    with pytest.raises(InvalidError, match="its weight"):
        exchanges.bind("/", "e", "a", "heavy")
    for name in ("a", "b", "c"):
        exchanges.bind("/", "e", name, "10")
    ids = [{("", "correlation_id"): str(number)} for number in range(50)]
    found = [exchanges.route("/", "e", ["k"], partial(dict, one)) for one in ids]
    assert {one.queues for one in found} == {("a",), ("b",), ("c",)}
    assert not any(one.cacheable for one in found)


# -- the generation


def test_the_generation_rises_with_what_may_change_a_route(catalog: Catalog, exchanges: Exchanges) -> None:
    def rises(act: Callable[[], object]) -> bool:
        before = exchanges.generation
        act()
        return exchanges.generation > before

    assert rises(lambda: exchanges.declare("/", "e", "fanout"))
    assert not rises(lambda: exchanges.declare("/", "e", "fanout"))
    assert rises(lambda: exchanges.bind("/", "e", "a", ""))
    assert not rises(lambda: exchanges.bind("/", "e", "a", ""))
    assert not rises(lambda: exchanges.route("/", "e", [""], no_headers))
    assert not rises(lambda: catalog.put("user", "", "u", {}))
    assert not rises(lambda: catalog.alter("/", "a", {"x": 1}))
    assert rises(lambda: exchanges.unbind("/", "e", "a", ""))
    assert rises(lambda: exchanges.delete("/", "e"))
    assert rises(lambda: catalog.remove("/", "a"))


def test_whoever_asks_while_a_change_is_told_gets_what_holds_now(storage: FakeStorage) -> None:
    catalog = Catalog(storage)
    asked: list[int] = []
    known: list[Exchanges] = []
    catalog.observe(lambda change: asked.extend(len(one.bindings_to("/", "q", True)) for one in known))
    exchanges = Exchanges(catalog)
    catalog.create_queue("/", "q")
    exchanges.bind("/", "amq.direct", "q", "k")
    known.append(exchanges)
    exchanges.bind("/", "amq.direct", "q", "l")
    exchanges.unbind("/", "amq.direct", "q", "k")
    exchanges.drop_queue("/", "q")
    catalog.remove("/", "q")
    assert asked == [3, 2, 1, 0]


# -- the model: everything against lists


NAMES = ("x", "y", "z")
QUEUES = ("p", "q", "r")
KEYS = ("k", "k.l", "#", "*.l", "3")
ARGUMENTS: tuple[dict[str, Any], ...] = ({}, {"h": 1}, {"x-match": "any", "h": 1, "i": "a"})
MESSAGES: tuple[dict[str, Any], ...] = ({}, {"h": 1}, {"i": b"a", "h": 2})


class ExchangesModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.storage = FakeStorage()
        self.catalog = Catalog(self.storage)
        self.exchanges = Exchanges(self.catalog)
        self.table = Table()
        self.queues: dict[str, bool] = {}
        self.declared: dict[str, Exchange] = {}
        self.bound: list[Binding] = []
        for name in QUEUES:
            self.add_queue(name, name != "r")
        for name in NAMES:
            alternate = {"x": "y"}.get(name)
            made = self.exchanges.declare(
                "/", name, "direct", durable=name != "z", auto_delete=True, alternate=alternate
            )
            self.declared[name] = made

    def builtin(self, name: str) -> bool:
        return name in ("amq.topic", "amq.headers")

    def source(self, name: str) -> bool:
        return name in self.declared or self.builtin(name)

    @rule(
        name=st.sampled_from(NAMES),
        kind=st.sampled_from(["direct", "fanout", "topic", "headers", "consistent-hash"]),
        durable=st.booleans(),
        auto_delete=st.booleans(),
        alternate=st.sampled_from([None, *NAMES]),
    )
    def declare(self, name: str, kind: str, durable: bool, auto_delete: bool, alternate: str | None) -> None:
        wanted = Exchange("/", name, kind, durable, auto_delete, alternate=alternate)
        try:
            made = self.exchanges.declare(
                "/", name, kind, durable=durable, auto_delete=auto_delete, alternate=alternate
            )
        except InequivalentError:
            assert self.declared[name] != wanted
        else:
            assert made == self.declared.setdefault(name, wanted)

    @rule(name=st.sampled_from(NAMES), if_unused=st.booleans())
    def delete(self, name: str, if_unused: bool) -> None:
        try:
            self.exchanges.delete("/", name, if_unused=if_unused)
        except NotFoundError:
            assert name not in self.declared
        except InUseError:
            assert if_unused and any(one.source == name for one in self.bound)
        else:
            assert not (if_unused and any(one.source == name for one in self.bound))
            self.gone([name])

    def gone(self, names: list[str]) -> None:
        for name in names:
            if self.declared.pop(name, None) is not None:
                self.drop([one for one in self.bound if name in (one.source, not one.to_queue and one.destination)])

    def drop(self, bindings: list[Binding]) -> None:
        self.bound = [one for one in self.bound if one not in bindings]
        left = {one.source for one in self.bound}
        sources = sorted({one.source for one in bindings} - left)
        self.gone([name for name in sources if name in self.declared and self.declared[name].auto_delete])

    @rule(name=st.sampled_from(QUEUES), durable=st.booleans())
    def declare_queue(self, name: str, durable: bool) -> None:
        if name not in self.queues:
            self.add_queue(name, durable)

    def add_queue(self, name: str, durable: bool) -> None:
        self.catalog.create_queue("/", name, durable=durable)
        self.queues[name] = durable

    @precondition(lambda self: self.queues)
    @rule(data=st.data())
    def remove_queue(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.queues)))
        self.exchanges.drop_queue("/", name)
        self.catalog.remove("/", name)
        del self.queues[name]
        self.drop([one for one in self.bound if one.to_queue and one.destination == name])

    @rule(data=st.data(), to_queue=st.booleans(), key=st.sampled_from(KEYS), arguments=st.sampled_from(ARGUMENTS))
    def bind(self, data: st.DataObject, to_queue: bool, key: str, arguments: dict[str, Any]) -> None:
        there = [*self.declared, "amq.topic", "amq.headers"]
        source = data.draw(st.sampled_from([*there, *there, "x"]))
        ends = [*self.queues, *self.queues, "p"] if to_queue else [*there, *there, "y"]
        wanted = Binding(source, to_queue, data.draw(st.sampled_from(ends)), key, arguments)
        found = wanted.destination in (self.queues if to_queue else there)
        try:
            self.exchanges.bind("/", source, wanted.destination, key, arguments, to_queue=to_queue)
        except NotFoundError:
            assert not found or source not in there
        except InvalidError:
            assert self.declared[source].kind == "consistent-hash"
            assert key != "3"
        else:
            assert found and source in there
            if wanted not in self.bound:
                self.bound.append(wanted)

    @precondition(lambda self: self.bound)
    @rule(data=st.data())
    def unbind(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.bound))
        for _ in range(2):
            self.exchanges.unbind("/", one.source, one.destination, one.key, one.arguments, to_queue=one.to_queue)
        self.drop([one])

    @rule()
    def start_again(self) -> None:
        """What lasts is there again; by replay, and from a checkpoint's rows, it is the same."""
        again, from_rows = replayed(self.storage), Catalog(FakeStorage())
        self.table.save(self.catalog.take_changes())
        from_rows.load(self.table.sorted())
        loaded = Exchanges(from_rows)
        passing = [name for name, durable in self.queues.items() if not durable]
        brief = [name for name, one in self.declared.items() if not one.durable]
        lasting = {name: one for name, one in self.declared.items() if one.durable}
        bound = [
            one
            for one in self.bound
            if one.source not in brief and one.destination not in (passing if one.to_queue else brief)
        ]
        for exchanges in (again, loaded):
            check(exchanges, lasting, bound)

    @invariant()
    def is_the_same(self) -> None:
        check(self.exchanges, self.declared, self.bound)
        graph = self.exchanges._graph("/")  # nothing is left of what went
        assert sorted(graph._queues) == sorted({one.destination for one in self.bound if one.to_queue})
        assert sorted(graph._exchanges) == sorted({one.destination for one in self.bound if not one.to_queue})
        for name in (*self.declared, "amq.topic", "amq.headers"):
            for key in ("k", "k.l"):
                for message in MESSAGES:
                    found = self.exchanges.route("/", name, [key], partial(dict, message))
                    self.check_route(found, name, key, message)

    def check_route(self, found: Destinations, start: str, key: str, message: Mapping[str, Any]) -> None:
        """A hash exchange may choose: it is told by what was found."""
        seen, reached, choices = [start], set(), []
        for name in seen:
            exchange = self.declared.get(name)
            kind = exchange.kind if exchange is not None else name.removeprefix("amq.")
            ends = [one for one in self.bound if one.source == name and matches(kind, one, key, message)]
            if kind == "consistent-hash" and ends:
                choices.append(ends)
                chosen = self.exchanges._node("/", name).router.match([key], lambda: message)
                assert len(chosen) == 1
                ends = [one for one in ends if (one.destination, one.to_queue) == (chosen[0].name, chosen[0].to_queue)]
                assert ends
            onward = [one.destination for one in ends if not one.to_queue]
            if not ends and exchange is not None and exchange.alternate is not None:
                onward = [exchange.alternate]
            seen += [one for one in dict.fromkeys(onward) if one not in seen and self.source(one)]
            reached |= {one.destination for one in ends if one.to_queue}
        assert found.queues == tuple(sorted(reached))
        assert found.found == bool(reached)


def matches(kind: str, one: Binding, key: str, message: Mapping[str, Any]) -> bool:
    return {
        "direct": one.key == key,
        "fanout": True,
        "topic": topic_matches(words_of(one.key), words_of(key)),
        "headers": headers_match(one.arguments, message),
        "consistent-hash": True,
    }[kind]


def in_order(bindings: list[Binding]) -> list[tuple[str, bool, str, str]]:
    return sorted((one.source, one.to_queue, one.destination, one.id) for one in bindings)


def check(exchanges: Exchanges, declared: Mapping[str, Exchange], bound: list[Binding]) -> None:
    made = [one for one in exchanges.all("/") if one.name not in BUILT_IN]
    assert made == [one for _, one in sorted(declared.items())]
    assert in_order([one for one in exchanges.bindings("/") if one.source]) == in_order(bound)
    for name in (*declared, "amq.topic"):
        assert in_order(exchanges.bindings_from("/", name)) == in_order([one for one in bound if one.source == name])
        to_it = [one for one in bound if not one.to_queue and one.destination == name]
        assert in_order(exchanges.bindings_to("/", name, False)) == in_order(to_it)


ExchangesModel.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestExchangesModel = ExchangesModel.TestCase
