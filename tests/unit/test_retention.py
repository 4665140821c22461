from pathlib import Path

import pytest

from interlog.journal.partition import Partition
from interlog.journal.retention import retain
from tests.unit.partition_rig import Rig, encode, offsets, read_all


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """Four segments of 10 one-record batches, then 200 batches in the journal; record n is of time n."""
    rig = Rig(tmp_path)
    partition = rig.partition()
    for file in range(1, 6):
        rig.file = file
        for _ in range(10 if file < 5 else 200):
            rig.write(partition, encode(partition.log_end, times=[partition.log_end]))
        if file < 5:
            rig.settle(file, segment_bytes=1200)
    assert [segment.base for segment in partition.segments] == [0, 10, 20, 30]
    return partition


@pytest.mark.parametrize(
    ("now_ms", "start"),
    [
        (100, None),
        (109, None),
        (110, 10),
        (135, 30),
        (139, 30),
        (140, 40),
        (203, 40),
        (204, 104),
        (240, 104),
        (340, 240),
    ],
)
def test_by_time(partition: Partition, now_ms: int, start: int | None) -> None:
    assert retain(partition, now_ms, 100, None) == start


def test_by_size(partition: Partition) -> None:
    total = partition.stored_bytes()
    size = partition.segments[0].bytes
    assert retain(partition, 0, None, total) is None
    assert retain(partition, 0, -1, total - size + 1) is None
    assert retain(partition, 0, None, total - size) == 10
    segments = sum(segment.bytes for segment in partition.segments)
    blocks = partition.windows[0].blocks()
    assert retain(partition, 0, None, total - segments) == 40
    assert retain(partition, 0, None, total - segments - blocks[0][1] + 1) == 40
    assert retain(partition, 0, None, total - segments - blocks[0][1]) == 104
    assert retain(partition, 0, None, 0) == 240
    assert retain(partition, 0, None, -1) is None


def test_what_it_says_can_be_done(partition: Partition) -> None:
    for now_ms in (110, 204, 210, 1000):
        start = retain(partition, now_ms, 100, None)
        if start is not None:
            partition.set_log_start(start)
        assert offsets(read_all(partition)) == list(range(partition.log_start, 240))
        assert retain(partition, now_ms, 100, None) is None
    assert partition.log_start == partition.log_end == 240


def test_without_timestamps_nothing_is_old(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for n in range(3):
        rig.write(rig.partition(), encode(n, times=[-1]))
    assert retain(rig.partition(), 10_000, 1, None) is None
