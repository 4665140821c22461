"""The one door the faces use: queues, topics, cursors, timers, and the tick that they share.

In come calls of faces, on one thread. `commit`, once a turn of the event loop, makes what they changed one envelope and
hands back its ticket; `poll`, every 100 ms or so, does what time asks for. What must not be answered before it lasts
is parked on `ticket`.
"""

import json
import logging
import random
import sqlite3
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlog.base.clock import Clock, SystemClock
from interlog.base.errors import InterlogError, InvalidError, ReadOnlyError
from interlog.base.version import VERSION
from interlog.base.work import Worker
from interlog.core.access import Access
from interlog.core.backlog import Log
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, Namespace, QueueItem, TopicItem, What, is_passing, partitions_of
from interlog.core.cursors import Cursors
from interlog.core.deadlines import Deadlines
from interlog.core.delays import PARTITION as DELAYS
from interlog.core.delays import Delays
from interlog.core.exchanges import Exchanges
from interlog.core.group_alarm import Home
from interlog.core.groups import Groups
from interlog.core.memory import MemoryBudget, record_size
from interlog.core.policies import Policies
from interlog.core.policy import CorePolicy
from interlog.core.producers import Producers
from interlog.core.publishing import Publishing
from interlog.core.queue_log import NoLog, QueueLog
from interlog.core.queue_state import QueuesSection, QueueState
from interlog.core.queues import Queue
from interlog.core.replay import Replay
from interlog.core.seen_keys import Memories
from interlog.core.settings import CoreSettings
from interlog.core.share_partitions import SharePartitions
from interlog.core.spill import SpillFolder
from interlog.core.timers import Timer, TimerKind, Timers
from interlog.core.topics import Topic, Topics
from interlog.core.transactions import Transactions
from interlog.core.work_queues import WorkQueues
from interlog.journal.envelope import EntryKind
from interlog.journal.files import DiskFiles, Files
from interlog.journal.folder import Folder, cannot_start, open_folder
from interlog.journal.housekeeping import Housekeeper, HousekeepingSettings
from interlog.journal.journal import Ticket
from interlog.journal.local import JournalSettings, JournalState, LocalJournal
from interlog.journal.manifest import remove_orphans
from interlog.journal.record import Record
from interlog.journal.recovery import Recovered, recover
from interlog.journal.section import Section
from interlog.journal.sections import PartitionsSection, SegmentsSection, WindowsSection
from interlog.journal.storage import Storage
from interlog.journal.store import LocalStore
from interlog.journal.tail import Tail

if TYPE_CHECKING:
    from interlog.core.share_delivery import Deliveries

__all__ = ["Core", "CoreSettings"]

log = logging.getLogger("interlog.core")

_FIRED_AT_ONCE = 1_000  # timers in one poll: more wait for the next, so that nobody waits long for either


class QueueWatch:
    """One who waits for a queue's log. Called once, or never if it is cancelled before."""

    __slots__ = ("_partition", "_watches", "wake")

    def __init__(self, watches: "dict[int, dict[QueueWatch, None]]", partition: int, wake: Callable[[], None]) -> None:
        self._watches = watches
        self._partition = partition
        self.wake = wake

    def cancel(self) -> None:
        waiting = self._watches.get(self._partition)
        if waiting is not None:
            waiting.pop(self, None)
            if not waiting:
                del self._watches[self._partition]


class Core:
    """One data folder in use. Made by `open`, given back by `close`."""

    def __init__(self, folder: Folder, settings: CoreSettings, clock: Clock, worker: Worker, files: Files) -> None:
        data = folder.path
        self.settings = settings
        self.clock = clock
        self._folder = folder
        self._worker = worker
        self.storage = Storage(
            files,
            data,
            clock,
            LocalStore(files, data / "segments"),
            Tail(settings.tail_bytes),
            settings.decode_limit_bytes,
        )
        self.storage.create_partition(DELAYS)
        self.catalog = Catalog(self.storage)
        self.cursors = Cursors(self.storage)
        self.share_partitions = SharePartitions(self.storage)
        self.timers = Timers(self._read_timers, self._timed)
        self.deadlines = Deadlines(clock)
        self.memory = MemoryBudget(settings.memory_bytes)
        self.producers = Producers(self.storage, clock, settings.producer_expiration_ms)
        self.policies = Policies(self.catalog)
        self.topics = Topics(self.storage, self.catalog, clock, self.producers, self.policies)
        self.transactions = Transactions(
            self.storage,
            self.topics,
            self.producers,
            self.cursors,
            self.deadlines,
            clock,
            max_timeout_ms=settings.transaction_max_timeout_ms,
            expiration_ms=settings.transaction_expiration_ms,
        )
        self._memories = Memories(self.catalog, clock, self.storage)
        self.exchanges = Exchanges(self.catalog, self.policies, self._memories)
        self.work_queues = WorkQueues(self.catalog, self.exchanges, self.policies, self._lane, clock)
        self.publishing = Publishing(
            self.catalog, self.exchanges, self.work_queues, self.topics, clock, self._publish_later
        )
        self.on_more: Callable[[], None] = lambda: None  # asks for another tick soon
        self.traffic: Callable[[], int] = lambda: 0  # bytes received and sent so far
        self._holders = 0
        self._states = QueuesSection()
        self._queues: dict[int, Queue] = {}
        self._dirty: list[Queue] = []  # touched in the tick under way
        self._lent: dict[Queue, None] = {}  # touched since a tick was last written
        self._queue_watches: dict[int, dict[QueueWatch, None]] = {}  # who waits for a queue's log to grow
        self._spill = SpillFolder(files, data / "spill", self._spill_failed)
        self._closed = False
        self.access: Access
        self.groups: Groups
        self._home: Home
        self._delays: Delays
        self._housekeeper: Housekeeper
        self.recovered: Recovered

    # -- opening and closing

    @classmethod
    def open(
        cls,
        data: Path,
        *,
        settings: CoreSettings | None = None,
        clock: Clock | None = None,
        worker: Worker,
        files: Files | None = None,
        rng: random.Random | None = None,
    ) -> "Core":
        """The folder locked, its state as it was, a new epoch begun. InterlogError with a sentence if it cannot be."""
        files = files or DiskFiles()
        rng = rng or random.SystemRandom()  # salts of passwords come from it
        folder = open_folder(files, data, rng)
        try:
            core = cls(folder, settings or CoreSettings(), clock or SystemClock(), worker, files)
            core._recover(files, rng)
            return core
        except (OSError, sqlite3.Error) as error:
            folder.release()
            told = settings or CoreSettings()
            raise cannot_start(files, data, error, told.journal_file_bytes, told.min_free_bytes) from error
        except BaseException:
            folder.release()
            raise

    def _recover(self, files: Files, rng: random.Random) -> None:
        storage, settings, folder = self.storage, self.settings, self._folder
        partitions = storage.partitions
        sections: tuple[Section, ...] = (
            PartitionsSection(partitions, storage.make_partition),
            SegmentsSection(partitions),
            WindowsSection(partitions),
            self.catalog,
            self._states,
            self.cursors,
            self.share_partitions,
            *self.timers.sections,
            *self.producers.sections,
            self.transactions,
            self._memories,
        )
        self.access = Access(self.catalog, rng, self.clock, settings.loopback_users)
        self._home = Home(self.clock, self.deadlines, rng)
        self.groups = Groups(self._home, self.catalog, self.cursors, self.share_partitions)
        self.catalog.observe(self._catalog_changed)
        replay = Replay(
            storage,
            self.catalog,
            self._states,
            self.cursors,
            self.share_partitions,
            self.timers,
            self.producers,
            self.transactions,
            self._memories,
        )
        self.recovered = recovered = recover(files, folder.path, folder.id, sections, replay.apply)
        try:
            self._watch_the_clock(max(replay.last_time_ms, recovered.checkpoint.mark.time_ms))
            journal_settings = JournalSettings(
                file_bytes=settings.journal_file_bytes,
                roll_ms=settings.journal_roll_ms,
                durability=settings.durability,
                flush_ms=settings.flush_ms,
                min_free_bytes=settings.min_free_bytes,
            )
            journal = LocalJournal(
                files,
                folder.path / "journal",
                folder.id,
                self.clock,
                self._worker,
                journal_settings,
                end=recovered.result.end,
                epoch=recovered.epoch,
                rng=rng,
            )
            storage.attach(journal, recovered.epoch)
            if recovered.replayed or not recovered.clean:
                remove_orphans(storage, recovered.checkpoint)
            for item in self.catalog.queues():
                self._add_queue(item)
            self.work_queues.load()
            self._delays = Delays(storage, self._states.state(DELAYS), self.timers)
            self.transactions.begin()
            self._housekeeper = Housekeeper(
                storage,
                recovered.checkpoint,
                sections,
                CorePolicy(storage, self.catalog, self._states, self.policies, settings.segment_bytes),
                self.clock,
                self._worker,
                HousekeepingSettings(
                    checkpoint_ms=settings.checkpoint_ms,
                    checkpoint_bytes=settings.checkpoint_bytes,
                    checkpoint_entries=settings.checkpoint_entries,
                    segment_bytes=settings.segment_bytes,
                    look_ms=settings.housekeeping_ms,
                ),
                self._moved_bytes,
            )
            start = {"epoch": recovered.epoch, "version": VERSION, "clean": recovered.clean}
            storage.add(EntryKind.START, 0, json.dumps(start).encode())
            self.commit()
            journal.sync_start()
        except BaseException:
            recovered.checkpoint.close()
            raise

    def _watch_the_clock(self, last_ms: int) -> None:
        behind_ms = last_ms - self.clock.now_ms()
        if behind_ms > 1000:
            log.warning(
                "The clock is %.1f s behind the newest entry of the journal: it was set back. Delays and expiries "
                "count from the time it shows now.",
                behind_ms / 1000,
            )

    def close(self) -> None:
        """Write what is under way, sync, save the last checkpoint, give the folder back."""
        if self._closed:
            return
        self._closed = True
        journal = self.storage.journal
        try:
            if journal.state is not JournalState.FAILED:
                self.commit()
            journal.close()
            if journal.state is JournalState.OK:
                self._housekeeper.close()
            else:
                self.recovered.checkpoint.close()
            for queue in self._queues.values():
                queue.close()
        finally:
            self._folder.release()

    # -- the tick

    @property
    def ticket(self) -> Ticket:
        """The ticket of the tick under way: park on it what must wait until it lasts."""
        return self.storage.ticket

    @property
    def accepts_messages(self) -> bool:
        """False while publishers must be held back: the disk is full, or too much memory is held."""
        return self.storage.journal.accepts_messages and not self.memory.over

    @property
    def refusal(self) -> str:
        """Why messages are not accepted, as a sentence; empty if they are."""
        if self.storage.journal.reason:
            return self.storage.journal.reason
        if self.memory.over:
            limit = self.memory.limit_bytes
            return f"Messages hold more than the {limit} bytes of memory that they may. Consuming makes room."
        return ""

    def commit(self) -> Ticket:
        """End the tick: everything since the last commit is one envelope, all or nothing."""
        storage = self.storage
        dirty = self._dirty
        if self.work_queues.woken:
            self.work_queues.look()
        if dirty:
            for queue in dirty:
                queue.flush()
            self._lent.update(dict.fromkeys(dirty))
            dirty.clear()
        self._delays.flush()
        self.topics.flush()
        self.timers.flush(storage)
        written: list[Queue] = []
        if storage.has_entries and self._lent:
            for queue in self._lent:
                queue.write_lent()
            if self._queue_watches:
                written = list(self._lent)
            self._lent.clear()
        ticket = storage.commit()
        self.topics.committed()
        for queue in written:
            self._wake_watches(queue.state.partition)
        if self.memory.balance():
            dirty.clear()
        if self.work_queues.woken:
            self.on_more()
        return ticket

    def meet_deadlines(self) -> float | None:
        """Call those whose time has come; in how many seconds the next one's does."""
        first = self.deadlines.poll()
        return None if first is None else max(first - self.clock.monotonic(), 0.0)

    def poll(self) -> None:
        """What time asks for. What it changes goes out with the next commit. ReadOnlyError if the journal failed."""
        journal = self.storage.journal
        journal.poll()
        if journal.state is JournalState.FAILED:
            raise ReadOnlyError(journal.reason)
        self.commit()
        self._housekeeper.poll()
        self.deadlines.poll()
        now_ms = self.clock.now_ms()
        self.fire_timers(now_ms)
        self.work_queues.poll(now_ms)
        for queue in self._queues.values():
            if queue.leased:
                queue.expire_leases(now_ms)
        self.topics.retain(now_ms)
        self.groups.poll(now_ms)
        self.producers.poll(now_ms)
        self.transactions.poll(now_ms)

    @cached_property
    def deliveries(self) -> "Deliveries":
        """To share groups; loaded when the first of them reads."""
        from interlog.core.share_delivery import Deliveries

        made = Deliveries(self._home, self.catalog, self.storage, self.share_partitions, self.transactions)
        self.groups.shares.on_gone = made.release
        return made

    # -- namespaces, queues, topics

    def declare_queue(
        self, namespace: str, name: str, *, durable: bool = True, settings: dict[str, Any] | None = None
    ) -> Queue:
        """The queue, made if it is not there; InvalidError if it is there and its durability differs."""
        item = self.catalog.find(namespace, name)
        if item is None:
            item = self.catalog.create_queue(namespace, name, settings, durable=durable)
        elif not isinstance(item, QueueItem):
            raise InvalidError(f"{name} in namespace {namespace} is a topic, not a queue")
        elif item.durable != durable:
            raise InvalidError(f"queue {name} in namespace {namespace} is {'' if item.durable else 'not '}durable")
        return self._queues[item.partition]

    def queue(self, namespace: str, name: str) -> Queue:
        return self._queues[self.catalog.queue(namespace, name).partition]

    def queue_of(self, partition: int) -> Queue | None:
        return self._queues.get(partition)

    def watch_queue(self, partition: int, wake: Callable[[], None]) -> "QueueWatch":
        """Call back once, when something was written to the log of a queue's partition, or it is gone."""
        watch = QueueWatch(self._queue_watches, partition, wake)
        self._queue_watches.setdefault(partition, {})[watch] = None
        return watch

    def _wake_watches(self, partition: int) -> None:
        for watch in self._queue_watches.pop(partition, ()):
            watch.wake()

    def _lane(self, partition: int) -> Queue:
        return self._queues[partition]

    def new_holder(self) -> int:
        """A number under which somebody may lease messages; nobody else has it."""
        self._holders += 1
        return self._holders

    @property
    def folder_id(self) -> bytes:
        """Made with the data folder, and no other folder's."""
        return self._folder.id

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def free_bytes(self) -> int:
        """What the data folder's disk has room for."""
        return self.storage.files.free_bytes(self._folder.path)

    @property
    def total_bytes(self) -> int:
        return self.storage.files.total_bytes(self._folder.path)

    @property
    def generation(self) -> int:
        """Rises with each change of anything that has a name: what was worked out from names holds for one of them."""
        return self.catalog.generation

    def delete_queue(self, namespace: str, name: str) -> None:
        self.work_queues.delete(self.work_queues.get(namespace, name))

    def create_topic(
        self, namespace: str, name: str, partitions: int = 1, settings: dict[str, Any] | None = None
    ) -> Topic:
        return self.topics.create(namespace, name, partitions, settings)

    def topic(self, namespace: str, name: str) -> Topic:
        return self.topics.get(namespace, name)

    def delete_topic(self, namespace: str, name: str) -> None:
        self.catalog.topic(namespace, name)
        self.exchanges.drop_queue(namespace, name)
        self.topics.delete(namespace, name)

    def create_namespace(self, name: str) -> None:
        self.catalog.create_namespace(name)

    def delete_namespace(self, name: str) -> None:
        """The namespace and everything in it."""
        self.catalog.remove_namespace(name)

    def _catalog_changed(self, change: Change) -> None:
        """What follows from a change of the catalog, live and in replay."""
        item = change.item
        if change.what is What.CREATED and isinstance(item, QueueItem):
            if self.storage.recovered:
                self._add_queue(item)
        elif change.what is What.REMOVED and isinstance(item, QueueItem | TopicItem):
            for partition in partitions_of(item):
                self._remove_partition(partition)
        elif change.what is What.REMOVED and isinstance(item, Namespace):
            self.cursors.drop_namespace(item.name)
            self.share_partitions.drop_namespace(item.name)
            self.transactions.drop_namespace(item.name)

    def _add_queue(self, item: QueueItem) -> None:
        for partition in item.partitions:
            if item.durable:
                state = self._states.state(partition)
                queue_log: Log = QueueLog(self.storage, partition)
            else:
                state = QueueState(partition)
                queue_log = NoLog()
            self._queues[partition] = Queue(
                state,
                queue_log,
                self._spill,
                self.memory,
                durable=item.durable,
                share_bytes=self.settings.queue_memory_bytes,
                dirty=self._dirty,
            )

    def _remove_partition(self, partition: int) -> None:
        self._states.remove(partition)
        self.cursors.drop_partition(partition)
        self.share_partitions.drop_partition(partition)
        self.transactions.drop_partition(partition)
        self.producers.drop_partition(partition)
        queue = self._queues.pop(partition, None)
        if queue is not None:
            queue.close()
            if queue in self._dirty:
                self._dirty.remove(queue)
            self._lent.pop(queue, None)
            self._wake_watches(partition)

    # -- later

    def deliver_later(self, queue: Queue, record: Record, due_ms: int) -> None:
        """Keep the record and append it, persistent, to the queue when its time has come."""
        self._delays.add(record, queue.state.partition, due_ms)

    def _publish_later(self, route: bytes, record: Record, due_ms: int) -> None:
        self._delays.add_route(route, record, due_ms)

    def append_expiring(self, queue: Queue, record: Record, persistent: bool, expire_ms: int) -> int:
        """Append a message that is taken out again at expire_ms if it is ready then."""
        offset = queue.append(record, record_size(record), persistent)
        partition = queue.state.partition
        durable = persistent and not is_passing(partition)
        if durable:
            # Even if the message is gone before the tick ends, its offset must not be another's when the timer fires.
            self.storage.partition(partition).advance(offset + 1)
        self.timers.add(TimerKind.EXPIRE, expire_ms, partition, offset, durable=durable)
        return offset

    def fire_timers(self, now_ms: int) -> list[Timer]:
        """Do what is due; what was done. The rest, if there is much, comes with the next call."""
        fired = self.timers.due(now_ms, _FIRED_AT_ONCE)
        for timer in fired:
            if timer.kind == TimerKind.DELIVER:
                self._deliver(timer.offset)
            else:
                queue = self._queues.get(timer.partition)
                if queue is not None:
                    queue.take(timer.offset)
        return fired

    def _deliver(self, offset: int) -> None:
        try:
            found = self._delays.fire(offset)
        except InterlogError as error:
            # Damage on the disk: this one message is told of, the others go on.
            log.error("A delayed message could not be delivered: %s", error)
            return
        if found is not None:
            target, record = found
            if isinstance(target, bytes):
                self.publishing.deliver(target, record)
                return
            queue = self._queues.get(target)
            if queue is not None:
                queue.append(record, record_size(record), True)

    def _read_timers(self, after: tuple[int, int], limit: int) -> list[tuple[Any, ...]]:
        return self.recovered.checkpoint.read_table(self.timers.rows.table, after, limit)

    def _timed(self, partition: int) -> bool:
        return partition == DELAYS or partition in self._queues

    def _moved_bytes(self) -> int:
        return self.traffic()

    def _spill_failed(self, error: Exception) -> None:
        log.error("Transient messages were lost, for their spill file could not be written or read: %s", error)

    # -- looking

    def queues(self) -> Iterable[tuple[QueueItem, Queue]]:
        for item in self.catalog.queues():
            yield item, self._queues[item.partition]

    @property
    def delayed(self) -> int:
        """How many messages wait for their time to be delivered."""
        return self._delays.depth

    def status(self) -> dict[str, Any]:
        """Numbers for people and for metrics."""
        storage, journal, catalog = self.storage, self.storage.journal, self.catalog
        queues = self._queues.values()
        return {
            "epoch": storage.epoch,
            "journal": {
                "state": journal.state.value,
                "reason": journal.reason,
                "sequence": journal.tail(),
                "durable_sequence": journal.durable(),
                "checkpoint_sequence": self.recovered.checkpoint.mark.sequence,
            },
            "accepts_messages": self.accepts_messages,
            "reason": self.refusal,
            "namespaces": len(catalog.namespaces()),
            "topics": sum(1 for _ in catalog.topics()),
            "topics_durability_os": sum(item.settings.get("durability") == "os" for item in catalog.topics()),
            "queues": len(queues),
            "partitions": len(storage.partitions),
            "messages": {
                "ready": sum(queue.ready for queue in queues),
                "leased": sum(queue.leased for queue in queues),
                "delayed": self.delayed,
            },
            "cursors": len(self.cursors),
            "memory": {
                "queues_bytes": self.memory.used,
                "limit_bytes": self.memory.limit_bytes,
                "tail_bytes": storage.tail.bytes,
            },
        }
