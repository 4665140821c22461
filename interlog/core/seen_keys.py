"""What exchanges remember of the messages they have seen: so many of the newest keys, each for its time.

Comes in: an exchange's settings, keys, and the time. Goes out: whether a key is new. Where the exchange's memory is to
last, each key is an entry of its message's tick, so that after a kill both are there or neither; and a row of a table
of the checkpoint, with a number that tells which is older. What is forgotten for want of room, or with its exchange,
follows from the entries.

A SEEN entry is the namespace and the exchange, each as its length in 2 bytes and UTF-8, then when the key's time is
over (8 bytes, -1: never), and the key. Little-endian.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from interlog.base.clock import Clock
from interlog.base.errors import FormatError
from interlog.core.catalog import Catalog
from interlog.core.exchange_objects import CACHE_LASTS, CACHE_SIZE, CACHE_TTL_MS, EXCHANGE, exchange_of
from interlog.journal.envelope import EntryKind
from interlog.journal.files import Buffer
from interlog.journal.section import Changes, Row, Table

_LENGTH: Final = struct.Struct("<H")
_TIME: Final = struct.Struct("<q")
_NEVER: Final = -1

Key = tuple[str, str]  # namespace, exchange


class Storage(Protocol):
    def add(self, kind: int, target: int, payload: bytes) -> None: ...


class Memory:
    """The keys one exchange has seen."""

    __slots__ = ("_due_ms", "_tell", "size", "ttl_ms")

    def __init__(self, size: int, ttl_ms: int | None, tell: Callable[[bytes, int | None], None] | None = None) -> None:
        self.size = size
        self.ttl_ms = ttl_ms  # None: until there is no more room
        self._tell = tell  # of each new key, with the end of its time
        self._due_ms: dict[bytes, int | None] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._due_ms)

    def __contains__(self, key: bytes) -> bool:
        return key in self._due_ms

    def due_ms(self, key: bytes) -> int | None:
        return self._due_ms[key]

    def is_new(self, key: bytes, now_ms: int, ttl_ms: int | None = None) -> bool:
        """Whether it was not seen; from now on it is. `ttl_ms` goes before what the exchange says."""
        if key in self._due_ms:
            due_ms = self._due_ms[key]
            if due_ms is None or now_ms < due_ms:
                return False
        ttl_ms = self.ttl_ms if ttl_ms is None else ttl_ms
        due_ms = None if ttl_ms is None else now_ms + ttl_ms
        if self._tell is not None:
            self._tell(key, due_ms)
        else:
            self.remember(key, due_ms)
        return True

    def remember(self, key: bytes, due_ms: int | None) -> bytes | None:
        """As the newest; the key that went for it, where there was no more room."""
        known = self._due_ms
        gone = None
        if key in known:
            del known[key]
        elif len(known) >= self.size:
            gone = next(iter(known))
            del known[gone]
        known[key] = due_ms
        return gone


class Memories:
    """Of all exchanges: a graph may be made anew, and what was seen stays seen."""

    table = Table(
        "seen_keys",
        (("namespace", "TEXT"), ("exchange", "TEXT"), ("key", "BLOB"), ("number", "INTEGER"), ("due_ms", "INTEGER")),
        keys=3,
    )

    def __init__(self, catalog: Catalog, clock: Clock, storage: Storage | None = None) -> None:
        self.clock = clock
        self._catalog = catalog
        self._storage = storage
        self._memories: dict[Key, Memory] = {}
        self._next = 0  # the next key's number
        self._changed: dict[tuple[str, str, bytes], int] = {}  # not in the table as they are; their numbers
        self._removed: dict[Key, None] = {}  # not in the table any more, with all their keys

    def of(self, namespace: str, exchange: str, settings: Mapping[str, Any], durable: bool) -> Memory:
        key = namespace, exchange
        memory = self._memories.get(key)
        if memory is None:
            memory = Memory(settings[CACHE_SIZE], settings.get(CACHE_TTL_MS))
            if durable and settings.get(CACHE_LASTS) and self._storage is not None:
                memory = Memory(memory.size, memory.ttl_ms, lambda seen, due_ms: self._seen(key, seen, due_ms))
            self._memories[key] = memory
        return memory

    def forget(self, namespace: str, exchange: str) -> None:
        self._forget([(namespace, exchange)])

    def forget_namespace(self, namespace: str) -> None:
        self._forget([key for key in self._memories if key[0] == namespace])

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if self._memories.pop(key, None) is not None:
                self._changed = {one: number for one, number in self._changed.items() if one[:2] != key}
                self._removed[key] = None

    # -- what lasts

    def _seen(self, key: Key, seen: bytes, due_ms: int | None) -> None:
        assert self._storage is not None
        names = b"".join(_LENGTH.pack(len(name)) + name for name in (part.encode() for part in key))
        payload = names + _TIME.pack(_NEVER if due_ms is None else due_ms) + seen
        self._storage.add(EntryKind.SEEN, 0, payload)
        self._remember(self._memories[key], key, seen, due_ms)

    def apply(self, payload: Buffer) -> None:
        """Of a SEEN entry."""
        data = bytes(payload)
        try:
            at, names = 0, []
            for _ in range(2):
                (length,) = _LENGTH.unpack_from(data, at)
                at += _LENGTH.size + length
                names.append(data[at - length : at].decode())
            (due_ms,) = _TIME.unpack_from(data, at)
        except (struct.error, UnicodeDecodeError) as error:
            raise FormatError(f"an entry of what an exchange has seen cannot be read: {error}") from None
        seen = data[at + _TIME.size :]
        memory = self._lasting(*names)
        if memory is None or not seen:
            raise FormatError(f"an entry of what exchange {names[1]} in namespace {names[0]} has seen contradicts it")
        self._remember(memory, (names[0], names[1]), seen, None if due_ms == _NEVER else due_ms)

    def _remember(self, memory: Memory, key: Key, seen: bytes, due_ms: int | None) -> None:
        gone = memory.remember(seen, due_ms)
        self._changed[*key, seen] = self._next
        self._next += 1
        if gone is not None:
            self._changed[*key, gone] = _NEVER

    def _lasting(self, namespace: str, exchange: str) -> Memory | None:
        item = self._catalog.object(EXCHANGE, namespace, exchange)
        settings = {} if item is None else exchange_of(item).settings
        return self.of(namespace, exchange, settings, True) if settings.get(CACHE_LASTS) else None

    def take_changes(self) -> Changes:
        changes = Changes(removals=list(self._removed))
        for (namespace, exchange, seen), number in self._changed.items():
            memory = self._memories[namespace, exchange]
            if seen in memory:
                changes.rows.append((namespace, exchange, seen, number, memory.due_ms(seen)))
            else:
                changes.removals.append((namespace, exchange, seen))
        self._changed.clear()
        self._removed.clear()
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        """The catalog has been loaded."""
        for namespace, exchange, seen, number, due_ms in sorted(rows, key=lambda row: int(row[3] or 0)):
            assert isinstance(namespace, str) and isinstance(exchange, str) and isinstance(seen, bytes)
            assert isinstance(number, int) and (due_ms is None or isinstance(due_ms, int))
            self._next = number + 1
            memory = self._lasting(namespace, exchange)
            if memory is not None:
                memory.remember(seen, due_ms)
