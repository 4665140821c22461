"""ShareAcknowledge: a member of a share group says what became of the records that it holds."""

from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from interlog.faces.kafka.share_answers import check_group, member_of, settle
from interlog.faces.kafka.share_sessions import FINAL, INITIAL


def handle(request: Request, body: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse | None:
    sessions = request.service.share_sessions
    try:
        key = member_of(request, body.group_id, body.member_id)
        if body.share_session_epoch == INITIAL:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        if body.share_session_epoch == FINAL:
            sessions.check(key)
        else:
            sessions.go_on(key, body.share_session_epoch)
        check_group(request, key)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message or None)
    response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=request.core.deliveries.lock_ms(*key[:2]))
    for topic in body.topics:
        found = ShareAcknowledgeTopicResponse(topic.topic_id)
        for one in topic.partitions:
            refused = settle(request, key, topic.topic_id, one, renews=body.is_renew_ack)
            code, sentence = (ErrorCode.NONE, None) if refused is None else (refused.code, refused.message or None)
            found.partitions.append(PartitionData(one.partition_index, code, sentence))
        response.responses.append(found)
    if body.share_session_epoch == FINAL:
        sessions.end(key)
    request.answer_when_durable(response)
    return None
