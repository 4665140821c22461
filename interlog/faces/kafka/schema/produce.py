"""API 0, Produce. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class PartitionProduceData(f.Message):
    index: int = f.int32(default=0)
    records: bytes | memoryview | None = f.records(default=None, nullable="0+")


class TopicProduceData(f.Message):
    name: str = f.string("0-12", default="", ignorable=True)
    topic_id: bytes = f.uuid("13+", default=f.NO_UUID, ignorable=True)
    partition_data: list[PartitionProduceData] = f.array(PartitionProduceData, default_factory=list)


class ProduceRequest(f.Message):
    API_KEY = 0
    VALID = range(14)
    FLEXIBLE = 9

    transactional_id: str | None = f.string("3+", default=None, nullable="3+")
    acks: int = f.int16(default=0)
    timeout_ms: int = f.int32(default=0)
    topic_data: list[TopicProduceData] = f.array(TopicProduceData, default_factory=list)


class BatchIndexAndErrorMessage(f.Message):
    batch_index: int = f.int32("8+", default=0)
    batch_index_error_message: str | None = f.string("8+", default=None, nullable="8+")


class LeaderIdAndEpoch(f.Message):
    leader_id: int = f.int32("10+", default=-1)
    leader_epoch: int = f.int32("10+", default=-1)


class PartitionProduceResponse(f.Message):
    index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    base_offset: int = f.int64(default=0)
    log_append_time_ms: int = f.int64("2+", default=-1, ignorable=True)
    log_start_offset: int = f.int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = f.array(
        BatchIndexAndErrorMessage, "8+", default_factory=list, ignorable=True
    )
    error_message: str | None = f.string("8+", default=None, nullable="8+", ignorable=True)
    current_leader: LeaderIdAndEpoch = f.struct(LeaderIdAndEpoch, "10+", default_factory=LeaderIdAndEpoch, tag=0)


class TopicProduceResponse(f.Message):
    name: str = f.string("0-12", default="", ignorable=True)
    topic_id: bytes = f.uuid("13+", default=f.NO_UUID, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = f.array(PartitionProduceResponse, default_factory=list)


class NodeEndpoint(f.Message):
    node_id: int = f.int32("10+", default=0)
    host: str = f.string("10+", default="")
    port: int = f.int32("10+", default=0)
    rack: str | None = f.string("10+", default=None, nullable="10+")


class ProduceResponse(f.Message):
    API_KEY = 0
    VALID = range(14)
    FLEXIBLE = 9

    responses: list[TopicProduceResponse] = f.array(TopicProduceResponse, default_factory=list)
    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "10+", default_factory=list, tag=0)


REQUEST = ProduceRequest
RESPONSE = ProduceResponse
