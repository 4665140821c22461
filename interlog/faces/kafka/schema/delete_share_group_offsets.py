"""API 92, DeleteShareGroupOffsets. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DeleteShareGroupOffsetsRequestTopic(f.Message):
    topic_name: str = f.string(default="")


class DeleteShareGroupOffsetsRequest(f.Message):
    API_KEY = 92
    VALID = range(1)
    FLEXIBLE = 0

    group_id: str = f.string(default="")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = f.array(
        DeleteShareGroupOffsetsRequestTopic, default_factory=list
    )


class DeleteShareGroupOffsetsResponseTopic(f.Message):
    topic_name: str = f.string(default="")
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")


class DeleteShareGroupOffsetsResponse(f.Message):
    API_KEY = 92
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    responses: list[DeleteShareGroupOffsetsResponseTopic] = f.array(
        DeleteShareGroupOffsetsResponseTopic, default_factory=list
    )


REQUEST = DeleteShareGroupOffsetsRequest
RESPONSE = DeleteShareGroupOffsetsResponse
