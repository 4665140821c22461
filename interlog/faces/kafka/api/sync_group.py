"""SyncGroup: the leader of a classic group tells who reads what, and all members are told their part."""

from interlog.core.group_words import Sync, Synced
from interlog.faces.kafka.api.join_group import MOST_METADATA_BYTES
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import code_of, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.sync_group import SyncGroupRequest, SyncGroupResponse

_TELLS_PROTOCOL = 5


def handle(request: Request, body: SyncGroupRequest) -> SyncGroupResponse | None:
    error = refusal(request, body.group_id)
    untold = body.protocol_type is None or body.protocol_name is None
    if not error and request.version >= _TELLS_PROTOCOL and untold:
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not error and any(len(one.assignment) > MOST_METADATA_BYTES for one in body.assignments):
        error = ErrorCode.INVALID_REQUEST
    if error:
        return SyncGroupResponse(error_code=error)
    ask = Sync(
        body.member_id,
        body.generation_id,
        body.group_instance_id,
        body.protocol_type,
        body.protocol_name,
        tuple((one.member_id, one.assignment) for one in body.assignments),
    )
    request.core.groups.sync(request.namespace, body.group_id, ask, lambda synced: request.answer(_answer(synced)))
    return None


def _answer(synced: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=code_of(synced.refused),
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
