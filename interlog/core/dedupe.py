"""The same message only once: for as long as one of its key waits in a queue, or is remembered by an exchange.

In come keys, as bytes that a face made of what a message says of itself; out goes whether a key is new. A record that
has one carries it in a header, so that a queue finds its keys again after a restart.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from interlog.base.clock import Clock
from interlog.core.deaths import header
from interlog.core.exchange_objects import CACHE_SIZE, CACHE_TTL_MS
from interlog.core.leases import Message
from interlog.core.routing import NO_ENDS, End, FanoutRouter, Headers
from interlog.journal.record import Record

KEY: Final = b"interlog.dedupe"
KEY_BYTES: Final = 16

# What a message's headers say to an exchange that remembers, see routing.Headers.
KEY_PROPERTY: Final = ("", "dedupe")
TTL_PROPERTY: Final = ("", "dedupe_ms")


class WaitingKeys:
    """The keys of what is in a queue, held or not."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, record: Record) -> bool:
        """Whether another one of its key is there."""
        return header(record, KEY) in self._keys

    def add(self, record: Record) -> None:
        key = header(record, KEY)
        if key is not None:
            self._keys.add(key)

    def gone(self, messages: Iterable[Message]) -> None:
        for message in messages:
            key = header(message[1], KEY)
            if key is not None:
                self._keys.discard(key)

    def replace(self, records: Iterable[Record]) -> None:
        """These are all there are."""
        self._keys = {key for record in records if (key := header(record, KEY)) is not None}


class Memory:
    """The keys an exchange has seen: so many of the newest, each for its time. In memory only."""

    __slots__ = ("_due_ms", "size", "ttl_ms")

    def __init__(self, size: int, ttl_ms: int | None) -> None:
        self.size = size
        self.ttl_ms = ttl_ms  # None: until there is no more room
        self._due_ms: dict[bytes, int | None] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._due_ms)

    def is_new(self, key: bytes, now_ms: int, ttl_ms: int | None = None) -> bool:
        """Whether it was not seen; from now on it is. `ttl_ms` goes before what the exchange says."""
        known = self._due_ms
        if key in known:
            due_ms = known[key]
            if due_ms is None or now_ms < due_ms:
                return False
            del known[key]
        elif len(known) >= self.size:
            del known[next(iter(known))]
        ttl_ms = self.ttl_ms if ttl_ms is None else ttl_ms
        known[key] = None if ttl_ms is None else now_ms + ttl_ms
        return True


class Memories:
    """Of all exchanges: a graph may be made anew, and what was seen stays seen."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._memories: dict[tuple[str, str], Memory] = {}

    def of(self, namespace: str, exchange: str, settings: Mapping[str, Any]) -> Memory:
        key, size, ttl_ms = (namespace, exchange), settings[CACHE_SIZE], settings.get(CACHE_TTL_MS)
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = Memory(size, ttl_ms)
        return memory

    def forget(self, namespace: str, exchange: str) -> None:
        self._memories.pop((namespace, exchange), None)

    def forget_namespace(self, namespace: str) -> None:
        for key in [key for key in self._memories if key[0] == namespace]:
            del self._memories[key]


class DedupeRouter(FanoutRouter):
    """To all ends, unless a message of the same key was seen."""

    by_key = False

    def __init__(self, memory: Memory, clock: Clock) -> None:
        super().__init__()
        self._memory = memory
        self._clock = clock

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        said = headers()
        key = said.get(KEY_PROPERTY)
        if key is not None and not self._memory.is_new(key, self._clock.now_ms(), said.get(TTL_PROPERTY)):
            return NO_ENDS
        return super().match(keys, headers)
