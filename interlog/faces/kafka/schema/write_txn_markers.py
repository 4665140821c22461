"""API 27, WriteTxnMarkers. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class WritableTxnMarkerTopic(f.Message):
    name: str = f.string(default="")
    partition_indexes: list[int] = f.array("int32", default_factory=list)


class WritableTxnMarker(f.Message):
    producer_id: int = f.int64(default=0)
    producer_epoch: int = f.int16(default=0)
    transaction_result: bool = f.boolean(default=False)
    topics: list[WritableTxnMarkerTopic] = f.array(WritableTxnMarkerTopic, default_factory=list)
    coordinator_epoch: int = f.int32(default=0)
    transaction_version: int = f.int8("2+", default=0, ignorable=True)


class WriteTxnMarkersRequest(f.Message):
    API_KEY = 27
    VALID = range(3)
    FLEXIBLE = 1

    markers: list[WritableTxnMarker] = f.array(WritableTxnMarker, default_factory=list)


class WritableTxnMarkerPartitionResult(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


class WritableTxnMarkerTopicResult(f.Message):
    name: str = f.string(default="")
    partitions: list[WritableTxnMarkerPartitionResult] = f.array(WritableTxnMarkerPartitionResult, default_factory=list)


class WritableTxnMarkerResult(f.Message):
    producer_id: int = f.int64(default=0)
    topics: list[WritableTxnMarkerTopicResult] = f.array(WritableTxnMarkerTopicResult, default_factory=list)


class WriteTxnMarkersResponse(f.Message):
    API_KEY = 27
    VALID = range(3)
    FLEXIBLE = 1

    markers: list[WritableTxnMarkerResult] = f.array(WritableTxnMarkerResult, default_factory=list)


REQUEST = WriteTxnMarkersRequest
RESPONSE = WriteTxnMarkersResponse
