"""ConsumerGroupHeartbeat: a member of a balanced group joins, stays, leaves, and is told what to read."""

from typing import Final

from interlog.core.group_words import JOINS, LEAVES_FOR_NOW, Heartbeat
from interlog.core.groups import read_partitions
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import assigned_topics, code_of, host, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

_IDS_OF_CLIENTS: Final = 1  # members make their ids themselves
MOST_TOPICS: Final = 10_000  # that one member names


def handle(request: Request, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    error, sentence = _check(request, body)
    if error:
        return ConsumerGroupHeartbeatResponse(error_code=error, error_message=sentence)
    topics = body.subscribed_topic_names
    connection = request.connection
    ask = Heartbeat(
        body.member_id,
        body.member_epoch,
        may_read=lambda name: connection.may("describe", name),
        user=connection.user,
        instance=body.instance_id,
        rack=body.rack_id,
        client_id=request.client_id,
        host=host(request),
        rebalance_ms=body.rebalance_timeout_ms,
        topics=None if topics is None else frozenset(topics),
        pattern=body.subscribed_topic_regex,
        assignor=body.server_assignor,
        owned=_owned(request, body),
        full=body.rebalance_timeout_ms != -1
        and (topics is not None or body.subscribed_topic_regex is not None)
        and body.topic_partitions is not None,
    )
    standing = request.core.groups.follow(request.namespace, body.group_id, ask)
    if standing.refused is not None:
        return ConsumerGroupHeartbeatResponse(error_code=code_of(standing.refused), error_message=standing.sentence)
    return ConsumerGroupHeartbeatResponse(
        member_id=standing.member,
        member_epoch=standing.epoch,
        heartbeat_interval_ms=standing.next_ms,
        assignment=None if standing.assigned is None else _assignment(request, standing.assigned),
    )


def _check(request: Request, body: ConsumerGroupHeartbeatRequest) -> tuple[ErrorCode, str | None]:
    error = refusal(request, body.group_id)
    if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return error, None
    for topic in body.subscribed_topic_names or ():
        if not request.may("describe", topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    wrong = _wrong(request, body)
    if wrong:
        return ErrorCode.INVALID_REQUEST, wrong
    return error, None


def _wrong(request: Request, body: ConsumerGroupHeartbeatRequest) -> str:
    """A sentence if the request is not one; else empty."""
    texts = {"GroupId": body.group_id, "InstanceId": body.instance_id, "RackId": body.rack_id}
    for name, text in texts.items():
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    if (request.version >= _IDS_OF_CLIENTS or body.member_epoch != JOINS) and not body.member_id.strip():
        return "MemberId can't be empty."
    if len(body.subscribed_topic_names or ()) > MOST_TOPICS:
        return f"A member can subscribe to {MOST_TOPICS} topics at the most."
    if body.member_epoch < LEAVES_FOR_NOW:
        return "MemberEpoch is invalid."
    if body.member_epoch == LEAVES_FOR_NOW and body.instance_id is None:
        return "InstanceId can't be null."
    if body.member_epoch == JOINS:
        if body.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if body.topic_partitions is None or body.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return ""


def _owned(request: Request, body: ConsumerGroupHeartbeatRequest) -> frozenset[int] | None:
    if body.topic_partitions is None:
        return None
    owned: set[int] = set()
    for topic in body.topic_partitions:
        view = request.service.views.find_id(request.namespace, topic.topic_id)
        numbers = None if view is None else read_partitions(view.item)
        if numbers is not None:  # a topic that is gone is owned by nobody
            owned.update(numbers[index] for index in topic.partitions if 0 <= index < len(numbers))
    return frozenset(owned)


def _assignment(request: Request, partitions: frozenset[int]) -> Assignment:
    topics = [ResponseTopicPartitions(id, indexes) for id, _, indexes in assigned_topics(request, partitions)]
    return Assignment(topics)
