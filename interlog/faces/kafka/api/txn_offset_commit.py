"""TxnOffsetCommit: cursors of a group that a transaction sets when it is committed.

From version 5 on the group becomes part of the transaction by this; before, AddOffsetsToTxn must have come first.
"""

from typing import Final

from interlog.base.errors import InvalidError, LimitError
from interlog.core.cursors import MAX_METADATA_BYTES, Commit
from interlog.core.group_words import Refused
from interlog.core.producers import ProducerError
from interlog.core.transactions import Admit
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_REFUSED: Final = {
    Refused.UNKNOWN_MEMBER: ErrorCode.UNKNOWN_MEMBER_ID,
    Refused.FENCED_INSTANCE: ErrorCode.FENCED_INSTANCE_ID,
}

Place = tuple[str, int]  # topic and partition


def handle(request: Request, body: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse | None:
    if not request.may("write", body.transactional_id, "transactional_id"):
        return _refusal(body, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.may("read", body.group_id, "group"):
        return _refusal(body, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    errors: dict[Place, ErrorCode] = {}
    commits: dict[Place, Commit] = {}
    for topic in body.topics:
        view = request.service.views.find(request.namespace, topic.name)
        for one in topic.partitions:
            place = (topic.name, one.partition_index)
            partition = None if view is None else view.partition(one.partition_index)
            metadata = one.committed_metadata or ""
            if not request.may("read", topic.name):
                errors[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif partition is None:
                errors[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata.encode()) > MAX_METADATA_BYTES:
                errors[place] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                epoch = max(one.committed_leader_epoch, -1)
                commits[place] = Commit(partition.id, one.committed_offset, epoch, metadata)
    if commits:
        errors.update(dict.fromkeys(commits, _commit(request, body, list(commits.values()))))
    response = _response(body, errors)
    if ErrorCode.NONE not in errors.values():
        return response
    request.answer_when_durable(response, lambda: _refusal(body, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return None


def _commit(request: Request, body: TxnOffsetCommitRequest, commits: list[Commit]) -> ErrorCode:
    core, namespace = request.core, request.namespace
    refused = core.groups.check(
        namespace, body.group_id, body.member_id, body.group_instance_id, body.generation_id, transactional=True
    )
    if refused is not None:
        return _REFUSED.get(refused, ErrorCode.ILLEGAL_GENERATION)
    how = Admit.ADD if request.version >= 5 else Admit.REFUSE_ABORTABLE if request.version == 4 else Admit.REFUSE
    producer = body.producer_id, body.producer_epoch
    try:
        core.transactions.commit_offsets(namespace, body.transactional_id, *producer, body.group_id, commits, how)
    except ProducerError as error:
        return code_of(error.refusal, fenced=False)
    except LimitError:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    except InvalidError:
        return ErrorCode.INVALID_GROUP_ID if not body.group_id else ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _response(body: TxnOffsetCommitRequest, errors: dict[Place, ErrorCode]) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(one.partition_index, errors[topic.name, one.partition_index])
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _refusal(body: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return _response(
        body, {(topic.name, one.partition_index): code for topic in body.topics for one in topic.partitions}
    )
