"""WriteTxnMarkers: the end of a producer's transaction in single partitions, for those who look after the cluster."""

from interlog.core.producers import ProducerError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle(request: Request, body: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | None:
    cluster = ("kafka-cluster", "cluster")
    allowed = request.may("alter", *cluster) or request.may("cluster_action", *cluster)
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [
                            WritableTxnMarkerPartitionResult(
                                index,
                                _write(request, marker, topic.name, index)
                                if allowed
                                else ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in body.markers
        ]
    )
    if not allowed:
        return response
    request.answer_when_durable(response)
    return None


def _write(request: Request, marker: WritableTxnMarker, name: str, index: int) -> ErrorCode:
    view = request.service.views.find(request.namespace, name)
    partition = None if view is None or view.topic is None else view.partition(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        request.core.transactions.end_in(
            partition.id,
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
    except ProducerError as error:
        return code_of(error.refusal, fenced=False)
    return ErrorCode.NONE
