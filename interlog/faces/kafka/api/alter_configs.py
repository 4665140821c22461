"""AlterConfigs: what a topic or a group is set to, in place of all that it was set to.

Versions 0 to 2. The broker's configs are the operator's, and refused.
"""

from collections.abc import Mapping

from interlog.faces.kafka.config_changes import change, check_names
from interlog.faces.kafka.config_resources import Configured
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(request: Request, body: AlterConfigsRequest) -> AlterConfigsResponse | None:
    outcomes = change(request, body.resources, _check, _make, validate_only=body.validate_only)
    response = AlterConfigsResponse(
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
        [one.name for one in resource.configs if one.value is None],
    )


def _make(resource: AlterConfigsResource, found: Configured) -> Mapping[str, str]:
    return {one.name: one.value or "" for one in resource.configs}
