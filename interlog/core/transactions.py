"""Transactions: batches in many partitions, and cursors of groups, that count all together or not at all.

Comes in: what the producers of a transaction ask for, step by step. Goes out: a TRANSACTION entry a step, and at the
end all of it in one tick: markers in all partitions, the cursors, and the new state. So a transaction is never half
ended, and there is no state between open and ended. ProducerError says why a step is refused.

A transaction has a name in its namespace and one producer at a time. Whoever takes over the name gets a higher epoch,
which fences all before. One that stays open for too long is aborted, and its producer fenced.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Final, Protocol

from interlog.base.clock import Clock
from interlog.base.errors import FormatError, InvalidError, LimitError
from interlog.core import markers
from interlog.core.cursors import Commit, Cursors
from interlog.core.deadlines import Deadline, Deadlines
from interlog.core.markers import Marker
from interlog.core.producers import ProducerError, Producers, Refusal
from interlog.core.transaction_entries import Add, End, Init, Key, Offsets, Remove, encode
from interlog.journal.envelope import EntryKind
from interlog.journal.section import Changes, Row, Table

log = logging.getLogger("interlog.core")

MAX_TIMEOUT_MS: Final = 900_000
EXPIRATION_MS: Final = 7 * 86_400_000
MAX_TRANSACTIONS: Final = 100_000
MAX_NAME_BYTES: Final = 32_767
MAX_PENDING: Final = 100_000  # cursors of all open transactions
MAX_EPOCH: Final = 0x7FFF  # is never given to a producer: one higher than its own must be left, to fence it

_LOOK_MS: Final = 3_600_000


class State(Enum):
    EMPTY = 0  # the producer has begun nothing yet
    ONGOING = 1
    COMMITTED = 2
    ABORTED = 3


class Step(Enum):
    INIT = "init"
    ADD = "add"
    COMMIT = "commit"
    ABORT = "abort"


# What follows. An abort of nothing at all is allowed where it gives the producer a new epoch.
NEXT: Final = {
    (State.EMPTY, Step.INIT): State.EMPTY,
    (State.EMPTY, Step.ADD): State.ONGOING,
    (State.EMPTY, Step.ABORT): State.ABORTED,
    (State.ONGOING, Step.ADD): State.ONGOING,
    (State.ONGOING, Step.COMMIT): State.COMMITTED,
    (State.ONGOING, Step.ABORT): State.ABORTED,
    (State.COMMITTED, Step.INIT): State.EMPTY,
    (State.COMMITTED, Step.ADD): State.ONGOING,
    (State.COMMITTED, Step.ABORT): State.ABORTED,
    (State.ABORTED, Step.INIT): State.EMPTY,
    (State.ABORTED, Step.ADD): State.ONGOING,
    (State.ABORTED, Step.ABORT): State.ABORTED,
}


@dataclass(slots=True, eq=False)
class Transaction:
    namespace: str
    name: str
    producer_id: int = -1
    epoch: int = -1
    previous_id: int = -1  # the producer id before this one
    last_epoch: int = -1  # the epoch before this one, where a producer may ask again for what it was given
    timeout_ms: int = 0
    state: State = State.EMPTY
    start_ms: int = -1  # of the open one, or the last one
    update_ms: int = 0
    partitions: dict[int, None] = field(default_factory=dict)
    offsets: dict[str, dict[int, Commit]] = field(default_factory=dict)  # by group: what is committed at the end

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    def go(self, step: Step) -> None:
        following = NEXT.get((self.state, step))
        if following is None:
            raise FormatError(f"transaction {self.name} is {self.state.name.lower()}: {step.value} cannot follow")
        self.state = following

    def row(self) -> Row:
        partitions = json.dumps(sorted(self.partitions))
        offsets = {group: sorted(commits.values()) for group, commits in sorted(self.offsets.items())}
        ids = self.producer_id, self.epoch, self.previous_id, self.last_epoch
        times = self.timeout_ms, self.state.value, self.start_ms, self.update_ms
        return self.namespace, self.name, *ids, *times, partitions, json.dumps(offsets, ensure_ascii=False)


class Admit(Enum):
    """What becomes of a batch for a partition that is no part of the transaction."""

    ADD = "add"  # it is added
    REFUSE = "refuse"  # as an error that ends the producer
    REFUSE_ABORTABLE = "refuse, abortable"  # as one after which the transaction may be aborted


class Storage(Protocol):
    @property
    def epoch(self) -> int: ...
    def add(self, kind: int, target: int, payload: bytes) -> None: ...


class Markers(Protocol):
    """Where markers are appended: the topics."""

    def append_marker(self, partition: int, batch: bytes) -> None: ...


def _exhausted(epoch: int) -> bool:
    return epoch >= MAX_EPOCH - 1


class Transactions:
    """All transactions of a shard; a section of the checkpoint."""

    table = Table(
        "transactions",
        (
            ("namespace", "TEXT"),
            ("name", "TEXT"),
            ("producer_id", "INTEGER"),
            ("epoch", "INTEGER"),
            ("previous_id", "INTEGER"),
            ("last_epoch", "INTEGER"),
            ("timeout_ms", "INTEGER"),
            ("state", "INTEGER"),
            ("start_ms", "INTEGER"),
            ("update_ms", "INTEGER"),
            ("partitions", "TEXT"),
            ("offsets", "TEXT"),
        ),
        keys=2,
    )

    def __init__(
        self,
        storage: Storage,
        topics: Markers,
        producers: Producers,
        cursors: Cursors,
        deadlines: Deadlines,
        clock: Clock,
        *,
        max_timeout_ms: int = MAX_TIMEOUT_MS,
        expiration_ms: int = EXPIRATION_MS,
    ) -> None:
        self.producers = producers
        self.max_timeout_ms = max_timeout_ms
        self._storage = storage
        self._topics = topics
        self._cursors = cursors
        self._deadlines = deadlines
        self._clock = clock
        self._expiration_ms = expiration_ms
        self._all: dict[Key, Transaction] = {}
        self._producers: dict[int, Transaction] = {}  # by producer id
        self._open: dict[Key, Transaction] = {}
        self._groups: dict[tuple[str, str], dict[Transaction, None]] = {}  # those with offsets of a group to commit
        self._pending = 0
        self._timeouts: dict[Key, Deadline] = {}
        self._changed: dict[Key, None] = {}
        self._look_due_ms = 0
        producers.belongs = self.belongs

    def __len__(self) -> int:
        return len(self._all)

    # -- asked

    def find(self, namespace: str, name: str) -> Transaction | None:
        return self._all.get((namespace, name))

    def all(self, namespace: str) -> list[Transaction]:
        return [self._all[key] for key in sorted(self._all) if key[0] == namespace]

    def last_stable(self, partition: int) -> int:
        """The offset before which no transaction is open; the log's end if none is."""
        return self.producers.last_stable(partition)

    def aborted(self, partition: int, start: int, end: int) -> list[tuple[int, int]]:
        """Producer and first offset of aborted transactions that have anything from start on and before end."""
        return self.producers.aborted(partition, start, end)

    def is_pending(self, namespace: str, group: str, partition: int) -> bool:
        """Whether an open transaction is to commit a cursor there."""
        found = self._groups.get((namespace, group), ())
        return any(partition in transaction.offsets[group] for transaction in found)

    def belongs(self, producer_id: int, epoch: int, partition: int) -> Refusal | None:
        """Why a batch of the producer may not be appended as part of its transaction; None if it may."""
        found = self._producers.get(producer_id)
        if found is None:
            return Refusal.NOT_OPEN
        if found.epoch != epoch:
            return Refusal.STALE_EPOCH
        return None if found.state is State.ONGOING and partition in found.partitions else Refusal.NOT_OPEN

    # -- beginning

    def init(
        self, namespace: str, name: str, timeout_ms: int, current: tuple[int, int] | None = None
    ) -> tuple[int, int]:
        """Take over a name: the producer id and epoch to go on with. What is open under it is aborted.

        `current` is what a producer that goes on has had so far: it is fenced if another took over meanwhile.
        """
        if not 0 < timeout_ms <= self.max_timeout_ms:
            raise ProducerError(
                Refusal.BAD_TIMEOUT, f"a transaction may take 1 to {self.max_timeout_ms} ms, not {timeout_ms}"
            )
        found = self._all.get((namespace, name))
        if found is None:
            self._check_new(name)
            return self._init((namespace, name), self.producers.new_id(), 0, -1, -1, timeout_ms)
        had = None if current is None else current[1]
        if current is not None and current[0] != found.producer_id:
            unheard = current[0] == found.previous_id and _exhausted(current[1])  # that it has a new id
            if not unheard:
                raise _fenced(found)
        if found.state is State.ONGOING:
            if had is not None and had != found.epoch:
                raise _fenced(found)
            self._fence(found)
            had = None
        id, epoch = found.producer_id, found.epoch
        if _exhausted(epoch) and had in (None, epoch):
            return self._init(found.key, self.producers.new_id(), 0, id, -1 if had is None else epoch, timeout_ms)
        if had is None:
            return self._init(found.key, id, epoch + 1, id, -1, timeout_ms)
        if had == epoch:
            return self._init(found.key, id, epoch + 1, id, epoch, timeout_ms)
        if had == found.last_epoch:
            # Asked again: the answer was lost.
            return self._init(found.key, id, epoch, found.previous_id, had, timeout_ms)
        raise _fenced(found)

    def _check_new(self, name: str) -> None:
        if not 1 <= len(name.encode()) <= MAX_NAME_BYTES:
            raise InvalidError(f"a transaction's name takes 1 to {MAX_NAME_BYTES} bytes")
        if len(self._all) >= MAX_TRANSACTIONS:
            raise ProducerError(Refusal.TOO_MANY, f"there are {len(self._all)} transactional ids, as many as may be")

    def _init(self, key: Key, id: int, epoch: int, previous: int, last: int, timeout_ms: int) -> tuple[int, int]:
        self._write(Init(key, id, epoch, previous, last, timeout_ms, self._clock.now_ms()))
        return id, epoch

    # -- going on

    def _get(self, namespace: str, name: str, producer_id: int, epoch: int) -> Transaction:
        found = self._all.get((namespace, name))
        if found is None or found.producer_id != producer_id:
            raise _unknown(name, producer_id)
        if found.epoch != epoch:
            raise _fenced(found)
        return found

    def check(self, namespace: str, name: str, producer_id: int, epoch: int, partitions: Iterable[int]) -> list[int]:
        """Those of the partitions that are no part of the open transaction."""
        found = self._get(namespace, name, producer_id, epoch)
        known = found.partitions if found.state is State.ONGOING else {}
        return [partition for partition in partitions if partition not in known]

    def admit(
        self, namespace: str, name: str, producer_id: int, epoch: int, partitions: Sequence[int], how: Admit
    ) -> None:
        """Before batches are appended: each partition must be part of the transaction, or becomes one."""
        missing = self.check(namespace, name, producer_id, epoch, partitions)
        if not missing:
            return
        if how is Admit.ADD:
            self.add_partitions(namespace, name, producer_id, epoch, missing)
            return
        raise _not_included(name, how)

    def add_partitions(
        self, namespace: str, name: str, producer_id: int, epoch: int, partitions: Iterable[int]
    ) -> None:
        """Begin a transaction, or go on with it, in these partitions too."""
        missing = self.check(namespace, name, producer_id, epoch, dict.fromkeys(partitions))
        if missing:
            self._add(self._all[namespace, name], tuple(missing), ())

    def add_group(self, namespace: str, name: str, producer_id: int, epoch: int, group: str) -> None:
        """Begin a transaction, or go on with it, with cursors of this group to commit at its end."""
        found = self._get(namespace, name, producer_id, epoch)
        self._cursors.check(namespace, group, ())
        if found.state is not State.ONGOING or group not in found.offsets:
            self._add(found, (), (group,))

    def commit_offsets(
        self,
        namespace: str,
        name: str,
        producer_id: int,
        epoch: int,
        group: str,
        commits: Sequence[Commit],
        how: Admit,
    ) -> None:
        """Cursors that the transaction sets when it is committed. InvalidError or LimitError where they cannot be."""
        found = self._get(namespace, name, producer_id, epoch)
        self._cursors.check(namespace, group, commits)
        if self._pending + len(commits) > MAX_PENDING:
            raise LimitError(f"open transactions have {self._pending} cursors to commit; {MAX_PENDING} is the limit")
        if found.state is not State.ONGOING or group not in found.offsets:
            if how is not Admit.ADD:
                raise _not_included(name, how)
            self._add(found, (), (group,))
        if commits:
            self._write(Offsets(found.key, group, self._clock.now_ms(), tuple(commits)))

    def _add(self, found: Transaction, partitions: tuple[int, ...], groups: tuple[str, ...]) -> None:
        begins = found.state is not State.ONGOING
        self._write(Add(found.key, self._clock.now_ms(), partitions, groups))
        if begins:
            self._arm(found)

    # -- ending

    def end(
        self, namespace: str, name: str, producer_id: int, epoch: int, *, commit: bool, bump: bool
    ) -> tuple[int, int]:
        """Commit or abort; the producer id and epoch to go on with.

        With `bump` each end gives the next epoch, and an end that is asked for again is known by the epoch before.
        """
        found = self._all.get((namespace, name))
        if found is None:
            raise _unknown(name, producer_id)
        again = bump and found.state in (State.COMMITTED, State.ABORTED) and _asks_again(found, producer_id, epoch)
        if found.producer_id != producer_id and not again:
            raise _unknown(name, producer_id)
        if found.epoch != epoch and not again:
            raise _fenced(found)
        if found.state is State.ONGOING:
            return self._bump(found, commit) if bump else self._end(found, commit, found.epoch, found.last_epoch)
        done = found.state is (State.COMMITTED if commit else State.ABORTED)
        if done and (again or not bump):
            return found.producer_id, found.epoch
        if bump and not again and not commit:
            return self._bump(found, commit)
        raise ProducerError(Refusal.NOT_OPEN, f"transaction {name} is {found.state.name.lower()}: there is none to end")

    def _bump(self, found: Transaction, commit: bool) -> tuple[int, int]:
        epoch = found.epoch
        following = min(epoch + 1, MAX_EPOCH)
        if _exhausted(epoch):
            return self._end(found, commit, following, epoch, self.producers.new_id())
        return self._end(found, commit, following, epoch)

    def _fence(self, found: Transaction) -> None:
        """Abort, with an epoch that nobody is told."""
        self._end(found, False, min(found.epoch + 1, MAX_EPOCH), -1)

    def _end(
        self, found: Transaction, commit: bool, epoch: int, last_epoch: int, new_id: int | None = None
    ) -> tuple[int, int]:
        now_ms = self._clock.now_ms()
        marker = Marker(commit, self._storage.epoch)
        for partition in sorted(found.partitions):
            self._topics.append_marker(partition, markers.encode(found.producer_id, epoch, marker, now_ms))
        if commit:
            for group, commits in sorted(found.offsets.items()):
                if commits:
                    self._cursors.put(found.namespace, group, list(commits.values()), now_ms)
        previous = found.previous_id
        id = found.producer_id
        if new_id is not None:
            previous, id, epoch = id, new_id, 0
        self._write(End(found.key, commit, id, epoch, previous, last_epoch, now_ms))
        return id, epoch

    def end_in(self, partition: int, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int) -> None:
        """End what a producer has open in one partition, whatever becomes of the rest: for who mends what hangs."""
        if producer_id < 0 or epoch < 0:
            raise ProducerError(Refusal.STALE_EPOCH, f"producer {producer_id} with epoch {epoch} is impossible")
        producer = self.producers.find(partition, producer_id)
        if producer is not None and epoch < producer.epoch:
            raise ProducerError(Refusal.STALE_EPOCH, f"epoch {epoch} is before {producer.epoch}, the last one seen")
        if producer is not None and coordinator_epoch < producer.coordinator_epoch:
            raise ProducerError(
                Refusal.STALE_COORDINATOR, f"coordinator epoch {coordinator_epoch} is before the last one seen"
            )
        marker = Marker(commit, coordinator_epoch)
        self._topics.append_marker(partition, markers.encode(producer_id, epoch, marker, self._clock.now_ms()))

    # -- time

    def begin(self) -> None:
        """After a start: watch the time of those that are open."""
        for found in self._open.values():
            self._arm(found)

    def _arm(self, found: Transaction) -> None:
        left_ms = found.start_ms + found.timeout_ms - self._clock.now_ms()
        call = partial(self._time_is_up, found)
        self._timeouts[found.key] = self._deadlines.after(max(0, min(left_ms, found.timeout_ms)), call)

    def _time_is_up(self, found: Transaction) -> None:
        del self._timeouts[found.key]
        log.info("Transaction %s was open for %d ms, and is aborted.", found.name, found.timeout_ms)
        self._fence(found)

    def poll(self, now_ms: int) -> None:
        """Forget names that were not used for long."""
        if now_ms < self._look_due_ms:
            return
        self._look_due_ms = now_ms + min(_LOOK_MS, self._expiration_ms // 10)
        for found in list(self._all.values()):
            if found.state is not State.ONGOING and found.update_ms + self._expiration_ms <= now_ms:
                self._write(Remove(found.key))

    # -- live and replay

    def _write(self, entry: Init | Add | Offsets | End | Remove) -> None:
        self._storage.add(EntryKind.TRANSACTION, 0, encode(entry))
        self.apply(entry)

    def apply(self, entry: Init | Add | Offsets | End | Remove) -> None:
        key = entry.key
        found = self._all.get(key)
        if found is None:
            if not isinstance(entry, Init):
                raise FormatError(f"a transaction entry is about {key[1]}, which is not there")
            found = self._all[key] = Transaction(*key)
        match entry:
            case Init():
                found.go(Step.INIT)
                found.timeout_ms, found.start_ms = entry.timeout_ms, -1
                self._become(found, entry)
            case Add():
                if found.state is not State.ONGOING:
                    found.start_ms = entry.time_ms
                    self._open[key] = found
                found.go(Step.ADD)
                found.partitions.update(dict.fromkeys(entry.partitions))
                for group in entry.groups:
                    self._offsets(found, group)
                found.update_ms = entry.time_ms
            case Offsets():
                if found.state is not State.ONGOING:
                    raise FormatError(f"transaction {key[1]} is not open, and cannot have offsets")
                offsets = self._offsets(found, entry.group)
                self._pending -= len(offsets)
                offsets.update((one.partition, one) for one in entry.commits)
                self._pending += len(offsets)
                found.update_ms = entry.time_ms
            case End():
                found.go(Step.COMMIT if entry.committed else Step.ABORT)
                self._close(found)
                if found.start_ms < 0:
                    found.start_ms = entry.time_ms
                self._become(found, entry)
            case Remove():
                self._drop(found)
        self._changed[key] = None

    def _become(self, found: Transaction, entry: Init | End) -> None:
        if self._producers.get(found.producer_id) is found:
            del self._producers[found.producer_id]
        found.producer_id, found.epoch = entry.producer_id, entry.epoch
        found.previous_id, found.last_epoch = entry.previous_id, entry.last_epoch
        found.update_ms = entry.time_ms
        self._producers[found.producer_id] = found

    def _offsets(self, found: Transaction, group: str) -> dict[int, Commit]:
        self._groups.setdefault((found.namespace, group), {})[found] = None
        return found.offsets.setdefault(group, {})

    def _close(self, found: Transaction) -> None:
        """Nothing of it is open any more."""
        self._open.pop(found.key, None)
        for group, commits in found.offsets.items():
            self._pending -= len(commits)
            others = self._groups[found.namespace, group]
            del others[found]
            if not others:
                del self._groups[found.namespace, group]
        found.offsets.clear()
        found.partitions.clear()
        deadline = self._timeouts.pop(found.key, None)
        if deadline is not None:
            deadline.cancel()

    def _drop(self, found: Transaction) -> None:
        self._close(found)
        del self._all[found.key]
        self._producers.pop(found.producer_id, None)

    def drop_partition(self, partition: int) -> None:
        """The partition is gone, as an entry of the catalog says: transactions go on without it."""
        for found in self._open.values():
            holders = [commits for commits in found.offsets.values() if partition in commits]
            if partition in found.partitions or holders:
                found.partitions.pop(partition, None)
                for commits in holders:
                    del commits[partition]
                self._pending -= len(holders)
                self._changed[found.key] = None

    def drop_namespace(self, namespace: str) -> None:
        """The namespace is gone, as an entry of the catalog says."""
        for key in [key for key in self._all if key[0] == namespace]:
            self._drop(self._all[key])
            self._changed[key] = None

    # -- checkpoint

    def take_changes(self) -> Changes:
        changes = Changes()
        for key in sorted(self._changed):
            found = self._all.get(key)
            if found is None:
                changes.removals.append(key)
            else:
                changes.rows.append(found.row())
        self._changed.clear()
        return changes

    def load(self, rows: Iterable[Row]) -> None:
        for row in rows:
            found = _of_row(row)
            self._all[found.key] = found
            self._producers[found.producer_id] = found
            if found.state is State.ONGOING:
                self._open[found.key] = found
            for group, commits in found.offsets.items():
                self._groups.setdefault((found.namespace, group), {})[found] = None
                self._pending += len(commits)

    # -- looking, for tests and people

    def snapshot(self) -> dict[str, Any]:
        """Everything that survives, for comparing."""
        return {
            "rows": [self._all[key].row() for key in sorted(self._all)],
            "producers": {id: found.name for id, found in sorted(self._producers.items())},
            "open": sorted(self._open),
            "groups": {key: sorted(found.key for found in all) for key, all in sorted(self._groups.items())},
            "pending": self._pending,
        }


def _of_row(row: Row) -> Transaction:
    namespace, name, *numbers, partitions, offsets = row
    whole = [value for value in numbers if isinstance(value, int)]
    if len(whole) != len(numbers):
        raise FormatError(f"the row of transaction {name!r} holds no numbers where numbers must be")
    id, epoch, previous_id, last_epoch, timeout_ms, state, start_ms, update_ms = whole
    found = Transaction(
        str(namespace),
        str(name),
        id,
        epoch,
        previous_id,
        last_epoch,
        timeout_ms,
        State(state),
        start_ms,
        update_ms,
        dict.fromkeys(json.loads(str(partitions))),
    )
    for group, commits in json.loads(str(offsets)).items():
        found.offsets[group] = {commit[0]: Commit(*commit) for commit in commits}
    return found


def _asks_again(found: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether an end is asked for whose answer was lost. Who was fenced by an abort has no last epoch to show."""
    if found.last_epoch != epoch:
        return False
    if producer_id == found.producer_id:
        return found.epoch == epoch + 1
    return producer_id == found.previous_id and epoch == MAX_EPOCH - 1 and found.epoch == 0


def _fenced(found: Transaction) -> ProducerError:
    return ProducerError(Refusal.FENCED, f"another producer has taken over transaction {found.name}")


def _unknown(name: str, producer_id: int) -> ProducerError:
    return ProducerError(Refusal.UNKNOWN_PRODUCER, f"producer {producer_id} is not the one of transaction {name}")


def _not_included(name: str, how: Admit) -> ProducerError:
    refusal = Refusal.NOT_INCLUDED if how is Admit.REFUSE_ABORTABLE else Refusal.NOT_OPEN
    return ProducerError(refusal, f"this is no part of transaction {name}")
