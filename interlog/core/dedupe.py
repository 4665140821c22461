"""The same message only once: for as long as one of its key waits in a queue, or is remembered by an exchange.

In come keys, as bytes that a face made of what a message says of itself; out goes whether a key is new. A record that
has one carries it in a header, so that a queue finds its keys again after a restart.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from interlog.base.clock import Clock
from interlog.core.deaths import header
from interlog.core.leases import Message
from interlog.core.routing import NO_ENDS, End, FanoutRouter, Headers
from interlog.core.seen_keys import Memory
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
