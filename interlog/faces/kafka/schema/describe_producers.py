"""API 61, DescribeProducers. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class TopicRequest(f.Message):
    name: str = f.string(default="")
    partition_indexes: list[int] = f.array("int32", default_factory=list)


class DescribeProducersRequest(f.Message):
    API_KEY = 61
    VALID = range(1)
    FLEXIBLE = 0

    topics: list[TopicRequest] = f.array(TopicRequest, default_factory=list)


class ProducerState(f.Message):
    producer_id: int = f.int64(default=0)
    producer_epoch: int = f.int32(default=0)
    last_sequence: int = f.int32(default=-1)
    last_timestamp: int = f.int64(default=-1)
    coordinator_epoch: int = f.int32(default=0)
    current_txn_start_offset: int = f.int64(default=-1)


class PartitionResponse(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    active_producers: list[ProducerState] = f.array(ProducerState, default_factory=list)


class TopicResponse(f.Message):
    name: str = f.string(default="")
    partitions: list[PartitionResponse] = f.array(PartitionResponse, default_factory=list)


class DescribeProducersResponse(f.Message):
    API_KEY = 61
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    topics: list[TopicResponse] = f.array(TopicResponse, default_factory=list)


REQUEST = DescribeProducersRequest
RESPONSE = DescribeProducersResponse
