"""LeaveGroup: members of a classic group go, one or many at once; an administrator names static ones by instance."""

from typing import Final

from interlog.core.group_words import Leaving
from interlog.faces.kafka.group_answers import code_of, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

_MANY: Final = 3


def handle(request: Request, body: LeaveGroupRequest) -> LeaveGroupResponse:
    error = refusal(request, body.group_id)
    if error:
        return LeaveGroupResponse(error_code=error)
    groups = request.core.groups
    if request.version < _MANY:
        (refused,) = groups.leave(request.namespace, body.group_id, [Leaving(body.member_id)])
        return LeaveGroupResponse(error_code=code_of(refused))
    leaving = [Leaving(one.member_id, one.group_instance_id) for one in body.members]
    results = groups.leave(request.namespace, body.group_id, leaving)
    members = [
        MemberResponse(one.member, one.instance, code_of(refused))
        for one, refused in zip(leaving, results, strict=True)
    ]
    return LeaveGroupResponse(members=members)
