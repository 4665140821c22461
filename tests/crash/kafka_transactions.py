"""What transactional producers of a crash test do, as older clients do it and as newer ones do.

In comes a connection in each life of the broker; out go transactions: batches in some partitions and cursors of groups,
committed or aborted. After a restart one begins anew, or goes on in the middle and asks again for what was not
answered.
"""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from interlog.faces.kafka.schema.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from interlog.faces.kafka.schema.end_txn import EndTxnRequest
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest
from interlog.faces.kafka.schema.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.crash.kafka_client import Client
from tests.crash.kafka_model import OUTPUT, PLACES, TRIMMED, Claim, Ending, Place, Transaction
from tests.crash.kafka_producers import Numbered
from tests.crash.kafka_tools import Tools
from tests.crash.model import Wrong

OLD, NEW = 4, 5  # versions of EndTxn: without and with an epoch for each end
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_TIME_IS_UP = (*_FENCED, ErrorCode.INVALID_TXN_STATE)


class TransactionalProducer(Numbered):
    """One under a transactional id, as older clients (`OLD`) or newer ones (`NEW`) do it."""

    places = tuple(one for one in PLACES if one[0] not in (OUTPUT, TRIMMED))

    def __init__(self, tools: Tools, name: str, ends: int) -> None:
        super().__init__(tools, name)
        self.transaction: Transaction | None = None
        self.name: str = name
        self._ends = ends
        self._produces = 12 if ends == NEW else 11
        self._asks = 5 if ends == NEW else 3  # version of what is about offsets and partitions
        self._timeout_ms = 0
        self._added: dict[Place, None] = {}
        self._claimed: list[tuple[Claim, str, Place]] = []  # not answered yet
        self._end: bool | None = None  # it was asked for: whether to commit
        self._counted = 0  # for offsets that stand for nothing

    def may_time_out(self, code: int) -> bool:
        return self._timeout_ms < 10_000 and code in _TIME_IS_UP

    # -- lives

    def connect(self, client: Client) -> None:
        """Go on with what is open, or begin anew."""
        self.client = client
        self.held_back = False
        self.errors.clear()
        if self.id < 0 or self.tools.rng.random() < 0.4:
            self.init()
        elif self._end is not None:
            self.finish(self._end)
        elif self.transaction is not None:
            self._resume(self.transaction)

    def init(self) -> None:
        transaction, rng = self.transaction, self.tools.rng
        if transaction is not None and transaction.ending is Ending.NONE:
            transaction.end(Ending.ABORTED)
        self.forget()
        self._clear()
        old = self.id, self.epoch
        self.id = -1
        self._timeout_ms = rng.choice((900_000, 900_000, 2_000))
        answer = self.client.call(InitProducerIdRequest(self.name, self._timeout_ms), rng.randrange(2, 6))
        self.tools.check(answer.error_code, f"the id of {self.name}")
        self.begin(answer.producer_id, answer.producer_epoch)
        if old[0] >= 0 and rng.random() < 0.3:
            zombie = self.client.call(EndTxnRequest(self.name, *old, True), self._ends)
            if zombie.error_code not in (*_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
                raise Wrong(f"{self.name} was taken over, and its former producer is told {zombie.error_code}")

    def _resume(self, transaction: Transaction) -> None:
        if self._ends == OLD and self._added:
            self._add_partitions(list(self._added))
        if not self._timed_out():
            self.send_again(self._produces)
            for claim, group, place in list(self._claimed):
                self._commit_offset(claim, group, place)

    def _clear(self) -> None:
        self.transaction = None
        self._added.clear()
        self._claimed.clear()
        self._end = None
        self.errors.clear()

    def _timed_out(self) -> bool:
        """Whether its time was up, and it begins anew."""
        if not self.errors:
            return False
        self.client.flush()
        if self.transaction is not None:
            self.transaction.end(Ending.ABORTED)
        self.init()
        return True

    # -- a transaction

    def step(self) -> None:
        if self.id < 0:
            self.init()
        self.go_on(self._produces)
        if self._timed_out() or self.held_back:
            self.client.turn()
            return
        rng = self.tools.rng
        if self.transaction is None or rng.random() < 0.5:
            for place in rng.sample(self.places, rng.choice((1, 2, 3))):
                self.write(place, self.tools.numbers(3))
        elif rng.random() < 0.4:
            self._counted += 1
            self.set_cursor(f"{self.name}-group", rng.choice(self.places), self._counted)
        else:
            self.finish(rng.random() < 0.7)

    def begun(self) -> Transaction:
        if self.transaction is None:
            self.transaction = Transaction(self.name)
            self.tools.model.transactions.append(self.transaction)
        return self.transaction

    def write(self, place: Place, numbers: range) -> None:
        transaction = self.begun()
        if not self.has_room(place):
            self.client.flush()
        if self._ends == OLD and place not in self._added:
            self._added[place] = None
            self._add_partitions([place])
        if not self.errors:
            self.send(place, numbers, self._produces, transaction)

    def _add_partitions(self, places: list[Place]) -> None:
        topics: dict[str, list[int]] = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)
        asked = [AddPartitionsToTxnTopic(*one) for one in topics.items()]
        request = AddPartitionsToTxnRequest([], self.name, self.id, self.epoch, asked)
        answer = self.client.call(request, self._asks)
        for topic in answer.results_by_topic_v3_and_below:
            for one in topic.results_by_partition:
                self._note(one.partition_error_code, "adding partitions")

    def _note(self, code: int, what: str) -> None:
        if self.may_time_out(code):
            self.errors.add(code)
        else:
            self.tools.check(code, f"{what} by {self.name}")

    def set_cursor(self, group: str, place: Place, offset: int) -> None:
        claim = self.tools.model.claim((group, place), offset, self.begun())
        self._claimed.append((claim, group, place))
        self._commit_offset(claim, group, place)

    def _commit_offset(self, claim: Claim, group: str, place: Place) -> None:
        if self._ends == OLD:
            request = AddOffsetsToTxnRequest(self.name, self.id, self.epoch, group)
            self._note(self.client.call(request, self._asks).error_code, "adding offsets")
        if not self.errors:
            one = TxnOffsetCommitRequestPartition(place[1], claim.offset, committed_metadata=claim.note)
            topics = [TxnOffsetCommitRequestTopic(place[0], [one])]
            asked = TxnOffsetCommitRequest(self.name, group, self.id, self.epoch, topics=topics)
            (answer,) = self.client.call(asked, self._asks).topics
            self._note(answer.partitions[0].error_code, "setting a cursor")
        self._claimed.remove((claim, group, place))

    def finish(self, commit: bool) -> None:
        """End what is open, once all of it is answered."""
        self.client.flush()
        self.go_on(self._produces)
        self.client.flush()
        if self._timed_out() or self.held_back:
            return
        transaction = self.transaction
        assert transaction is not None
        if transaction.ending is not Ending.COMMITTED:
            transaction.end(Ending.COMMITTING if commit else Ending.ABORTED)
        self._end = commit
        answer = self.client.call(EndTxnRequest(self.name, self.id, self.epoch, commit), self._ends)
        self._note(answer.error_code, "the end")
        if self.errors:
            self._timed_out()
            return
        if commit:
            transaction.end(Ending.COMMITTED)
        self._clear()
        if self._ends == NEW:
            self.begin(answer.producer_id, answer.producer_epoch)
