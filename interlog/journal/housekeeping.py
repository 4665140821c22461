"""What goes on behind: settling closed journal files, rewriting, compacting, checkpoints, letting go of files.

One job at a time, in the shape plan (owner's thread) → execute (worker) → install (owner's thread). The order that
nothing may break: segments are synced before a checkpoint names them; the journal is synced up to a checkpoint's mark
before the checkpoint is saved; `meta.previous.db` is a copy of that checkpoint before a journal file or a replaced
segment goes.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from interlog.base.clock import Clock
from interlog.base.errors import InterlogError
from interlog.base.work import Worker
from interlog.journal.checkpoint import PREVIOUS, Checkpoint, Mark
from interlog.journal.compaction import (
    Compacted,
    CompactionPlan,
    CompactionSettings,
    execute_compaction,
    install_compaction,
    plan_compaction,
)
from interlog.journal.journal import Outcome
from interlog.journal.leisure import Leisure
from interlog.journal.partition import Partition
from interlog.journal.section import Changes, LazySection, Section, Table
from interlog.journal.settle import (
    ALL_BATCHES,
    Installed,
    Made,
    RewritePlan,
    SegmentLimits,
    SettlePlan,
    Wanted,
    execute_rewrite,
    execute_settle,
    install_rewrite,
    install_settle,
    plan_rewrite,
    plan_settle,
)
from interlog.journal.storage import Storage
from interlog.journal.store import Garbage

log = logging.getLogger("interlog.journal")

T = TypeVar("T")
_RETRY_MS = 1_000  # after a job that failed
_SETTLE_BATCHES = 20_000  # at once: then a checkpoint has its turn, for what is to be replayed grows meanwhile
_TELL_MS = 60_000  # after which a job that fails again and again is told of again


class Policy(Protocol):
    """What the core knows of partitions and the journal does not."""

    def wanted(self, partition: int, first: int, last: int) -> Wanted: ...

    def alive(self, partition: int, first: int, last: int) -> int:
        """How many messages from first to last are not acknowledged."""
        ...

    def queue_partitions(self) -> Iterable[Partition]: ...

    def segment_limits(self, partition: int) -> SegmentLimits: ...

    def compacted(self) -> Iterable[tuple[Partition, CompactionSettings]]: ...


@dataclass(frozen=True, slots=True)
class HousekeepingSettings:
    checkpoint_ms: int
    checkpoint_bytes: int
    checkpoint_entries: int
    segment_bytes: int
    look_ms: int


class Housekeeper:
    """Begun by `poll`, at most one job at a time. `poll` must be called between ticks: nothing may be uncommitted."""

    def __init__(
        self,
        storage: Storage,
        checkpoint: Checkpoint,
        sections: Sequence[Section],
        policy: Policy,
        clock: Clock,
        worker: Worker,
        settings: HousekeepingSettings,
        moved: Callable[[], int] = lambda: 0,
    ) -> None:
        """`moved`: how many bytes the broker has moved so far, which tells a busy moment from a quiet one."""
        self.busy = False
        self._storage = storage
        self._checkpoint = checkpoint
        self._sections = sections
        self._policy = policy
        self._clock = clock
        self._worker = worker
        self._settings = settings
        self._leisure = Leisure(moved, clock.now_ms())
        self._unsaved: list[tuple[Table, Changes]] = []  # taken from the sections, not yet saved
        self._settled: list[int] = []  # journal files that are needed no more once a checkpoint is saved
        self._garbage: Garbage = []
        self._dropped: list[int] = []
        self._checkpoint_due_ms = clock.now_ms() + settings.checkpoint_ms
        self._checkpoint_begun_ms = 0
        self._settle_batches = _SETTLE_BATCHES
        self._look_due_ms = clock.now_ms() + settings.look_ms
        self._retry_ms = 0
        self._told, self._tell_ms = "", 0  # the last trouble, and when it may be told of again
        self._compactions: list[tuple[Partition, CompactionSettings]] = []
        self._rewrite_due = False

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    def poll(self) -> None:
        """Begin what is due, if nothing is under way."""
        now_ms = self._clock.now_ms()
        self._leisure.look(now_ms)
        if self.busy or now_ms < self._retry_ms:
            return
        # First what lets go of files: on a full disk nothing else can succeed before.
        if self._checkpoint_is_due(now_ms):
            self._begin_checkpoint()
            return
        if self._begin_settle():
            return
        if now_ms >= self._look_due_ms:
            self._look_due_ms = now_ms + self._settings.look_ms
            self._rewrite_due = True
            self._compactions = list(self._policy.compacted())
            if any(self._wants_settling(*one) for one in self._compactions):
                self._storage.journal.roll_soon()
        if self._rewrite_due:
            self._rewrite_due = False
            if self._begin_rewrite():
                return
        while self._compactions:
            if self._begin_compaction(*self._compactions.pop()):
                return

    def _run(self, job: Callable[[], T], done: Callable[[T], None], what: str) -> None:
        """One job; `done` with its result, or a warning and another try later."""
        self.busy = True

        def ended(result: T | None, error: BaseException | None) -> None:
            self.busy = False
            if error is None:
                done(result)  # type: ignore[arg-type]
            else:
                self._failed(what, error)

        self._worker.submit(job, ended)

    # -- settling, rewriting, compacting

    def _wants_settling(self, partition: Partition, settings: CompactionSettings) -> bool:
        """Only segments are compacted: what is written now must be settled before, when its time has come."""
        journal = self._storage.journal
        written = sum(window.bytes for window in partition.windows if window.file == journal.current)
        return written >= settings.segment_bytes or (written > 0 and journal.age_ms >= settings.segment_ms)

    def _begin_settle(self) -> bool:
        journal = self._storage.journal
        partitions = self._storage.partitions.values()
        left = [info for info in journal.closed_files() if info.number not in self._settled]
        if left and self._leisure.may_wait(left[0], len(left), journal.free_bytes, partitions, self._policy.wanted):
            return False
        for info in left:
            plan = plan_settle(
                partitions,
                info.number,
                journal.file(info.number),
                self._policy.wanted,
                self._policy.segment_limits,
                most_batches=self._settle_batches,
            )
            if not plan.jobs:
                self._settled.append(info.number)
                continue
            self._settle(plan)
            return True
        return False

    def _settle(self, plan: SettlePlan) -> None:
        def done(made: list[Made]) -> None:
            done = self._installed(install_settle(plan, made))
            # What fails again and again must not use up the share of what would not.
            self._settle_batches = _SETTLE_BATCHES if done else ALL_BATCHES
            if done and plan.whole:
                self._settled.append(plan.file)

        self._run(lambda: execute_settle(self._storage.store, plan), done, f"Settling journal file {plan.file}")

    def _begin_rewrite(self) -> bool:
        plan = plan_rewrite(
            self._policy.queue_partitions(),
            self._policy.wanted,
            self._policy.alive,
            segment_bytes=self._settings.segment_bytes,
        )
        if plan is None:
            return False
        self._rewrite(plan)
        return True

    def _rewrite(self, plan: RewritePlan) -> None:
        def done(made: list[Made]) -> None:
            self._installed(install_rewrite(plan, made))

        self._run(lambda: execute_rewrite(self._storage.store, plan), done, "Rewriting segments")

    def _begin_compaction(self, partition: Partition, settings: CompactionSettings) -> bool:
        plan = None if partition.dropped else plan_compaction(partition, self._clock.now_ms(), settings)
        if plan is None:
            return False
        self._compact(plan)
        return True

    def _compact(self, plan: CompactionPlan) -> None:
        def done(made: Compacted) -> None:
            self._installed(install_compaction(plan, made))

        self._run(
            lambda: execute_compaction(self._storage.store, plan), done, f"Compacting partition {plan.partition.id}"
        )

    def _installed(self, installed: Installed) -> bool:
        self._garbage += installed.garbage
        for error in installed.errors:
            self._failed("Background work on a partition", error)
        return installed.done

    def _failed(self, what: str, error: BaseException) -> None:
        """It is tried again soon; the same trouble is told of now and then."""
        now_ms = self._clock.now_ms()
        self._retry_ms = now_ms + _RETRY_MS
        told = f"{what} failed and will be tried again: {error}"
        if told != self._told or now_ms >= self._tell_ms:
            self._told, self._tell_ms = told, now_ms + _TELL_MS
            log.warning("%s", told)

    # -- checkpoints

    def _checkpoint_is_due(self, now_ms: int) -> bool:
        storage = self._storage
        mark = self._checkpoint.mark
        if storage.journal.tail() == mark.sequence:
            # Nothing has come in since. That files were settled is to be saved all the same, so that they may go.
            return any(number < mark.file for number in self._settled)
        return (
            now_ms >= self._checkpoint_due_ms
            or storage.bytes_since_checkpoint >= self._settings.checkpoint_bytes
            or storage.entries_since_checkpoint >= self._settings.checkpoint_entries
            or bool(self._settled)
            or (not storage.journal.accepts_messages and now_ms >= self._checkpoint_begun_ms + _RETRY_MS)
            or any(getattr(section, "wants_checkpoint", False) for section in self._sections)
        )

    def _take(self, clean: bool) -> Mark:
        """Everything that changed, and where in the journal it holds."""
        storage = self._storage
        for partition in storage.partitions.values():
            self._garbage += partition.take_garbage()
        self._garbage += storage.garbage
        self._dropped += storage.dropped
        storage.garbage, storage.dropped = [], []
        # A lazy section hands over again what was not saved; what it gave before is not needed then.
        self._unsaved = [one for one in self._unsaved if not one[0].lazy]
        self._unsaved += [(section.table, section.take_changes()) for section in self._sections]
        end = storage.journal.end()
        storage.bytes_since_checkpoint = storage.entries_since_checkpoint = 0
        return Mark(end.sequence - 1, end.file, end.position, end.epoch, self._clock.now_ms(), int(clean))

    def _begin_checkpoint(self) -> None:
        self._checkpoint_begun_ms = self._clock.now_ms()
        self._checkpoint_due_ms = self._checkpoint_begun_ms + self._settings.checkpoint_ms
        mark = self._take(clean=False)
        self.busy = True

        def durable(outcome: Outcome) -> None:
            self.busy = False
            if outcome is Outcome.DURABLE:
                self._save(mark)

        self._storage.journal.when_synced(mark.sequence, durable)

    def _save(self, mark: Mark) -> None:
        unsaved = list(self._unsaved)

        def done(_: None) -> None:
            self._saved(len(unsaved))
            self._begin_release()

        self._run(lambda: self._checkpoint.save(unsaved, mark), done, "Saving a checkpoint")

    def _saved(self, count: int) -> None:
        del self._unsaved[:count]
        for section in self._sections:
            if section.table.lazy:
                lazy: LazySection = section  # type: ignore[assignment]
                lazy.saved()

    # -- letting go

    def _begin_release(self) -> None:
        """Once the older copy is as new as the checkpoint, what only an older one needed goes."""
        # The mark's own file stays: the next start goes on from there.
        settled = [number for number in self._settled if number < self._checkpoint.mark.file]
        garbage, dropped = self._garbage, self._dropped
        if not settled and not garbage and not dropped:
            return
        self._garbage, self._dropped = [], []
        store = self._storage.store
        files, folder = self._storage.files, self._storage.folder

        def job() -> None:
            self._checkpoint.copy(files, folder / PREVIOUS)
            for name in garbage:
                store.delete(name)
            for partition in dropped:
                store.delete_partition(partition)

        def ended(_: None, error: BaseException | None) -> None:
            self.busy = False
            if error is not None:
                # The copy or a removal failed: everything is tried again after the next checkpoint.
                self._garbage += garbage
                self._dropped += dropped
                self._failed("Letting go of old files", error)
                return
            for number in settled:
                self._settled.remove(number)
                self._storage.journal.release(number)

        self.busy = True
        self._worker.submit(job, ended)

    # -- the end

    def close(self) -> None:
        """The last checkpoint, on the caller's thread, after the journal was closed: all of it is durable."""
        try:
            mark = self._take(clean=True)
            self._checkpoint.save(self._unsaved, mark)
            self._unsaved = []
        except (OSError, sqlite3.Error, InterlogError) as error:
            # Nothing is lost: the next start replays what this checkpoint would have held.
            log.warning("The last checkpoint could not be saved: %s", error)
        finally:
            self._checkpoint.close()
