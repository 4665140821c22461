"""What the journal's background work must know of partitions: which offsets are wanted, and what is compacted."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import QueueItem, TopicItem
from interlog.core.delays import PARTITION as DELAYS
from interlog.core.policies import Policies
from interlog.core.queue_state import QueuesSection
from interlog.core.ranges import Cover
from interlog.core.topic_defaults import all_defaults
from interlog.core.topic_settings import compaction_of, settings_of
from interlog.journal.compaction import CompactionSettings
from interlog.journal.partition import Partition
from interlog.journal.settle import SegmentLimits, Wanted
from interlog.journal.storage import Storage

_LEAST_SEGMENT_BYTES: Final = 4096  # a file for less would be a waste, whatever clients want
_WANTED = {Cover.ALL: Wanted.NONE, Cover.SOME: Wanted.SOME, Cover.NONE: Wanted.ALL}


class CorePolicy:
    def __init__(
        self, storage: Storage, catalog: Catalog, states: QueuesSection, policies: Policies, segment_bytes: int
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._states = states
        self._policies = policies
        self._segment_bytes = segment_bytes  # where nobody says otherwise

    def _is_queue(self, partition: int) -> bool:
        return partition == DELAYS or isinstance(self._catalog.owner(partition), QueueItem)

    def wanted(self, partition: int, first: int, last: int) -> Wanted:
        """Of a queue, what is not acknowledged; of a topic, what its log start has not passed."""
        if self._is_queue(partition):
            return _WANTED[self._states.state(partition).ranges.covers(first, last)]
        start = self._storage.partition(partition).log_start
        if last < start:
            return Wanted.NONE
        return Wanted.ALL if first >= start else Wanted.SOME

    def alive(self, partition: int, first: int, last: int) -> int:
        return self._states.state(partition).ranges.missing(first, last)

    def queue_partitions(self) -> Iterable[Partition]:
        partitions = self._storage.partitions
        yield partitions[DELAYS]
        for item in self._catalog.queues():
            if item.durable:
                for partition in item.partitions:
                    yield partitions[partition]

    def segment_limits(self, partition: int) -> SegmentLimits:
        item = self._catalog.owner(partition)
        return self._limits_of(item) if isinstance(item, TopicItem) else SegmentLimits(self._segment_bytes)

    def _defaults_of(self, item: TopicItem) -> Mapping[str, Any]:
        return all_defaults(self._catalog, item.namespace)

    def _limits_of(self, item: TopicItem) -> SegmentLimits:
        policy = self._policies.of_queue(item.namespace, item.name, "stream")
        settings = settings_of(item.settings, policy, {"segment_bytes": self._segment_bytes, **self._defaults_of(item)})
        return SegmentLimits(max(settings.segment_bytes, _LEAST_SEGMENT_BYTES), settings.segment_ms)

    def compacted(self) -> Iterator[tuple[Partition, CompactionSettings]]:
        partitions = self._storage.partitions
        for item in self._catalog.topics():
            settings = compaction_of(item.settings, self._defaults_of(item))
            if settings is not None:
                limits = self._limits_of(item)
                settings = replace(settings, segment_bytes=limits.bytes, segment_ms=limits.ms)
                for partition in item.partitions:
                    yield partitions[partition], settings
