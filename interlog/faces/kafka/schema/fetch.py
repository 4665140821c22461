"""API 1, Fetch. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ReplicaState(f.Message):
    replica_id: int = f.int32("15+", default=-1)
    replica_epoch: int = f.int64("15+", default=-1)


class FetchPartition(f.Message):
    partition: int = f.int32(default=0)
    current_leader_epoch: int = f.int32("9+", default=-1, ignorable=True)
    fetch_offset: int = f.int64(default=0)
    last_fetched_epoch: int = f.int32("12+", default=-1)
    log_start_offset: int = f.int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = f.int32(default=0)
    replica_directory_id: bytes = f.uuid("17+", default=f.NO_UUID, tag=0, ignorable=True)
    high_watermark: int = f.int64("18+", default=0x7FFFFFFFFFFFFFFF, tag=1, ignorable=True)


class FetchTopic(f.Message):
    topic: str = f.string("0-12", default="", ignorable=True)
    topic_id: bytes = f.uuid("13+", default=f.NO_UUID, ignorable=True)
    partitions: list[FetchPartition] = f.array(FetchPartition, default_factory=list)


class ForgottenTopic(f.Message):
    topic: str = f.string("7-12", default="", ignorable=True)
    topic_id: bytes = f.uuid("13+", default=f.NO_UUID, ignorable=True)
    partitions: list[int] = f.array("int32", "7+", default_factory=list)


class FetchRequest(f.Message):
    API_KEY = 1
    VALID = range(19)
    FLEXIBLE = 12

    cluster_id: str | None = f.string("12+", default=None, nullable="12+", tag=0, ignorable=True)
    replica_id: int = f.int32("0-14", default=-1)
    replica_state: ReplicaState = f.struct(ReplicaState, "15+", default_factory=ReplicaState, tag=1)
    max_wait_ms: int = f.int32(default=0)
    min_bytes: int = f.int32(default=0)
    max_bytes: int = f.int32("3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = f.int8("4+", default=0, ignorable=True)
    session_id: int = f.int32("7+", default=0, ignorable=True)
    session_epoch: int = f.int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = f.array(FetchTopic, default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = f.array(ForgottenTopic, "7+", default_factory=list)
    rack_id: str = f.string("11+", default="", ignorable=True)


class EpochEndOffset(f.Message):
    epoch: int = f.int32("12+", default=-1)
    end_offset: int = f.int64("12+", default=-1)


class LeaderIdAndEpoch(f.Message):
    leader_id: int = f.int32("12+", default=-1)
    leader_epoch: int = f.int32("12+", default=-1)


class SnapshotId(f.Message):
    end_offset: int = f.int64(default=-1)
    epoch: int = f.int32(default=-1)


class AbortedTransaction(f.Message):
    producer_id: int = f.int64("4+", default=0)
    first_offset: int = f.int64("4+", default=0)


class PartitionData(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    high_watermark: int = f.int64(default=0)
    last_stable_offset: int = f.int64("4+", default=-1, ignorable=True)
    log_start_offset: int = f.int64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = f.struct(EpochEndOffset, "12+", default_factory=EpochEndOffset, tag=0)
    current_leader: LeaderIdAndEpoch = f.struct(LeaderIdAndEpoch, "12+", default_factory=LeaderIdAndEpoch, tag=1)
    snapshot_id: SnapshotId = f.struct(SnapshotId, "12+", default_factory=SnapshotId, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = f.array(
        AbortedTransaction, "4+", default_factory=list, nullable="4+", ignorable=True
    )
    preferred_read_replica: int = f.int32("11+", default=-1)
    records: bytes | memoryview | None = f.records(default=None, nullable="0+")


class FetchableTopicResponse(f.Message):
    topic: str = f.string("0-12", default="", ignorable=True)
    topic_id: bytes = f.uuid("13+", default=f.NO_UUID, ignorable=True)
    partitions: list[PartitionData] = f.array(PartitionData, default_factory=list)


class NodeEndpoint(f.Message):
    node_id: int = f.int32("16+", default=0)
    host: str = f.string("16+", default="")
    port: int = f.int32("16+", default=0)
    rack: str | None = f.string("16+", default=None, nullable="16+")


class FetchResponse(f.Message):
    API_KEY = 1
    VALID = range(19)
    FLEXIBLE = 12

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    error_code: int = f.int16("7+", default=0, ignorable=True)
    session_id: int = f.int32("7+", default=0)
    responses: list[FetchableTopicResponse] = f.array(FetchableTopicResponse, default_factory=list)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "16+", default_factory=list, tag=0)


REQUEST = FetchRequest
RESPONSE = FetchResponse
