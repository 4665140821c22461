"""ShareFetch: records for one member of a share group, which holds them until it says what became of them.

With it may come what became of earlier ones. The answer leaves once that lasts. Known gaps: as soon as there is
anything it is answered, whatever the least number of bytes; and what is delivered for the last time comes with others.
"""

from functools import partial
from typing import Final

from interlog.base.errors import InterlogError, LimitError
from interlog.base.log import get_log
from interlog.core.deadlines import Deadline
from interlog.core.share_delivery import Wish
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from interlog.faces.kafka.share_answers import check_group, member_of, number_of, settle, topic_of
from interlog.faces.kafka.share_sessions import FINAL, INITIAL, Key, PartitionKey, ShareSession
from interlog.faces.kafka.views import Cancels

log = get_log("kafka")

_LONGEST_WAIT_MS: Final = 3_600_000
_BY_RECORDS: Final = 1  # the mode in which no more records are given than asked for


def handle(request: Request, body: ShareFetchRequest) -> ShareFetchResponse | None:
    said = [(topic.topic_id, one) for topic in body.topics for one in topic.partitions if one.acknowledgement_batches]
    try:
        key = member_of(request, body.group_id, body.member_id)
        session = _session(request, body, key, says=bool(said))
        check_group(request, key)
    except KafkaError as error:
        return ShareFetchResponse(error_code=error.code, error_message=error.message or None)
    fetch = ShareFetch(request, body, key, session)
    for topic_id, one in said:
        refused = settle(request, key, topic_id, one, renews=body.is_renew_ack)
        fetch.acknowledged((topic_id, one.partition_index), refused)
    if session is None:
        request.service.share_sessions.end(key)
    if session is None or body.is_renew_ack:
        fetch.answer()
    else:
        fetch.begin(body.max_wait_ms)
    return None


def _session(request: Request, body: ShareFetchRequest, key: Key, *, says: bool) -> ShareSession | None:
    """None if it is to end."""
    sessions, epoch = request.service.share_sessions, body.share_session_epoch
    if epoch == FINAL:
        sessions.check(key)
        return None
    wanted = [(topic.topic_id, one.partition_index) for topic in body.topics for one in topic.partitions]
    if epoch == INITIAL:
        if says:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Nothing can be acknowledged before it was fetched.")
        check_group(request, key)
        return sessions.begin(key, request.connection, wanted)
    forgotten = [(topic.topic_id, index) for topic in body.forgotten_topics_data for index in topic.partitions]
    return sessions.go_on(key, epoch, wanted, forgotten)


class ShareFetch:
    """One fetch on its way."""

    __slots__ = (
        "_deadline",
        "_found",
        "_key",
        "_max_bytes",
        "_must_last",
        "_over",
        "_records",
        "_request",
        "_session",
        "_urgent",
        "_watches",
        "_wish",
    )

    def __init__(self, request: Request, body: ShareFetchRequest, key: Key, session: ShareSession | None) -> None:
        self._request = request
        self._key = key
        self._session = session
        self._records = max(body.max_records, 1)
        self._max_bytes = max(min(body.max_bytes, request.service.settings.fetch_max_bytes), 1)
        self._wish = Wish(0, 0, max(body.batch_size, 0), body.share_acquire_mode == _BY_RECORDS)
        self._found: dict[PartitionKey, PartitionData] = {}
        self._urgent = False  # there is something to tell
        self._must_last = False  # before it is told
        self._over = False
        self._deadline: Deadline | None = None
        self._watches: dict[PartitionKey, list[Cancels]] = {}

    def acknowledged(self, partition: PartitionKey, refused: KafkaError | None) -> None:
        self._must_last = True
        told = self._told(partition)
        if refused is not None:
            told.acknowledge_error_code, told.acknowledge_error_message = refused.code, refused.message or None

    def begin(self, max_wait_ms: int) -> None:
        assert self._session is not None
        partitions = list(self._session.partitions)
        for partition in partitions:
            self._take(partition)
        if self._urgent or max_wait_ms <= 0 or not partitions:
            self.answer()
            return
        for partition in partitions:
            self._watch(partition)
        self._session.waiting[self.answer] = None
        self._deadline = self._request.core.deadlines.after(min(max_wait_ms, _LONGEST_WAIT_MS), self.answer)
        self._request.on_lost = self._stop

    def _told(self, partition: PartitionKey) -> PartitionData:
        return self._found.setdefault(partition, PartitionData(partition[1], records=b""))

    # -- taking

    def _take(self, partition: PartitionKey) -> None:
        """What can be had of one partition; errors are urgent: the client hears of them at once."""
        if self._records <= 0 or self._max_bytes <= 0:
            return
        core = self._request.core
        try:
            view = topic_of(self._request, partition[0])
            key = (*self._key[:2], number_of(view, partition[1]))
            self._must_last = core.deliveries.begin(key) or self._must_last
            taken = core.deliveries.take(
                key, self._key[2], self._wish._replace(records=self._records, max_bytes=self._max_bytes)
            )
        except KafkaError as error:
            self._fail(partition, error.code, error.message)
        except LimitError as error:
            self._fail(partition, ErrorCode.INVALID_REQUEST, str(error))
        except InterlogError as error:
            log.error("a partition could not be read", partition=partition[1], reason=error)
            self._fail(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            if taken.ranges:
                self._urgent = True
                self._records -= sum(last - first + 1 for first, last, _ in taken.ranges)
                self._max_bytes -= len(taken.data)
                told = self._told(partition)
                told.records = taken.data
                told.acquired_records = [AcquiredRecords(*one) for one in taken.ranges]
                self._request.service.fetched.value += len(taken.data)
                if self._request.toll is not None:
                    self._request.toll.charge_fetched(len(taken.data))

    def _fail(self, partition: PartitionKey, code: ErrorCode, sentence: str = "") -> None:
        self._urgent = True
        told = self._told(partition)
        told.error_code, told.error_message = code, sentence or None

    # -- waiting

    def _watch(self, partition: PartitionKey) -> None:
        """Both for the partition to grow, and for others to give records back."""
        request = self._request
        view = request.service.views.find_id(request.namespace, partition[0])
        if view is None:
            return
        wake = partial(self._grown, partition)
        key = (*self._key[:2], number_of(view, partition[1]))
        self._watches[partition] = [view.watch(partition[1], wake), request.core.deliveries.watch(key, wake)]

    def _grown(self, partition: PartitionKey) -> None:
        for watch in self._watches.pop(partition, ()):
            watch.cancel()
        if self._over:
            return
        self._take(partition)
        if self._urgent:
            self.answer()
        else:
            self._watch(partition)

    def _stop(self) -> None:
        """Nobody waits any longer."""
        self._over = True
        if self._session is not None:
            self._session.waiting.pop(self.answer, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        watches, self._watches = self._watches, {}
        for both in watches.values():
            for watch in both:
                watch.cancel()

    # -- the answer

    def answer(self) -> None:
        self._stop()
        request, session = self._request, self._session
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        for partition, told in self._found.items():
            topic = topics.setdefault(partition[0], ShareFetchableTopicResponse(partition[0]))
            topic.partitions.append(told)
            if session is not None and told.acquired_records:
                session.to_back(partition)
        lock_ms = request.core.deliveries.lock_ms(*self._key[:2])
        response = ShareFetchResponse(acquisition_lock_timeout_ms=lock_ms, responses=list(topics.values()))
        if self._must_last:
            request.answer_when_durable(response)
        else:
            request.answer(response)
