"""All partitions that share groups read: what is known of each lasts.

Comes in: where a group begins to read a partition, what changed in one, and what goes. Goes out: the partitions, and
one SHARE entry a change. What a group knows of a partition that is gone goes with it: that follows from the catalog's
entry and is not one of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from interlog.base.errors import FormatError, LimitError
from interlog.core.share_entries import Begin, Entry, Mark, Remove, decode, encode, pack_ranges, unpack_ranges
from interlog.core.share_partition import SharePartition
from interlog.journal.envelope import EntryKind
from interlog.journal.files import Buffer
from interlog.journal.section import Changes, Row, Table

MOST: Final = 100_000  # partitions of groups

GroupKey = tuple[str, str]  # namespace, group


class Storage(Protocol):
    def add(self, kind: int, target: int, payload: bytes) -> None: ...


class SharePartitions:
    """A section of the checkpoint."""

    table = Table(
        "share_partitions",
        (
            ("namespace", "TEXT"),
            ("group_name", "TEXT"),
            ("partition", "INTEGER"),
            ("start", "INTEGER"),
            ("ranges", "BLOB"),
        ),
        keys=3,
    )

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._groups: dict[GroupKey, dict[int, SharePartition]] = {}
        self._readers: dict[int, set[GroupKey]] = {}  # by partition
        self._count = 0
        self._changed: set[tuple[str, str, int]] = set()

    def __len__(self) -> int:
        return self._count

    # -- asked

    def find(self, namespace: str, group: str, partition: int) -> SharePartition | None:
        return self._groups.get((namespace, group), {}).get(partition)

    def of_group(self, namespace: str, group: str) -> dict[int, SharePartition]:
        return dict(self._groups.get((namespace, group), ()))

    def has_group(self, namespace: str, group: str) -> bool:
        return (namespace, group) in self._groups

    def groups(self, namespace: str) -> list[str]:
        return sorted(group for space, group in self._groups if space == namespace)

    # -- live

    def begin(self, namespace: str, group: str, partition: int, start: int) -> SharePartition:
        """A group reads a partition from an offset on, whatever it had read before."""
        if self._count >= MOST and self.find(namespace, group, partition) is None:
            raise LimitError(f"share groups read {MOST} partitions already, which is the limit")
        self._add(Begin(namespace, group, partition, start))
        return self._begin(namespace, group, partition, start)

    def tell(self, namespace: str, group: str, partition: int) -> bool:
        """What changed in a partition lasts from now on; whether anything did."""
        found = self.find(namespace, group, partition)
        changes = None if found is None else found.take_changes()
        if changes is None:
            return False
        self._add(Mark(namespace, group, partition, *changes))
        self._changed.add((namespace, group, partition))
        return True

    def remove(self, namespace: str, group: str, partitions: Iterable[int]) -> list[int]:
        """Forget what a group read of these; the answer is those of which it had read anything."""
        known = self._groups.get((namespace, group), {})
        found = [partition for partition in dict.fromkeys(partitions) if partition in known]
        if found:
            self._add(Remove(namespace, group, tuple(found)))
            self._remove((namespace, group), found)
        return found

    def remove_group(self, namespace: str, group: str) -> None:
        if self.has_group(namespace, group):
            self._add(Remove(namespace, group, ()))
            self._remove((namespace, group), list(self._groups[namespace, group]))

    def _add(self, entry: Entry) -> None:
        self._storage.add(EntryKind.SHARE, 0, encode(entry))

    # -- following the catalog

    def drop_partition(self, partition: int) -> None:
        for key in sorted(self._readers.get(partition, ())):
            self._remove(key, [partition])

    def drop_namespace(self, namespace: str) -> None:
        for key in [key for key in self._groups if key[0] == namespace]:
            self._remove(key, list(self._groups[key]))

    # -- replay

    def apply(self, payload: Buffer) -> None:
        entry = decode(payload)
        key = entry.namespace, entry.group
        match entry:
            case Begin():
                self._begin(*key, entry.partition, entry.start)
            case Mark():
                found = self.find(*key, entry.partition)
                if found is None:
                    raise FormatError(f"share group {entry.group} never began to read partition {entry.partition}")
                found.apply(entry.start, entry.ranges)
                self._changed.add((*key, entry.partition))
            case Remove():
                self._remove(key, entry.partitions or list(self._groups.get(key, ())))

    # -- both

    def _begin(self, namespace: str, group: str, partition: int, start: int) -> SharePartition:
        known = self._groups.setdefault((namespace, group), {})
        if partition not in known:
            self._count += 1
            self._readers.setdefault(partition, set()).add((namespace, group))
        made = known[partition] = SharePartition(start)
        self._changed.add((namespace, group, partition))
        return made

    def _remove(self, key: GroupKey, partitions: Sequence[int]) -> None:
        known = self._groups.get(key, {})
        for partition in partitions:
            if known.pop(partition, None) is None:
                continue
            self._count -= 1
            self._changed.add((*key, partition))
            readers = self._readers[partition]
            readers.discard(key)
            if not readers:
                del self._readers[partition]
        if not known:
            self._groups.pop(key, None)

    # -- checkpoint

    def take_changes(self) -> Changes:
        changes = Changes()
        for key in sorted(self._changed):
            found = self.find(*key)
            if found is None:
                changes.removals.append(key)
            else:
                changes.rows.append((*key, found.start, pack_ranges(found.kept())))
        self._changed.clear()
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for namespace, group, partition, start, ranges in rows:
            assert isinstance(namespace, str) and isinstance(group, str) and isinstance(partition, int)
            assert isinstance(start, int) and isinstance(ranges, bytes)
            self._begin(namespace, group, partition, start).apply(start, unpack_ranges(ranges))
        self._changed.clear()
