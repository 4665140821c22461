"""API 3, Metadata. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class MetadataRequestTopic(f.Message):
    topic_id: bytes = f.uuid("10+", default=f.NO_UUID, ignorable=True)
    name: str | None = f.string(default="", nullable="10+")


class MetadataRequest(f.Message):
    API_KEY = 3
    VALID = range(14)
    FLEXIBLE = 9

    topics: list[MetadataRequestTopic] | None = f.array(MetadataRequestTopic, default_factory=list, nullable="1+")
    allow_auto_topic_creation: bool = f.boolean("4+", default=True)
    include_cluster_authorized_operations: bool = f.boolean("8-10", default=False)
    include_topic_authorized_operations: bool = f.boolean("8+", default=False)


class MetadataResponseBroker(f.Message):
    node_id: int = f.int32(default=0)
    host: str = f.string(default="")
    port: int = f.int32(default=0)
    rack: str | None = f.string("1+", default=None, nullable="1+", ignorable=True)


class MetadataResponsePartition(f.Message):
    error_code: int = f.int16(default=0)
    partition_index: int = f.int32(default=0)
    leader_id: int = f.int32(default=0)
    leader_epoch: int = f.int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = f.array("int32", default_factory=list)
    isr_nodes: list[int] = f.array("int32", default_factory=list)
    offline_replicas: list[int] = f.array("int32", "5+", default_factory=list, ignorable=True)


class MetadataResponseTopic(f.Message):
    error_code: int = f.int16(default=0)
    name: str | None = f.string(default="", nullable="12+")
    topic_id: bytes = f.uuid("10+", default=f.NO_UUID, ignorable=True)
    is_internal: bool = f.boolean("1+", default=False, ignorable=True)
    partitions: list[MetadataResponsePartition] = f.array(MetadataResponsePartition, default_factory=list)
    topic_authorized_operations: int = f.int32("8+", default=-2147483648)


class MetadataResponse(f.Message):
    API_KEY = 3
    VALID = range(14)
    FLEXIBLE = 9

    throttle_time_ms: int = f.int32("3+", default=0, ignorable=True)
    brokers: list[MetadataResponseBroker] = f.array(MetadataResponseBroker, default_factory=list)
    cluster_id: str | None = f.string("2+", default=None, nullable="2+", ignorable=True)
    controller_id: int = f.int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = f.array(MetadataResponseTopic, default_factory=list)
    cluster_authorized_operations: int = f.int32("8-10", default=-2147483648)
    error_code: int = f.int16("13+", default=0, ignorable=True)


REQUEST = MetadataRequest
RESPONSE = MetadataResponse
