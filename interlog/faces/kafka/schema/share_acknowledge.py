"""API 79, ShareAcknowledge. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AcknowledgementBatch(f.Message):
    first_offset: int = f.int64(default=0)
    last_offset: int = f.int64(default=0)
    acknowledge_types: list[int] = f.array("int8", default_factory=list)


class AcknowledgePartition(f.Message):
    partition_index: int = f.int32(default=0)
    acknowledgement_batches: list[AcknowledgementBatch] = f.array(AcknowledgementBatch, default_factory=list)


class AcknowledgeTopic(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[AcknowledgePartition] = f.array(AcknowledgePartition, default_factory=list)


class ShareAcknowledgeRequest(f.Message):
    API_KEY = 79
    VALID = range(1, 3)
    FLEXIBLE = 0

    group_id: str | None = f.string(default=None, nullable="0+")
    member_id: str | None = f.string(default="", nullable="0+")
    share_session_epoch: int = f.int32(default=0)
    is_renew_ack: bool = f.boolean("2+", default=False)
    topics: list[AcknowledgeTopic] = f.array(AcknowledgeTopic, default_factory=list)


class LeaderIdAndEpoch(f.Message):
    leader_id: int = f.int32(default=0)
    leader_epoch: int = f.int32(default=0)


class PartitionData(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    current_leader: LeaderIdAndEpoch = f.struct(LeaderIdAndEpoch, default_factory=LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID, ignorable=True)
    partitions: list[PartitionData] = f.array(PartitionData, default_factory=list)


class NodeEndpoint(f.Message):
    node_id: int = f.int32(default=0)
    host: str = f.string(default="")
    port: int = f.int32(default=0)
    rack: str | None = f.string(default=None, nullable="0+")


class ShareAcknowledgeResponse(f.Message):
    API_KEY = 79
    VALID = range(1, 3)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0, ignorable=True)
    error_code: int = f.int16(default=0, ignorable=True)
    error_message: str | None = f.string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = f.int32("2+", default=0, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = f.array(ShareAcknowledgeTopicResponse, default_factory=list)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, default_factory=list)


REQUEST = ShareAcknowledgeRequest
RESPONSE = ShareAcknowledgeResponse
