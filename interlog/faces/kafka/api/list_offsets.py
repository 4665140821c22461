"""ListOffsets: where a log begins and ends, and which offset belongs to a time."""

from collections import Counter
from typing import Final

from interlog.base.errors import InterlogError
from interlog.base.log import get_log
from interlog.faces.kafka.epochs import check_epoch, epoch_of
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import may_see
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from interlog.faces.kafka.stable import last_stable
from interlog.faces.kafka.views import View
from interlog.journal.partition import Partition

log = get_log("kafka")

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}  # versions
_NONE: Final = (-1, -1, -1)

Found = tuple[int, int, int]  # offset, timestamp, epoch


def handle(request: Request, body: ListOffsetsRequest) -> ListOffsetsResponse:
    response = ListOffsetsResponse()
    for topic in body.topics:
        view = request.service.views.find(request.namespace, topic.name)
        seen = may_see(request.connection, topic.name)
        asked = Counter(one.partition_index for one in topic.partitions)
        answers = []
        for one in topic.partitions:
            if not seen:
                answers.append(_refusal(one, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif asked[one.partition_index] > 1:
                answers.append(_refusal(one, ErrorCode.INVALID_REQUEST))
            else:
                answers.append(_answer(request, view, one, committed=body.isolation_level == 1))
        response.topics.append(ListOffsetsTopicResponse(topic.name, answers))
    return response


def _answer(
    request: Request, view: View | None, asked: ListOffsetsPartition, *, committed: bool
) -> ListOffsetsPartitionResponse:
    partition = None if view is None else view.partition(asked.partition_index)
    if view is None or partition is None:
        return _refusal(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = check_epoch(request.core, asked.current_leader_epoch)
    if error:
        return _refusal(asked, error)
    if asked.timestamp < EARLIEST_PENDING_UPLOAD or request.version < _SINCE.get(asked.timestamp, 0):
        return _refusal(asked, ErrorCode.UNSUPPORTED_VERSION)
    end = last_stable(request.core, partition) if committed else partition.log_end
    try:
        if request.version == 0:
            return _old(asked, view, partition, end)
        offset, timestamp, epoch = _find(request, view, asked, partition, end)
    except InterlogError as error:
        log.error("a time could not be looked up", topic=view.name, reason=error)
        return _refusal(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    return ListOffsetsPartitionResponse(asked.partition_index, 0, [], timestamp, offset, epoch)


def _find(request: Request, view: View, asked: ListOffsetsPartition, partition: Partition, end: int) -> Found:
    core, timestamp = request.core, asked.timestamp
    if timestamp == LATEST:
        return end, -1, core.storage.epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = view.log_start(asked.partition_index)
        return start, -1, epoch_of(core, partition, start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NONE  # all is local
    if timestamp == MAX_TIMESTAMP:
        timestamp = partition.max_timestamp()
        if timestamp < 0:
            return _NONE
    found = partition.offset_for_time(timestamp)
    if found is None or found[0] >= end:
        return _NONE
    return *found, epoch_of(core, partition, found[0])


def _old(asked: ListOffsetsPartition, view: View, partition: Partition, end: int) -> ListOffsetsPartitionResponse:
    """Version 0 asks for the offsets at which segments begin, newest first, before a time."""
    offsets = [view.log_start(asked.partition_index)]
    if asked.timestamp == LATEST and end > offsets[0]:
        offsets.insert(0, end)
    elif asked.timestamp >= 0:
        found = partition.offset_for_time(asked.timestamp)
        offsets = [end if found is None else found[0]]
    return ListOffsetsPartitionResponse(asked.partition_index, 0, offsets[: max(asked.max_num_offsets, 0)])


def _refusal(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(asked.partition_index, error)
