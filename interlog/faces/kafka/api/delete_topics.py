"""DeleteTopics: by name, or (from version 6) by id. Queues of AMQP are seen as topics, and are deleted there."""

from collections import Counter

from interlog.faces.kafka.acls import CLUSTER_NAME
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from interlog.faces.kafka.schema.fields import NO_UUID

_BY_ID = 6
_NOT_AUTHORIZED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
_UNKNOWN_NAME = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
_UNKNOWN_ID = (ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def handle(request: Request, body: DeleteTopicsRequest) -> DeleteTopicsResponse | None:
    states = body.topics
    if request.version < _BY_ID:
        states = [DeleteTopicState(name) for name in body.topic_names]
    given = Counter((state.name, state.topic_id) for state in states)
    done: set[str] = set()
    results = []
    for (name, topic_id), times in given.items():
        result = DeletableTopicResult(name, topic_id)
        error = _delete(request, result, times, done)
        if error is not None:
            result.error_code, result.error_message = error
        results.append(result)
    response = DeleteTopicsResponse(0, results)
    if not done:
        return response
    request.answer_when_durable(response)
    return None


def _delete(request: Request, result: DeletableTopicResult, times: int, done: set[str]) -> tuple[ErrorCode, str] | None:
    """Fills in what is known of the topic; the error if it is not deleted."""
    name, by_name = result.name, result.topic_id == NO_UUID
    if times > 1:
        return ErrorCode.INVALID_REQUEST, "The same topic was named more than once."
    if name is None and by_name:
        return ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
    if name is not None and not by_name:
        return ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
    views = request.service.views
    view = views.find_id(request.namespace, result.topic_id) if name is None else views.find(request.namespace, name)
    known = name if view is None else view.name
    if known is not None and not (request.may("delete", known) or request.may("delete", CLUSTER_NAME, "cluster")):
        if request.may("describe", known):
            result.name = known
        return _NOT_AUTHORIZED
    if view is None:
        if name is not None and name in done:
            return ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
        return _UNKNOWN_NAME if by_name else _UNKNOWN_ID
    if view.topic is None:
        return ErrorCode.POLICY_VIOLATION, f"{view.name} is a queue: it is deleted over AMQP or HTTP."
    result.name, result.topic_id = view.name, view.id
    try:
        request.mutates(len(view.partitions), strict_since=5)
    except KafkaError as error:
        return error.code, error.message
    request.core.delete_topic(request.namespace, view.name)
    done.add(view.name)
    return None
