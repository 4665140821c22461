"""CreateAcls: rules are kept, each or not; one that is there already is no error."""

from interlog.base.errors import InvalidError, LimitError
from interlog.faces.kafka.acls import CLUSTER_NAME, Acl
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle(request: Request, body: CreateAclsRequest) -> CreateAclsResponse | None:
    if not request.may("alter", CLUSTER_NAME, "cluster"):
        refused = AclCreationResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        return CreateAclsResponse(results=[refused] * len(body.creations))
    request.answer_when_durable(CreateAclsResponse(results=[_create(request, one) for one in body.creations]))
    return None


def _create(request: Request, one: AclCreation) -> AclCreationResult:
    acl = Acl(
        one.resource_type,
        one.resource_name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )
    try:
        request.service.acls.add(acl)
    except InvalidError as error:
        return AclCreationResult(ErrorCode.INVALID_REQUEST, str(error))
    except LimitError as error:
        return AclCreationResult(ErrorCode.POLICY_VIOLATION, str(error))
    return AclCreationResult(ErrorCode.NONE, None)
