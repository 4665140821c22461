"""What producers of a crash test do that are in no transaction: plain ones, and one that numbers its batches.

In comes a connection in each life of the broker; out go batches of numbered records, which are told to the model when
they are sent, and made sure when they are answered. What numbers its batches sends again what was not answered, with
the same numbers, and goes on where it was.
"""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest
from interlog.faces.kafka.schema.produce import PartitionProduceResponse, ProduceResponse
from tests.crash.kafka_client import Client
from tests.crash.kafka_model import OUTPUT, PLACES, Batch, Place, Transaction
from tests.crash.kafka_tools import ALL, NOBODY, Tools, produce
from tests.crash.model import Wrong

MOST_IN_FLIGHT = 5  # batches of one producer for one partition
_HELD_BACK = ErrorCode.NOT_ENOUGH_REPLICAS  # the disk is full


class PlainProducer:
    """It sends, and what it is not answered it forgets."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._writer = 0
        self._client: Client
        self._sent: list[Batch] = []  # those not known to last

    def connect(self, client: Client) -> None:
        self._client = client
        self._writer = self._tools.model.new_writer()
        self._sent.clear()

    def step(self) -> None:
        tools = self._tools
        acks = tools.rng.choice(tools.acks)
        version = tools.rng.choice((3, 6, 8, 10, 12))
        made, data = [], []
        for place in tools.rng.sample([one for one in PLACES if one[0] != OUTPUT], tools.rng.choice((1, 1, 2, 4))):
            batch = Batch(place, tools.numbers(4), self._writer)
            made.append(batch)
            data.append((place, tools.records(batch.numbers, codec=tools.codec(version))))
        tools.model.batches += made
        self._sent += made
        sent = len(self._sent)
        if acks == NOBODY:
            self._client.send(produce(data, acks), version, None)
        else:
            self._client.send(produce(data, acks), version, lambda answer: self._answered(answer, made, acks, sent))

    def _answered(self, answer: ProduceResponse, made: list[Batch], acks: int, sent: int) -> None:
        for batch, found in zip(made, _of(answer), strict=True):
            if found.error_code == _HELD_BACK:
                batch.refused = True
                self._sent.remove(batch)
                continue
            self._tools.check(found.error_code, str(batch))
            batch.offset = found.base_offset
            batch.written = True
        # It is one connection, and one journal: what was sent before has happened before.
        if acks == ALL and not any(batch.refused for batch in made):
            last = max(self._sent.index(batch) for batch in made)
            for batch in self._sent[: last + 1]:
                batch.lasts = True
            del self._sent[: last + 1]


def _of(answer: ProduceResponse) -> list[PartitionProduceResponse]:
    return [one for topic in answer.responses for one in topic.partition_responses]


class Numbered:
    """What producers share that number their batches: what is not answered is sent again, and stored once."""

    def __init__(self, tools: Tools, name: str | None = None) -> None:
        self.tools = tools
        self.name = name
        self.client: Client
        self.id, self.epoch = -1, -1
        self._writer = 0
        self.sequences: dict[Place, int] = {}
        self._known: set[Place] = set()  # where something of it is stored
        self.unanswered: dict[Batch, int] = {}  # and their sequences, in the order they were sent
        self._sent_before: set[Batch] = set()  # in an earlier life: nobody knows what became of them
        self.held_back = False
        self.errors: set[int] = set()  # of batches that time took from it

    def begin(self, id: int, epoch: int) -> None:
        if id != self.id or epoch != self.epoch:
            self.sequences.clear()
            self._known.clear()
        self.id, self.epoch = id, epoch

    def forget(self) -> None:
        """What was not answered will not be sent again."""
        for batch in self.unanswered:
            batch.comes_again = False
        self.unanswered.clear()
        self.sequences.clear()
        self._writer = self.tools.model.new_writer()

    def has_room(self, place: Place) -> bool:
        # Who is not known yet may begin anywhere: the first batch is to be the first one.
        most = MOST_IN_FLIGHT if place in self._known else 1
        return sum(batch.place == place for batch in self.unanswered) < most

    def send(self, place: Place, numbers: range, version: int, transaction: Transaction | None = None) -> None:
        batch = Batch(place, numbers, self._writer, transaction, comes_again=True)
        if transaction is not None:
            transaction.batches.append(batch)
        self.tools.model.batches.append(batch)
        sequence = self.sequences.get(place, 0)
        self.sequences[place] = sequence + len(numbers)
        self.unanswered[batch] = sequence
        self._send(batch, version)

    def _send(self, batch: Batch, version: int) -> None:
        batch.refused = False
        producer, sequence = (self.id, self.epoch), self.unanswered[batch]
        codec = self.tools.codec(version)
        named = self.name is not None
        records = self.tools.records(batch.numbers, producer, sequence, transactional=named, codec=codec)
        request = produce([(batch.place, records)], ALL, self.name)
        self.client.send(request, version, lambda answer: self._answered(answer, batch))

    def _answered(self, answer: ProduceResponse, batch: Batch) -> None:
        (found,) = _of(answer)
        code = found.error_code
        if code == _HELD_BACK or (self.held_back and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            self.held_back = batch.refused = True
        elif self.may_time_out(code):
            batch.refused = batch not in self._sent_before
            batch.comes_again = False
            self.errors.add(code)
            self.unanswered.pop(batch, None)
        else:
            self.tools.check(code, str(batch))
            if batch.offset not in (None, found.base_offset):
                raise Wrong(f"{batch} is at {batch.offset}; when it came again, {found.base_offset} was answered")
            batch.offset = found.base_offset
            batch.written = batch.lasts = True
            batch.comes_again = False
            self._known.add(batch.place)
            self.unanswered.pop(batch, None)

    def may_time_out(self, code: int) -> bool:
        return False

    def send_again(self, version: int) -> None:
        self._sent_before.update(batch for batch in self.unanswered if not batch.refused)
        for batch in self.unanswered:
            self._send(batch, version)

    def go_on(self, version: int) -> None:
        """If the disk was full: when all is answered, what was held back is sent again."""
        if self.held_back and not self.client.waiting:
            self.held_back = False
            self.send_again(version)


class IdempotentProducer(Numbered):
    def connect(self, client: Client) -> None:
        self.client = client
        self.held_back = False
        if self.id < 0:
            self._writer = self.tools.model.new_writer()
            answer = client.call(InitProducerIdRequest(None, 0), self.tools.rng.randrange(6))
            self.tools.check(answer.error_code, "a producer id")
            self.begin(answer.producer_id, answer.producer_epoch)
        else:
            self.send_again(9)

    def step(self) -> None:
        tools = self.tools
        version = tools.rng.choice((3, 8, 9, 12))
        self.go_on(version)
        place = tools.rng.choice([one for one in PLACES if one[0] != OUTPUT])
        if self.held_back or not self.has_room(place):
            self.client.turn()
        else:
            self.send(place, tools.numbers(4), version)
