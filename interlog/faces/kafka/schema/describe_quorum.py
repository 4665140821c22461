"""API 55, DescribeQuorum. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class RequestPartitionData(f.Message):
    partition_index: int = f.int32(default=0)


class RequestTopicData(f.Message):
    topic_name: str = f.string(default="")
    partitions: list[RequestPartitionData] = f.array(RequestPartitionData, default_factory=list)


class DescribeQuorumRequest(f.Message):
    API_KEY = 55
    VALID = range(3)
    FLEXIBLE = 0

    topics: list[RequestTopicData] = f.array(RequestTopicData, default_factory=list)


class ReplicaState(f.Message):
    replica_id: int = f.int32(default=0)
    replica_directory_id: bytes = f.uuid("2+", default=f.NO_UUID)
    log_end_offset: int = f.int64(default=0)
    last_fetch_timestamp: int = f.int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = f.int64("1+", default=-1, ignorable=True)


class ResponsePartitionData(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string("2+", default="", nullable="2+", ignorable=True)
    leader_id: int = f.int32(default=0)
    leader_epoch: int = f.int32(default=0)
    high_watermark: int = f.int64(default=0)
    current_voters: list[ReplicaState] = f.array(ReplicaState, default_factory=list)
    observers: list[ReplicaState] = f.array(ReplicaState, default_factory=list)


class ResponseTopicData(f.Message):
    topic_name: str = f.string(default="")
    partitions: list[ResponsePartitionData] = f.array(ResponsePartitionData, default_factory=list)


class Listener(f.Message):
    name: str = f.string("2+", default="")
    host: str = f.string("2+", default="")
    port: int = f.uint16("2+", default=0)


class Node(f.Message):
    node_id: int = f.int32("2+", default=0)
    listeners: list[Listener] = f.array(Listener, "2+", default_factory=list)


class DescribeQuorumResponse(f.Message):
    API_KEY = 55
    VALID = range(3)
    FLEXIBLE = 0

    error_code: int = f.int16(default=0)
    error_message: str | None = f.string("2+", default="", nullable="2+", ignorable=True)
    topics: list[ResponseTopicData] = f.array(ResponseTopicData, default_factory=list)
    nodes: list[Node] = f.array(Node, "2+", default_factory=list)


REQUEST = DescribeQuorumRequest
RESPONSE = DescribeQuorumResponse
