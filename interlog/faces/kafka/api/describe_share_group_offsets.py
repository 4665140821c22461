"""DescribeShareGroupOffsets: from where on share groups have not read everything, and how much that is.

Where nothing is known the offset is -1, and that is no error.
"""

from typing import Final

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import refusal, topics_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from interlog.faces.kafka.schema.fields import NO_UUID

_UNKNOWN: Final = -1


def handle(request: Request, body: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(groups=[_group(request, group) for group in body.groups])


def _group(request: Request, asked: DescribeShareGroupOffsetsRequestGroup) -> DescribeShareGroupOffsetsResponseGroup:
    group = asked.group_id
    error = refusal(request, group, "describe")
    if not error and not request.core.groups.is_share(request.namespace, group):
        error = ErrorCode.GROUP_ID_NOT_FOUND
    if error:
        sentence = f"Group {group} not found." if error is ErrorCode.GROUP_ID_NOT_FOUND else None
        return DescribeShareGroupOffsetsResponseGroup(group, error_code=error, error_message=sentence)
    topics = asked.topics
    if topics is None:
        known = topics_of(request, request.core.share_partitions.of_group(request.namespace, group))
        topics = [
            DescribeShareGroupOffsetsRequestTopic(name, [index for index, _ in partitions])
            for name, partitions in known.items()
            if request.may("describe", name)
        ]
    return DescribeShareGroupOffsetsResponseGroup(group, [_topic(request, group, topic) for topic in topics])


def _topic(
    request: Request, group: str, asked: DescribeShareGroupOffsetsRequestTopic
) -> DescribeShareGroupOffsetsResponseTopic:
    name = asked.topic_name
    view = request.service.views.find(request.namespace, name)
    answer = DescribeShareGroupOffsetsResponseTopic(name, NO_UUID if view is None else view.id)
    allowed = request.may("describe", name)
    for index in asked.partitions:
        one = DescribeShareGroupOffsetsResponsePartition(index, _UNKNOWN)
        partition = None if view is None else view.partition(index)
        if not allowed:
            one.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif partition is not None:
            share = request.core.share_partitions.find(request.namespace, group, partition.id)
            if share is not None:
                one.start_offset = max(share.start, partition.log_start)
                one.leader_epoch = request.core.storage.epoch
                one.lag = max(partition.log_end - one.start_offset - share.done, 0)
        answer.partitions.append(one)
    return answer
