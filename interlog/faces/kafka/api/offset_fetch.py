"""OffsetFetch: how far groups have read. Where nothing is known the offset is -1, and that is no error.

Who asks for what is stable is put off while a transaction is about to change it.
"""

from typing import Final

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import code_of, refusal, topics_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUP_ERROR: Final = 2
_MANY: Final = 8
_IDS: Final = 10


def handle(request: Request, body: OffsetFetchRequest) -> OffsetFetchResponse:
    if request.version >= _MANY:
        return OffsetFetchResponse(groups=[_group(request, group, body.require_stable) for group in body.groups])
    topics = None
    if body.topics is not None:
        topics = [
            OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes) for topic in body.topics
        ]
    found = _group(request, OffsetFetchRequestGroup(body.group_id, topics=topics), body.require_stable)
    if found.error_code and request.version < _GROUP_ERROR:
        found.topics = [_refused(topic, ErrorCode(found.error_code)) for topic in topics or ()]
    return OffsetFetchResponse(
        error_code=found.error_code,
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.metadata,
                        one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in found.topics
        ],
    )


def _group(request: Request, asked: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
    group = asked.group_id
    error = refusal(request, group, "describe")
    if not error:
        refused = request.core.groups.check_reader(request.namespace, group, asked.member_id, asked.member_epoch)
        error = code_of(refused)
    if error:
        return OffsetFetchResponseGroup(group, error_code=error)
    answer = OffsetFetchResponseGroup(group)
    if asked.topics is None:
        cursors = request.core.cursors.fetch_group(request.namespace, group)
        for name, partitions in topics_of(request, cursors).items():
            view = request.service.views.find(request.namespace, name)
            if view is not None and request.may("describe", name):
                found = [_partition(request, group, index, number, stable) for index, number in partitions]
                answer.topics.append(OffsetFetchResponseTopics(name, view.id, found))
    else:
        answer.topics = [_topic(request, group, topic, stable) for topic in asked.topics]
    return answer


def _topic(request: Request, group: str, asked: OffsetFetchRequestTopics, stable: bool) -> OffsetFetchResponseTopics:
    views = request.service.views
    by_id = request.version >= _IDS
    view = views.find_id(request.namespace, asked.topic_id) if by_id else views.find(request.namespace, asked.name)
    name = view.name if view is not None else asked.name
    if name and not request.may("describe", name):
        return _refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if view is None and by_id:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_ID)
    found = []
    for index in asked.partition_indexes:
        partition = None if view is None else view.partition(index)
        number = None if partition is None else partition.id
        found.append(_partition(request, group, index, number, stable))
    return OffsetFetchResponseTopics(asked.name, asked.topic_id, found)


def _partition(
    request: Request, group: str, index: int, number: int | None, stable: bool
) -> OffsetFetchResponsePartitions:
    if number is None:
        return _nothing(index)
    core = request.core
    if stable and core.transactions.is_pending(request.namespace, group, number):
        return _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    cursor = core.cursors.fetch(request.namespace, group, number)
    if cursor is None:
        return _nothing(index)
    return OffsetFetchResponsePartitions(index, cursor.offset, cursor.leader_epoch, cursor.metadata)


def _refused(asked: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [_nothing(index, error) for index in asked.partition_indexes]
    return OffsetFetchResponseTopics(asked.name, asked.topic_id, partitions)


def _nothing(index: int, error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, -1, -1, "", error)
