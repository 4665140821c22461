"""API 34, AlterReplicaLogDirs. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AlterReplicaLogDirTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class AlterReplicaLogDir(f.Message):
    path: str = f.string(default="")
    topics: list[AlterReplicaLogDirTopic] = f.array(AlterReplicaLogDirTopic, default_factory=list)


class AlterReplicaLogDirsRequest(f.Message):
    API_KEY = 34
    VALID = range(3)
    FLEXIBLE = 2

    dirs: list[AlterReplicaLogDir] = f.array(AlterReplicaLogDir, default_factory=list)


class AlterReplicaLogDirPartitionResult(f.Message):
    partition_index: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


class AlterReplicaLogDirTopicResult(f.Message):
    topic_name: str = f.string(default="")
    partitions: list[AlterReplicaLogDirPartitionResult] = f.array(
        AlterReplicaLogDirPartitionResult, default_factory=list
    )


class AlterReplicaLogDirsResponse(f.Message):
    API_KEY = 34
    VALID = range(3)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    results: list[AlterReplicaLogDirTopicResult] = f.array(AlterReplicaLogDirTopicResult, default_factory=list)


REQUEST = AlterReplicaLogDirsRequest
RESPONSE = AlterReplicaLogDirsResponse
