"""DescribeGroups: classic groups, their state and members. A group that is not there is Dead."""

from typing import Final

from interlog.core.group_words import GroupKind, GroupState
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import refusal
from interlog.faces.kafka.operations import NOT_ASKED, allowed
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_NOT_FOUND: Final = 6


def handle(request: Request, body: DescribeGroupsRequest) -> DescribeGroupsResponse:
    response = DescribeGroupsResponse()
    for name in body.groups:
        group = _describe(request, name)
        if body.include_authorized_operations and group.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED:
            group.authorized_operations = allowed(request.connection, "group", name)
        response.groups.append(group)
    return response


def _describe(request: Request, name: str) -> DescribedGroup:
    error = refusal(request, name, "describe")
    if error:
        return DescribedGroup(error, group_id=name, authorized_operations=NOT_ASKED)
    view = request.core.groups.view(request.namespace, name)
    if view is None or view.kind is not GroupKind.CLASSIC:
        sentence = f"Group {name} not found." if view is None else f"Group {name} is not a classic group."
        if request.version < _NOT_FOUND:
            return DescribedGroup(group_id=name, group_state=GroupState.DEAD.value)
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, sentence, name, GroupState.DEAD.value)
    members = [
        DescribedGroupMember(one.member, one.instance, one.client_id, one.host, one.metadata, one.assignment)
        for one in view.members
    ]
    return DescribedGroup(
        group_id=name,
        group_state=view.state.value,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol,
        members=members,
    )
