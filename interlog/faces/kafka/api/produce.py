"""Produce: batches go into the journal as they came, checked and stamped; the answer comes when they are safe.

Requests before version 3 may hold old message sets, which are read and written anew. What a partition is refused
for costs the others nothing.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from interlog.base.errors import (
    FormatError,
    InterlogError,
    InvalidError,
    LimitError,
    NotFoundError,
    TimestampError,
)
from interlog.base.log import get_log
from interlog.core.producers import ProducerError
from interlog.core.topics import Appended, Topic
from interlog.core.transactions import Admit
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.fast_produce import Partitions, Produce, read_produce
from interlog.faces.kafka.old_records import read_message_set
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from interlog.faces.kafka.views import View
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec
from interlog.journal.record import Record

log = get_log("kafka")

read = read_produce

ALL: Final = -1
LEADER: Final = 1
NOBODY: Final = 0
_MAGIC_AT: Final = 16
_FIRST_OF_BATCHES: Final = 3  # versions
_FIRST_OF_ZSTD: Final = 7
_ATTRIBUTES_AT: Final = 22  # their lower byte
_LAST_DELTA: Final = Struct(">i")
_LAST_DELTA_AT: Final = 23
_PRODUCER: Final = Struct(">qhii")  # id, epoch, first sequence, count of records
_PRODUCER_AT: Final = 43


def handle(request: Request, body: Produce) -> None:
    connection = request.connection
    acks = body.acks
    refusal = _refusal(request, body)
    response = ProduceResponse()
    failed: PartitionProduceResponse | None = None
    stored = 0
    for named, partitions in body.topics:
        view = None
        error = refusal
        if error is None:
            view, error = _find(request, named)
        elif error.code == ErrorCode.NOT_ENOUGH_REPLICAS:
            _hold_back(request, named, partitions)
        answers = []
        for index, records in partitions:
            try:
                if error is not None:
                    raise error
                assert view is not None
                assert view.topic is not None
                answer = _append(request, body, view, view.topic, index, records)
                stored += len(records or b"")
            except KafkaError as refused:
                answer = _refused(index, refused)
                failed = failed or answer
            answers.append(answer)
        told = TopicProduceResponse(named) if isinstance(named, str) else TopicProduceResponse(topic_id=named)
        told.partition_responses = answers
        response.responses.append(told)
    request.service.produced.value += stored
    if acks == NOBODY:
        if failed is not None:
            # The one way to tell a client that asked for no answer.
            connection.end(f"producing without acknowledgement failed: {ErrorCode(failed.error_code).name}")
        request.answer_nothing()
    elif not stored:
        request.answer(response)
    else:

        def settle(lasts: bool) -> None:
            if lasts:
                request.answer(response)
            else:
                connection.end("what was produced may not last")

        connection.park(settle, written=acks == LEADER)


class _Keyless(KafkaError):
    """Records without a key, by their places in the batch, for a topic that keeps the last one of each key."""

    def __init__(self, places: list[int]) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, "A compacted topic takes no record without a key.")
        self.places = places


def _refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    places = error.places if isinstance(error, _Keyless) else []
    records = [BatchIndexAndErrorMessage(place, error.message) for place in places]
    return PartitionProduceResponse(index, error.code, -1, record_errors=records, error_message=error.message or None)


def _refusal(request: Request, body: Produce) -> KafkaError | None:
    """Why nothing of a request is taken."""
    if body.acks not in (ALL, NOBODY, LEADER):
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    transactional_id = body.transactional_id
    if transactional_id is not None and not request.may("write", transactional_id, "transactional_id"):
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.core.accepts_messages:
        # All clients know it, and come again: the disk is full, or too much waits.
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, request.core.refusal)
    return None


def _hold_back(request: Request, named: str | bytes, partitions: Partitions) -> None:
    """These batches will come again: what was sent behind them is not to be taken before."""
    view, error = _find(request, named)
    if error is not None or view is None or view.topic is None:
        return
    numbers = view.topic.item.partitions
    for index, records in partitions:
        if records and len(records) >= batches.HEADER_BYTES and 0 <= index < len(numbers):
            id, epoch, first, _ = _PRODUCER.unpack_from(records, _PRODUCER_AT)
            if id >= 0 and records[_MAGIC_AT] == batches.MAGIC:
                request.core.producers.hold_back(numbers[index], id, epoch, first)


def _find(request: Request, named: str | bytes) -> tuple[View | None, KafkaError | None]:
    """A topic by its name or its id, and why nothing is taken for it."""
    views = request.service.views
    if isinstance(named, str):
        view, name = views.find(request.namespace, named), named
    else:
        view = views.find_id(request.namespace, named)
        if view is None:
            return None, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = view.name
    if not request.may("write", name):
        return view, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if view is None:
        return None, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if view.topic is None:
        why = f"{name} is a queue: Kafka clients can only read it."
        return view, KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
    return view, None


def _append(
    request: Request, body: Produce, view: View, topic: Topic, index: int, records: memoryview | None
) -> PartitionProduceResponse:
    if not 0 <= index < len(topic):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "There is no batch.")
    try:
        if len(records) > _MAGIC_AT and records[_MAGIC_AT] < batches.MAGIC:
            appended = _append_old(request, topic, index, records)
        else:
            if len(records) >= batches.HEADER_BYTES:
                _check(request, body, topic, index, records)
            appended = topic.append_batch(index, records)
    except KafkaError:
        raise
    except ProducerError as error:
        raise KafkaError(code_of(error.refusal, fenced=False), str(error)) from None
    except FormatError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    except LimitError as error:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
    except TimestampError as error:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, str(error)) from None
    except InvalidError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
    except NotFoundError as error:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(error)) from None
    except InterlogError as error:
        log.error("a batch could not be stored", topic=view.name, partition=index, reason=error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
    return PartitionProduceResponse(
        index, 0, appended.base, appended.append_time_ms, view.partitions[index].log_start, [], None
    )


def _check(request: Request, body: Produce, topic: Topic, index: int, records: memoryview) -> None:
    """What a batch from a client may not be, though it may be sound."""
    attributes = records[_ATTRIBUTES_AT]
    codec = attributes & batches.CODEC_MASK
    if codec >= Codec.ZSTD and (codec > Codec.ZSTD or request.version < _FIRST_OF_ZSTD):
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if attributes & batches.CONTROL:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Clients may not write control batches.")
    (last_delta,) = _LAST_DELTA.unpack_from(records, _LAST_DELTA_AT)
    producer_id, producer_epoch, sequence, count = _PRODUCER.unpack_from(records, _PRODUCER_AT)
    if last_delta != count - 1:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{count} records cannot have offsets from 0 to {last_delta}.")
    if producer_id >= 0 and (producer_epoch < 0 or sequence < 0):
        raise KafkaError(ErrorCode.INVALID_RECORD, "A producer id comes with an epoch and a sequence.")
    if attributes & batches.TRANSACTIONAL:
        if body.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if producer_id < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, "A transactional batch has a producer id.")
    if topic.settings.compacts:
        batches.check(records, 0, topic.settings.max_message_bytes)
        _check_keys([record for _, record in batches.decode(records, verify=False)])
    if attributes & batches.TRANSACTIONAL and body.transactional_id is not None:
        _admit(request, body.transactional_id, topic.item.partitions[index], producer_id, producer_epoch)


def _check_keys(records: Sequence[Record]) -> None:
    keyless = [place for place, record in enumerate(records) if record.key is None]
    if keyless:
        raise _Keyless(keyless)


def _admit(request: Request, name: str, partition: int, producer_id: int, producer_epoch: int) -> None:
    """The partition must be part of the transaction. Newer clients need not say so before."""
    how = Admit.ADD if request.version >= 12 else Admit.REFUSE_ABORTABLE if request.version == 11 else Admit.REFUSE
    request.core.transactions.admit(request.namespace, name, producer_id, producer_epoch, [partition], how)


def _append_old(request: Request, topic: Topic, index: int, records: memoryview) -> Appended:
    if request.version >= _FIRST_OF_BATCHES:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Since version 3 a request holds batches of magic 2.")
    if len(records) > topic.settings.max_message_bytes:
        raise LimitError(f"{len(records)} bytes are more than {topic.settings.max_message_bytes}, the limit")
    found = read_message_set(records)
    if topic.settings.compacts:
        _check_keys(found)
    return topic.append(index, found)
