"""Fetch: batches from where the client is, as they lie in memory or in files; where there is too little, a wait.

A fetch that waits is held by a watch on each of its partitions and by one deadline, and by nothing that runs.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from interlog.base.errors import InterlogError, OffsetOutOfRangeError
from interlog.base.log import get_log
from interlog.core.deadlines import Deadline
from interlog.faces.kafka.epochs import NO_EPOCH, check_epoch, end_of_epoch
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.fast_fetch import FetchedPartition, FetchedTopic, write_fetch
from interlog.faces.kafka.fetch_sessions import FINAL, INITIAL, FetchSession, Key, TopicKey, Wanted
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.fetch import FetchRequest
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.faces.kafka.stable import COMMITTED, aborted, cut, end_of, last_stable
from interlog.faces.kafka.views import Cancels, View
from interlog.journal.partition import Partition
from interlog.journal.slices import Slice

log = get_log("kafka")

_FIRST_OF_IDS: Final = 13  # versions
_LONGEST_WAIT_MS: Final = 3_600_000
_MANY_SLICES: Final = 8


def handle(request: Request, body: FetchRequest) -> None:
    with_ids = request.version >= _FIRST_OF_IDS
    wanted = _wanted(body, with_ids)
    sessions, user = request.service.sessions, request.connection.user
    session: FetchSession | None = None
    incremental = False
    try:
        if body.session_epoch in (INITIAL, FINAL):
            if body.session_id:
                sessions.end(body.session_id, user)
            if body.session_epoch == INITIAL:
                session = sessions.begin(user, wanted, with_ids=with_ids)
        else:
            forgotten = _forgotten(body, with_ids)
            session = sessions.go_on(
                body.session_id, body.session_epoch, user, with_ids=with_ids, wanted=wanted, forgotten=forgotten
            )
            incremental = True
    except KafkaError as error:
        request.answer_parts(write_fetch(request.version, (), error_code=error.code))
        return
    fetch = Fetch(request, body, wanted if session is None else session.partitions.values(), session, incremental)
    fetch.begin(body.max_wait_ms)


def _wanted(body: FetchRequest, with_ids: bool) -> list[Wanted]:
    return [
        Wanted(
            topic.topic_id if with_ids else topic.topic,
            one.partition,
            one.fetch_offset,
            one.partition_max_bytes,
            one.current_leader_epoch,
            one.last_fetched_epoch,
        )
        for topic in body.topics
        for one in topic.partitions
    ]


def _forgotten(body: FetchRequest, with_ids: bool) -> Iterable[Key]:
    return [
        (topic.topic_id if with_ids else topic.topic, index)
        for topic in body.forgotten_topics_data
        for index in topic.partitions
    ]


class Fetch:
    """One fetch on its way."""

    __slots__ = (
        "_committed",
        "_deadline",
        "_found",
        "_incremental",
        "_max_bytes",
        "_min_bytes",
        "_over",
        "_request",
        "_session",
        "_size",
        "_urgent",
        "_wanted",
        "_watches",
    )

    def __init__(
        self,
        request: Request,
        body: FetchRequest,
        wanted: Iterable[Wanted],
        session: FetchSession | None,
        incremental: bool,
    ) -> None:
        self._request = request
        self._min_bytes = body.min_bytes
        self._max_bytes = min(body.max_bytes, request.service.settings.fetch_max_bytes)
        if request.toll is not None:
            self._max_bytes = min(self._max_bytes, request.toll.most_fetched())
        self._committed = body.isolation_level == COMMITTED
        self._session = session
        self._incremental = incremental
        self._wanted = list(wanted)
        self._found: list[FetchedPartition] = []
        self._size = 0
        self._urgent = False
        self._over = False
        self._deadline: Deadline | None = None
        self._watches: dict[int, Cancels] = {}

    def begin(self, max_wait_ms: int) -> None:
        self._read()
        if self._is_enough() or max_wait_ms <= 0 or not self._wanted:
            self._answer()
            return
        for number in range(len(self._wanted)):
            self._watch(number)
        self._found = []
        self._deadline = self._request.core.deadlines.after(min(max_wait_ms, _LONGEST_WAIT_MS), self._too_late)
        self._request.on_lost = self._stop

    # -- waiting

    def _watch(self, number: int) -> None:
        wanted = self._wanted[number]
        view = self._view(wanted.topic)
        if view is not None:
            self._watches[number] = view.watch(wanted.index, partial(self._grown, number))

    def _grown(self, number: int) -> None:
        self._watches.pop(number, None)
        if self._over:
            return
        self._read()
        if self._is_enough():
            self._answer()
        else:
            self._found = []
            self._watch(number)

    def _too_late(self) -> None:
        self._read()
        self._answer()

    def _is_enough(self) -> bool:
        return self._urgent or self._size >= self._min_bytes

    def _stop(self) -> None:
        """Nobody waits any longer."""
        self._over = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            watch.cancel()

    # -- reading

    def _view(self, topic: TopicKey) -> View | None:
        views, namespace = self._request.service.views, self._request.namespace
        return views.find(namespace, topic) if isinstance(topic, str) else views.find_id(namespace, topic)

    def _read(self) -> None:
        """Read all that is wanted; errors are urgent: the client hears of them at once."""
        self._size = 0
        self._urgent = False
        self._found = []
        connection = self._request.connection
        topic: TopicKey | None = None
        view: View | None = None
        refusal = ErrorCode.NONE
        for wanted in self._wanted:
            if wanted.topic != topic:
                topic = wanted.topic
                view = self._view(topic)
                refusal = ErrorCode.NONE
                name = topic if isinstance(topic, str) else "" if view is None else view.name
                if name and not connection.may("read", name):
                    refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                elif view is None:
                    by_id = isinstance(topic, bytes)
                    refusal = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if refusal or view is None:
                found = FetchedPartition(wanted.index, refusal)
            else:
                try:
                    found = self._read_one(wanted, view)
                except KafkaError as error:
                    found = FetchedPartition(wanted.index, error.code)
            if found.error_code or found.diverging is not None:
                self._urgent = True
            self._found.append(found)

    def _read_one(self, wanted: Wanted, view: View) -> FetchedPartition:
        core = self._request.core
        partition = view.partition(wanted.index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if wanted.epoch != NO_EPOCH:
            error = check_epoch(core, wanted.epoch)
            if error:
                raise KafkaError(error)
        offset, log_start, log_end = wanted.offset, view.log_start(wanted.index), partition.log_end
        if view.topic is None and 0 <= offset < log_start:
            offset = log_start  # a queue's consumers were faster: that is no loss, and no error
        stable = last_stable(core, partition)
        if wanted.fetched_epoch != NO_EPOCH:
            epoch, end = end_of_epoch(core, partition, wanted.fetched_epoch)
            if epoch == NO_EPOCH:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < wanted.fetched_epoch or end < offset:
                return FetchedPartition(wanted.index, 0, log_end, stable, log_start, diverging=(epoch, end))
        readable = stable if self._committed else log_end
        if offset >= readable and log_start <= offset <= log_end:
            slices: list[Slice] = []
        else:
            slices = self._slices(wanted, offset, view, partition)
            if readable < log_end:
                slices = cut(slices, readable)
        found = FetchedPartition(wanted.index, 0, log_end, stable, log_start, slices)
        if self._committed:
            found.aborted = aborted(core, partition, offset, end_of(slices, readable)) if slices else []
        if slices:
            self._size += len(slices[0]) if len(slices) == 1 else sum(map(len, slices))
        return found

    def _slices(self, wanted: Wanted, offset: int, view: View, partition: Partition) -> list[Slice]:
        room = min(wanted.max_bytes, self._max_bytes - self._size)
        first = not self._size
        if room <= 0 and not first:
            return []
        try:
            slices = partition.read(offset, room, at_least_one=first)
        except OffsetOutOfRangeError:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE) from None
        except InterlogError as error:
            log.error("a partition could not be read", topic=view.name, partition=wanted.index, reason=error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from None
        return _joined(slices) if len(slices) > _MANY_SLICES else slices

    # -- the answer

    def _answer(self) -> None:
        self._stop()
        request, session = self._request, self._session
        version = request.version
        topics: list[FetchedTopic] = []
        last: TopicKey | None = None
        gave: list[Wanted] = []
        partitions: list[FetchedPartition] = []
        for wanted, found in zip(self._wanted, self._found, strict=True):
            if session is not None:
                if found.slices:
                    gave.append(wanted)
                elif self._incremental and not _is_news(wanted, found):
                    continue
                wanted.log_end = -1 if found.error_code else found.high_watermark
                wanted.log_start = found.log_start_offset
            if wanted.topic != last:
                last = wanted.topic
                partitions = []
                name, id = (last, NO_UUID) if isinstance(last, str) else ("", last)
                topics.append(FetchedTopic(name, partitions, id))
            partitions.append(found)
        session_id = 0
        if session is not None:
            session_id = session.id
            for wanted in gave:
                session.to_back(wanted)
        request.service.fetched.value += self._size
        throttle_ms = 0
        if request.toll is not None:
            request.toll.charge_fetched(self._size)
            throttle_ms = request.pay()
        request.answer_parts(write_fetch(version, topics, session_id=session_id, throttle_ms=throttle_ms))


def _is_news(wanted: Wanted, found: FetchedPartition) -> bool:
    """Whether an answer without batches says anything that the client was not told already."""
    return (
        found.error_code != 0
        or found.diverging is not None
        or found.high_watermark != wanted.log_end
        or found.log_start_offset != wanted.log_start
    )


def _joined(slices: list[Slice]) -> list[Slice]:
    """Many small batches in memory, one after another: as one."""
    joined: list[Slice] = []
    run: list[bytes] = []
    for part in slices:
        if isinstance(part, bytes):
            run.append(part)
            continue
        if run:
            joined.append(b"".join(run))
            run = []
        joined.append(part)
    if run:
        joined.append(b"".join(run))
    return joined
