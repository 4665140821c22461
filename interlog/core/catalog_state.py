"""What the catalog knows: the objects by name, who owns a partition, and the rows of the checkpoint.

Comes in: objects to put and to take, already agreed upon by the catalog, and rows. Goes out: objects by name, what
changed for observers, and rows. Knows nothing of entries.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from interlog.base.errors import ExistsError, NotFoundError
from interlog.core.catalog_objects import (
    DEFAULT_NAMESPACE,
    FIRST_PASSING_PARTITION,
    MAX_NAME_BYTES,
    MAX_OBJECT_NAME_BYTES,
    NAMESPACE,
    NEXT,
    QUEUE,
    TOPIC,
    Change,
    Item,
    Namespace,
    ObjectItem,
    QueueItem,
    TopicItem,
    What,
    check_name,
    dump,
    partitions_of,
)
from interlog.journal.section import Changes, Row, Table

Observer = Callable[[Change], None]
_Key = tuple[str, str, str]  # kind, namespace, name
_ROW_NEXT: Final[_Key] = (NEXT, "", "partition")


class Storage(Protocol):
    def add(self, kind: int, target: int, payload: bytes) -> None: ...
    def create_partition(self, partition: int) -> None: ...
    def drop_partition(self, partition: int) -> None: ...


class _Space:
    """What is in one namespace."""

    __slots__ = ("named", "objects")

    def __init__(self) -> None:
        self.named: dict[str, TopicItem | QueueItem] = {}
        self.objects: dict[str, dict[str, ObjectItem]] = {}  # by kind, by name


class CatalogState:
    """A section of the checkpoint: one row an object, and one for the next partition's number.

    Observers are told of a change once it is made, in the order in which they came, live and in replay, but not of
    what is loaded; they make no changes of the catalog themselves. The storage creates partitions of durable things
    before they are told, and drops them after.
    """

    table = Table("catalog", (("kind", "TEXT"), ("namespace", "TEXT"), ("name", "TEXT"), ("value", "TEXT")), keys=3)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._namespaces: dict[str, Namespace] = {}
        self._spaces: dict[str, _Space] = {"": _Space()}
        self._owners: dict[int, TopicItem | QueueItem] = {}
        self._named_count = 0
        self._object_count = 0
        self._next_partition = 1
        self._next_passing = FIRST_PASSING_PARTITION
        self._observers: list[Observer] = []
        self._changed: set[_Key] = set()
        self.generation = 0  # rises with each change: what was worked out from the catalog holds for one generation
        self._put(Namespace(DEFAULT_NAMESPACE), What.CREATED)

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    def forget(self, observer: Observer) -> None:
        self._observers.remove(observer)

    # -- asked

    def namespace(self, name: str) -> Namespace:
        try:
            return self._namespaces[name]
        except KeyError:
            raise NotFoundError(f"there is no namespace {name}") from None

    def has_namespace(self, name: str) -> bool:
        return name in self._namespaces

    def namespaces(self) -> list[Namespace]:
        return [self._namespaces[name] for name in sorted(self._namespaces)]

    def find(self, namespace: str, name: str) -> TopicItem | QueueItem | None:
        space = self._spaces.get(namespace)
        return None if space is None else space.named.get(name)

    def topic(self, namespace: str, name: str) -> TopicItem:
        item = self.find(namespace, name)
        if isinstance(item, TopicItem):
            return item
        raise NotFoundError(f"there is no topic {name} in namespace {namespace}")

    def queue(self, namespace: str, name: str) -> QueueItem:
        item = self.find(namespace, name)
        if isinstance(item, QueueItem):
            return item
        raise NotFoundError(f"there is no queue {name} in namespace {namespace}")

    def topics(self, namespace: str | None = None) -> Iterator[TopicItem]:
        """The topics of one namespace, or of all of them, in order of their names."""
        return (item for item in self._named(namespace) if isinstance(item, TopicItem))

    def queues(self, namespace: str | None = None) -> Iterator[QueueItem]:
        return (item for item in self._named(namespace) if isinstance(item, QueueItem))

    def _named(self, namespace: str | None) -> list[TopicItem | QueueItem]:
        spaces = sorted(self._namespaces) if namespace is None else [self.namespace(namespace).name]
        return [item for space in spaces for _, item in sorted(self._spaces[space].named.items())]

    def object(self, kind: str, namespace: str, name: str) -> ObjectItem | None:
        space = self._spaces.get(namespace)
        return None if space is None else space.objects.get(kind, {}).get(name)

    def objects(self, kind: str, namespace: str) -> list[ObjectItem]:
        space = self._spaces.get(namespace)
        return [] if space is None else [item for _, item in sorted(space.objects.get(kind, {}).items())]

    def owner(self, partition: int) -> TopicItem | QueueItem | None:
        """Whose partition it is; None if it is nobody's, or nobody's any more."""
        return self._owners.get(partition)

    def has_partition(self, partition: int) -> bool:
        return partition in self._owners

    def _get(self, namespace: str, name: str) -> TopicItem | QueueItem:
        item = self.find(namespace, name)
        if item is None:
            raise NotFoundError(f"there is no topic or queue {name} in namespace {namespace}")
        return item

    # -- changed

    def _put(self, item: Item, what: What) -> None:
        """Set an object that is new, or in place of the one of its name. Checked before anything is done."""
        key = _key(item)
        before = self._lookup(key)
        if before is not None and what is What.CREATED:
            raise ExistsError(f"there is a {key[0]} {key[2]} already")
        check_name(key[0], key[2], MAX_OBJECT_NAME_BYTES if isinstance(item, ObjectItem) else MAX_NAME_BYTES)
        if not isinstance(item, Namespace) and item.namespace not in self._spaces:
            raise NotFoundError(f"there is no namespace {item.namespace}")
        partitions = partitions_of(item)
        new = partitions[len(partitions_of(before)) :]
        durable = _is_durable(item)
        if durable and new and min(new) < self._next_partition:
            raise ExistsError(f"partition {min(new)} has been used before")
        self._set(item, before)
        if durable:
            self._changed.add(key)
            if new:
                self._next_partition = max(new) + 1
                self._changed.add(_ROW_NEXT)
                for partition in new:
                    self._storage.create_partition(partition)
        self._tell(Change(what, item, before))

    def _take(self, item: Item) -> None:
        """Remove an object that is there."""
        if isinstance(item, Namespace):
            del self._namespaces[item.name]
            del self._spaces[item.name]
        elif isinstance(item, ObjectItem):
            kinds = self._spaces[item.namespace].objects
            del kinds[item.kind][item.name]
            if not kinds[item.kind]:
                del kinds[item.kind]
            self._object_count -= 1
        else:
            del self._spaces[item.namespace].named[item.name]
            self._named_count -= 1
            for partition in item.partitions:
                del self._owners[partition]
        durable = _is_durable(item)
        if durable:
            self._changed.add(_key(item))
        self._tell(Change(What.REMOVED, item))
        if durable:
            for partition in partitions_of(item):
                self._storage.drop_partition(partition)

    def _set(self, item: Item, before: Item | None) -> None:
        if isinstance(item, Namespace):
            self._namespaces[item.name] = item
            self._spaces.setdefault(item.name, _Space())
        elif isinstance(item, ObjectItem):
            self._spaces[item.namespace].objects.setdefault(item.kind, {})[item.name] = item
            self._object_count += before is None
        else:
            self._spaces[item.namespace].named[item.name] = item
            self._named_count += before is None
            for partition in item.partitions:
                self._owners[partition] = item

    def _tell(self, change: Change) -> None:
        self.generation += 1
        for observer in self._observers:
            observer(change)

    def _lookup(self, key: _Key) -> Item | None:
        kind, namespace, name = key
        if kind == NAMESPACE:
            return self._namespaces.get(name)
        if kind in (TOPIC, QUEUE):
            return self.find(namespace, name)
        return self.object(kind, namespace, name)

    # -- checkpoint

    def take_changes(self) -> Changes:
        changes = Changes()
        for key in sorted(self._changed):
            if key == _ROW_NEXT:
                changes.rows.append((*key, dump({"next": self._next_partition})))
                continue
            item = self._lookup(key)
            if item is None or _key(item) != key or not _is_durable(item):
                changes.removals.append(key)
            else:
                changes.rows.append((*key, dump(_value(item))))
        self._changed.clear()
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for row in rows:
            kind, namespace, name, text = map(str, row)
            value: dict[str, Any] = json.loads(text)
            if kind == NEXT:
                self._next_partition = value["next"]
                continue
            self._spaces.setdefault(namespace, _Space())
            item: Item
            if kind == NAMESPACE:
                item = Namespace(name, value)
            elif kind == TOPIC:
                item = TopicItem(namespace, name, tuple(value["partitions"]), value["settings"])
            elif kind == QUEUE:
                item = QueueItem(namespace, name, tuple(value["partitions"]), True, value["settings"])
            else:
                item = ObjectItem(kind, namespace, name, value)
            self._set(item, None)
        self._changed.clear()
        self.generation += 1


def _is_durable(item: Item) -> bool:
    return item.durable if isinstance(item, QueueItem | ObjectItem) else True


def _key(item: Item) -> _Key:
    if isinstance(item, Namespace):
        return NAMESPACE, "", item.name
    if isinstance(item, ObjectItem):
        return item.kind, item.namespace, item.name
    return TOPIC if isinstance(item, TopicItem) else QUEUE, item.namespace, item.name


def _value(item: Item) -> dict[str, Any]:
    if isinstance(item, TopicItem | QueueItem):
        return {"partitions": item.partitions, "settings": item.settings}
    return dict(item.value if isinstance(item, ObjectItem) else item.settings)
