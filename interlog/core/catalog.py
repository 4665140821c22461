"""The catalog: namespaces, topics and queues, and whatever else has a name.

Comes in: what is to be made, changed or removed. Goes out: one CATALOG entry a change, calls to observers, and the
objects to whoever asks. Live and in replay a change takes the same way: `apply` of the entry's bytes. What is not
durable takes it too, only without an entry.

A topic and a queue of one namespace share one space of names. Objects of other kinds have a space for each kind; the
catalog keeps their JSON without looking inside, in a namespace or (with "" for one) in none. A namespace goes with
all that is in it; the default one stays.

Partitions get their numbers here, in the entry itself, and no number is ever used again. The numbers of queues that
are not durable come from a range of their own, which starts again with the broker (see catalog_objects).

The CATALOG entry is JSON, keys sorted: {"op": ..., "name": ..., ...}; `_OPERATIONS` at the end names all of them.
"""

from collections.abc import Callable
from typing import Any, Final

from interlog.base.errors import ExistsError, FormatError, InvalidError, LimitError, NotFoundError
from interlog.core import catalog_objects as objects
from interlog.core.catalog_objects import (
    DEFAULT_NAMESPACE,
    FIRST_PASSING_PARTITION,
    LAST_PARTITION,
    NAMESPACE,
    QUEUE,
    TOPIC,
    Fields,
    Namespace,
    ObjectItem,
    QueueItem,
    Settings,
    TopicItem,
    What,
    check_kind,
    check_name,
    check_partition_count,
    copy_settings,
    encode,
    with_settings,
)
from interlog.core.catalog_state import CatalogState
from interlog.journal.envelope import EntryKind
from interlog.journal.files import Buffer


def _limit(what: str, count: int, most: int) -> None:
    if count > most:
        raise LimitError(f"there cannot be more than {most} {what}")


class Catalog(CatalogState):
    """All named objects of a shard, and how they change."""

    # -- changed: namespaces

    def create_namespace(self, name: str, settings: Settings | None = None) -> Namespace:
        check_name(NAMESPACE, name)
        if name in self._namespaces:
            raise ExistsError(f"there is a namespace {name} already")
        _limit("namespaces", len(self._namespaces) + 1, objects.MAX_NAMESPACES)
        self._write(op="create_namespace", name=name, settings=copy_settings(name, settings or {}))
        return self._namespaces[name]

    def alter_namespace(self, name: str, settings: Settings) -> Namespace:
        self.namespace(name)
        self._write(op="alter_namespace", name=name, settings=copy_settings(name, settings))
        return self._namespaces[name]

    def remove_namespace(self, name: str) -> None:
        self.namespace(name)
        if name == DEFAULT_NAMESPACE:
            raise InvalidError(f"the default namespace {name} cannot be removed")
        self._write(op="remove_namespace", name=name)

    # -- changed: topics and queues

    def create_topic(
        self, namespace: str, name: str, partitions: int = 1, settings: Settings | None = None
    ) -> TopicItem:
        check_partition_count(partitions)
        kept = self._check_new(TOPIC, namespace, name, partitions, settings)
        ids = self._next_ids(partitions)
        self._write(op="create_topic", namespace=namespace, name=name, partitions=ids, settings=kept)
        return self.topic(namespace, name)

    def grow_topic(self, namespace: str, name: str, partitions: int) -> TopicItem:
        """Give a topic more partitions, so that there are this many."""
        topic = self.topic(namespace, name)
        check_partition_count(partitions)
        more = partitions - len(topic.partitions)
        if more <= 0:
            raise InvalidError(f"topic {name} has {len(topic.partitions)} partitions and can only get more")
        _limit("partitions", len(self._owners) + more, objects.MAX_PARTITIONS)
        self._write(op="grow_topic", namespace=namespace, name=name, partitions=self._next_ids(more))
        return self.topic(namespace, name)

    def create_queue(
        self, namespace: str, name: str, settings: Settings | None = None, *, durable: bool = True, lanes: int = 1
    ) -> QueueItem:
        if not 1 <= lanes <= objects.MAX_LANES:
            raise InvalidError(f"a queue has 1 to {objects.MAX_LANES} lanes, not {lanes}")
        kept = self._check_new(QUEUE, namespace, name, lanes, settings)
        if durable:
            ids = self._next_ids(lanes)
            self._write(op="create_queue", namespace=namespace, name=name, partitions=ids, settings=kept)
        else:
            first = self._next_passing
            _limit("partitions of this run", first + lanes - 1, LAST_PARTITION)
            item = QueueItem(namespace, name, tuple(range(first, first + lanes)), False, kept)
            self._next_passing += lanes
            self._put(item, What.CREATED)
        return self.queue(namespace, name)

    def alter(self, namespace: str, name: str, settings: Settings) -> TopicItem | QueueItem:
        """Put other settings in place of those a topic or a queue has."""
        item = self._get(namespace, name)
        kept = copy_settings(name, settings)
        if isinstance(item, QueueItem) and not item.durable:
            self._put(with_settings(item, kept), What.CHANGED)
        else:
            self._write(op="alter", namespace=namespace, name=name, settings=kept)
        return self._get(namespace, name)

    def remove(self, namespace: str, name: str) -> None:
        """Remove a topic or a queue."""
        item = self._get(namespace, name)
        if isinstance(item, QueueItem) and not item.durable:
            self._take(item)
        else:
            self._write(op="remove", namespace=namespace, name=name)

    def _check_new(
        self, kind: str, namespace: str, name: str, partitions: int, settings: Settings | None
    ) -> dict[str, Any]:
        self.namespace(namespace)
        check_name(kind, name)
        taken = self.find(namespace, name)
        if taken is not None:
            what = TOPIC if isinstance(taken, TopicItem) else QUEUE
            raise ExistsError(f"there is a {what} {name} in namespace {namespace} already")
        _limit("topics and queues", self._named_count + 1, objects.MAX_TOPICS_AND_QUEUES)
        _limit("partitions", len(self._owners) + partitions, objects.MAX_PARTITIONS)
        return copy_settings(name, settings or {})

    def _next_ids(self, count: int) -> list[int]:
        first = self._next_partition
        _limit("partitions ever made", first + count, FIRST_PASSING_PARTITION)
        return list(range(first, first + count))

    # -- changed: other kinds

    def put(self, kind: str, namespace: str, name: str, value: Settings, *, durable: bool = True) -> ObjectItem:
        """Make an object of another kind, or put another value in place of the one it has."""
        check_kind(kind)
        if namespace:
            self.namespace(namespace)
        check_name(kind, name, objects.MAX_OBJECT_NAME_BYTES)
        kept = copy_settings(name, value)
        before = self.object(kind, namespace, name)
        if before is None:
            _limit("objects", self._object_count + 1, objects.MAX_OBJECTS)
        elif before.durable != durable:
            raise InvalidError(f"{kind} {name} is {'' if before.durable else 'not '}durable, and stays so")
        if durable:
            self._write(op="put", kind=kind, namespace=namespace, name=name, value=kept)
        else:
            self._put(ObjectItem(kind, namespace, name, kept, False), What.CREATED if before is None else What.CHANGED)
        return self._spaces[namespace].objects[kind][name]

    def discard(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object of another kind."""
        item = self.object(kind, namespace, name)
        if item is None:
            raise NotFoundError(f"there is no {kind} {name}" + (f" in namespace {namespace}" if namespace else ""))
        if item.durable:
            self._write(op="discard", kind=kind, namespace=namespace, name=name)
        else:
            self._take(item)

    def value(self, kind: str, namespace: str, name: str) -> Settings:
        """What an object of another kind says; nothing where it is not there."""
        item = self.object(kind, namespace, name)
        return {} if item is None else item.value

    def keep(self, kind: str, namespace: str, name: str, value: Settings) -> None:
        """An object that is there as long as it says something."""
        if value:
            self.put(kind, namespace, name, value)
        elif self.object(kind, namespace, name) is not None:
            self.discard(kind, namespace, name)

    # -- live and replay

    def _write(self, **operation: Any) -> None:
        payload = encode(operation)
        self._storage.add(EntryKind.CATALOG, 0, payload)
        self.apply(payload)

    def apply(self, payload: Buffer) -> None:
        """Do what a CATALOG entry says; FormatError if it says nothing, or what cannot be."""
        fields = Fields(payload)
        operation = _OPERATIONS.get(fields.text("op"))
        if operation is None:
            raise FormatError(f"the catalog operation {fields.text('op')!r} is not known to this version of Interlog")
        try:
            operation(self, fields)
        except (NotFoundError, ExistsError, InvalidError) as error:
            raise FormatError(f"a catalog entry contradicts the catalog: {error}") from None

    def _apply_create_namespace(self, fields: Fields) -> None:
        self._put(Namespace(fields.text("name"), fields.settings()), What.CREATED)

    def _apply_alter_namespace(self, fields: Fields) -> None:
        self._put(Namespace(self.namespace(fields.text("name")).name, fields.settings()), What.CHANGED)

    def _apply_remove_namespace(self, fields: Fields) -> None:
        namespace = self.namespace(fields.text("name"))
        space = self._spaces[namespace.name]
        for _, named in sorted(space.named.items()):
            self._take(named)
        for kind in sorted(space.objects):
            for _, item in sorted(space.objects[kind].items()):
                self._take(item)
        self._take(namespace)

    def _apply_create_topic(self, fields: Fields) -> None:
        topic = TopicItem(fields.text("namespace"), fields.text("name"), fields.partitions(), fields.settings())
        self._put(topic, What.CREATED)

    def _apply_grow_topic(self, fields: Fields) -> None:
        topic = self.topic(fields.text("namespace"), fields.text("name"))
        partitions = topic.partitions + fields.partitions()
        self._put(TopicItem(topic.namespace, topic.name, partitions, topic.settings), What.CHANGED)

    def _apply_create_queue(self, fields: Fields) -> None:
        partitions = fields.partitions()
        queue = QueueItem(fields.text("namespace"), fields.text("name"), partitions, True, fields.settings())
        self._put(queue, What.CREATED)

    def _apply_alter(self, fields: Fields) -> None:
        item = self._get(fields.text("namespace"), fields.text("name"))
        self._put(with_settings(item, fields.settings()), What.CHANGED)

    def _apply_remove(self, fields: Fields) -> None:
        self._take(self._get(fields.text("namespace"), fields.text("name")))

    def _apply_put(self, fields: Fields) -> None:
        kind, namespace, name = fields.text("kind"), fields.text("namespace"), fields.text("name")
        check_kind(kind)
        what = What.CREATED if self.object(kind, namespace, name) is None else What.CHANGED
        self._put(ObjectItem(kind, namespace, name, fields.settings("value")), what)

    def _apply_discard(self, fields: Fields) -> None:
        kind, namespace, name = fields.text("kind"), fields.text("namespace"), fields.text("name")
        item = self.object(kind, namespace, name)
        if item is None:
            raise NotFoundError(f"there is no {kind} {name}")
        self._take(item)


_OPERATIONS: Final[dict[str, Callable[[Catalog, Fields], None]]] = {
    "create_namespace": Catalog._apply_create_namespace,  # name, settings
    "alter_namespace": Catalog._apply_alter_namespace,  # name, settings
    "remove_namespace": Catalog._apply_remove_namespace,  # name
    "create_topic": Catalog._apply_create_topic,  # namespace, name, partitions, settings
    "grow_topic": Catalog._apply_grow_topic,  # namespace, name, partitions: the new ones
    "create_queue": Catalog._apply_create_queue,  # namespace, name, partitions, settings
    "alter": Catalog._apply_alter,  # namespace, name, settings
    "remove": Catalog._apply_remove,  # namespace, name
    "put": Catalog._apply_put,  # kind, namespace, name, value
    "discard": Catalog._apply_discard,  # kind, namespace, name
}
