"""API 91, AlterShareGroupOffsets. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AlterShareGroupOffsetsRequestPartition(f.Message):
    partition_index: int = f.int32(default=0)
    start_offset: int = f.int64(default=0)


class AlterShareGroupOffsetsRequestTopic(f.Message):
    topic_name: str = f.string(default="")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = f.array(
        AlterShareGroupOffsetsRequestPartition, default_factory=list
    )


class AlterShareGroupOffsetsRequest(f.Message):
    API_KEY = 91
    VALID = range(1)
    FLEXIBLE = 0

    group_id: str = f.string(default="")
    topics: list[AlterShareGroupOffsetsRequestTopic] = f.array(AlterShareGroupOffsetsRequestTopic, default_factory=list)


class AlterShareGroupOffsetsResponsePartition(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")


class AlterShareGroupOffsetsResponseTopic(f.Message):
    topic_name: str = f.string(default="")
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = f.array(
        AlterShareGroupOffsetsResponsePartition, default_factory=list
    )


class AlterShareGroupOffsetsResponse(f.Message):
    API_KEY = 91
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    responses: list[AlterShareGroupOffsetsResponseTopic] = f.array(
        AlterShareGroupOffsetsResponseTopic, default_factory=list
    )


REQUEST = AlterShareGroupOffsetsRequest
RESPONSE = AlterShareGroupOffsetsResponse
