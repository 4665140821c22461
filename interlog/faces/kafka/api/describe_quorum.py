"""DescribeQuorum: the one broker is its own quorum. What it knows of the cluster is in the journal, not in a log of
its own, so there are no offsets to tell.
"""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

_LOG = "__cluster_metadata"
_LISTENER = "KAFKA"


def handle(request: Request, body: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not request.may("describe", CLUSTER, "cluster"):
        why = "Cluster authorization failed."
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=why)
    host, port = request.service.address(request.connection.peer)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            ResponseTopicData(
                topic.topic_name, [_partition(request, topic.topic_name, one) for one in topic.partitions]
            )
            for topic in body.topics
        ],
        nodes=[Node(request.node_id, [Listener(_LISTENER, host, port)])],
    )


def _partition(request: Request, name: str, asked: RequestPartitionData) -> ResponsePartitionData:
    if (name, asked.partition_index) != (_LOG, 0):
        code, why = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Only {_LOG}-0 has a quorum."
        return ResponsePartitionData(asked.partition_index, code, why)
    return ResponsePartitionData(
        error_message=None,
        leader_id=request.node_id,
        leader_epoch=request.core.storage.epoch,
        current_voters=[ReplicaState(request.node_id)],
    )
