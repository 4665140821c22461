"""Cursors: how far a group has read.

Comes in: what groups commit, for many partitions at a time. Goes out: where they stand, and one CURSOR entry a
commit. A cursor is of one group of one namespace, for one partition. Time comes in with the caller; an expiry is
an entry like any other, so that replay needs no clock. Cursors of a partition that is gone go with it: that
follows from the catalog's entry and is not one of its own.

The CURSOR entry, little-endian:

    operation   1     a CursorOperation
    namespace   2, n  length and UTF-8
    group       2, n  length and UTF-8
    COMMIT      time_ms 8, count 4, then for each: partition 4, offset 8, leader epoch 4, metadata 2, n
    REMOVE      count 4, then for each: partition 4; none at all: the whole group
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from interlog.base.errors import FormatError, InvalidError, LimitError, NotFoundError
from interlog.journal.envelope import EntryKind
from interlog.journal.files import Buffer
from interlog.journal.section import Changes, Row, Table

MAX_NAME_BYTES: Final = 255
MAX_METADATA_BYTES: Final = 4096
MAX_CURSORS: Final = 1_000_000

_LENGTH = struct.Struct("<H")
_COUNT = struct.Struct("<I")
_COMMIT = struct.Struct("<qI")
_CURSOR = struct.Struct("<IqiH")
_MAX_U32 = 0xFFFF_FFFF
_MAX_I64 = (1 << 63) - 1
_MAX_I32 = (1 << 31) - 1

GroupKey = tuple[str, str]  # namespace, group


class CursorOperation(IntEnum):
    """Numbers are on disk: never change one, never use one again."""

    COMMIT = 1
    REMOVE = 2


class Commit(NamedTuple):
    """How far a group has read one partition: the next offset it wants."""

    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Cursor(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    time_ms: int


class Storage(Protocol):
    def add(self, kind: int, target: int, payload: bytes) -> None: ...


def _pack_text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def encode_commit(namespace: str, group: str, commits: Sequence[Commit], time_ms: int) -> bytes:
    parts = [bytes((CursorOperation.COMMIT,)), _pack_text(namespace), _pack_text(group)]
    parts.append(_COMMIT.pack(time_ms, len(commits)))
    for partition, offset, leader_epoch, metadata in commits:
        data = metadata.encode()
        parts.append(_CURSOR.pack(partition, offset, leader_epoch, len(data)))
        if data:
            parts.append(data)
    return b"".join(parts)


def encode_removal(namespace: str, group: str, partitions: Sequence[int]) -> bytes:
    head = bytes((CursorOperation.REMOVE,)) + _pack_text(namespace) + _pack_text(group)
    return head + struct.pack(f"<I{len(partitions)}I", len(partitions), *partitions)


def decode(payload: Buffer) -> tuple[CursorOperation, str, str, int, list[Commit], list[int]]:
    """Operation, namespace, group, time, what was committed, what was removed; FormatError if it is no such entry."""
    data = bytes(payload)
    try:
        operation = CursorOperation(data[0])
        namespace, at = _read_text(data, 1)
        group, at = _read_text(data, at)
        if operation is CursorOperation.REMOVE:
            (count,) = _COUNT.unpack_from(data, at)
            if at + _COUNT.size + 4 * count != len(data):
                raise FormatError(f"a cursor entry cannot remove {count} cursors in {len(data)} bytes")
            removed = list(struct.unpack_from(f"<{count}I", data, at + _COUNT.size))
            return operation, namespace, group, 0, [], removed
        time_ms, count = _COMMIT.unpack_from(data, at)
        at += _COMMIT.size
        if count * _CURSOR.size > len(data) - at:
            raise FormatError(f"a cursor entry cannot hold {count} cursors in {len(data)} bytes")
        commits = []
        for _ in range(count):
            partition, offset, leader_epoch, length = _CURSOR.unpack_from(data, at)
            at += _CURSOR.size
            if leader_epoch < -1 or length > len(data) - at:
                raise FormatError(f"a cursor entry holds an impossible cursor of partition {partition}")
            commits.append(Commit(partition, offset, leader_epoch, data[at : at + length].decode()))
            at += length
        if at != len(data):
            raise FormatError(f"a cursor entry has {len(data) - at} bytes too many")
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"a cursor entry cannot be read: {error}") from None
    return operation, namespace, group, time_ms, commits, []


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length > len(data) - at:
        raise FormatError("a cursor entry is cut short")
    return data[at : at + length].decode(), at + length


def _never(namespace: str, group: str) -> bool:
    return False


class Cursors:
    """All cursors of a shard; a section of the checkpoint."""

    table = Table(
        "cursors",
        (
            ("namespace", "TEXT"),
            ("group_name", "TEXT"),
            ("partition", "INTEGER"),
            ("offset", "INTEGER"),
            ("leader_epoch", "INTEGER"),
            ("metadata", "TEXT"),
            ("time_ms", "INTEGER"),
        ),
        keys=3,
    )

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._groups: dict[GroupKey, dict[int, Cursor]] = {}
        self._readers: dict[int, set[GroupKey]] = {}  # by partition
        self._count = 0
        self._changed: set[tuple[str, str, int]] = set()

    def __len__(self) -> int:
        return self._count

    # -- asked

    def fetch(self, namespace: str, group: str, partition: int) -> Cursor | None:
        cursors = self._groups.get((namespace, group))
        return None if cursors is None else cursors.get(partition)

    def fetch_group(self, namespace: str, group: str) -> dict[int, Cursor]:
        """All cursors of a group by partition; none if there is no such group."""
        return dict(self._groups.get((namespace, group), ()))

    def groups(self, namespace: str) -> list[str]:
        """The groups of a namespace that have cursors, sorted."""
        return sorted(group for space, group in self._groups if space == namespace)

    def groups_of(self, partition: int) -> list[GroupKey]:
        """Who reads a partition, sorted."""
        return sorted(self._readers.get(partition, ()))

    # -- live

    def commit(self, namespace: str, group: str, commits: Sequence[Commit], time_ms: int) -> None:
        """Set cursors, all or none. They may go back as well as forward: a reset is a commit."""
        self.check(namespace, group, commits)
        if commits:
            self.put(namespace, group, commits, time_ms)

    def check(self, namespace: str, group: str, commits: Sequence[Commit]) -> None:
        """InvalidError or LimitError if these cannot be committed."""
        for name in (namespace, group):
            if not 1 <= len(name.encode()) <= MAX_NAME_BYTES:
                raise InvalidError(f"a group's name takes 1 to {MAX_NAME_BYTES} bytes, not {len(name.encode())}")
        for partition, offset, leader_epoch, metadata in commits:
            if not (0 <= partition <= _MAX_U32 and -_MAX_I64 <= offset <= _MAX_I64 and -1 <= leader_epoch <= _MAX_I32):
                raise InvalidError(f"offset {offset} of partition {partition} cannot be a cursor")
            if len(metadata) > MAX_METADATA_BYTES or len(metadata.encode()) > MAX_METADATA_BYTES:
                raise LimitError(f"a cursor's metadata is larger than {MAX_METADATA_BYTES} bytes, the limit")
        if self._count + len(commits) > MAX_CURSORS:
            known = self._groups.get((namespace, group), {})
            if self._count + len({one.partition for one in commits} - known.keys()) > MAX_CURSORS:
                raise LimitError(f"there are {self._count} cursors already; {MAX_CURSORS} is the limit")

    def put(self, namespace: str, group: str, commits: Sequence[Commit], time_ms: int) -> None:
        """Set cursors that were checked before."""
        self._storage.add(EntryKind.CURSOR, 0, encode_commit(namespace, group, commits, time_ms))
        self._commit(namespace, group, commits, time_ms)

    def remove_group(self, namespace: str, group: str) -> None:
        if (namespace, group) not in self._groups:
            raise NotFoundError(f"group {group} has no cursors in namespace {namespace}")
        self._storage.add(EntryKind.CURSOR, 0, encode_removal(namespace, group, ()))
        self._remove((namespace, group), list(self._groups[(namespace, group)]))

    def remove(self, namespace: str, group: str, partitions: Iterable[int]) -> list[int]:
        """Remove a group's cursors of these partitions; the answer is those that were there."""
        cursors = self._groups.get((namespace, group), {})
        found = [partition for partition in dict.fromkeys(partitions) if partition in cursors]
        if found:
            self._storage.add(EntryKind.CURSOR, 0, encode_removal(namespace, group, found))
            self._remove((namespace, group), found)
        return found

    def expire(self, now_ms: int, retention_ms: int, in_use: Callable[[str, str], bool] = _never) -> int:
        """Remove cursors last committed more than retention_ms ago, except of groups in use; how many they were."""
        oldest_ms = now_ms - retention_ms
        expired = 0
        for (namespace, group), cursors in list(self._groups.items()):
            old = [partition for partition, cursor in cursors.items() if cursor.time_ms < oldest_ms]
            if old and not in_use(namespace, group):
                expired += len(self.remove(namespace, group, old))
        return expired

    # -- live and replay

    def drop_partition(self, partition: int) -> None:
        """The partition is gone, as an entry of the catalog says."""
        for key in sorted(self._readers.get(partition, ())):
            self._remove(key, [partition])

    def drop_namespace(self, namespace: str) -> None:
        """The namespace is gone, as an entry of the catalog says."""
        for key in [key for key in self._groups if key[0] == namespace]:
            self._remove(key, list(self._groups[key]))

    def apply(self, payload: Buffer) -> None:
        """Do what a CURSOR entry says."""
        operation, namespace, group, time_ms, commits, removed = decode(payload)
        if operation is CursorOperation.COMMIT:
            self._commit(namespace, group, commits, time_ms)
        else:
            cursors = self._groups.get((namespace, group), {})
            self._remove((namespace, group), removed or list(cursors))

    def _commit(self, namespace: str, group: str, commits: Sequence[Commit], time_ms: int) -> None:
        if not commits:
            return
        key = (namespace, group)
        cursors = self._groups.setdefault(key, {})
        before = len(cursors)
        for partition, offset, leader_epoch, metadata in commits:
            if partition not in cursors:
                self._readers.setdefault(partition, set()).add(key)
            cursors[partition] = Cursor(offset, leader_epoch, metadata, time_ms)
            self._changed.add((namespace, group, partition))
        self._count += len(cursors) - before

    def _remove(self, key: GroupKey, partitions: Sequence[int]) -> None:
        cursors = self._groups.get(key, {})
        for partition in partitions:
            if cursors.pop(partition, None) is None:
                continue
            self._count -= 1
            self._changed.add((*key, partition))
            readers = self._readers[partition]
            readers.discard(key)
            if not readers:
                del self._readers[partition]
        if not cursors:
            self._groups.pop(key, None)

    # -- checkpoint

    def take_changes(self) -> Changes:
        changes = Changes()
        for key in sorted(self._changed):
            cursor = self.fetch(*key)
            if cursor is None:
                changes.removals.append(key)
            else:
                changes.rows.append((*key, *cursor))
        self._changed.clear()
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for namespace, group, partition, offset, leader_epoch, metadata, time_ms in rows:
            assert isinstance(namespace, str) and isinstance(group, str) and isinstance(metadata, str)
            assert isinstance(partition, int) and isinstance(offset, int)
            assert isinstance(leader_epoch, int) and isinstance(time_ms, int)
            self._commit(namespace, group, (Commit(partition, offset, leader_epoch, metadata),), time_ms)
        self._changed.clear()
