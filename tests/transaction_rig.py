"""A core on its own, for tests of producers and transactions: batches made by hand, ticks, starts, what readers see."""

import random
from pathlib import Path

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core, CoreSettings
from interlog.core.topics import Appended, Topic
from interlog.core.transactions import Transactions
from interlog.journal import batch as batches
from interlog.journal.partition import slice_bytes
from interlog.journal.record import Record

SMALL = CoreSettings(journal_file_bytes=1 << 18, min_free_bytes=0, checkpoint_ms=1_000, tail_bytes=1 << 20)


def batch(
    values: list[bytes],
    producer: tuple[int, int] = (-1, -1),
    sequence: int = -1,
    *,
    transactional: bool = False,
    time_ms: int = 1_700_000_000_000,
) -> bytes:
    return batches.encode(
        [Record(b"k", value, (), time_ms) for value in values],
        base_offset=0,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        attributes=batches.TRANSACTIONAL if transactional else 0,
    )


class Rig:
    def __init__(self, data: Path, settings: CoreSettings = SMALL) -> None:
        self.data = data
        self.settings = settings
        self.clock = ManualClock()
        self.start()

    def start(self) -> None:
        self.worker = ManualWorker()
        self.core = Core.open(
            self.data, settings=self.settings, clock=self.clock, worker=self.worker, rng=random.Random(1)
        )

    @property
    def transactions(self) -> Transactions:
        return self.core.transactions

    def topic(self, name: str = "t", partitions: int = 2) -> Topic:
        if self.core.catalog.find("/", name) is None:
            return self.core.create_topic("/", name, partitions)
        return self.core.topic("/", name)

    def append(
        self,
        values: list[bytes],
        producer: tuple[int, int],
        sequence: int,
        *,
        index: int = 0,
        transactional: bool = False,
    ) -> Appended:
        return self.topic().append_batch(index, batch(values, producer, sequence, transactional=transactional))

    def tick(self) -> None:
        self.core.commit()
        self.worker.run()

    def later(self, ms: int) -> None:
        self.core.commit()
        self.clock.advance(ms)
        self.core.poll()
        self.tick()

    def state(self) -> dict[str, object]:
        return {**self.core.producers.snapshot(), **self.core.transactions.snapshot()}

    def restart(self, *, kill: bool) -> None:
        """What survives is the same afterwards."""
        self.tick()
        before = self.state()
        if kill:
            self.core.recovered.checkpoint.close()
            self.core._folder.release()
        else:
            self.core.close()
        self.start()
        assert self.state() == before

    def close(self) -> None:
        self.core.close()

    def read(self, index: int = 0, *, committed: bool = True, name: str = "t") -> list[bytes | None]:
        """What a client reads of a partition, as clients do it: they are told what was aborted."""
        topic = self.topic(name)
        partition = topic.item.partitions[index]
        end = self.transactions.last_stable(partition) if committed else topic.log_end(index)
        start = offset = topic.log_start(index)
        aborted = sorted(self.transactions.aborted(partition, start, end), key=lambda one: one[1])
        passing: set[int] = set()
        found: list[bytes | None] = []
        while offset < end:
            slices = topic.read(index, offset, 1 << 20)
            if not slices:
                break
            for part in slices:
                data = slice_bytes(part)
                for position, header in batches.batches(data):
                    if header.base_offset >= end:
                        return found
                    offset = header.next_offset
                    while aborted and aborted[0][1] <= header.last_offset:
                        passing.add(aborted.pop(0)[0])
                    records = [record for at, record in batches.decode(data, position) if at >= start]
                    if header.is_control:
                        if records and (records[0].key or b"")[2:] == b"\0\0":
                            passing.discard(header.producer_id)
                    elif not (committed and header.is_transactional and header.producer_id in passing):
                        found += [record.value for record in records]
        return found
