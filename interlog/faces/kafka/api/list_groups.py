"""ListGroups: the groups that there are, with members or with offsets, of some states and types or of all."""

from typing import Final

from interlog.core.group_words import GroupKind
from interlog.faces.kafka.group_answers import CONSUMER, TYPES
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_PROTOCOLS: Final = {GroupKind.BALANCED: CONSUMER, GroupKind.SHARE: "share"}


def handle(request: Request, body: ListGroupsRequest) -> ListGroupsResponse:
    states = {state.strip().lower() for state in body.states_filter}
    types = {type.strip().lower() for type in body.types_filter}
    sees_all = request.may("describe", CLUSTER, "cluster")
    groups = request.core.groups
    response = ListGroupsResponse()
    for name in groups.names(request.namespace):
        view = groups.view(request.namespace, name)
        if view is None or not (sees_all or request.may("describe", name, "group")):
            continue
        type = TYPES[view.kind]
        if (states and view.state.value.lower() not in states) or (types and type not in types):
            continue
        protocol = _PROTOCOLS.get(view.kind, view.protocol_type)
        response.groups.append(ListedGroup(name, protocol, view.state.value, type))
    return response
