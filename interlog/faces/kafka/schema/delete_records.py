"""API 21, DeleteRecords. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DeleteRecordsPartition(f.Message):
    partition_index: int = f.int32(default=0)
    offset: int = f.int64(default=0)


class DeleteRecordsTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[DeleteRecordsPartition] = f.array(DeleteRecordsPartition, default_factory=list)


class DeleteRecordsRequest(f.Message):
    API_KEY = 21
    VALID = range(3)
    FLEXIBLE = 2

    topics: list[DeleteRecordsTopic] = f.array(DeleteRecordsTopic, default_factory=list)
    timeout_ms: int = f.int32(default=0)


class DeleteRecordsPartitionResult(f.Message):
    partition_index: int = f.int32(default=0)
    low_watermark: int = f.int64(default=0)
    error_code: int = f.int16(default=0)


class DeleteRecordsTopicResult(f.Message):
    name: str = f.string(default="")
    partitions: list[DeleteRecordsPartitionResult] = f.array(DeleteRecordsPartitionResult, default_factory=list)


class DeleteRecordsResponse(f.Message):
    API_KEY = 21
    VALID = range(3)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    topics: list[DeleteRecordsTopicResult] = f.array(DeleteRecordsTopicResult, default_factory=list)


REQUEST = DeleteRecordsRequest
RESPONSE = DeleteRecordsResponse
