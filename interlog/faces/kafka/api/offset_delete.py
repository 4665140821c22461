"""OffsetDelete: forget how far a group has read, where none of its members reads now."""

from interlog.core.group_words import GroupKind, GroupState, GroupView
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import CONSUMER, refusal, subscribed
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: Request, body: OffsetDeleteRequest) -> OffsetDeleteResponse | None:
    error = refusal(request, body.group_id, "delete")
    view = None if error else request.core.groups.view(request.namespace, body.group_id)
    if not error and (view is None or view.kind is GroupKind.SHARE):
        error = ErrorCode.GROUP_ID_NOT_FOUND
    if view is not None and _is_closed(view):
        error = ErrorCode.NON_EMPTY_GROUP
    if error:
        return OffsetDeleteResponse(error)
    assert view is not None
    response = OffsetDeleteResponse()
    numbers: list[int] = []
    for topic in body.topics:
        answers = [_delete(request, view, topic, one.partition_index, numbers) for one in topic.partitions]
        response.topics.append(OffsetDeleteResponseTopic(topic.name, answers))
    if not request.core.cursors.remove(request.namespace, body.group_id, numbers):
        return response
    request.answer_when_durable(response, lambda: OffsetDeleteResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return None


def _is_closed(view: GroupView) -> bool:
    """It has members, and what they read is nobody's business."""
    return view.kind is GroupKind.CLASSIC and view.state is not GroupState.EMPTY and view.protocol_type != CONSUMER


def _delete(
    request: Request, group: GroupView, topic: OffsetDeleteRequestTopic, index: int, numbers: list[int]
) -> OffsetDeleteResponsePartition:
    found = request.service.views.find(request.namespace, topic.name)
    partition = None if found is None else found.partition(index)
    error = ErrorCode.NONE
    if not request.may("read", topic.name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif _is_read(request, group, topic.name):
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    else:
        numbers.append(partition.id)
    return OffsetDeleteResponsePartition(index, error)


def _is_read(request: Request, group: GroupView, topic: str) -> bool:
    groups = request.core.groups
    if group.kind is GroupKind.BALANCED:
        return groups.wants(request.namespace, group.name, topic)
    if group.state is GroupState.EMPTY:
        return False
    topics = subscribed(groups.metadata(request.namespace, group.name))
    return topics is None or topic in topics
