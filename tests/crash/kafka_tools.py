"""What all clients of a crash test's story share: the model, numbers and records, and what errors mean.

In come numbers of records; out go batches of them, as bytes and as requests.
"""

import random
from collections.abc import Callable

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec
from interlog.journal.record import Record
from tests.crash.bodies import body_of
from tests.crash.brokers import Gone
from tests.crash.kafka_model import Model, Place
from tests.crash.model import Wrong

ALL, LEADER, NOBODY = -1, 1, 0
_FIRST_OF_ZSTD = 7
_MAY_NOT_LAST = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Tools:
    """What all clients of a story share."""

    def __init__(
        self,
        model: Model,
        rng: random.Random,
        largest: int,
        now_ms: Callable[[], int],
        *,
        disk_fails: bool,
        disk_fills: bool,
    ) -> None:
        self.model = model
        self.rng = rng
        self.largest = largest
        self.now_ms = now_ms
        self.next = 1  # number of a record
        # Who asks for no answer and is refused loses the connection.
        self.acks = (ALL, ALL, ALL, LEADER, ALL if disk_fails or disk_fills else NOBODY)
        self._disk_fails = disk_fails

    def numbers(self, most: int) -> range:
        first = self.next
        self.next += self.rng.randint(1, most)
        return range(first, self.next)

    def records(
        self,
        numbers: range,
        producer: tuple[int, int] = (-1, -1),
        sequence: int = -1,
        *,
        transactional: bool = False,
        codec: Codec = Codec.NONE,
    ) -> bytes:
        now_ms = self.now_ms()
        return batches.encode(
            [Record(b"k", body_of(number, self.largest), ((b"h", b"1"),), now_ms) for number in numbers],
            base_offset=0,
            leader_epoch=-1,
            codec=codec,
            attributes=batches.TRANSACTIONAL if transactional else 0,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
        )

    def codec(self, version: int) -> Codec:
        codec = self.rng.choice((Codec.NONE, Codec.NONE, *Codec))
        return Codec.NONE if codec is Codec.ZSTD and version < _FIRST_OF_ZSTD else codec

    def check(self, code: int, what: str) -> None:
        """Of something that cannot be refused while the disk is sound."""
        if code == _MAY_NOT_LAST and self._disk_fails:
            raise Gone(f"{what} may not last")
        if code:
            raise Wrong(f"{what} was refused: {ErrorCode(code).name}")


def produce(data: list[tuple[Place, bytes]], acks: int = ALL, name: str | None = None) -> ProduceRequest:
    topics = [
        TopicProduceData(topic, partition_data=[PartitionProduceData(index, records)])
        for (topic, index), records in data
    ]
    return ProduceRequest(name, acks, 30_000, topics)
