"""DescribeConfigs: what topics, groups and the broker are set to, and where each value comes from.

Versions 0 to 4. A queue that is seen as a topic has no configs.
"""

from interlog.faces.kafka.config_entries import DEFAULT, Entry
from interlog.faces.kafka.config_resources import find
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def handle(request: Request, body: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(0, [_describe(request, body, one) for one in body.resources])


def _describe(
    request: Request, body: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    type, name = resource.resource_type, resource.resource_name
    try:
        found = find(request, "describe_configs", type, name)
    except KafkaError as error:
        return DescribeConfigsResult(error.code, error.message or None, type, name)
    wanted = resource.configuration_keys
    shown = [_show(body, entry) for entry in found.entries() if not wanted or entry.name in wanted]
    return DescribeConfigsResult(ErrorCode.NONE, None, type, name, shown)


def _show(body: DescribeConfigsRequest, entry: Entry) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        entry.name,
        entry.value,
        entry.read_only,
        entry.source == DEFAULT,
        entry.source,
        False,  # none of them is a secret
        [DescribeConfigsSynonym(*one) for one in entry.synonyms] if body.include_synonyms else [],
        entry.kind,
        entry.doc if body.include_documentation else None,
    )
