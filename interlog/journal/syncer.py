"""Syncing in the background: which files have unsynced bytes, and one sync of all of them in the worker.

In come the files that were written to; out goes, on the owner's thread, up to which envelope the journal now lasts.
One sync is in flight at a time; group commit is what follows from that.
"""

import functools
from collections.abc import Callable
from pathlib import Path

from interlog.base.work import Worker
from interlog.journal.files import File, Files
from interlog.journal.sync_mark import MarkWriter, read_mark


class Syncer:
    def __init__(
        self, files: Files, folder: Path, folder_id: bytes, worker: Worker, *, epoch: int, durable: int
    ) -> None:
        self.busy = False
        self._files = files
        self._folder = folder
        self._worker = worker
        self._epoch = epoch
        self._dirty: list[File] = []  # files with unsynced bytes, in order; the last may be the current one
        self._in_flight: list[File] = []
        self._folder_dirty = True  # a file that was found may have got its name just before a crash
        clean = read_mark(files, folder, folder_id).clean
        self._mark = MarkWriter(files, folder, folder_id)
        if clean:
            # From here on it is no longer true that nothing follows.
            self._mark.write(durable, epoch - 1)
            self._mark.sync()

    def touched(self, file: File) -> None:
        """Bytes were written to the current file."""
        dirty = self._dirty
        if not dirty or dirty[-1] is not file:
            dirty.append(file)

    def begun(self, file: File) -> None:
        """A file was begun, or found: neither it nor its name can be relied on yet."""
        self._dirty.append(file)
        self._folder_dirty = True

    def start(self, sequence: int, done: Callable[[int, BaseException | None], None]) -> None:
        """Sync everything written so far, which is up to `sequence`."""
        self.busy = True
        self._in_flight, self._dirty = self._dirty, []
        folder_dirty, self._folder_dirty = self._folder_dirty, False
        job = functools.partial(self._sync, self._in_flight, folder_dirty, sequence)
        self._worker.submit(job, functools.partial(self._done, sequence, done))

    def _done(
        self, sequence: int, done: Callable[[int, BaseException | None], None], _: None, error: BaseException | None
    ) -> None:
        self.busy = False
        self._in_flight = []
        done(sequence, error)

    def finish(self, sequence: int, *, clean: bool) -> None:
        """Sync everything on this thread, also what a sync in flight is about; OSError if that fails."""
        self._sync([*self._in_flight, *self._dirty], True, sequence, clean=clean)
        self._dirty = []

    def close(self) -> None:
        self._mark.close()

    def _sync(self, dirty: list[File], folder_dirty: bool, sequence: int, *, clean: bool = False) -> None:
        # In order: nothing in a later file is said to last before all of the earlier ones does.
        for file in dirty:
            file.sync()
        if folder_dirty:
            self._files.sync_folder(self._folder)
        try:
            self._mark.write(sequence, self._epoch, clean=clean)
        except OSError:
            pass  # the mark only helps to find damage; what was synced is synced
