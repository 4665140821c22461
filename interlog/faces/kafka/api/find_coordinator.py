"""FindCoordinator: of groups and of transactions; it is always this broker."""

from typing import Final

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_GROUP: Final = 0
_TRANSACTION: Final = 1
_FIRST_OF_MANY: Final = 4


def handle(request: Request, body: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.version >= _FIRST_OF_MANY:
        keys = body.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_find(request, body.key_type, key) for key in keys])
    found = _find(request, body.key_type, body.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(request: Request, kind: int, key: str) -> Coordinator:
    if kind not in (_GROUP, _TRANSACTION):
        return _refusal(key, ErrorCode.INVALID_REQUEST, f"There is no coordinator of type {kind}.")
    if kind == _GROUP and not request.may("describe", key, "group"):
        return _refusal(key, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    if kind == _TRANSACTION and not request.may("describe", key, "transactional_id"):
        return _refusal(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    host, port = request.service.address(request.connection.peer)
    return Coordinator(key, request.node_id, host, port, ErrorCode.NONE, None)


def _refusal(key: str, error: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(key, -1, "", -1, error, message)
