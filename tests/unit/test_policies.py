from collections.abc import Callable
from typing import Any

import pytest

from interlog.base.errors import InterlogError, InvalidError, NotFoundError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change
from interlog.core.policies import Policies, Policy
from tests.unit.test_catalog import FakeStorage, Table


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(FakeStorage())


@pytest.fixture
def policies(catalog: Catalog) -> Policies:
    return Policies(catalog)


def test_without_policies_nothing_is_said(policies: Policies) -> None:
    assert policies.of_queue("/", "q", "classic") == {}
    assert policies.of_exchange("/", "e") == {}
    assert policies.all("/") == []
    assert policies.for_queue("/", "q", "stream") is None
    with pytest.raises(NotFoundError, match="no namespace nowhere"):
        policies.of_queue("nowhere", "q", "classic")


def test_the_highest_priority_holds_whole(policies: Policies) -> None:
    policies.put("/", "low", "^q", {"max_length": 5, "expires_ms": 7})
    high = policies.put("/", "high", "q1", {"max_length": 10}, priority=3)
    policies.put("/", "also high", "q2", {"max_length": 1}, priority=3)
    policies.put("/", "b high", "q2", {"max_length": 2}, priority=3)
    assert high == Policy("/", "high", "q1", "all", 3, {"max_length": 10})
    assert policies.of_queue("/", "q1", "classic") == {"max_length": 10}
    assert policies.of_queue("/", "my-q1", "classic") == {"max_length": 10}
    assert policies.of_queue("/", "q2", "classic") == {"max_length": 1}
    assert policies.of_queue("/", "q", "classic") == {"max_length": 5, "expires_ms": 7}
    assert policies.of_queue("/", "other", "classic") == {}
    assert policies.for_queue("/", "q1", "classic") == high
    assert [one.name for one in policies.all("/")] == ["also high", "b high", "high", "low"]


@pytest.mark.parametrize(
    ("apply_to", "concerned"),
    [
        ("all", ["classic", "quorum", "stream", "exchange"]),
        ("queues", ["classic", "quorum", "stream"]),
        ("exchanges", ["exchange"]),
        ("classic_queues", ["classic"]),
        ("quorum_queues", ["quorum"]),
        ("streams", ["stream"]),
    ],
)
def test_what_a_policy_applies_to(policies: Policies, apply_to: str, concerned: list[str]) -> None:
    made = policies.put("/", "p", "", {"alternate": "e"}, apply_to=apply_to)
    for kind in ("classic", "quorum", "stream"):
        assert policies.of_queue("/", "n", kind) == ({"alternate": "e"} if kind in concerned else {})
        assert policies.for_queue("/", "n", kind) == (made if kind in concerned else None)
    assert policies.of_exchange("/", "n") == ({"alternate": "e"} if "exchange" in concerned else {})
    assert policies.for_exchange("/", "n") == (made if "exchange" in concerned else None)


def test_an_operators_limits_hold_where_they_are_lower(policies: Policies) -> None:
    policies.put("/", "p", "q", {"max_length": 10, "max_bytes": 10, "overflow": "reject-publish", "delivery_limit": -1})
    made = policies.put(
        "/", "p", "q", {"max_length": 5, "max_bytes": 50, "expires_ms": 9, "delivery_limit": 4}, operator=True
    )
    assert policies.of_queue("/", "q", "classic") == {
        "max_length": 5,
        "max_bytes": 10,
        "overflow": "reject-publish",
        "expires_ms": 9,
        "delivery_limit": 4,
    }
    assert policies.all("/", operator=True) == [made]
    assert policies.for_queue("/", "q", "classic", operator=True) == made
    policies.remove("/", "p")
    assert policies.of_queue("/", "q", "classic") == made.definition
    policies.remove("/", "p", operator=True)
    assert policies.of_queue("/", "q", "classic") == {}


def test_an_operator_says_what_happens_at_a_limit(policies: Policies) -> None:
    policies.put("/", "p", "q", {"max_length": 10, "overflow": "reject-publish"})
    policies.put("/", "p", "q", {"overflow": "drop-head"}, operator=True)
    assert policies.of_queue("/", "q", "classic") == {"max_length": 10, "overflow": "drop-head"}


def test_what_a_face_keeps_with_a_policy_sets_nothing(policies: Policies) -> None:
    made = policies.put("/", "p", "q", {"declared": {"ha-mode": "all"}})
    assert made.definition == {"declared": {"ha-mode": "all"}}
    assert policies.for_queue("/", "q", "classic") == made
    assert policies.of_queue("/", "q", "classic") == policies.of_exchange("/", "q") == {}
    with pytest.raises(InvalidError, match="'declared' is nothing"):
        policies.put("/", "p", "q", {"declared": "all"})


def test_changes_hold_at_once_and_are_counted(catalog: Catalog, policies: Policies) -> None:
    seen: list[Any] = []
    watched = Catalog(FakeStorage())

    def ask(change: Change) -> None:
        seen.append(early.of_queue("/", "q", "classic"))

    watched.observe(ask)  # before the policies see it
    early = Policies(watched)
    for one in (policies, early):
        one.put("/", "p", "q", {"max_length": 1})
        one.put("/", "p", "q", {"max_length": 2})
        one.remove("/", "p")
        assert one.generation == 3
    assert seen == [{"max_length": 1}, {"max_length": 2}, {}]
    catalog.create_queue("/", "q")
    assert policies.generation == 3
    catalog.create_namespace("n")
    policies.put("n", "p", "", {"max_length": 3})
    assert policies.of_queue("n", "q", "classic") == {"max_length": 3}
    assert policies.of_queue("/", "q", "classic") == {}
    catalog.remove_namespace("n")
    catalog.create_namespace("n")
    assert policies.of_queue("n", "q", "classic") == {}


def test_policies_are_there_after_replay_and_load(catalog: Catalog, policies: Policies) -> None:
    policies.put("/", "p", "q", {"max_length": 1})
    policies.put("/", "o", "q", {"expires_ms": 1}, operator=True)
    storage = catalog._storage
    assert isinstance(storage, FakeStorage)
    replayed, fresh = Catalog(FakeStorage()), Catalog(FakeStorage())
    after = [Policies(replayed), Policies(fresh)]
    assert after[1].of_queue("/", "q", "classic") == {}
    for payload in storage.payloads:
        replayed.apply(payload)
    table = Table()
    table.save(catalog.take_changes())
    fresh.load(table.sorted())
    for one in after:
        assert one.of_queue("/", "q", "classic") == {"max_length": 1, "expires_ms": 1}


def test_asking_for_many_names_keeps_not_all_of_them(policies: Policies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlog.core.policies._CACHED", 3)
    policies.put("/", "p", "7$", {"max_length": 1})
    for name in map(str, range(20)):
        assert policies.of_queue("/", name, "classic") == ({"max_length": 1} if name in ("7", "17") else {})
    assert len(policies._rules["/"].cache) <= 3


Refused = Callable[[Policies], object]


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda p: p.put("/", "", "q", {"max_length": 1}), InvalidError, "1 to 255 bytes"),
        (lambda p: p.put("/", "p", "(", {"max_length": 1}), InvalidError, "is not a pattern"),
        (lambda p: p.put("/", "p", "x" * 1025, {"max_length": 1}), InvalidError, "at most 1024 bytes"),
        (lambda p: p.put("/", "p", "\ud800", {"max_length": 1}), InvalidError, "is not a pattern"),
        (lambda p: p.put("/", "p", "q", {}), InvalidError, "says nothing"),
        (lambda p: p.put("/", "p", "q", {"max_length": None}), InvalidError, "leave it out"),
        (lambda p: p.put("/", "p", "q", {"max_size": 1}), InvalidError, "'max_size' is nothing that a policy can set"),
        (lambda p: p.put("/", "p", "q", {"max_priority": 1}), InvalidError, "'max_priority' is nothing"),
        (lambda p: p.put("/", "p", "q", {"max_length": -1}), InvalidError, "max_length is a whole number from 0"),
        (lambda p: p.put("/", "p", "q", {"expires_ms": 0}), InvalidError, "expires_ms is a whole number from 1"),
        (lambda p: p.put("/", "p", "q", {"max_length": True}), InvalidError, "not True"),
        (lambda p: p.put("/", "p", "q", {"overflow": "explode"}), InvalidError, "overflow is one of"),
        (lambda p: p.put("/", "p", "q", {"dead_letter_exchange": 1}), InvalidError, "is text"),
        (lambda p: p.put("/", "p", "q", {"alternate": 1}), InvalidError, "alternate is text"),
        (lambda p: p.put("/", "p", "q", {"retention_ms": "x"}), InvalidError, "retention_ms is a whole number"),
        (lambda p: p.put("/", "p", "q", {"max_length": 1}, apply_to="vhosts"), InvalidError, "applies to all"),
        (lambda p: p.put("/", "p", "q", {"alternate": "e"}, operator=True), InvalidError, "an operator's policy"),
        (lambda p: p.put("nowhere", "p", "q", {"max_length": 1}), NotFoundError, "no namespace nowhere"),
        (lambda p: p.remove("/", "p"), NotFoundError, "there is no policy p"),
    ],
)
def test_what_no_policy_can_say_is_refused(
    policies: Policies, act: Refused, error: type[InterlogError], says: str
) -> None:
    with pytest.raises(error, match=says):
        act(policies)
    assert policies.all("/") == []
    assert policies.all("/", operator=True) == []
