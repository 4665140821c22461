"""DeleteGroups: groups without members go, with all their offsets."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.group_answers import code_of, refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(request: Request, body: DeleteGroupsRequest) -> None:
    results = [DeletableGroupResult(name, _delete(request, name)) for name in dict.fromkeys(body.groups_names)]

    def failed() -> DeleteGroupsResponse:
        for result in results:
            result.error_code = result.error_code or ErrorCode.COORDINATOR_NOT_AVAILABLE
        return DeleteGroupsResponse(results=results)

    request.answer_when_durable(DeleteGroupsResponse(results=results), failed)


def _delete(request: Request, name: str) -> ErrorCode:
    return refusal(request, name, "delete") or code_of(request.core.groups.delete(request.namespace, name))
