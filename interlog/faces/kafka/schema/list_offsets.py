"""API 2, ListOffsets. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ListOffsetsPartition(f.Message):
    partition_index: int = f.int32(default=0)
    current_leader_epoch: int = f.int32("4+", default=-1, ignorable=True)
    timestamp: int = f.int64(default=0)
    max_num_offsets: int = f.int32("0", default=1)


class ListOffsetsTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[ListOffsetsPartition] = f.array(ListOffsetsPartition, default_factory=list)


class ListOffsetsRequest(f.Message):
    API_KEY = 2
    VALID = range(12)
    FLEXIBLE = 6

    replica_id: int = f.int32(default=0)
    isolation_level: int = f.int8("2+", default=0)
    topics: list[ListOffsetsTopic] = f.array(ListOffsetsTopic, default_factory=list)
    timeout_ms: int = f.int32("10+", default=0, ignorable=True)


class ListOffsetsPartitionResponse(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    old_style_offsets: list[int] = f.array("int64", "0", default_factory=list)
    timestamp: int = f.int64("1+", default=-1)
    offset: int = f.int64("1+", default=-1)
    leader_epoch: int = f.int32("4+", default=-1)


class ListOffsetsTopicResponse(f.Message):
    name: str = f.string(default="")
    partitions: list[ListOffsetsPartitionResponse] = f.array(ListOffsetsPartitionResponse, default_factory=list)


class ListOffsetsResponse(f.Message):
    API_KEY = 2
    VALID = range(12)
    FLEXIBLE = 6

    throttle_time_ms: int = f.int32("2+", default=0, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = f.array(ListOffsetsTopicResponse, default_factory=list)


REQUEST = ListOffsetsRequest
RESPONSE = ListOffsetsResponse
