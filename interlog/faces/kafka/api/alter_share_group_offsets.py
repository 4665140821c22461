"""AlterShareGroupOffsets: a share group without members is to read partitions from other offsets on.

A group that is not there is made by it.
"""

from interlog.base.errors import LimitError
from interlog.core.group_words import GroupKind
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.faces.kafka.views import View


def handle(request: Request, body: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse | None:
    error = refusal(request, body.group_id)
    if not error and request.core.groups.view(request.namespace, body.group_id) is not None:
        error = empty_share_group(request, body.group_id)
    if error:
        return AlterShareGroupOffsetsResponse(error_code=error)
    response = AlterShareGroupOffsetsResponse()
    for topic in body.topics:
        view = request.service.views.find(request.namespace, topic.topic_name)
        answer = AlterShareGroupOffsetsResponseTopic(topic.topic_name, NO_UUID if view is None else view.id)
        for one in topic.partitions:
            code, sentence = _alter(request, body.group_id, topic.topic_name, view, one)
            answer.partitions.append(AlterShareGroupOffsetsResponsePartition(one.partition_index, code, sentence))
        response.responses.append(answer)
    failed = AlterShareGroupOffsetsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    request.answer_when_durable(response, lambda: failed)
    return None


def empty_share_group(request: Request, group: str) -> ErrorCode:
    """Why what a group has read cannot be changed; NONE if it can."""
    view = request.core.groups.view(request.namespace, group)
    if view is None or view.kind is not GroupKind.SHARE:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NON_EMPTY_GROUP if view.members else ErrorCode.NONE


def _alter(
    request: Request, group: str, topic: str, view: View | None, asked: AlterShareGroupOffsetsRequestPartition
) -> tuple[ErrorCode, str | None]:
    if not request.may("read", topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    partition = None if view is None else view.partition(asked.partition_index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if asked.start_offset < 0:
        return ErrorCode.INVALID_REQUEST, "An offset cannot be less than 0."
    start = min(max(asked.start_offset, partition.log_start), partition.log_end)
    try:
        request.core.share_partitions.begin(request.namespace, group, partition.id, start)
    except LimitError as error:
        return ErrorCode.INVALID_REQUEST, str(error)
    return ErrorCode.NONE, None
