"""ListConfigResources: the names of what has configs.

Version 0 asks for subscriptions to clients' metrics alone, and there are none; nor are there loggers to configure.
"""

from collections.abc import Iterator
from typing import Final

from interlog.core.group_settings import KIND as GROUP_SETTINGS
from interlog.faces.kafka.config_resources import ConfigType
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_BROKER_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_KNOWN: Final = (*ConfigType, _BROKER_LOGGER, _CLIENT_METRICS)


def handle(request: Request, body: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if not request.may("describe_configs", CLUSTER, "cluster"):
        return ListConfigResourcesResponse(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = body.resource_types or list(_KNOWN)
    if request.version == 0:
        wanted = [_CLIENT_METRICS]
    if not all(one in _KNOWN for one in wanted):
        return ListConfigResourcesResponse(0, ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, type) for type in dict.fromkeys(wanted) for name in _names(request, type)
        ]
    )


def _names(request: Request, type: int) -> Iterator[str]:
    if type == ConfigType.TOPIC:
        yield from (view.name for view in request.service.views.all(request.namespace))
    elif type == ConfigType.BROKER:
        yield str(request.node_id)
    elif type == ConfigType.GROUP:
        yield from (item.name for item in request.core.catalog.objects(GROUP_SETTINGS, request.namespace))
