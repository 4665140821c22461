"""JoinGroup: become a member of a classic group, and be told its next generation once all members have come."""

from typing import Final

from interlog.core.group_words import Join, Joined
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import code_of, host, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

MOST_METADATA_BYTES: Final = 1 << 20  # of one member
MOST_PROTOCOLS: Final = 100
_NEEDS_ID: Final = 4
_NO_PROTOCOL: Final = 7
_CAN_SKIP: Final = 9


def handle(request: Request, body: JoinGroupRequest) -> JoinGroupResponse | None:
    settings = request.service.settings
    error = refusal(request, body.group_id)
    if not error and not settings.min_session_ms <= body.session_timeout_ms <= settings.max_session_ms:
        error = ErrorCode.INVALID_SESSION_TIMEOUT
    size = sum(len(one.name) + len(one.metadata) for one in body.protocols)
    if not error and (size > MOST_METADATA_BYTES or len(body.protocols) > MOST_PROTOCOLS):
        error = ErrorCode.INVALID_REQUEST
    if error:
        return _answer(request, error, Joined(None, body.member_id))
    static = body.group_instance_id is not None
    ask = Join(
        body.member_id,
        body.protocol_type,
        tuple((one.name, one.metadata) for one in body.protocols),
        body.session_timeout_ms,
        max(body.rebalance_timeout_ms if request.version else body.session_timeout_ms, 1),
        body.group_instance_id,
        request.client_id,
        host(request),
        needs_id=request.version >= _NEEDS_ID and not static,
        can_skip=request.version >= _CAN_SKIP,
    )
    request.core.groups.join(
        request.namespace,
        body.group_id,
        ask,
        lambda joined: request.answer(_answer(request, code_of(joined.refused), joined)),
    )
    return None


def _answer(request: Request, error: ErrorCode, joined: Joined) -> JoinGroupResponse:
    protocol = joined.protocol
    return JoinGroupResponse(
        error_code=error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name="" if protocol is None and request.version < _NO_PROTOCOL else protocol,
        leader=joined.leader,
        skip_assignment=joined.skip,
        member_id=joined.member,
        members=[JoinGroupResponseMember(one.member, one.instance, one.metadata) for one in joined.members],
    )
