"""IncrementalAlterConfigs: single configs of a topic or a group are set, removed, or their lists changed.

Versions 0 and 1. The broker's configs are the operator's, and refused.
"""

from collections.abc import Mapping
from enum import IntEnum

from interlog.base.errors import InvalidError
from interlog.faces.kafka.config_changes import change, check_names
from interlog.faces.kafka.config_resources import Configured
from interlog.faces.kafka.configs import Kind
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class _Do(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle(request: Request, body: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse | None:
    outcomes = change(request, body.resources, _check, _make, validate_only=body.validate_only)
    response = IncrementalAlterConfigsResponse(
        0,
        [
            AlterConfigsResourceResponse(*outcome, one.resource_type, one.resource_name)
            for outcome, one in zip(outcomes, body.resources, strict=True)
        ],
    )
    if body.validate_only or all(error for error, _ in outcomes):
        return response
    request.answer_when_durable(response)
    return None


def _check(resource: AlterConfigsResource) -> None:
    check_names(
        [one.name for one in resource.configs],
        [one.name for one in resource.configs if one.value is None and one.config_operation != _Do.DELETE],
    )
    for one in resource.configs:
        if one.config_operation not in list(_Do):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {one.config_operation}")


def _make(resource: AlterConfigsResource, found: Configured) -> Mapping[str, str]:
    configs = dict(found.given())
    for one in resource.configs:
        do, name, text = _Do(one.config_operation), one.name, one.value or ""
        if do is _Do.SET:
            configs[name] = text
        elif do is _Do.DELETE:
            configs.pop(name, None)
        else:
            kind, default = found.default(name)
            if kind is not Kind.LIST:
                raise InvalidError(f"Can't {do.name} to key {name} because its type is not LIST.")
            configs[name] = _changed(do, configs.get(name, default), text)
    return configs


def _changed(do: _Do, before: str, text: str) -> str:
    parts = [part for part in before.split(",") if part]
    given = text.split(",")
    if do is _Do.APPEND:
        return ",".join(dict.fromkeys((*parts, *given)))
    return ",".join(part for part in parts if part not in given)
