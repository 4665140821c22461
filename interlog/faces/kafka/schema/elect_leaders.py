"""API 43, ElectLeaders. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class TopicPartitions(f.Message):
    topic: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class ElectLeadersRequest(f.Message):
    API_KEY = 43
    VALID = range(3)
    FLEXIBLE = 2

    election_type: int = f.int8("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = f.array(TopicPartitions, default_factory=list, nullable="0+")
    timeout_ms: int = f.int32(default=60000)


class PartitionResult(f.Message):
    partition_id: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")


class ReplicaElectionResult(f.Message):
    topic: str = f.string(default="")
    partition_result: list[PartitionResult] = f.array(PartitionResult, default_factory=list)


class ElectLeadersResponse(f.Message):
    API_KEY = 43
    VALID = range(3)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = f.array(ReplicaElectionResult, default_factory=list)


REQUEST = ElectLeadersRequest
RESPONSE = ElectLeadersResponse
