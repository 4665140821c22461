"""API 75, DescribeTopicPartitions. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class TopicRequest(f.Message):
    name: str = f.string(default="")


class RequestCursor(f.Message):
    topic_name: str = f.string(default="")
    partition_index: int = f.int32(default=0)


class DescribeTopicPartitionsRequest(f.Message):
    API_KEY = 75
    VALID = range(1)
    FLEXIBLE = 0

    topics: list[TopicRequest] = f.array(TopicRequest, default_factory=list)
    response_partition_limit: int = f.int32(default=2000)
    cursor: RequestCursor | None = f.struct(RequestCursor, default=None, nullable="0+")


class DescribeTopicPartitionsResponsePartition(f.Message):
    error_code: int = f.int16(default=0)
    partition_index: int = f.int32(default=0)
    leader_id: int = f.int32(default=0)
    leader_epoch: int = f.int32(default=-1, ignorable=True)
    replica_nodes: list[int] = f.array("int32", default_factory=list)
    isr_nodes: list[int] = f.array("int32", default_factory=list)
    eligible_leader_replicas: list[int] | None = f.array("int32", default=None, nullable="0+")
    last_known_elr: list[int] | None = f.array("int32", default=None, nullable="0+")
    offline_replicas: list[int] = f.array("int32", default_factory=list, ignorable=True)


class DescribeTopicPartitionsResponseTopic(f.Message):
    error_code: int = f.int16(default=0)
    name: str | None = f.string(default="", nullable="0+")
    topic_id: bytes = f.uuid(default=f.NO_UUID, ignorable=True)
    is_internal: bool = f.boolean(default=False, ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = f.array(
        DescribeTopicPartitionsResponsePartition, default_factory=list
    )
    topic_authorized_operations: int = f.int32(default=-2147483648)


class ResponseCursor(f.Message):
    topic_name: str = f.string(default="")
    partition_index: int = f.int32(default=0)


class DescribeTopicPartitionsResponse(f.Message):
    API_KEY = 75
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0, ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = f.array(
        DescribeTopicPartitionsResponseTopic, default_factory=list
    )
    next_cursor: ResponseCursor | None = f.struct(ResponseCursor, default=None, nullable="0+")


REQUEST = DescribeTopicPartitionsRequest
RESPONSE = DescribeTopicPartitionsResponse
