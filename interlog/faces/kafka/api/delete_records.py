"""DeleteRecords: what lies before an offset goes, and the log start with it. Not where compaction alone decides."""

from interlog.base.errors import OffsetOutOfRangeError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from interlog.faces.kafka.views import View

_NO_MARK = -1


def handle(request: Request, body: DeleteRecordsRequest) -> DeleteRecordsResponse | None:
    response = DeleteRecordsResponse()
    done = False
    for topic in body.topics:
        error, view = _find(request, topic.name)
        results = []
        for one in topic.partitions:
            result = DeleteRecordsPartitionResult(one.partition_index, _NO_MARK, error)
            if view is not None:
                _delete(view, one.offset, result)
                done |= not result.error_code
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(topic.name, results))
    if not done:
        return response
    request.answer_when_durable(response)
    return None


def _find(request: Request, name: str) -> tuple[ErrorCode, View | None]:
    if not request.may("delete", name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    view = request.service.views.find(request.namespace, name)
    if view is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if view.topic is None or not view.topic.settings.deletes:
        return ErrorCode.POLICY_VIOLATION, None
    return ErrorCode.NONE, view


def _delete(view: View, offset: int, result: DeleteRecordsPartitionResult) -> None:
    assert view.topic is not None
    if view.partition(result.partition_index) is None:
        result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return
    try:
        result.low_watermark = view.topic.delete_records(result.partition_index, offset)
    except OffsetOutOfRangeError:
        result.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
