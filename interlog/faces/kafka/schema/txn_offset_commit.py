"""API 28, TxnOffsetCommit. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class TxnOffsetCommitRequestPartition(f.Message):
    partition_index: int = f.int32(default=0)
    committed_offset: int = f.int64(default=0)
    committed_leader_epoch: int = f.int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = f.string(default="", nullable="0+")


class TxnOffsetCommitRequestTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[TxnOffsetCommitRequestPartition] = f.array(TxnOffsetCommitRequestPartition, default_factory=list)


class TxnOffsetCommitRequest(f.Message):
    API_KEY = 28
    VALID = range(6)
    FLEXIBLE = 3

    transactional_id: str = f.string(default="")
    group_id: str = f.string(default="")
    producer_id: int = f.int64(default=0)
    producer_epoch: int = f.int16(default=0)
    generation_id: int = f.int32("3+", default=-1)
    member_id: str = f.string("3+", default="")
    group_instance_id: str | None = f.string("3+", default=None, nullable="3+")
    topics: list[TxnOffsetCommitRequestTopic] = f.array(TxnOffsetCommitRequestTopic, default_factory=list)


class TxnOffsetCommitResponsePartition(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


class TxnOffsetCommitResponseTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[TxnOffsetCommitResponsePartition] = f.array(TxnOffsetCommitResponsePartition, default_factory=list)


class TxnOffsetCommitResponse(f.Message):
    API_KEY = 28
    VALID = range(6)
    FLEXIBLE = 3

    throttle_time_ms: int = f.int32(default=0)
    topics: list[TxnOffsetCommitResponseTopic] = f.array(TxnOffsetCommitResponseTopic, default_factory=list)


REQUEST = TxnOffsetCommitRequest
RESPONSE = TxnOffsetCommitResponse
