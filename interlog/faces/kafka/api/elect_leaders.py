"""ElectLeaders: the one broker leads every partition already, so no election is ever needed."""

from enum import IntEnum

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


class _Election(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def handle(request: Request, body: ElectLeadersRequest) -> ElectLeadersResponse:
    if not request.may("alter", CLUSTER, "cluster"):
        return _refusal(body, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    if body.election_type not in list(_Election):
        return _refusal(body, ErrorCode.INVALID_REQUEST, f"Unknown election type {body.election_type}")
    # Who asks for all of them is told only of those that were led by another.
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic.topic, [_partition(request, topic.topic, index) for index in topic.partitions])
            for topic in body.topic_partitions or ()
        ]
    )


def _refusal(body: ElectLeadersRequest, code: ErrorCode, why: str) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(topic.topic, [PartitionResult(index, code, why) for index in topic.partitions])
            for topic in body.topic_partitions or ()
        ],
    )


def _partition(request: Request, name: str, index: int) -> PartitionResult:
    view = request.service.views.find(request.namespace, name)
    if view is None:
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if view.partition(index) is None:
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    why = "Leader election not needed for topic partition."
    return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, why)
