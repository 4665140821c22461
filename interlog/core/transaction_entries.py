"""What TRANSACTION entries look like: producers' ids and how they are forgotten, transactions and how they go on.

In: one of the classes below. Out: the payload, and back; FormatError if it is none. Little-endian; a text is its length
in 2 bytes and UTF-8. Each payload begins with its operation, 1 byte:

    PRODUCER_IDS  next 8
    PERIOD        began_ms 8, forget_before_ms 8
    FORGET        count 4, then for each: partition 4, producer 8
    INIT          key, producer 8, epoch 2, previous producer 8, last epoch 2, timeout_ms 4, time_ms 8
    ADD           key, time_ms 8, partitions 4, groups 4, then each partition 4 and each group a text
    OFFSETS       key, group, time_ms 8, count 4, then for each: partition 4, offset 8, leader epoch 4, metadata
    END           key, committed 1, producer 8, epoch 2, previous producer 8, last epoch 2, time_ms 8
    REMOVE        key

where a key is a namespace and the transaction's name.
"""

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple

from interlog.base.errors import FormatError
from interlog.core.cursors import Commit
from interlog.journal.files import Buffer

_LENGTH: Final = struct.Struct("<H")
_COUNT: Final = struct.Struct("<I")
_TIME: Final = struct.Struct("<q")
_PERIOD: Final = struct.Struct("<qq")
_FORGET: Final = struct.Struct("<Iq")
_INIT: Final = struct.Struct("<qhqhiq")
_ADD: Final = struct.Struct("<qII")
_OFFSETS: Final = struct.Struct("<qI")
_OFFSET: Final = struct.Struct("<Iqi")
_END: Final = struct.Struct("<?qhqhq")


class Operation(IntEnum):
    """Numbers are on disk: never change one, never use one again."""

    PRODUCER_IDS = 1
    PERIOD = 2
    FORGET = 3
    INIT = 4
    ADD = 5
    OFFSETS = 6
    END = 7
    REMOVE = 8


Key = tuple[str, str]  # namespace, name of the transaction


class ProducerIds(NamedTuple):
    next: int


class Period(NamedTuple):
    """A new period begins; producers that were last seen in one that began before another time are forgotten."""

    began_ms: int
    forget_before_ms: int


class Forget(NamedTuple):
    producers: tuple[tuple[int, int], ...]  # partition, producer


class Init(NamedTuple):
    key: Key
    producer_id: int
    epoch: int
    previous_id: int
    last_epoch: int
    timeout_ms: int
    time_ms: int


class Add(NamedTuple):
    key: Key
    time_ms: int
    partitions: tuple[int, ...]
    groups: tuple[str, ...]


class Offsets(NamedTuple):
    key: Key
    group: str
    time_ms: int
    commits: tuple[Commit, ...]


class End(NamedTuple):
    key: Key
    committed: bool
    producer_id: int
    epoch: int
    previous_id: int
    last_epoch: int
    time_ms: int


class Remove(NamedTuple):
    key: Key


Entry = ProducerIds | Period | Forget | Init | Add | Offsets | End | Remove

_OPERATIONS: Final[dict[type[Entry], Operation]] = {
    ProducerIds: Operation.PRODUCER_IDS,
    Period: Operation.PERIOD,
    Forget: Operation.FORGET,
    Init: Operation.INIT,
    Add: Operation.ADD,
    Offsets: Operation.OFFSETS,
    End: Operation.END,
    Remove: Operation.REMOVE,
}


def _text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def encode(entry: Entry) -> bytes:
    parts = [bytes((_OPERATIONS[type(entry)],))]
    match entry:
        case ProducerIds(next):
            parts.append(_TIME.pack(next))
        case Period(began_ms, forget_before_ms):
            parts.append(_PERIOD.pack(began_ms, forget_before_ms))
        case Forget(producers):
            parts.append(_COUNT.pack(len(producers)))
            parts += [_FORGET.pack(*one) for one in producers]
        case Remove(key):
            parts += map(_text, key)
        case Init(key):
            parts += [*map(_text, key), _INIT.pack(*entry[1:])]
        case End(key):
            parts += [*map(_text, key), _END.pack(*entry[1:])]
        case Add(key, time_ms, partitions, groups):
            parts += [*map(_text, key), _ADD.pack(time_ms, len(partitions), len(groups))]
            parts.append(struct.pack(f"<{len(partitions)}I", *partitions))
            parts += map(_text, groups)
        case Offsets(key, group, time_ms, commits):
            parts += [*map(_text, key), _text(group), _OFFSETS.pack(time_ms, len(commits))]
            for partition, offset, leader_epoch, metadata in commits:
                parts += [_OFFSET.pack(partition, offset, leader_epoch), _text(metadata)]
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 1

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self.data, self.at)
        self.at += form.size
        return found

    def text(self) -> str:
        (length,) = self.numbers(_LENGTH)
        if length > len(self.data) - self.at:
            raise FormatError("a transaction entry is cut short")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def key(self) -> Key:
        return self.text(), self.text()

    def count(self, count: int, least: int) -> range:
        """So many things that take at least so many bytes each."""
        if count * least > len(self.data) - self.at:
            raise FormatError(f"a transaction entry cannot hold {count} things in {len(self.data)} bytes")
        return range(count)


def _read_forget(reader: _Reader) -> Forget:
    (count,) = reader.numbers(_COUNT)
    producers = [reader.numbers(_FORGET) for _ in reader.count(count, _FORGET.size)]
    return Forget(tuple((partition, producer) for partition, producer in producers))


def _read_add(reader: _Reader) -> Add:
    key = reader.key()
    time_ms, partitions, groups = reader.numbers(_ADD)
    reader.count(partitions, 4)
    form = struct.Struct(f"<{partitions}I")
    found = reader.numbers(form)
    return Add(key, time_ms, found, tuple(reader.text() for _ in reader.count(groups, 2)))


def _read_offsets(reader: _Reader) -> Offsets:
    key, group = reader.key(), reader.text()
    time_ms, count = reader.numbers(_OFFSETS)
    commits = []
    for _ in reader.count(count, _OFFSET.size + 2):
        partition, offset, leader_epoch = reader.numbers(_OFFSET)
        if leader_epoch < -1:
            raise FormatError(f"a transaction entry holds an impossible offset of partition {partition}")
        commits.append(Commit(partition, offset, leader_epoch, reader.text()))
    return Offsets(key, group, time_ms, tuple(commits))


def _read_end(reader: _Reader) -> End:
    key = reader.key()
    if reader.data[reader.at] > 1:
        raise FormatError("a transaction ends in neither way")
    return End(key, *reader.numbers(_END))  # type: ignore[arg-type]


_READERS: Final[dict[Operation, Callable[[_Reader], Entry]]] = {
    Operation.PRODUCER_IDS: lambda reader: ProducerIds(*reader.numbers(_TIME)),
    Operation.PERIOD: lambda reader: Period(*reader.numbers(_PERIOD)),
    Operation.FORGET: _read_forget,
    Operation.INIT: lambda reader: Init(reader.key(), *reader.numbers(_INIT)),
    Operation.ADD: _read_add,
    Operation.OFFSETS: _read_offsets,
    Operation.END: _read_end,
    Operation.REMOVE: lambda reader: Remove(reader.key()),
}


def decode(payload: Buffer) -> Entry:
    reader = _Reader(bytes(payload))
    try:
        entry = _READERS[Operation(reader.data[0])](reader)
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"a transaction entry cannot be read: {error}") from None
    if reader.at != len(reader.data):
        raise FormatError(f"a transaction entry has {len(reader.data) - reader.at} bytes too many")
    return entry
