"""DescribeAcls: the rules that fit a filter, and the permissions of users as far as rules can express them."""

from interlog.base.errors import InvalidError
from interlog.faces.kafka.acls import CLUSTER_NAME, Filter, check_filter
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(request: Request, body: DescribeAclsRequest) -> DescribeAclsResponse:
    if not request.may("describe", CLUSTER_NAME, "cluster"):
        return DescribeAclsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    filter = Filter(
        body.resource_type_filter,
        body.resource_name_filter,
        body.pattern_type_filter,
        body.principal_filter,
        body.host_filter,
        body.operation,
        body.permission_type,
    )
    try:
        check_filter(filter)
    except InvalidError as error:
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=str(error))
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in request.service.authorization.rules(filter):
        resource = resources.setdefault(acl[:3], DescribeAclsResource(*acl[:3]))
        resource.acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.effect))
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
