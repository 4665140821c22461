"""DescribeCluster: the one broker that there is."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER, allowed
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


def handle(request: Request, body: DescribeClusterRequest) -> DescribeClusterResponse:
    if body.endpoint_type != _BROKERS:
        controllers = body.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if controllers else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="These are brokers." if controllers else f"There is no endpoint type {body.endpoint_type}.",
        )
    host, port = request.service.address(request.connection.peer)
    response = DescribeClusterResponse(
        cluster_id=request.service.cluster_id,
        controller_id=request.node_id,
        brokers=[DescribeClusterBroker(request.node_id, host, port)],
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = allowed(request.connection, "cluster", CLUSTER)
    return response
