"""ConsumerGroupDescribe: balanced groups, their members, what these read and what they are to read."""

from interlog.core.group_words import GroupKind, MemberView
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import assigned_topics, refusal
from interlog.faces.kafka.operations import allowed
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC, _CONSUMER = 0, 1  # the type of a member


def handle(request: Request, body: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    response = ConsumerGroupDescribeResponse()
    for name in dict.fromkeys(body.group_ids):
        group = _describe(request, name)
        if body.include_authorized_operations and not group.error_code:
            group.authorized_operations = allowed(request.connection, "group", name)
        response.groups.append(group)
    return response


def _describe(request: Request, name: str) -> DescribedGroup:
    error = refusal(request, name, "describe")
    if error:
        return DescribedGroup(error, group_id=name)
    view = request.core.groups.view(request.namespace, name)
    if view is None or view.kind is not GroupKind.BALANCED:
        sentence = f"Group {name} not found." if view is None else f"Group {name} is not a consumer group."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, sentence, name)
    members = [_member(request, one) for one in view.members]
    topics = {
        topic.topic_name
        for one in members
        for topic in (*one.assignment.topic_partitions, *one.target_assignment.topic_partitions)
    }
    topics.update(topic for one in view.members for topic in one.topics)
    if not all(request.may("describe", topic) for topic in topics):
        sentence = "The described group uses topics that the client is not authorized to describe."
        return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, sentence, name)
    return DescribedGroup(
        group_id=name,
        group_state=view.state.value,
        group_epoch=view.generation,
        assignment_epoch=view.target_epoch,
        assignor_name=view.protocol,
        members=members,
    )


def _member(request: Request, one: MemberView) -> Member:
    return Member(
        one.member,
        one.instance,
        one.rack,
        one.epoch,
        one.client_id,
        one.host,
        list(one.topics),
        one.pattern or None,
        _assignment(request, one.assigned),
        _assignment(request, one.target),
        _CLASSIC if one.guest else _CONSUMER,
    )


def _assignment(request: Request, partitions: frozenset[int]) -> Assignment:
    topics = [TopicPartitions(*topic) for topic in assigned_topics(request, partitions)]
    return Assignment(topics)
