import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import ExistsError, FormatError, InterlogError, InvalidError, LimitError, NotFoundError
from interlog.core import catalog_objects
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import (
    FIRST_PASSING_PARTITION,
    Change,
    Namespace,
    ObjectItem,
    QueueItem,
    TopicItem,
    What,
)
from interlog.journal.envelope import EntryKind
from interlog.journal.section import Changes, Row


class FakeStorage:
    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.partitions: set[int] = set()

    def add(self, kind: int, target: int, payload: bytes) -> None:
        assert (kind, target) == (EntryKind.CATALOG, 0)
        self.payloads.append(payload)

    def create_partition(self, partition: int) -> None:
        assert partition not in self.partitions
        self.partitions.add(partition)

    def drop_partition(self, partition: int) -> None:
        self.partitions.remove(partition)


class Table:
    """What a checkpoint keeps."""

    def __init__(self) -> None:
        self.rows: dict[Row, Row] = {}

    def save(self, changes: Changes) -> None:
        for key in changes.removals:
            self.rows.pop(key, None)
        self.rows.update({row[:3]: row for row in changes.rows})

    def sorted(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows, key=str)]


def all_rows(catalog: Catalog) -> list[Any]:
    """Everything durable that a catalog knows."""
    kinds = sorted({kind for space in catalog._spaces.values() for kind in space.objects})
    spaces = ["", *(namespace.name for namespace in catalog.namespaces())]
    return [
        catalog.namespaces(),
        list(catalog.topics()),
        [queue for queue in catalog.queues() if queue.durable],
        [item for kind in kinds for space in spaces for item in catalog.objects(kind, space) if item.durable],
        catalog._next_partition,
    ]


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


@pytest.fixture
def catalog(storage: FakeStorage) -> Catalog:
    return Catalog(storage)


def test_an_empty_catalog_has_the_default_namespace(catalog: Catalog) -> None:
    assert catalog.namespaces() == [Namespace("/")]
    assert list(catalog.topics()) == []
    assert catalog.find("/", "t") is None
    assert catalog.find("nowhere", "t") is None


def test_topics_and_queues_get_partitions_that_are_never_used_again(catalog: Catalog, storage: FakeStorage) -> None:
    topic = catalog.create_topic("/", "t", 3, {"retention_ms": 5})
    assert topic == TopicItem("/", "t", (1, 2, 3), {"retention_ms": 5})
    queue = catalog.create_queue("/", "q", {"x": [1, None]})
    assert queue == QueueItem("/", "q", (4,), True, {"x": [1, None]})
    assert storage.partitions == {1, 2, 3, 4}
    assert catalog.owner(2) == topic
    assert catalog.owner(4) == queue
    catalog.remove("/", "q")
    assert storage.partitions == {1, 2, 3}
    assert catalog.owner(4) is None
    assert not catalog.has_partition(4)
    assert catalog.create_queue("/", "q").partition == 5
    assert catalog.grow_topic("/", "t", 5).partitions == (1, 2, 3, 6, 7)
    assert catalog.owner(1) == catalog.owner(7) == catalog.topic("/", "t")


def test_entries_are_compact_json_with_an_operation(catalog: Catalog, storage: FakeStorage) -> None:
    catalog.create_topic("/", "é", 2, {"b": 1, "a": 2})
    expected = '{"name":"é","namespace":"/","op":"create_topic","partitions":[1,2],"settings":{"a":2,"b":1}}'
    assert storage.payloads == [expected.encode()]


def test_a_name_is_a_topic_or_a_queue(catalog: Catalog) -> None:
    catalog.create_topic("/", "a")
    catalog.create_queue("/", "b")
    catalog.create_queue("/", "c", durable=False)
    with pytest.raises(ExistsError, match="there is a topic a in namespace / already"):
        catalog.create_queue("/", "a", durable=False)
    for name in ("b", "c"):
        with pytest.raises(ExistsError, match=f"there is a queue {name}"):
            catalog.create_topic("/", name)
    with pytest.raises(NotFoundError, match="no queue a"):
        catalog.queue("/", "a")
    with pytest.raises(NotFoundError, match="no topic b"):
        catalog.topic("/", "b")
    with pytest.raises(NotFoundError, match="no topic b"):
        catalog.grow_topic("/", "b", 4)
    catalog.create_namespace("other")
    assert catalog.create_topic("other", "b").partitions == (3,)
    assert [topic.namespace for topic in catalog.topics()] == ["/", "other"]
    assert [queue.name for queue in catalog.queues("/")] == ["b", "c"]


def test_what_is_not_durable_leaves_no_entry_and_no_partition(catalog: Catalog, storage: FakeStorage) -> None:
    queue = catalog.create_queue("/", "q", durable=False)
    assert queue.partition == FIRST_PASSING_PARTITION
    catalog.alter("/", "q", {"x": 1})
    catalog.put("exchange", "/", "e", {"type": "fanout"}, durable=False)
    catalog.put("exchange", "/", "e", {"type": "topic"}, durable=False)
    assert catalog.queue("/", "q").settings == {"x": 1}
    with pytest.raises(InvalidError, match="exchange e is not durable, and stays so"):
        catalog.put("exchange", "/", "e", {})
    changes = catalog.take_changes()
    assert [row[0] for row in changes.rows] == ["namespace"]
    assert changes.removals == []
    catalog.discard("exchange", "/", "e")
    catalog.remove("/", "q")
    assert catalog.owner(queue.partition) is None
    assert catalog.create_queue("/", "q", durable=False).partition == FIRST_PASSING_PARTITION + 1
    assert storage.payloads == []
    assert storage.partitions == set()
    assert catalog.take_changes() == Changes()


def test_other_kinds_are_kept_without_a_look_inside(catalog: Catalog) -> None:
    catalog.put("user", "", "guest", {"tags": ["administrator"]})
    catalog.put("exchange", "/", "e", {"type": "topic"})
    catalog.put("exchange", "/", "e", {"type": "fanout"})
    catalog.create_topic("/", "e")
    assert catalog.object("exchange", "/", "e") == ObjectItem("exchange", "/", "e", {"type": "fanout"})
    assert [item.name for item in catalog.objects("user", "")] == ["guest"]
    assert catalog.objects("exchange", "nowhere") == []
    catalog.discard("exchange", "/", "e")
    assert catalog.object("exchange", "/", "e") is None
    with pytest.raises(NotFoundError, match="there is no exchange e in namespace /"):
        catalog.discard("exchange", "/", "e")
    with pytest.raises(NotFoundError, match=r"there is no user nobody$"):
        catalog.discard("user", "", "nobody")


def test_a_namespace_goes_with_all_that_is_in_it(catalog: Catalog, storage: FakeStorage) -> None:
    catalog.create_namespace("n", {"description": "d"})
    catalog.create_topic("n", "t", 2)
    catalog.create_queue("n", "q")
    catalog.create_queue("n", "brief", durable=False)
    catalog.put("exchange", "n", "e", {})
    catalog.create_topic("/", "t")
    catalog.alter_namespace("n", {"description": "other"})
    assert catalog.namespace("n").settings == {"description": "other"}
    told: list[Change] = []
    catalog.observe(told.append)
    entries = len(storage.payloads)
    catalog.remove_namespace("n")
    assert len(storage.payloads) == entries + 1
    assert [change.item.name for change in told] == ["brief", "q", "t", "e", "n"]
    assert storage.partitions == {4}
    assert [topic.namespace for topic in catalog.topics()] == ["/"]
    with pytest.raises(InvalidError, match="default namespace"):
        catalog.remove_namespace("/")
    with pytest.raises(NotFoundError, match="no namespace n"):
        catalog.create_topic("n", "t")


def test_observers_hear_of_changes_and_the_generation_rises(catalog: Catalog, storage: FakeStorage) -> None:
    told: list[Change] = []
    partitions: list[set[int]] = []
    catalog.observe(told.append)
    catalog.observe(lambda change: partitions.append(set(storage.partitions)))
    generations = [catalog.generation]
    one = catalog.create_topic("/", "t")
    generations.append(catalog.generation)
    two = catalog.alter("/", "t", {"a": 1})
    generations.append(catalog.generation)
    catalog.remove("/", "t")
    generations.append(catalog.generation)
    assert told == [Change(What.CREATED, one), Change(What.CHANGED, two, one), Change(What.REMOVED, two)]
    assert partitions == [{1}, {1}, {1}]
    assert generations == sorted(set(generations))


Refused = Callable[[Catalog], object]


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda c: c.create_topic("/", ""), InvalidError, "1 to 255 bytes, not 0"),
        (lambda c: c.create_queue("/", "é" * 128), InvalidError, "not 256"),
        (lambda c: c.create_queue("/", "\ud800"), InvalidError, "UTF-8"),
        (lambda c: c.create_topic("/", "t", 0), InvalidError, "1 to 10000 partitions, not 0"),
        (lambda c: c.create_topic("/", "t", 10_001), InvalidError, "not 10001"),
        (lambda c: c.create_topic("/", "t", 1, {"x": object()}), InvalidError, "cannot be kept"),
        (lambda c: c.create_topic("/", "t", 1, {"x": float("nan")}), InvalidError, "cannot be kept"),
        (lambda c: c.create_topic("/", "t", 1, {"x": "y" * 300_000}), LimitError, "262144 is the limit"),
        (lambda c: c.create_topic("no", "t"), NotFoundError, "no namespace no"),
        (lambda c: c.create_namespace("/"), ExistsError, "namespace / already"),
        (lambda c: c.create_namespace(""), InvalidError, "1 to 255"),
        (lambda c: c.alter_namespace("no", {}), NotFoundError, "no namespace no"),
        (lambda c: c.remove("/", "no"), NotFoundError, "no topic or queue no"),
        (lambda c: c.alter("/", "no", {}), NotFoundError, "no topic or queue no"),
        (lambda c: c.grow_topic("/", "three", 3), InvalidError, "has 3 partitions and can only get more"),
        (lambda c: c.put("queue", "/", "x", {}), InvalidError, "cannot be a kind"),
        (lambda c: c.put("Exchange", "/", "x", {}), InvalidError, "cannot be a kind"),
        (lambda c: c.put("exchange", "no", "x", {}), NotFoundError, "no namespace no"),
        (lambda c: c.put("exchange", "/", "x" * 2049, {}), InvalidError, "1 to 2048"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(act: Refused, error: type[InterlogError], says: str) -> None:
    storage = FakeStorage()
    catalog = Catalog(storage)
    catalog.create_topic("/", "three", 3)
    before = all_rows(catalog)
    with pytest.raises(error, match=says):
        act(catalog)
    assert len(storage.payloads) == 1
    assert all_rows(catalog) == before


@pytest.mark.parametrize(
    ("limit", "value", "act"),
    [
        ("MAX_NAMESPACES", 1, lambda c: c.create_namespace("n")),
        ("MAX_TOPICS_AND_QUEUES", 1, lambda c: c.create_queue("/", "q", durable=False)),
        ("MAX_PARTITIONS", 3, lambda c: c.create_topic("/", "t", 3)),
        ("MAX_PARTITIONS", 3, lambda c: c.grow_topic("/", "first", 4)),
        ("MAX_OBJECTS", 0, lambda c: c.put("exchange", "/", "e", {})),
    ],
)
def test_counts_have_limits(monkeypatch: pytest.MonkeyPatch, limit: str, value: int, act: Refused) -> None:
    catalog = Catalog(FakeStorage())
    catalog.create_topic("/", "first")
    monkeypatch.setattr(catalog_objects, limit, value)
    with pytest.raises(LimitError, match=f"more than {value}"):
        act(catalog)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"op":"fly"}',
        b'{"op":"create_topic","namespace":"/","name":"t","settings":{}}',
        b'{"op":"create_topic","namespace":"/","name":"t","partitions":[2,2],"settings":{}}',
        b'{"op":"create_topic","namespace":"/","name":"t","partitions":[true],"settings":{}}',
        b'{"op":"create_topic","namespace":"/","name":"t","partitions":[2147483648],"settings":{}}',
        b'{"op":"create_topic","namespace":"/","name":"t","partitions":[1],"settings":{}}',
        b'{"op":"create_topic","namespace":"/","name":"first","partitions":[2],"settings":{}}',
        b'{"op":"create_topic","namespace":"no","name":"t","partitions":[2],"settings":{}}',
        b'{"op":"create_queue","namespace":"/","name":"","partitions":[2],"settings":{}}',
        b'{"op":"put","kind":"topic","namespace":"/","name":"t","value":{}}',
        b'{"op":"put","kind":"x","namespace":"/","name":"\\ud800","value":{}}',
        b'{"op":"discard","kind":"x","namespace":"/","name":"t"}',
        b'{"op":"remove","namespace":"/","name":"t"}',
    ],
)
def test_entries_that_cannot_be_are_format_errors_and_change_nothing(payload: bytes) -> None:
    catalog = Catalog(FakeStorage())
    catalog.create_topic("/", "first")
    before = all_rows(catalog)
    with pytest.raises(FormatError):
        catalog.apply(payload)
    assert all_rows(catalog) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["/", "t", "n", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
OPERATIONS = (
    "create_namespace alter_namespace remove_namespace create_topic grow_topic create_queue alter remove put discard"
)


@given(
    st.binary(max_size=20),
    st.fixed_dictionaries(
        {"op": st.sampled_from(OPERATIONS.split())},
        optional=dict.fromkeys(("namespace", "name", "kind", "partitions", "settings", "value"), JSON),
    ),
)
def test_any_bytes_are_an_entry_or_a_format_error(junk: bytes, fields: dict[str, Any]) -> None:
    catalog = Catalog(FakeStorage())
    for payload in (junk, json.dumps(fields).encode()):
        try:
            catalog.apply(payload)
        except FormatError:
            assert catalog.generation == 1


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(st.tuples(st.integers(0, 9), NAMES, NAMES, st.integers(1, 4), st.booleans()), max_size=25)


def take_step(catalog: Catalog, act: int, space: str, name: str, count: int, durable: bool) -> None:
    where = "/" if space == "a" else space
    acts: list[Callable[[], object]] = [
        lambda: catalog.create_namespace(where),
        lambda: catalog.remove_namespace(where),
        lambda: catalog.alter_namespace(where, {"x": count}),
        lambda: catalog.create_topic(where, name, count),
        lambda: catalog.grow_topic(where, name, count),
        lambda: catalog.create_queue(where, name, durable=durable),
        lambda: catalog.alter(where, name, {"y": count}),
        lambda: catalog.remove(where, name),
        lambda: catalog.put("k", where, name, {}, durable=durable),
        lambda: catalog.discard("k", where, name),
    ]
    acts[act]()


@given(STEPS, st.integers(0, 25), st.integers(0, 25))
def test_replay_and_checkpoints_give_the_same_catalog(steps: list[Any], first: int, second: int) -> None:
    storage, table = FakeStorage(), Table()
    catalog = Catalog(storage)
    saved_at = 0
    for number, step in enumerate(steps):
        try:
            take_step(catalog, *step)
        except InterlogError:
            pass
        if number in (first, second):
            table.save(catalog.take_changes())
            saved_at = len(storage.payloads)
    fresh = FakeStorage()
    replayed = Catalog(fresh)
    for payload in storage.payloads:
        replayed.apply(payload)
    assert all_rows(replayed) == all_rows(catalog)
    assert fresh.partitions == storage.partitions
    found = Catalog(FakeStorage())
    found._storage.partitions.update(range(1, 1000))  # type: ignore[attr-defined]
    found._storage.create_partition = lambda partition: None  # type: ignore[method-assign]
    found.load(table.sorted())
    for payload in storage.payloads[saved_at:]:
        found.apply(payload)
    assert all_rows(found) == all_rows(catalog)
    assert set(found._owners) == storage.partitions
