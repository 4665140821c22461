"""API 37, CreatePartitions. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class CreatePartitionsAssignment(f.Message):
    broker_ids: list[int] = f.array("int32", default_factory=list)


class CreatePartitionsTopic(f.Message):
    name: str = f.string(default="")
    count: int = f.int32(default=0)
    assignments: list[CreatePartitionsAssignment] | None = f.array(
        CreatePartitionsAssignment, default_factory=list, nullable="0+"
    )


class CreatePartitionsRequest(f.Message):
    API_KEY = 37
    VALID = range(4)
    FLEXIBLE = 2

    topics: list[CreatePartitionsTopic] = f.array(CreatePartitionsTopic, default_factory=list)
    timeout_ms: int = f.int32(default=0)
    validate_only: bool = f.boolean(default=False)


class CreatePartitionsTopicResult(f.Message):
    name: str = f.string(default="")
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")


class CreatePartitionsResponse(f.Message):
    API_KEY = 37
    VALID = range(4)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    results: list[CreatePartitionsTopicResult] = f.array(CreatePartitionsTopicResult, default_factory=list)


REQUEST = CreatePartitionsRequest
RESPONSE = CreatePartitionsResponse
