"""ShareGroupDescribe: share groups, their members, and what these read."""

from interlog.core.group_words import GroupKind, MemberView
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import assigned_topics, refusal
from interlog.faces.kafka.operations import allowed
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def handle(request: Request, body: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    response = ShareGroupDescribeResponse()
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
    if view is None or view.kind is not GroupKind.SHARE:
        sentence = f"Group {name} not found." if view is None else f"Group {name} is not a share group."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, sentence, name)
    members = [_member(request, one) for one in view.members]
    topics = {topic.topic_name for one in members for topic in one.assignment.topic_partitions}
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
    topics = [TopicPartitions(*topic) for topic in assigned_topics(request, one.assigned)]
    return Member(one.member, one.rack, one.epoch, one.client_id, one.host, list(one.topics), Assignment(topics))
