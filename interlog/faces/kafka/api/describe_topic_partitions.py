"""DescribeTopicPartitions: topics with their partitions, page by page."""

from typing import Final

from interlog.faces.kafka.api.metadata import is_topic_name
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import allowed, may_see
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

_MOST_PARTITIONS: Final = 2_000  # of one answer


def handle(request: Request, body: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    views, connection = request.service.views, request.connection
    names = sorted({topic.name for topic in body.topics})
    if not names:
        names = [view.name for view in views.all(request.namespace) if may_see(connection, view.name)]
    first = 0
    if body.cursor is not None:
        first, cursor = body.cursor.partition_index, body.cursor.topic_name
        if first < 0 or (body.topics and cursor not in names):
            # It stands at no partition, or at none that was asked for.
            refusals = [_refusal(topic.name, ErrorCode.INVALID_REQUEST) for topic in body.topics]
            return DescribeTopicPartitionsResponse(topics=refusals)
        names = [name for name in names if name >= cursor]
        if not names or names[0] != cursor:
            first = 0
    room = min(max(body.response_partition_limit, 1), _MOST_PARTITIONS)
    epoch = request.core.storage.epoch
    response = DescribeTopicPartitionsResponse()
    for name in names:
        view = views.find(request.namespace, name)
        if not may_see(connection, name):
            response.topics.append(_refusal(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        if view is None:
            known = is_topic_name(name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.INVALID_TOPIC_EXCEPTION
            response.topics.append(_refusal(name, error))
            continue
        if not room:
            response.next_cursor = ResponseCursor(name, 0)
            break
        last = min(len(view.partitions), first + room)
        replicas = [request.node_id]
        partitions = [
            DescribeTopicPartitionsResponsePartition(0, index, request.node_id, epoch, replicas, replicas, [], [], [])
            for index in range(first, last)
        ]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                0, name, view.id, False, partitions, allowed(connection, "topic", name)
            )
        )
        room -= len(partitions)
        first = 0
        if last < len(view.partitions):
            response.next_cursor = ResponseCursor(name, last)
            break
    return response


def _refusal(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name)
