"""ListPartitionReassignments: none is ever under way."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: Request, body: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    if not request.may("describe", CLUSTER, "cluster"):
        why = "Cluster authorization failed."
        return ListPartitionReassignmentsResponse(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, why)
    return ListPartitionReassignmentsResponse(error_message=None)
