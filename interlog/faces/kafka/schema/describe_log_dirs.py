"""API 35, DescribeLogDirs. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribableLogDirTopic(f.Message):
    topic: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class DescribeLogDirsRequest(f.Message):
    API_KEY = 35
    VALID = range(5)
    FLEXIBLE = 2

    topics: list[DescribableLogDirTopic] | None = f.array(DescribableLogDirTopic, default_factory=list, nullable="0+")


class DescribeLogDirsPartition(f.Message):
    partition_index: int = f.int32(default=0)
    partition_size: int = f.int64(default=0)
    offset_lag: int = f.int64(default=0)
    is_future_key: bool = f.boolean(default=False)


class DescribeLogDirsTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[DescribeLogDirsPartition] = f.array(DescribeLogDirsPartition, default_factory=list)


class DescribeLogDirsResult(f.Message):
    error_code: int = f.int16(default=0)
    log_dir: str = f.string(default="")
    topics: list[DescribeLogDirsTopic] = f.array(DescribeLogDirsTopic, default_factory=list)
    total_bytes: int = f.int64("4+", default=-1, ignorable=True)
    usable_bytes: int = f.int64("4+", default=-1, ignorable=True)


class DescribeLogDirsResponse(f.Message):
    API_KEY = 35
    VALID = range(5)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16("3+", default=0, ignorable=True)
    results: list[DescribeLogDirsResult] = f.array(DescribeLogDirsResult, default_factory=list)


REQUEST = DescribeLogDirsRequest
RESPONSE = DescribeLogDirsResponse
