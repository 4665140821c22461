"""API 45, AlterPartitionReassignments. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ReassignablePartition(f.Message):
    partition_index: int = f.int32(default=0)
    replicas: list[int] | None = f.array("int32", default=None, nullable="0+")


class ReassignableTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[ReassignablePartition] = f.array(ReassignablePartition, default_factory=list)


class AlterPartitionReassignmentsRequest(f.Message):
    API_KEY = 45
    VALID = range(1)
    FLEXIBLE = 0

    timeout_ms: int = f.int32(default=60000)
    topics: list[ReassignableTopic] = f.array(ReassignableTopic, default_factory=list)


class ReassignablePartitionResponse(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")


class ReassignableTopicResponse(f.Message):
    name: str = f.string(default="")
    partitions: list[ReassignablePartitionResponse] = f.array(ReassignablePartitionResponse, default_factory=list)


class AlterPartitionReassignmentsResponse(f.Message):
    API_KEY = 45
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    responses: list[ReassignableTopicResponse] = f.array(ReassignableTopicResponse, default_factory=list)


REQUEST = AlterPartitionReassignmentsRequest
RESPONSE = AlterPartitionReassignmentsResponse
