"""API 90, DescribeShareGroupOffsets. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribeShareGroupOffsetsRequestTopic(f.Message):
    topic_name: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class DescribeShareGroupOffsetsRequestGroup(f.Message):
    group_id: str = f.string(default="")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = f.array(
        DescribeShareGroupOffsetsRequestTopic, default=None, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(f.Message):
    API_KEY = 90
    VALID = range(2)
    FLEXIBLE = 0

    groups: list[DescribeShareGroupOffsetsRequestGroup] = f.array(
        DescribeShareGroupOffsetsRequestGroup, default_factory=list
    )


class DescribeShareGroupOffsetsResponsePartition(f.Message):
    partition_index: int = f.int32(default=0)
    start_offset: int = f.int64(default=0)
    leader_epoch: int = f.int32(default=0)
    lag: int = f.int64("1+", default=-1, ignorable=True)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")


class DescribeShareGroupOffsetsResponseTopic(f.Message):
    topic_name: str = f.string(default="")
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = f.array(
        DescribeShareGroupOffsetsResponsePartition, default_factory=list
    )


class DescribeShareGroupOffsetsResponseGroup(f.Message):
    group_id: str = f.string(default="")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = f.array(
        DescribeShareGroupOffsetsResponseTopic, default_factory=list
    )
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")


class DescribeShareGroupOffsetsResponse(f.Message):
    API_KEY = 90
    VALID = range(2)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = f.array(
        DescribeShareGroupOffsetsResponseGroup, default_factory=list
    )


REQUEST = DescribeShareGroupOffsetsRequest
RESPONSE = DescribeShareGroupOffsetsResponse
