"""OffsetForLeaderEpoch: where an epoch ended, so that a client sees whether what it has read is still true."""

from interlog.faces.kafka.epochs import check_epoch, end_of_epoch
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import may_see
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from interlog.faces.kafka.views import View


def handle(request: Request, body: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in body.topics:
        view = request.service.views.find(request.namespace, topic.topic)
        if not may_see(request.connection, topic.topic):
            refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            found = [EpochEndOffset(refusal, one.partition) for one in topic.partitions]
        else:
            found = [_end(request, view, one) for one in topic.partitions]
        response.topics.append(OffsetForLeaderTopicResult(topic.topic, found))
    return response


def _end(request: Request, view: View | None, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = None if view is None else view.partition(asked.partition)
    if partition is None:
        return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked.partition)
    error = check_epoch(request.core, asked.current_leader_epoch)
    if error:
        return EpochEndOffset(error, asked.partition)
    epoch, end = end_of_epoch(request.core, partition, asked.leader_epoch)
    return EpochEndOffset(0, asked.partition, epoch, end)
