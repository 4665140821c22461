"""DeleteAcls: the rules that fit filters go; what only shows a permission stays, and is answered with an error."""

from interlog.base.errors import InvalidError
from interlog.faces.kafka.acls import CLUSTER_NAME, Acl, Filter, check_filter
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

_SHOWN = "It shows a permission or a tag of the user, and is changed there: not over Kafka."


def handle(request: Request, body: DeleteAclsRequest) -> DeleteAclsResponse | None:
    if not request.may("alter", CLUSTER_NAME, "cluster"):
        refused = DeleteAclsFilterResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        return DeleteAclsResponse(filter_results=[refused] * len(body.filters))
    going: dict[Acl, None] = {}
    response = DeleteAclsResponse(filter_results=[_find(request, one, going) for one in body.filters])
    for acl in going:
        request.service.acls.discard(acl)
    request.answer_when_durable(response)
    return None


def _find(request: Request, one: DeleteAclsFilter, going: dict[Acl, None]) -> DeleteAclsFilterResult:
    filter = Filter(
        one.resource_type_filter,
        one.resource_name_filter,
        one.pattern_type_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )
    try:
        check_filter(filter)
    except InvalidError as error:
        return DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, str(error))
    found = request.service.acls.find(filter)
    going.update(dict.fromkeys(found))
    kept = [acl for acl in request.service.authorization.rules(filter) if acl not in going]
    return DeleteAclsFilterResult(
        ErrorCode.NONE,
        None,
        [DeleteAclsMatchingAcl(ErrorCode.NONE, None, *acl) for acl in found]
        + [DeleteAclsMatchingAcl(ErrorCode.INVALID_REQUEST, _SHOWN, *acl) for acl in kept],
    )
