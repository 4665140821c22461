"""API 68, ConsumerGroupHeartbeat. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class RequestTopicPartitions(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[int] = f.array("int32", default_factory=list)


class ConsumerGroupHeartbeatRequest(f.Message):
    API_KEY = 68
    VALID = range(2)
    FLEXIBLE = 0

    group_id: str = f.string(default="")
    member_id: str = f.string(default="")
    member_epoch: int = f.int32(default=0)
    instance_id: str | None = f.string(default=None, nullable="0+")
    rack_id: str | None = f.string(default=None, nullable="0+")
    rebalance_timeout_ms: int = f.int32(default=-1)
    subscribed_topic_names: list[str] | None = f.array("string", default=None, nullable="0+")
    subscribed_topic_regex: str | None = f.string("1+", default=None, nullable="1+")
    server_assignor: str | None = f.string(default=None, nullable="0+")
    topic_partitions: list[RequestTopicPartitions] | None = f.array(RequestTopicPartitions, default=None, nullable="0+")


class ResponseTopicPartitions(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[int] = f.array("int32", default_factory=list)


class Assignment(f.Message):
    topic_partitions: list[ResponseTopicPartitions] = f.array(ResponseTopicPartitions, default_factory=list)


class ConsumerGroupHeartbeatResponse(f.Message):
    API_KEY = 68
    VALID = range(2)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    member_id: str | None = f.string(default=None, nullable="0+")
    member_epoch: int = f.int32(default=0)
    heartbeat_interval_ms: int = f.int32(default=0)
    assignment: Assignment | None = f.struct(Assignment, default=None, nullable="0+")


REQUEST = ConsumerGroupHeartbeatRequest
RESPONSE = ConsumerGroupHeartbeatResponse
