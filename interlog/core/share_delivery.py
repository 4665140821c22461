"""Delivery to share groups: members take records of a partition, and say what became of them.

Comes in: who wants how much of what, verdicts on what was taken, members that are gone. Goes out: batches, with the
offsets in them that are the member's now, and a call to those who wait. What nobody must see, as markers of
transactions and, if the group wants committed records only, what was aborted, is done with here. A record is held for
as long as the group's settings say; then it is somebody else's, until it was delivered too often.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from interlog.base.clock import Clock
from interlog.core import markers
from interlog.core.catalog import Catalog
from interlog.core.group_alarm import Alarm, Home
from interlog.core.group_settings import EARLIEST, LATEST, own_settings
from interlog.core.share_partition import SharePartition, Verdict
from interlog.core.share_partitions import SharePartitions
from interlog.journal import batch as batches
from interlog.journal.batch import BatchHeader
from interlog.journal.partition import Partition
from interlog.journal.slices import slice_bytes

_SOON_S: Final = 0.001  # what is due by then is due: alarms count in milliseconds
_READ_BYTES: Final = 1 << 20  # at a time, unless one batch alone is larger

Key = tuple[str, str, int]  # namespace, group, partition


class Stable(Protocol):
    """How far a partition can be read by who wants committed records only."""

    def last_stable(self, partition: int) -> int: ...
    def aborted(self, partition: int, start: int, end: int) -> list[tuple[int, int]]: ...


class Storage(Protocol):
    def partition(self, partition: int) -> Partition: ...


class Wish(NamedTuple):
    records: int  # whole batches are taken, though they have more, unless it is strict
    max_bytes: int  # but one batch
    run_records: int = 0  # what is taken is told in runs of about so many; 0: as long as they are
    strict: bool = False


class Taken(NamedTuple):
    data: bytes  # whole batches, some of whose records may be others'
    ranges: list[tuple[int, int, int]]  # first, last, how often delivered


class Said(NamedTuple):
    first: int
    last: int
    verdict: Verdict


class Waiting:
    """One who waits for records of a partition to be given back. Called once, or never if it is cancelled before."""

    __slots__ = ("_all", "_key", "wake")

    def __init__(self, all: "dict[Key, dict[Waiting, None]]", key: Key, wake: Callable[[], None]) -> None:
        self._all = all
        self._key = key
        self.wake = wake

    def cancel(self) -> None:
        waiting = self._all.get(self._key)
        if waiting is not None:
            waiting.pop(self, None)
            if not waiting:
                del self._all[self._key]


class _Settings(NamedTuple):
    """Of one group, or in their place those of all groups."""

    lock_ms: int
    deliveries: int
    locks: int
    committed: bool
    start: int


class Deliveries:
    def __init__(
        self, home: Home, catalog: Catalog, storage: Storage, shares: SharePartitions, transactions: Stable
    ) -> None:
        self._home = home
        self._clock: Clock = home.clock
        self._catalog = catalog
        self._storage = storage
        self._shares = shares
        self._transactions = transactions
        self._alarms: dict[Key, Alarm] = {}
        self._waiting: dict[Key, dict[Waiting, None]] = {}

    # -- taking

    def begin(self, key: Key) -> bool:
        """Whether the group reads the partition only from now on. LimitError if it cannot."""
        if self._shares.find(*key) is not None:
            return False
        partition = self._storage.partition(key[2])
        start = self._settings(key).start
        if start == LATEST:
            offset = partition.log_end
        elif start == EARLIEST:
            offset = partition.log_start
        else:
            found = partition.offset_for_time(self._clock.now_ms() - start)
            offset = partition.log_end if found is None else found[0]
        self._shares.begin(*key, max(offset, partition.log_start))
        return True

    def take(self, key: Key, member: str, wish: Wish) -> Taken:
        """As much as is wanted of what nobody holds. InterlogError if the log cannot be read."""
        share = self._shares.find(*key)
        if share is None:
            return Taken(b"", [])
        settings = self._settings(key)
        log = self._storage.partition(key[2])
        share.move_start(log.log_start)
        until_s = self._clock.monotonic() + settings.lock_ms / 1000
        taking = _Taking(share, member, wish, until_s)
        try:
            self._read(log, share, settings, taking)
        finally:
            self._shares.tell(*key)
        if taking.ranges:
            self._watch(key, share)
        return Taken(b"".join(taking.parts), taking.ranges)

    def _read(self, log: Partition, share: SharePartition, settings: _Settings, taking: "_Taking") -> None:
        end = self._transactions.last_stable(log.id) if settings.committed else log.log_end
        at = share.next_available()
        while taking.room > 0 and at < end:
            if at >= share.end and share.in_flight >= settings.locks:
                return
            slices = log.read(at, min(_READ_BYTES, taking.room), at_least_one=not taking.parts)
            if not slices:
                if not taking.parts:
                    share.skip(at, end - 1)  # these offsets were never stored
                return
            data = b"".join([slice_bytes(part) for part in slices])
            for position, header, hidden in self._batches(log.id, data, at, committed=settings.committed):
                first = header.base_offset
                if first >= end:
                    return
                if first >= share.end and share.in_flight >= settings.locks:
                    return
                if first > at:
                    share.skip(at, first - 1)
                if hidden:
                    share.skip(max(first, at), header.last_offset)
                else:
                    taking.take(
                        max(first, at), header.last_offset, memoryview(data)[position : position + header.length]
                    )
                    if taking.room <= 0:
                        return
                at = max(at, header.next_offset)
            at = share.next_available(at)

    def _batches(
        self, partition: int, data: bytes, start: int, *, committed: bool
    ) -> Iterator[tuple[int, BatchHeader, bool]]:
        """Where each batch is, and whether nobody must see it."""
        found = list(batches.batches(data))
        aborted: list[tuple[int, int]] = []
        if committed and found:
            listed = self._transactions.aborted(partition, start, found[-1][1].next_offset)
            aborted = sorted(((first, producer) for producer, first in listed), reverse=True)
        active: set[int] = set()
        for position, header in found:
            while aborted and aborted[-1][0] <= header.last_offset:
                active.add(aborted.pop()[1])
            hidden = header.is_control or (header.is_transactional and header.producer_id in active)
            if header.is_control and header.producer_id in active:
                marker = markers.read(data[position : position + header.length])
                if marker is not None and not marker.committed:
                    active.discard(header.producer_id)
            if header.next_offset > start:
                yield position, header, hidden

    # -- verdicts

    def settle(self, key: Key, member: str, said: Sequence[Said]) -> bool:
        """What a member says of what it holds; False, and nothing done, if it does not hold all of that."""
        share = self._shares.find(*key)
        if share is None or not all(share.holds(member, one.first, one.last) for one in said):
            return False
        settings = self._settings(key)
        until_s = self._clock.monotonic() + settings.lock_ms / 1000
        share.settle(member, said, settings.deliveries, until_s)
        self._given_back(key, share)
        return True

    def lock_ms(self, namespace: str, group: str) -> int:
        """How long a member of the group holds what it takes."""
        return self._settings((namespace, group, 0)).lock_ms

    def release(self, namespace: str, group: str, member: str) -> None:
        """A member is gone: others may have what it held."""
        for partition, share in self._shares.of_group(namespace, group).items():
            key = namespace, group, partition
            if share.release(member, self._settings(key).deliveries):
                self._given_back(key, share)

    def _given_back(self, key: Key, share: SharePartition) -> None:
        self._shares.tell(*key)
        self._watch(key, share)
        for waiting in self._waiting.pop(key, ()):
            waiting.wake()

    # -- waiting, time

    def watch(self, key: Key, wake: Callable[[], None]) -> Waiting:
        """Call back once, when somebody gave records of the partition back."""
        waiting = Waiting(self._waiting, key, wake)
        self._waiting.setdefault(key, {})[waiting] = None
        return waiting

    def _watch(self, key: Key, share: SharePartition) -> None:
        """The alarm rings when the first that is held is held for too long."""
        due_s = share.next_due()
        alarm = self._alarms.get(key)
        if due_s is None:
            if alarm is not None:
                alarm.cancel()
                del self._alarms[key]
            return
        if alarm is None:
            alarm = self._alarms[key] = Alarm(self._home, lambda: self._expire(key))
        alarm.set(max(round((due_s - self._clock.monotonic()) * 1000), 1))

    def _expire(self, key: Key) -> None:
        share = self._shares.find(*key)
        if share is None:
            del self._alarms[key]
        elif share.expire(self._clock.monotonic() + _SOON_S, self._settings(key).deliveries):
            self._given_back(key, share)
        else:
            self._watch(key, share)

    def _settings(self, key: Key) -> _Settings:
        of_all = self._home.settings
        own: Mapping[str, int] = own_settings(self._catalog, key[0], key[1])
        return _Settings(
            own.get("share_lock_ms", of_all.share_lock_ms),
            own.get("share_deliveries", of_all.share_deliveries),
            own.get("share_locks", of_all.share_locks),
            bool(own.get("share_committed", False)),
            own.get("share_start", LATEST),
        )


class _Taking:
    """What one member has taken so far."""

    def __init__(self, share: SharePartition, member: str, wish: Wish, until_s: float) -> None:
        self.parts: list[memoryview] = []
        self.ranges: list[tuple[int, int, int]] = []
        self._share = share
        self._member = member
        self._wish = wish
        self._until_s = until_s
        self._records = 0
        self._bytes = 0

    @property
    def room(self) -> int:
        """So many bytes more; none once there are records enough."""
        wish = self._wish
        return wish.max_bytes - self._bytes if self._records < wish.records else 0

    def take(self, first: int, last: int, batch: memoryview) -> None:
        """What can be had of these offsets of a batch."""
        wish = self._wish
        most = wish.records - self._records if wish.strict else None
        taken = self._share.take(first, last, self._member, self._until_s, most)
        for one in taken:
            self._add(one)
        if taken:
            self.parts.append(batch)
            self._bytes += len(batch)

    def _add(self, one: tuple[int, int, int]) -> None:
        first, last, delivered = one
        count = last - first + 1
        self._records += count
        if self.ranges:
            before = self.ranges[-1]
            size = before[1] - before[0] + 1 + count
            fits = not self._wish.run_records or size <= self._wish.run_records
            if before[1] + 1 == first and before[2] == delivered and fits:
                self.ranges[-1] = before[0], last, delivered
                return
        self.ranges.append(one)
