"""API 20, DeleteTopics. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DeleteTopicState(f.Message):
    name: str | None = f.string("6+", default=None, nullable="6+")
    topic_id: bytes = f.uuid("6+", default=f.NO_UUID)


class DeleteTopicsRequest(f.Message):
    API_KEY = 20
    VALID = range(7)
    FLEXIBLE = 4

    topics: list[DeleteTopicState] = f.array(DeleteTopicState, "6+", default_factory=list)
    topic_names: list[str] = f.array("string", "0-5", default_factory=list, ignorable=True)
    timeout_ms: int = f.int32(default=0)


class DeletableTopicResult(f.Message):
    name: str | None = f.string(default="", nullable="6+")
    topic_id: bytes = f.uuid("6+", default=f.NO_UUID, ignorable=True)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)


class DeleteTopicsResponse(f.Message):
    API_KEY = 20
    VALID = range(7)
    FLEXIBLE = 4

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    responses: list[DeletableTopicResult] = f.array(DeletableTopicResult, default_factory=list)


REQUEST = DeleteTopicsRequest
RESPONSE = DeleteTopicsResponse
