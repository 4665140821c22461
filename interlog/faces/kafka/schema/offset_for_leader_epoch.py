"""API 23, OffsetForLeaderEpoch. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class OffsetForLeaderPartition(f.Message):
    partition: int = f.int32(default=0)
    current_leader_epoch: int = f.int32("2+", default=-1, ignorable=True)
    leader_epoch: int = f.int32(default=0)


class OffsetForLeaderTopic(f.Message):
    topic: str = f.string(default="")
    partitions: list[OffsetForLeaderPartition] = f.array(OffsetForLeaderPartition, default_factory=list)


class OffsetForLeaderEpochRequest(f.Message):
    API_KEY = 23
    VALID = range(5)
    FLEXIBLE = 4

    replica_id: int = f.int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = f.array(OffsetForLeaderTopic, default_factory=list)


class EpochEndOffset(f.Message):
    error_code: int = f.int16(default=0)
    partition: int = f.int32(default=0)
    leader_epoch: int = f.int32("1+", default=-1, ignorable=True)
    end_offset: int = f.int64(default=-1)


class OffsetForLeaderTopicResult(f.Message):
    topic: str = f.string(default="")
    partitions: list[EpochEndOffset] = f.array(EpochEndOffset, default_factory=list)


class OffsetForLeaderEpochResponse(f.Message):
    API_KEY = 23
    VALID = range(5)
    FLEXIBLE = 4

    throttle_time_ms: int = f.int32("2+", default=0, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = f.array(OffsetForLeaderTopicResult, default_factory=list)


REQUEST = OffsetForLeaderEpochRequest
RESPONSE = OffsetForLeaderEpochResponse
