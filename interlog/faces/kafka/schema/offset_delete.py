"""API 47, OffsetDelete. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class OffsetDeleteRequestPartition(f.Message):
    partition_index: int = f.int32(default=0)


class OffsetDeleteRequestTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[OffsetDeleteRequestPartition] = f.array(OffsetDeleteRequestPartition, default_factory=list)


class OffsetDeleteRequest(f.Message):
    API_KEY = 47
    VALID = range(1)

    group_id: str = f.string(default="")
    topics: list[OffsetDeleteRequestTopic] = f.array(OffsetDeleteRequestTopic, default_factory=list)


class OffsetDeleteResponsePartition(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


class OffsetDeleteResponseTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[OffsetDeleteResponsePartition] = f.array(OffsetDeleteResponsePartition, default_factory=list)


class OffsetDeleteResponse(f.Message):
    API_KEY = 47
    VALID = range(1)

    error_code: int = f.int16(default=0)
    throttle_time_ms: int = f.int32(default=0, ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = f.array(OffsetDeleteResponseTopic, default_factory=list)


REQUEST = OffsetDeleteRequest
RESPONSE = OffsetDeleteResponse
