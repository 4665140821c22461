"""ShareGroupHeartbeat: a member of a share group joins, stays, leaves, and is told what to read."""

from interlog.core.cursors import MAX_NAME_BYTES
from interlog.core.group_words import JOINS, LEAVES, Heartbeat
from interlog.faces.kafka.api.consumer_group_heartbeat import MOST_TOPICS
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import assigned_topics, code_of, host, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)


def handle(request: Request, body: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    error, sentence = _check(request, body)
    if error:
        return ShareGroupHeartbeatResponse(error_code=error, error_message=sentence)
    topics = body.subscribed_topic_names
    ask = Heartbeat(
        body.member_id,
        body.member_epoch,
        may_read=lambda name: request.may("describe", name),
        rack=body.rack_id,
        client_id=request.client_id,
        host=host(request),
        topics=None if topics is None else frozenset(topics),
    )
    standing = request.core.groups.shares.follow(request.namespace, body.group_id, ask)
    if standing.refused is not None:
        return ShareGroupHeartbeatResponse(error_code=code_of(standing.refused), error_message=standing.sentence)
    return ShareGroupHeartbeatResponse(
        member_id=standing.member,
        member_epoch=standing.epoch,
        heartbeat_interval_ms=standing.next_ms,
        assignment=None if standing.assigned is None else _assignment(request, standing.assigned),
    )


def _check(request: Request, body: ShareGroupHeartbeatRequest) -> tuple[ErrorCode, str | None]:
    error = refusal(request, body.group_id)
    if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return error, None
    for topic in body.subscribed_topic_names or ():
        if not request.may("describe", topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    wrong = _wrong(body)
    if wrong:
        return ErrorCode.INVALID_REQUEST, wrong
    return error, None


def _wrong(body: ShareGroupHeartbeatRequest) -> str:
    """A sentence if the request is not one; else empty."""
    texts = {"GroupId": body.group_id, "MemberId": body.member_id, "RackId": body.rack_id}
    for name, text in texts.items():
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    if len(body.member_id) > MAX_NAME_BYTES:
        return f"MemberId takes {MAX_NAME_BYTES} characters at the most."
    if len(body.subscribed_topic_names or ()) > MOST_TOPICS:
        return f"A member can subscribe to {MOST_TOPICS} topics at the most."
    if body.member_epoch < LEAVES:
        return "MemberEpoch is invalid."
    if body.member_epoch == JOINS and not body.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    return ""


def _assignment(request: Request, partitions: frozenset[int]) -> Assignment:
    topics = [TopicPartitions(id, indexes) for id, _, indexes in assigned_topics(request, partitions)]
    return Assignment(topics)
