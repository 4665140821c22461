"""Groups without a broker around them: a catalog, cursors, a clock."""

import random

from interlog.base.clock import ManualClock
from interlog.core.catalog import Catalog
from interlog.core.cursors import Commit, Cursors
from interlog.core.deadlines import Deadlines
from interlog.core.group_alarm import Home
from interlog.core.groups import Groups, GroupSettings
from interlog.core.share_partitions import SharePartitions


class Nowhere:
    """A storage that keeps nothing."""

    def add(self, kind: int, target: int, payload: bytes) -> None:
        pass

    def create_partition(self, partition: int) -> None:
        pass

    def drop_partition(self, partition: int) -> None:
        pass


class Rig:
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.clock = ManualClock()
        self.catalog = Catalog(Nowhere())
        self.cursors = Cursors(Nowhere())
        self.deadlines = Deadlines(self.clock)
        self.share_partitions = SharePartitions(Nowhere())
        home = Home(self.clock, self.deadlines, random.Random(1))
        self.groups = Groups(home, self.catalog, self.cursors, self.share_partitions)
        if settings is not None:
            self.groups.settings = settings

    def advance(self, ms: int) -> None:
        """Time passes, from deadline to deadline."""
        until = self.clock.monotonic() + ms / 1000
        while (first := self.deadlines.poll()) is not None and first < until:
            self.clock.advance(max(round((first - self.clock.monotonic()) * 1000), 1))
        self.clock.advance(max(round((until - self.clock.monotonic()) * 1000), 0))
        self.deadlines.poll()
        self.groups.poll(self.clock.now_ms())

    def topic(self, name: str, partitions: int) -> tuple[int, ...]:
        return self.catalog.create_topic("/", name, partitions).partitions

    def commit(self, group: str, topic: str, index: int, offset: int) -> None:
        partition = self.catalog.topic("/", topic).partitions[index]
        self.cursors.commit("/", group, [Commit(partition, offset)], self.clock.now_ms())
