"""Publishing: from an exchange and keys to the queues and topics that get the message.

In come records of faces; out go appends, now or later, and what the publisher may be told: whether anybody got it,
whether it must be synced before it is confirmed, whether a full queue refused it. What routes alike is worked out once
(`target`) and kept by the face for as long as the catalog's generation stands.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from interlog.base import crc32c
from interlog.base.clock import Clock
from interlog.base.errors import InterlogError, LimitError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import TopicItem
from interlog.core.deaths import EXCHANGE, EXPIRES, KEYS, Reason, bury, goes_in_circles, header, remade
from interlog.core.exchanges import Exchanges
from interlog.core.leases import Message
from interlog.core.memory import record_size
from interlog.core.topics import Topic, Topics
from interlog.core.work_queue import WorkQueue
from interlog.core.work_queues import WorkQueues
from interlog.journal.record import Record

log = logging.getLogger("interlog.core")

# What became of a message: bits.
ROUTED: Final = 1  # somebody got it
LASTS: Final = 2  # it must be synced before anybody is told that it is safe
REFUSED: Final = 4  # a queue was full and did not take it

PRIORITY: Final = b"interlog.priority"  # where it is not 0

Headers = Callable[[], Mapping[str, Any]]
Later = Callable[[bytes, Record, int], None]


def _no_headers() -> Mapping[str, Any]:
    return {}


class Target:
    """Where messages of one exchange with the same keys go."""

    __slots__ = ("cacheable", "delayed", "queues", "topics")

    def __init__(
        self, queues: Sequence[WorkQueue], topics: Sequence[Topic], cacheable: bool = True, delayed: bool = False
    ) -> None:
        self.queues = tuple(queues)
        self.topics = tuple(topics)
        self.cacheable = cacheable  # nothing but the exchange and the keys decided
        self.delayed = delayed  # a message that says so is to be routed later

    def publish(self, record: Record, size: int, persistent: bool, priority: int = 0, expires: bool = False) -> int:
        """Append to all of them. ROUTED, LASTS and REFUSED, as they apply."""
        result = 0
        for queue in self.queues:
            if queue.append(record, size, persistent, priority, expires):
                result |= (
                    LASTS | ROUTED if queue.durable and (persistent or queue.settings.kind == "quorum") else ROUTED
                )
            else:
                result |= REFUSED | ROUTED
        for topic in self.topics:
            try:
                topic.append(_partition(topic, record), (record,))
                result |= ROUTED | LASTS
            except LimitError:
                result |= REFUSED | ROUTED
        return result

    def publish_run(self, records: Sequence[Record], sizes: Sequence[int], persistent: bool) -> tuple[int, list[int]]:
        """The same for messages that have their key in common and came together; and which were refused."""
        if self.topics or not all(queue.takes_runs for queue in self.queues):
            result, refused = 0, []
            for at, (record, size) in enumerate(zip(records, sizes, strict=True)):
                one = self.publish(record, size, persistent)
                if one & REFUSED:
                    refused.append(at)
                result |= one
            return result, refused
        result = 0
        for queue in self.queues:
            queue.append_run(records, sizes, persistent)
            result |= LASTS | ROUTED if queue.durable and (persistent or queue.settings.kind == "quorum") else ROUTED
        return result, []


def _partition(topic: Topic, record: Record) -> int:
    count = len(topic)
    return 0 if count == 1 else crc32c.crc32c(record.key or b"") % count


class Publishing:
    def __init__(
        self,
        catalog: Catalog,
        exchanges: Exchanges,
        queues: WorkQueues,
        topics: Topics,
        clock: Clock,
        later: Later,
    ) -> None:
        self._catalog = catalog
        self._exchanges = exchanges
        self._queues = queues
        self._topics = topics
        self._clock = clock
        self._later = later
        # What a record's headers say to an exchange that looks at them; a face that knows better takes its place.
        self.headers_of: Callable[[Record], Mapping[str, Any]] = headers_of
        queues.on_dead = self.bury

    def target(self, namespace: str, exchange: str, keys: Sequence[str], headers: Headers = _no_headers) -> Target:
        """NotFoundError if there is no such exchange."""
        found = self._exchanges.route(namespace, exchange, keys, headers)
        queues: list[WorkQueue] = []
        topics: list[Topic] = []
        for name in found.queues:
            queue = self._queues.find(namespace, name)
            if queue is not None:
                queues.append(queue)
            elif isinstance(self._catalog.find(namespace, name), TopicItem):
                topics.append(self._topics.get(namespace, name))
        return Target(queues, topics, found.cacheable, found.delayed)

    # -- later

    def publish_later(
        self, namespace: str, exchange: str, keys: Sequence[str], record: Record, persistent: bool, due_ms: int
    ) -> None:
        """Keep the record, and route it when its time has come, by the bindings there are then."""
        words = {"namespace": namespace, "exchange": exchange, "keys": list(keys), "persistent": persistent}
        self._later(json.dumps(words, separators=(",", ":")).encode(), record, due_ms)

    def deliver(self, words: bytes, record: Record) -> None:
        """The time of a record that was kept has come."""
        told = json.loads(words)
        record = Record(record.key, record.value, record.headers, self._clock.now_ms())
        try:
            target = self.target(told["namespace"], told["exchange"], told["keys"], lambda: self.headers_of(record))
        except InterlogError as error:
            log.warning("A delayed message goes nowhere: %s", error)
            return
        expires = header(record, EXPIRES) is not None
        target.publish(record, record_size(record), told["persistent"], priority_of(record), expires)

    # -- dead letters

    def bury(self, queue: WorkQueue, messages: Iterable[Message], reason: Reason) -> None:
        """Send on what left a queue for good, to where the queue says, with what is told of it."""
        settings = queue.settings
        exchange = settings.dead_letter_exchange
        if exchange is None or not self._exchanges.exists(queue.namespace, exchange):
            return
        now_ms = self._clock.now_ms()
        for message in messages:
            record = message[1]
            deaths = bury(record, queue.name, reason, now_ms)
            keys = [settings.dead_letter_key] if settings.dead_letter_key is not None else deaths[0]["keys"]
            dead = remade(record, deaths, exchange, keys, now_ms)
            target = self.target(queue.namespace, exchange, keys, partial(self.headers_of, dead))
            target.queues = tuple([one for one in target.queues if not goes_in_circles(one.name, deaths)])
            target.publish(dead, record_size(dead), message[5] >= 0, priority_of(dead))


def priority_of(record: Record) -> int:
    data = header(record, PRIORITY)
    return 0 if data is None else int(data)


def headers_of(record: Record) -> Mapping[str, Any]:
    """What the record's headers say, for an exchange that looks at them."""
    return {
        name.decode("utf-8", "replace"): None if value is None else value.decode("utf-8", "replace")
        for name, value in record.headers
        if not name.startswith(b"interlog.") and name not in (EXCHANGE, KEYS)
    }
