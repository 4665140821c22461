"""All queues as their users know them: declared, found, deleted; looked at once a commit; and what time asks of them.

Follows the catalog: a queue is here as long as the catalog has it. What must be done before a queue can go (its
bindings) is done here, so that nobody forgets it.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from interlog.base.clock import Clock
from interlog.base.errors import InequivalentError, InterlogError, InUseError, LockedError, NotEmptyError, NotFoundError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, ObjectItem, QueueItem, TopicItem, What
from interlog.core.deaths import Reason
from interlog.core.exchanges import Exchanges
from interlog.core.leases import Message
from interlog.core.policies import Policies
from interlog.core.queue_settings import DECLARED, QueueSettings, check_settings, settings_of
from interlog.core.queues import Queue
from interlog.core.work_queue import WorkQueue

log = logging.getLogger("interlog.core")

Dead = Callable[[WorkQueue, Iterable[Message], Reason], None]

_LASTING: Final = "durable"  # as it was declared: a queue of one connection is declared durable and never is
_FRESH_AT_ONCE: Final = 10
_ROUNDS: Final = 10_000  # of looking, in one commit: dead letters may wake other queues


class WorkQueues:
    def __init__(
        self,
        catalog: Catalog,
        exchanges: Exchanges,
        policies: Policies,
        lane: Callable[[int], Queue],
        clock: Clock,
    ) -> None:
        self.woken: list[WorkQueue] = []
        self.timed: dict[WorkQueue, None] = {}
        self.on_dead: Dead = lambda queue, messages, reason: None  # set by who publishes
        self._catalog = catalog
        self._exchanges = exchanges
        self._policies = policies
        self._lane = lane
        self._clock = clock
        self._queues: dict[tuple[str, str], WorkQueue] = {}
        self._fresh: deque[WorkQueue] = deque()  # from before this start, and not looked at yet

    def load(self) -> None:
        """The catalog is as it was: from here on it is followed."""
        for item in self._catalog.queues():
            self._add(item)
        self._fresh.extend(self._queues.values())
        self._catalog.observe(self._changed)

    # -- asked

    def get(self, namespace: str, name: str) -> WorkQueue:
        try:
            return self._queues[namespace, name]
        except KeyError:
            raise NotFoundError(f"there is no queue {name} in namespace {namespace}") from None

    def find(self, namespace: str, name: str) -> WorkQueue | None:
        return self._queues.get((namespace, name))

    def all(self, namespace: str | None = None) -> Iterable[WorkQueue]:
        return [queue for key, queue in sorted(self._queues.items()) if namespace is None or key[0] == namespace]

    def __len__(self) -> int:
        return len(self._queues)

    # -- declared and deleted

    def declare(
        self,
        namespace: str,
        name: str,
        settings: dict[str, Any] | None = None,
        *,
        durable: bool = True,
        owner: object | None = None,
    ) -> WorkQueue:
        """The queue, made if it is not there.

        With an owner it is that connection's alone, and does not outlast it. InequivalentError if one is there that
        was declared otherwise, LockedError if it is another connection's alone.
        """
        wanted = check_settings(settings or {})
        taken = self._catalog.find(namespace, name)
        if taken is None:
            kept = wanted | {_LASTING: durable}
            lanes = 1 + (wanted.get("max_priority") or 0)
            self._catalog.create_queue(namespace, name, kept, durable=durable and owner is None, lanes=lanes)
            queue = self._queues[namespace, name]
            queue.owner = owner
            return queue
        if isinstance(taken, TopicItem):
            raise InequivalentError(f"queue {name} in namespace {namespace}", "kind", wanted.get("kind"), "stream")
        queue = self._queues[namespace, name]
        self.check_owner(queue, owner)
        if queue.owner is not owner:
            raise LockedError(f"queue {name} in namespace {namespace} was not declared for one connection alone")
        self._compare(queue, wanted, durable)
        queue.used_ms = self._clock.now_ms()
        return queue

    def _compare(self, queue: WorkQueue, wanted: dict[str, Any], durable: bool) -> None:
        subject = f"queue {queue.name} in namespace {queue.namespace}"
        found = queue.item.settings
        if found.get(_LASTING, queue.durable) != durable:
            raise InequivalentError(subject, "durable", durable, not durable)
        default = QueueSettings()
        for name in default.__slots__:
            was, now = found.get(name), wanted.get(name)
            was = getattr(default, name) if was is None else was
            now = getattr(default, name) if now is None else now
            if was != now:
                raise InequivalentError(subject, name, now, was)

    def check_owner(self, queue: WorkQueue, owner: object | None) -> None:
        """LockedError if the queue is somebody else's alone."""
        if queue.owner is not None and queue.owner is not owner:
            raise LockedError(f"queue {queue.name} in namespace {queue.namespace} is another connection's alone")

    def delete(self, queue: WorkQueue, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """How many messages went with it. InUseError, NotEmptyError."""
        queue.settled()
        if if_unused and queue.consumer_count:
            raise InUseError(f"queue {queue.name} in namespace {queue.namespace} has consumers")
        count = queue.ready
        if if_empty and count:
            raise NotEmptyError(f"queue {queue.name} in namespace {queue.namespace} holds {count} messages")
        self._exchanges.drop_queue(queue.namespace, queue.name)
        self._catalog.remove(queue.namespace, queue.name)
        return count

    # -- the catalog changed

    def _changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, QueueItem):
            if change.what is What.CREATED:
                self._add(item)
            elif change.what is What.REMOVED:
                self._queues.pop((item.namespace, item.name)).close()
            else:
                self._queues[item.namespace, item.name].change(item, self._settings(item))
        elif isinstance(item, ObjectItem) and item.kind in Policies.KINDS:
            for queue in self.all(item.namespace):
                queue.change(queue.item, self._settings(queue.item))

    def _add(self, item: QueueItem) -> None:
        lanes = [self._lane(partition) for partition in item.partitions]
        self._queues[item.namespace, item.name] = WorkQueue(self, item, lanes, self._settings(item))

    def _settings(self, item: QueueItem) -> QueueSettings:
        kept = {name: value for name, value in item.settings.items() if name not in (_LASTING, DECLARED)}
        policy = self._policies.of_queue(item.namespace, item.name, kept.get("kind", "classic"))
        return settings_of(kept, policy)

    # -- what queues need of each other

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def dead(self, queue: WorkQueue, messages: Iterable[Message], reason: Reason) -> None:
        self.on_dead(queue, messages, reason)

    def abandoned(self, queue: WorkQueue) -> None:
        if not queue.closed:
            self.delete(queue)

    # -- the tick, and time

    def look(self) -> None:
        """Look at all queues that were woken, until nothing more comes of it."""
        rounds = 0
        while self.woken and rounds < _ROUNDS:
            woken, self.woken = self.woken, []
            for queue in woken:
                rounds += 1
                if not queue.woken:
                    continue
                try:
                    queue.look()
                except (InterlogError, OSError) as error:
                    # Damage or a full disk: this queue stops here and is looked at again when it is woken again.
                    log.error("Queue %s in namespace %s cannot be read: %s", queue.name, queue.namespace, error)

    def poll(self, now_ms: int) -> None:
        # To look at a queue's head is to read it from the disk: not all at once, and not before the start is over.
        for _ in range(min(_FRESH_AT_ONCE, len(self._fresh))):
            self._fresh.popleft().find_out()
        for queue in list(self.timed):
            if queue.closed:
                self.timed.pop(queue, None)
                continue
            try:
                if queue.poll(now_ms):
                    self.delete(queue)
            except (InterlogError, OSError) as error:
                log.error("Queue %s in namespace %s cannot be read: %s", queue.name, queue.namespace, error)
