"""The manifest and the store, held against each other: files that no row names, and rows made again from files.

A crash between writing segments and saving the checkpoint leaves files that nothing names: `collect_orphans` finds
them, after the checkpoint is loaded, and `remove_orphans` removes them. When the checkpoint itself is lost,
`rebuild_manifest` reads all segments.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_changes

from interlog.base.errors import DamageError
from interlog.journal.checkpoint import PREVIOUS, Checkpoint
from interlog.journal.partition import Partition
from interlog.journal.sections import SegmentsSection, segment_of
from interlog.journal.segment import Segment, make_indexes
from interlog.journal.slices import ADVICE
from interlog.journal.storage import Storage
from interlog.journal.store import Garbage, SegmentName, SegmentStore

log = logging.getLogger("interlog.journal")


@dataclass(slots=True)
class Orphans:
    """To be deleted: nothing names them."""

    segments: Garbage = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)  # folders of partitions that are no more


def collect_orphans(store: SegmentStore, partitions: Mapping[int, Partition]) -> Orphans:
    """After the checkpoint was loaded and the journal replayed. Their names are not given to new segments."""
    orphans = Orphans()
    for id in store.partitions():
        partition = partitions.get(id)
        if partition is None:
            orphans.partitions.append(id)
            continue
        known = {segment.name for segment in partition.segments}
        for name in store.segments(id):
            if name not in known:
                partition.use_generation(name.generation)
                orphans.segments.append(name)
    return orphans


def remove_orphans(storage: Storage, checkpoint: Checkpoint) -> None:
    """At a start that was not clean, once the journal is replayed: remove what neither checkpoint needs."""
    store = storage.store
    store.tidy()
    orphans = collect_orphans(store, storage.partitions)
    # What replay let go of the checkpoint still names: it goes in its turn, after the next checkpoint.
    named = {segment_of(row).name for row in checkpoint.rows(SegmentsSection.table)} if orphans.segments else set()
    segments = [name for name in orphans.segments if name not in named]
    partitions = [partition for partition in orphans.partitions if partition not in storage.dropped]
    if not segments and not partitions:
        return
    try:
        # The older copy may name them: a start from it must not miss what was put in their place.
        checkpoint.copy(storage.files, storage.folder / PREVIOUS)
        for name in segments:
            store.delete(name)
        for partition in partitions:
            store.delete_partition(partition)
    except OSError as error:
        log.warning("Segments that nothing names stay until the next start: %s", error)


@dataclass(slots=True)
class Rebuilt:
    """What the segments of one partition tell."""

    segments: list[Segment] = field(default_factory=list)  # in order, none over another
    epochs: list[tuple[int, int]] = field(default_factory=list)
    superseded: Garbage = field(default_factory=list)  # older generations of what is in segments
    damage: list[DamageError] = field(default_factory=list)


def rebuild_manifest(store: SegmentStore) -> dict[int, Rebuilt]:
    """Read all segments, checking all CRCs. Where two hold the same offsets, the younger generation counts.

    A batch that is damaged is told of, stays where it is, and is never served. What was removed from a segment by
    compaction or because it was acknowledged may come back where its older generation was still there.
    """
    return {id: _rebuild(store, store.segments(id)) for id in store.partitions()}


def _rebuild(store: SegmentStore, names: list[SegmentName]) -> Rebuilt:
    rebuilt = Rebuilt()
    epochs: list[tuple[int, int]] = []
    for name in sorted(names, key=lambda name: (-name.generation, name.base)):
        file = store.open(name)
        own: list[tuple[int, int]] = []
        _, _, segment, damaged = make_indexes(file, name.base, epochs=own)
        if not segment.bytes or any(one.base <= segment.last and name.base <= one.last for one in rebuilt.segments):
            rebuilt.superseded.append(name)
            continue
        rebuilt.segments.append(with_changes(segment, name=name))
        rebuilt.damage += [DamageError(str(file.path), at, "no sound batch is here.", ADVICE) for at in damaged]
        epochs += own
    rebuilt.segments.sort(key=lambda segment: segment.base)
    for epoch, start in sorted(epochs, key=lambda entry: entry[1]):
        if not rebuilt.epochs or rebuilt.epochs[-1][0] < epoch:
            rebuilt.epochs.append((epoch, start))
    return rebuilt
