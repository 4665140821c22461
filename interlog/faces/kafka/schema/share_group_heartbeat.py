"""API 76, ShareGroupHeartbeat. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ShareGroupHeartbeatRequest(f.Message):
    API_KEY = 76
    VALID = range(1, 2)
    FLEXIBLE = 0

    group_id: str = f.string(default="")
    member_id: str = f.string(default="")
    member_epoch: int = f.int32(default=0)
    rack_id: str | None = f.string(default=None, nullable="0+")
    subscribed_topic_names: list[str] | None = f.array("string", default=None, nullable="0+")


class TopicPartitions(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[int] = f.array("int32", default_factory=list)


class Assignment(f.Message):
    topic_partitions: list[TopicPartitions] = f.array(TopicPartitions, default_factory=list)


class ShareGroupHeartbeatResponse(f.Message):
    API_KEY = 76
    VALID = range(1, 2)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    member_id: str | None = f.string(default=None, nullable="0+")
    member_epoch: int = f.int32(default=0)
    heartbeat_interval_ms: int = f.int32(default=0)
    assignment: Assignment | None = f.struct(Assignment, default=None, nullable="0+")


REQUEST = ShareGroupHeartbeatRequest
RESPONSE = ShareGroupHeartbeatResponse
