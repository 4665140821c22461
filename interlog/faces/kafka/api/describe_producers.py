"""DescribeProducers: who numbers batches in a partition, and since which offset who is in a transaction there."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(request: Request, body: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(topic.name, [_partition(request, topic.name, index) for index in topic.partition_indexes])
            for topic in body.topics
        ]
    )


def _partition(request: Request, name: str, index: int) -> PartitionResponse:
    if not request.may("read", name):
        return PartitionResponse(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    view = request.service.views.find(request.namespace, name)
    partition = None if view is None else view.partition(index)
    if partition is None:
        return PartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return PartitionResponse(
        index,
        active_producers=[
            ProducerState(one.id, one.epoch, one.last_sequence, one.timestamp_ms, one.coordinator_epoch, one.open_since)
            for one in request.core.producers.of(partition.id)
        ],
    )
