"""API 8, OffsetCommit. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class OffsetCommitRequestPartition(f.Message):
    partition_index: int = f.int32(default=0)
    committed_offset: int = f.int64(default=0)
    committed_leader_epoch: int = f.int32("6+", default=-1, ignorable=True)
    commit_timestamp: int = f.int64("1", default=-1)
    committed_metadata: str | None = f.string(default="", nullable="0+")


class OffsetCommitRequestTopic(f.Message):
    name: str = f.string("0-9", default="", ignorable=True)
    topic_id: bytes = f.uuid("10+", default=f.NO_UUID, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = f.array(OffsetCommitRequestPartition, default_factory=list)


class OffsetCommitRequest(f.Message):
    API_KEY = 8
    VALID = range(11)
    FLEXIBLE = 8

    group_id: str = f.string(default="")
    generation_id_or_member_epoch: int = f.int32("1+", default=-1, ignorable=True)
    member_id: str = f.string("1+", default="", ignorable=True)
    group_instance_id: str | None = f.string("7+", default=None, nullable="7+")
    retention_time_ms: int = f.int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = f.array(OffsetCommitRequestTopic, default_factory=list)


class OffsetCommitResponsePartition(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


class OffsetCommitResponseTopic(f.Message):
    name: str = f.string("0-9", default="", ignorable=True)
    topic_id: bytes = f.uuid("10+", default=f.NO_UUID, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = f.array(OffsetCommitResponsePartition, default_factory=list)


class OffsetCommitResponse(f.Message):
    API_KEY = 8
    VALID = range(11)
    FLEXIBLE = 8

    throttle_time_ms: int = f.int32("3+", default=0, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = f.array(OffsetCommitResponseTopic, default_factory=list)


REQUEST = OffsetCommitRequest
RESPONSE = OffsetCommitResponse
