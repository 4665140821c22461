"""AlterPartitionReassignments: partitions can go nowhere, for there is one broker; who asks for it again is right."""

from interlog.faces.kafka.assignments import check_replicas
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(request: Request, body: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    if not request.may("alter", CLUSTER, "cluster"):
        why = "Cluster authorization failed."
        return AlterPartitionReassignmentsResponse(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, why)
    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(topic.name, [_partition(request, topic.name, one) for one in topic.partitions])
            for topic in body.topics
        ],
    )


def _partition(request: Request, name: str, one: ReassignablePartition) -> ReassignablePartitionResponse:
    index = one.partition_index
    try:
        view = request.service.views.find(request.namespace, name)
        if view is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
        if view.partition(index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
        if one.replicas is None:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        check_replicas(request, one.replicas)
    except KafkaError as error:
        return ReassignablePartitionResponse(index, error.code, error.message)
    return ReassignablePartitionResponse(index, ErrorCode.NONE, None)
