"""OffsetCommit: a group, or somebody who reads for it alone, keeps how far it has read.

Answered once it lasts. How long a group's offsets are kept is the broker's setting: the request's own is not used.
"""

from collections.abc import Iterable
from typing import Final

from interlog.base.errors import LimitError
from interlog.core.cursors import MAX_METADATA_BYTES, Commit
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import code_of, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from interlog.faces.kafka.views import View

_EPOCHS: Final = 9
_IDS: Final = 10


def handle(request: Request, body: OffsetCommitRequest) -> OffsetCommitResponse | None:
    error = refusal(request, body.group_id)
    response = OffsetCommitResponse()
    good: list[OffsetCommitResponsePartition] = []  # what is committed, if the group agrees
    commits: list[Commit] = []
    for topic in body.topics:
        view, topic_error = (None, error) if error else _find(request, topic)
        answers = []
        for one in topic.partitions:
            commit, code = (None, topic_error) if view is None else _commit(view, one)
            answers.append(OffsetCommitResponsePartition(one.partition_index, code))
            if commit is not None:
                commits.append(commit)
                good.append(answers[-1])
        response.topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, answers))
    if not commits:
        return response
    core = request.core
    refused = core.groups.check(
        request.namespace,
        body.group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id_or_member_epoch,
        epochs=request.version >= _EPOCHS,
    )
    if refused is not None:
        return _fail(response, good, code_of(refused))
    try:
        core.cursors.commit(request.namespace, body.group_id, commits, core.clock.now_ms())
    except LimitError:
        return _fail(response, good, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    request.answer_when_durable(response, lambda: _fail(response, good, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return None


def _find(request: Request, topic: OffsetCommitRequestTopic) -> tuple[View | None, ErrorCode]:
    views = request.service.views
    if request.version >= _IDS:
        view = views.find_id(request.namespace, topic.topic_id)
        missing, name = ErrorCode.UNKNOWN_TOPIC_ID, "" if view is None else view.name
    else:
        view = views.find(request.namespace, topic.name)
        missing, name = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic.name
    if name and not request.may("read", name):
        return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return view, ErrorCode.NONE if view is not None else missing


def _commit(view: View, asked: OffsetCommitRequestPartition) -> tuple[Commit | None, ErrorCode]:
    partition = view.partition(asked.partition_index)
    metadata = asked.committed_metadata or ""
    if partition is None:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(metadata) > MAX_METADATA_BYTES or len(metadata.encode()) > MAX_METADATA_BYTES:
        return None, ErrorCode.OFFSET_METADATA_TOO_LARGE
    return Commit(partition.id, asked.committed_offset, max(asked.committed_leader_epoch, -1), metadata), ErrorCode.NONE


def _fail(
    response: OffsetCommitResponse, partitions: Iterable[OffsetCommitResponsePartition], error: ErrorCode
) -> OffsetCommitResponse:
    for one in partitions:
        one.error_code = error
    return response
