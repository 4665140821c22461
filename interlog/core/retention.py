"""When retention is worth a look: partitions that changed, and those whose oldest batches come of age.

In come topics that change, partitions that grow, and the time; out go log starts that move. There may be thousands of
topics and a poll comes ten times a second, so a partition in which nothing happened is left alone until its time.
Settling and compacting may make smaller pieces, that can go earlier: once a minute every partition is looked at.

Records may be over their time when they come: their times are their writers'. They stay for a while all the same, so
that whoever wrote them finds them.
"""

from heapq import heappop, heappush
from typing import Final, Protocol

from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, ObjectItem, TopicItem, What
from interlog.core.policies import Policies
from interlog.core.topic_defaults import KIND as DEFAULTS
from interlog.core.topic_defaults import all_defaults
from interlog.core.topic_settings import TopicSettings, settings_of
from interlog.journal.partition import Partition
from interlog.journal.retention import next_due_ms, retain

_EVERYTHING_MS: Final = 60_000
GRACE_MS: Final = 300_000  # how long that stays which came too old


class Storage(Protocol):
    def partition(self, partition: int) -> Partition: ...
    def set_log_start(self, partition: int, offset: int) -> None: ...


class Retention:
    """The log starts of all topics' partitions."""

    def __init__(self, storage: Storage, catalog: Catalog, policies: Policies) -> None:
        self._storage = storage
        self._catalog = catalog
        self.grace_ms = GRACE_MS
        self._policies = policies
        self._changed: dict[int, None] = {}
        self._altered: dict[int, None] = {}  # those whose settings have changed: they act at once
        self._due: list[tuple[int, int]] = []  # a heap; an item that no longer says what _due_ms says is stale
        self._due_ms: dict[int, int] = {}  # partition -> when its oldest batches can go
        self._settings: dict[tuple[str, str], TopicSettings] = {}
        self._everything_ms = 0
        catalog.observe(self._catalog_changed)

    def look_at(self, partition: int) -> None:
        """Something changed there: look at it in the next round."""
        self._changed[partition] = None

    def _catalog_changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, TopicItem):
            self._settings.pop((item.namespace, item.name), None)
            if change.what is not What.REMOVED:
                self._changed.update(dict.fromkeys(item.partitions))
            if change.what is What.CHANGED:
                self._altered.update(dict.fromkeys(item.partitions))
        elif isinstance(item, ObjectItem) and item.kind in (*Policies.KINDS, DEFAULTS):
            self._settings.clear()
            for topic in self._catalog.topics(item.namespace):
                self._changed.update(dict.fromkeys(topic.partitions))
                self._altered.update(dict.fromkeys(topic.partitions))

    def retain(self, now_ms: int) -> int:
        """Move the log starts that may move; how many they were."""
        changed, self._changed = self._changed, {}
        aged, self._altered = self._altered, {}
        if now_ms >= self._everything_ms:
            self._everything_ms = now_ms + _EVERYTHING_MS
            for item in self._catalog.topics():
                changed.update(dict.fromkeys(item.partitions))
        due, due_ms = self._due, self._due_ms
        while due and due[0][0] <= now_ms:
            when_ms, partition = heappop(due)
            if due_ms.get(partition) == when_ms:
                del due_ms[partition]
                changed[partition] = aged[partition] = None
        return sum([self._retain(one, now_ms, by_time=one in aged or not self.grace_ms) for one in changed])

    def _retain(self, partition: int, now_ms: int, *, by_time: bool) -> bool:
        item = self._catalog.owner(partition)
        settings = self._settings_of(item) if isinstance(item, TopicItem) else None
        if settings is None or not settings.deletes:
            self._due_ms.pop(partition, None)
            return False
        log = self._storage.partition(partition)
        start = retain(log, now_ms, settings.retention_ms if by_time else None, settings.retention_bytes)
        moves = start is not None and log.log_start < start <= log.log_end
        if start is not None and moves:
            self._storage.set_log_start(partition, start)
        when_ms = next_due_ms(log, settings.retention_ms)
        before_ms = self._due_ms.get(partition)
        if when_ms is not None and when_ms <= now_ms:
            when_ms = now_ms + self.grace_ms if before_ms is None else min(before_ms, now_ms + self.grace_ms)
        if when_ms is None:
            self._due_ms.pop(partition, None)
        elif before_ms != when_ms:
            self._due_ms[partition] = when_ms
            heappush(self._due, (when_ms, partition))
        return moves

    def _settings_of(self, item: TopicItem) -> TopicSettings:
        key = (item.namespace, item.name)
        settings = self._settings.get(key)
        if settings is None:
            settings = self._settings[key] = settings_of(
                item.settings,
                self._policies.of_queue(*key, "stream"),
                all_defaults(self._catalog, item.namespace),
            )
        return settings
