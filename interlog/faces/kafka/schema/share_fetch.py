"""API 78, ShareFetch. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AcknowledgementBatch(f.Message):
    first_offset: int = f.int64(default=0)
    last_offset: int = f.int64(default=0)
    acknowledge_types: list[int] = f.array("int8", default_factory=list)


class FetchPartition(f.Message):
    partition_index: int = f.int32(default=0)
    acknowledgement_batches: list[AcknowledgementBatch] = f.array(AcknowledgementBatch, default_factory=list)


class FetchTopic(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[FetchPartition] = f.array(FetchPartition, default_factory=list)


class ForgottenTopic(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[int] = f.array("int32", default_factory=list)


class ShareFetchRequest(f.Message):
    API_KEY = 78
    VALID = range(1, 3)
    FLEXIBLE = 0

    group_id: str | None = f.string(default=None, nullable="0+")
    member_id: str | None = f.string(default="", nullable="0+")
    share_session_epoch: int = f.int32(default=0)
    max_wait_ms: int = f.int32(default=0)
    min_bytes: int = f.int32(default=0)
    max_bytes: int = f.int32(default=0x7FFFFFFF)
    max_records: int = f.int32(default=0)
    batch_size: int = f.int32(default=0)
    share_acquire_mode: int = f.int8("2+", default=0, ignorable=True)
    is_renew_ack: bool = f.boolean("2+", default=False)
    topics: list[FetchTopic] = f.array(FetchTopic, default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = f.array(ForgottenTopic, default_factory=list)


class LeaderIdAndEpoch(f.Message):
    leader_id: int = f.int32(default=0)
    leader_epoch: int = f.int32(default=0)


class AcquiredRecords(f.Message):
    first_offset: int = f.int64(default=0)
    last_offset: int = f.int64(default=0)
    delivery_count: int = f.int16(default=0)


class PartitionData(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    acknowledge_error_code: int = f.int16(default=0)
    acknowledge_error_message: str | None = f.string(default=None, nullable="0+")
    current_leader: LeaderIdAndEpoch = f.struct(LeaderIdAndEpoch, default_factory=LeaderIdAndEpoch)
    records: bytes | memoryview = f.records(default=None)
    acquired_records: list[AcquiredRecords] = f.array(AcquiredRecords, default_factory=list)


class ShareFetchableTopicResponse(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[PartitionData] = f.array(PartitionData, default_factory=list)


class NodeEndpoint(f.Message):
    node_id: int = f.int32(default=0)
    host: str = f.string(default="")
    port: int = f.int32(default=0)
    rack: str | None = f.string(default=None, nullable="0+")


class ShareFetchResponse(f.Message):
    API_KEY = 78
    VALID = range(1, 3)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = f.int32(default=0)
    responses: list[ShareFetchableTopicResponse] = f.array(ShareFetchableTopicResponse, default_factory=list)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, default_factory=list)


REQUEST = ShareFetchRequest
RESPONSE = ShareFetchResponse
