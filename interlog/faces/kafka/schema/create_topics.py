"""API 19, CreateTopics. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class CreatableReplicaAssignment(f.Message):
    partition_index: int = f.int32(default=0)
    broker_ids: list[int] = f.array("int32", default_factory=list)


class CreatableTopicConfig(f.Message):
    name: str = f.string(default="")
    value: str | None = f.string(default="", nullable="0+")


class CreatableTopic(f.Message):
    name: str = f.string(default="")
    num_partitions: int = f.int32(default=0)
    replication_factor: int = f.int16(default=0)
    assignments: list[CreatableReplicaAssignment] = f.array(CreatableReplicaAssignment, default_factory=list)
    configs: list[CreatableTopicConfig] = f.array(CreatableTopicConfig, default_factory=list)


class CreateTopicsRequest(f.Message):
    API_KEY = 19
    VALID = range(8)
    FLEXIBLE = 5

    topics: list[CreatableTopic] = f.array(CreatableTopic, default_factory=list)
    timeout_ms: int = f.int32(default=60000)
    validate_only: bool = f.boolean("1+", default=False)


class CreatableTopicConfigs(f.Message):
    name: str = f.string("5+", default="")
    value: str | None = f.string("5+", default="", nullable="5+")
    read_only: bool = f.boolean("5+", default=False)
    config_source: int = f.int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = f.boolean("5+", default=False)


class CreatableTopicResult(f.Message):
    name: str = f.string(default="")
    topic_id: bytes = f.uuid("7+", default=f.NO_UUID, ignorable=True)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string("1+", default="", nullable="0+", ignorable=True)
    topic_config_error_code: int = f.int16("5+", default=0, tag=0, ignorable=True)
    num_partitions: int = f.int32("5+", default=-1, ignorable=True)
    replication_factor: int = f.int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = f.array(
        CreatableTopicConfigs, "5+", default_factory=list, nullable="5+", ignorable=True
    )


class CreateTopicsResponse(f.Message):
    API_KEY = 19
    VALID = range(8)
    FLEXIBLE = 5

    throttle_time_ms: int = f.int32("2+", default=0, ignorable=True)
    topics: list[CreatableTopicResult] = f.array(CreatableTopicResult, default_factory=list)


REQUEST = CreateTopicsRequest
RESPONSE = CreateTopicsResponse
