"""Heartbeat: a member of a classic group is there, and is told if it must join again."""

from interlog.faces.kafka.group_answers import code_of, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: Request, body: HeartbeatRequest) -> HeartbeatResponse:
    error = refusal(request, body.group_id)
    if not error:
        refused = request.core.groups.heartbeat(
            request.namespace, body.group_id, body.member_id, body.group_instance_id, body.generation_id
        )
        error = code_of(refused)
    return HeartbeatResponse(error_code=error)
