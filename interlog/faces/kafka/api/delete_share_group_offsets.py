"""DeleteShareGroupOffsets: forget what a share group without members has read of topics."""

from interlog.core.groups import read_partitions
from interlog.faces.kafka.api.alter_share_group_offsets import empty_share_group
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


def handle(request: Request, body: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse | None:
    error = refusal(request, body.group_id, "delete") or empty_share_group(request, body.group_id)
    if error:
        return DeleteShareGroupOffsetsResponse(error_code=error)
    response = DeleteShareGroupOffsetsResponse()
    for topic in body.topics:
        response.responses.append(_delete(request, body.group_id, topic.topic_name))
    failed = DeleteShareGroupOffsetsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    request.answer_when_durable(response, lambda: failed)
    return None


def _delete(request: Request, group: str, name: str) -> DeleteShareGroupOffsetsResponseTopic:
    answer = DeleteShareGroupOffsetsResponseTopic(name)
    view = request.service.views.find(request.namespace, name)
    if not request.may("read", name):
        answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif view is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        answer.topic_id = view.id
        numbers = read_partitions(view.item) or ()
        if not request.core.share_partitions.remove(request.namespace, group, numbers):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer.error_message = "There is no offset information to delete."
    return answer
