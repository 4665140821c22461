"""Any bytes at all, once more: entries of envelopes, indexes and rows of the checkpoint.

What a decoder takes, it must be able to write again, and the bytes then mean the same.
"""

import json
import random
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import crc32c
import pytest

from interlog.base.errors import DamageError, FolderError, FormatError
from interlog.core import cursors, share_entries, timers
from interlog.core.catalog import Catalog
from interlog.core.cursors import Commit, Cursors
from interlog.core.leases import Delta, decode_counts, encode_counts
from interlog.core.queue_state import QueuesSection, QueueState
from interlog.core.ranges import RangeSet
from interlog.core.share_entries import Kept, Range
from interlog.core.share_partitions import SharePartitions
from interlog.core.timers import TimerKind, Timers
from interlog.journal.checkpoint import NAME, Checkpoint, Mark, read_checkpoint
from interlog.journal.index import OffsetIndex, TimeIndex
from interlog.journal.section import Changes, Table
from tests.unit.test_fuzz_decoders import mutate, run

LOG_BYTES = 100_000


class Entries:
    """A storage that keeps the payloads of a tick."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def add(self, kind: int, target: int, payload: bytes) -> None:
        self.payloads.append(payload)

    def create_partition(self, partition: int) -> None: ...

    def drop_partition(self, partition: int) -> None: ...


def hurt(seed: int, sound: list[bytes], count: int) -> Iterator[bytes]:
    """Sound ones, hurt ones, and noise."""
    rng = random.Random(seed)
    yield from sound
    for number in range(count):
        yield mutate(rng, sound) if number % 5 else rng.randbytes(rng.randrange(60))


# -- leases


def sound_leases() -> list[bytes]:
    made = []
    for ranges, returned, lent in (
        ([(0, 0)], [], -1),
        ([(3, 9), (11, 11), (20, 400)], [(12, 1), (13, 70_000)], 401),
        ([], [(5, 2)], 6),
    ):
        delta = Delta()
        delta.added_count, delta.added_bytes = 3, 300
        delta.acked_count, delta.acked_bytes = len(ranges), 50 * len(ranges)
        delta.ranges, delta.returned, delta.lent = ranges, returned, lent
        made.append(delta.encode())
    return made


def read_lease(data: bytes) -> None:
    delta = Delta.decode(data)
    again = Delta.decode(delta.encode())
    for field in Delta.__slots__:
        assert getattr(again, field) == getattr(delta, field)
    state = QueueState(1)
    state.apply_batch(0, 200)
    state.depth, state.bytes = 1 << 70, 1 << 70
    state.apply(delta)
    loaded = QueueState(1)
    loaded.load(state.row())
    assert loaded.snapshot() == state.snapshot()


def test_lease_entries() -> None:
    taken = run(read_lease, hurt(21, sound_leases(), 1500))
    assert 50 < taken < 1400


# -- cursors


def read_cursor(data: bytes) -> None:
    operation, namespace, group, time_ms, commits, removed = cursors.decode(data)
    if operation is cursors.CursorOperation.COMMIT:
        assert cursors.encode_commit(namespace, group, commits, time_ms) == data
    else:
        assert cursors.encode_removal(namespace, group, removed) == data
    Cursors(Entries()).apply(data)


def test_cursor_entries() -> None:
    sound = [
        cursors.encode_commit("/", "group", [Commit(1, 5), Commit(7, 1 << 40, 3, "metadata é")], 1_700_000_000_000),
        cursors.encode_commit("tenant", "g", [], 0),
        cursors.encode_removal("/", "group", [1, 2, 3]),
        cursors.encode_removal("/", "group", []),
    ]
    taken = run(read_cursor, hurt(22, sound, 1500))
    assert 50 < taken < 1400


# -- share groups


def read_share(data: bytes) -> None:
    entry = share_entries.decode(data)
    assert share_entries.encode(entry) == data
    shares = SharePartitions(Entries())
    shares.apply(share_entries.encode(share_entries.Begin(entry.namespace, entry.group, 7, 3)))
    shares.apply(data)
    list(shares.take_changes().rows)


def test_share_entries() -> None:
    ranges = (Range(5, 9, Kept.DONE, 0), Range(12, 12, Kept.AVAILABLE, 4))
    sound = [
        share_entries.encode(share_entries.Begin("/", "group é", 7, 1 << 40)),
        share_entries.encode(share_entries.Mark("/", "group", 7, 3, ranges)),
        share_entries.encode(share_entries.Mark("/", "group", 7, 3, ())),
        share_entries.encode(share_entries.Remove("tenant", "g", (1, 7))),
        share_entries.encode(share_entries.Remove("tenant", "g", ())),
    ]
    taken = run(read_share, hurt(24, sound, 1500))
    assert 50 < taken < 1400


# -- timers


def read_timer(data: bytes) -> None:
    mark, packed = timers.decode(data)
    listed = list(timers.timers_in(data))
    assert len(listed) == len(packed)
    replayed = Timers()
    replayed.apply(data)
    assert replayed.watermark == mark
    waiting = [timer for timer in listed if (timer.due_ms, timer.id) > mark]
    due = replayed.due(timers.MAX_DUE_MS, len(listed) + 1)
    assert sorted(due) == sorted(waiting) or not waiting


def test_timer_entries() -> None:
    sound = []
    for count in range(4):
        entries, made = Entries(), Timers()
        for number in range(count):
            made.add(TimerKind.EXPIRE if number % 2 else TimerKind.DELIVER, 1000 * (4 - number), 3, number)
        made.due(1_500, 1)
        made.flush(entries)
        sound += entries.payloads
    taken = run(read_timer, hurt(23, sound, 1500))
    assert 50 < taken < 1400


# -- the catalog


def sound_catalog() -> list[bytes]:
    entries = Entries()
    catalog = Catalog(entries)
    catalog.create_namespace("tenant", {"most": 3})
    catalog.create_topic("/", "topic", 2, {"retention_ms": 1})
    catalog.grow_topic("/", "topic", 4)
    catalog.create_queue("tenant", "queue", {"a": [1, None, "é"]})
    catalog.put("user", "", "guest", {"tags": "x"})
    catalog.alter("/", "topic", {})
    catalog.discard("user", "", "guest")
    catalog.remove("tenant", "queue")
    catalog.remove_namespace("tenant")
    return entries.payloads


def read_catalog(data: bytes) -> None:
    """After some sound entries, so that it finds what it names."""
    catalog = Catalog(Entries())
    for payload in sound_catalog()[:5]:
        catalog.apply(payload)
    catalog.take_changes()
    before = catalog.generation
    try:
        catalog.apply(data)
    except FormatError:
        assert catalog.generation == before  # nothing was half done
        raise
    changes = catalog.take_changes()
    for row in changes.rows:
        json.loads(str(row[-1]))
    Catalog(Entries()).load(changes.rows)


def test_catalog_entries() -> None:
    taken = run(read_catalog, hurt(24, sound_catalog(), 2500))
    assert 30 < taken < 2000


def test_catalog_entries_of_other_shapes() -> None:
    rng = random.Random(25)
    values: list[object] = [
        None,
        True,
        -1,
        0,
        7,
        1 << 70,
        1.5,
        "",
        "/",
        "tenant",
        "x" * 300,
        "\ud800",
        [],
        [1, 1],
        [9, 8],
        {},
        {"a": {}},
    ]

    def inputs() -> Iterator[bytes]:
        for _ in range(1500):
            fields = json.loads(rng.choice(sound_catalog()))
            for _ in range(rng.randint(1, 2)):
                fields[rng.choice(sorted(fields))] = rng.choice(values)
            yield json.dumps(fields).encode()
        yield b"[" * 100_000
        yield b'{"op":' * 50_000
        yield b'{"op": NaN}'

    taken = run(read_catalog, inputs())
    assert 20 < taken < 1400


# -- indexes, counts and ranges


def reseal_index(data: bytes) -> bytes:
    size = len(OffsetIndex(0).pack())
    if len(data) < size:
        return data
    made = bytearray(data)
    struct.pack_into(">I", made, size - 4, crc32c.crc32c(made[size:], crc32c.crc32c(made[: size - 4])))
    return bytes(made)


def sound_indexes() -> tuple[list[bytes], list[bytes]]:
    offsets, times = OffsetIndex(LOG_BYTES), TimeIndex()
    for number in range(5):
        offsets.offsets.append(number * 10)
        offsets.positions.append(number * 5000)
        offsets.crcs.append(number)
        times.times.append(1000 + number // 2)
        times.offsets.append(number * 10)
    return [offsets.pack()], [times.pack(LOG_BYTES)]


@pytest.mark.parametrize("resealed", [False, True])
def test_indexes(resealed: bool) -> None:
    offsets, times = sound_indexes()

    def read_offsets(data: bytes) -> None:
        assert OffsetIndex.parse(data, LOG_BYTES).pack() == data

    def read_times(data: bytes) -> None:
        assert TimeIndex.parse(data, LOG_BYTES).pack(LOG_BYTES) == data

    for number, (read, sound) in enumerate(((read_offsets, offsets), (read_times, times))):
        inputs: Iterable[bytes] = hurt(26 + number, sound, 1000)
        taken = run(read, map(reseal_index, inputs) if resealed else iter(inputs))
        assert (10 < taken < 900) if resealed else taken < 200


def test_counts_and_ranges_of_a_row() -> None:
    ranges = RangeSet()
    for first in (0, 5, 90, 1000):
        ranges.add(first, first + 2)

    def read_ranges(data: bytes) -> None:
        assert RangeSet.load(data).export() == data

    def read_counts(data: bytes) -> None:
        assert encode_counts(decode_counts(data)) == data

    assert run(read_ranges, hurt(28, [ranges.export(), RangeSet().export()], 1000)) > 50
    assert run(read_counts, hurt(29, [encode_counts([(1, 2), (9, 70_000)]), encode_counts([])], 1000)) > 50


# -- the checkpoint

TABLE = Table("things", (("id", "INTEGER"), ("name", "TEXT"), ("data", "BLOB"), ("more", "INTEGER")))
FOLDER = "ab" * 16


def make_checkpoint(path: Path) -> list[tuple[int, str | None, bytes, int]]:
    rows = [(n, None if n % 5 == 4 else f"thing é {n}", b"\x00\xff" * n, n << 40) for n in range(1, 60)]
    checkpoint = Checkpoint.create(path, (TABLE, QueuesSection.table), FOLDER)
    state = QueueState(3)
    state.apply_batch(0, 99)
    states = Changes(rows=[state.row()])
    checkpoint.save([(TABLE, Changes(rows=list(rows))), (QueuesSection.table, states)], Mark(7, 1, 64, 1, 5, 1))
    checkpoint.close()
    return rows


def test_checkpoints_with_bits_that_flipped(tmp_path: Path) -> None:
    """Either found, with the file's name in the sentence, or without effect on what is read."""
    rng = random.Random(30)
    path = tmp_path / NAME
    rows = make_checkpoint(path)
    sound = path.read_bytes()
    for suffix in ("-wal", "-shm"):
        path.with_name(NAME + suffix).unlink(missing_ok=True)
    found = 0
    for number in range(250):
        data = bytearray(sound)
        for _ in range(1 if number % 2 else 6):
            at = rng.randrange(len(data)) if number % 3 else rng.randrange(100)  # often in SQLite's own header
            data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data[: rng.randrange(len(data))] if number % 20 == 19 else data)
        try:
            report = read_checkpoint(path, FOLDER, (TABLE.name,))
        except FolderError:  # it may look like that of a newer version
            continue
        finally:
            for suffix in ("-wal", "-shm", "-journal"):
                path.with_name(NAME + suffix).unlink(missing_ok=True)
        if report.damage is not None:
            found += 1
            assert NAME in str(report.damage)
        else:
            assert report.rows is not None and report.rows.get(TABLE.name) == rows
    assert found > 60


@pytest.mark.parametrize(
    "change", ["id = 1000", "name = 'other'", "name = NULL", "data = 'text'", "more = more + 1", "crc = 1"]
)
def test_a_row_that_was_changed_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / NAME
    make_checkpoint(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"UPDATE things SET {change} WHERE id = 7")
    connection.close()
    checkpoint = Checkpoint.open(path, (TABLE,), FOLDER)
    try:
        with pytest.raises(DamageError, match="things"):
            list(checkpoint.rows(TABLE))
        with pytest.raises(DamageError, match="things"):
            checkpoint.read_table(TABLE, (0,), 1000)
    finally:
        checkpoint.close()
