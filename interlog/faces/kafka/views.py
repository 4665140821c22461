"""Topics as Kafka clients see them: what the catalog has, by name or by id, and its partitions to read.

A durable queue is seen too, as a topic that can only be read; its lanes are the partitions. What was looked up holds
until the catalog changes.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final, Protocol

from interlog.core.broker import Core
from interlog.core.catalog_objects import Change, Item, QueueItem, TopicItem, What
from interlog.core.topics import Topic
from interlog.journal.partition import Partition

_KEPT: Final = 10_000  # views, until all are looked up anew


class Cancels(Protocol):
    def cancel(self) -> None: ...


class View:
    """One topic or queue."""

    __slots__ = ("_core", "id", "item", "name", "partitions", "topic")

    def __init__(self, core: Core, item: TopicItem | QueueItem, id: bytes) -> None:
        self._core = core
        self.item = item
        self.name = item.name
        self.id = id
        self.topic: Topic | None = core.topic(item.namespace, item.name) if isinstance(item, TopicItem) else None
        self.partitions: list[Partition] = [core.storage.partition(number) for number in item.partitions]

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def log_start(self, index: int) -> int:
        """Of a queue: up to where it has been acknowledged."""
        partition = self.partitions[index]
        queue = self._core.queue_of(partition.id) if self.topic is None else None
        if queue is None:
            return partition.log_start
        return min(max(partition.log_start, queue.acknowledged_end), partition.log_end)

    def watch(self, index: int, wake: Callable[[], None]) -> Cancels:
        """Call back once, when the partition has grown or is gone."""
        if self.topic is not None:
            return self.topic.watch(index, wake)
        return self._core.watch_queue(self.partitions[index].id, wake)


class Views:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._generation = -1
        self._views: dict[tuple[str, str], View] = {}
        self._by_id: dict[bytes, View] = {}
        self._names: dict[bytes, tuple[str, str]] | None = None  # of all ids, once somebody asked for one
        core.catalog.observe(self._changed)

    def close(self) -> None:
        self._core.catalog.forget(self._changed)

    def find(self, namespace: str, name: str) -> View | None:
        if self._generation != self._core.generation:
            self._forget()
        view = self._views.get((namespace, name))
        if view is None:
            item = self._core.catalog.find(namespace, name)
            if item is None or not _is_seen(item):
                return None
            if len(self._views) >= _KEPT:
                self._forget()
            view = self._views[namespace, name] = View(self._core, item, self.id_of(item))
            self._by_id[view.id] = view
        return view

    def find_id(self, namespace: str, id: bytes) -> View | None:
        if self._generation != self._core.generation:
            self._forget()
        view = self._by_id.get(id)
        if view is None:
            if self._names is None:
                catalog = self._core.catalog
                items: list[TopicItem | QueueItem] = [*catalog.topics(), *catalog.queues()]
                self._names = {self.id_of(item): (item.namespace, item.name) for item in items}
            found = self._names.get(id)
            view = None if found is None else self.find(*found)
        return view if view is not None and view.item.namespace == namespace else None

    def all(self, namespace: str) -> Iterator[View]:
        """In order of their names."""
        catalog = self._core.catalog
        items: list[TopicItem | QueueItem] = [*catalog.topics(namespace), *catalog.queues(namespace)]
        names = sorted(item.name for item in items)
        return (view for name in names if (view := self.find(namespace, name)) is not None)

    def id_of(self, item: TopicItem | QueueItem) -> bytes:
        """The same as long as the topic lives, and no other topic's: partitions' numbers are given once."""
        number = item.partitions[0].to_bytes(8, "big")
        return sha256(b"topic" + self._core.folder_id + number).digest()[:16]

    def _forget(self) -> None:
        self._views.clear()
        self._by_id.clear()
        self._generation = self._core.generation

    def _changed(self, change: Change) -> None:
        item = change.item
        if self._names is None or not isinstance(item, TopicItem | QueueItem):
            return
        if change.what is What.REMOVED:
            self._names.pop(self.id_of(item), None)
        else:
            self._names[self.id_of(item)] = (item.namespace, item.name)


def _is_seen(item: Item) -> bool:
    return isinstance(item, TopicItem) or (isinstance(item, QueueItem) and item.durable)
