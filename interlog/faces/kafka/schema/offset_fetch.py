"""API 9, OffsetFetch. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class OffsetFetchRequestTopic(f.Message):
    name: str = f.string("0-7", default="")
    partition_indexes: list[int] = f.array("int32", "0-7", default_factory=list)


class OffsetFetchRequestTopics(f.Message):
    name: str = f.string("8-9", default="", ignorable=True)
    topic_id: bytes = f.uuid("10+", default=f.NO_UUID, ignorable=True)
    partition_indexes: list[int] = f.array("int32", "8+", default_factory=list)


class OffsetFetchRequestGroup(f.Message):
    group_id: str = f.string("8+", default="")
    member_id: str | None = f.string("9+", default=None, nullable="9+", ignorable=True)
    member_epoch: int = f.int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = f.array(
        OffsetFetchRequestTopics, "8+", default_factory=list, nullable="8+"
    )


class OffsetFetchRequest(f.Message):
    API_KEY = 9
    VALID = range(11)
    FLEXIBLE = 6

    group_id: str = f.string("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = f.array(
        OffsetFetchRequestTopic, "0-7", default_factory=list, nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = f.array(OffsetFetchRequestGroup, "8+", default_factory=list)
    require_stable: bool = f.boolean("7+", default=False)


class OffsetFetchResponsePartition(f.Message):
    partition_index: int = f.int32("0-7", default=0)
    committed_offset: int = f.int64("0-7", default=0)
    committed_leader_epoch: int = f.int32("5-7", default=-1, ignorable=True)
    metadata: str | None = f.string("0-7", default="", nullable="0-7")
    error_code: int = f.int16("0-7", default=0)


class OffsetFetchResponseTopic(f.Message):
    name: str = f.string("0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = f.array(OffsetFetchResponsePartition, "0-7", default_factory=list)


class OffsetFetchResponsePartitions(f.Message):
    partition_index: int = f.int32("8+", default=0)
    committed_offset: int = f.int64("8+", default=0)
    committed_leader_epoch: int = f.int32("8+", default=-1, ignorable=True)
    metadata: str | None = f.string("8+", default="", nullable="8+")
    error_code: int = f.int16("8+", default=0)


class OffsetFetchResponseTopics(f.Message):
    name: str = f.string("8-9", default="", ignorable=True)
    topic_id: bytes = f.uuid("10+", default=f.NO_UUID, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = f.array(OffsetFetchResponsePartitions, "8+", default_factory=list)


class OffsetFetchResponseGroup(f.Message):
    group_id: str = f.string("8+", default="")
    topics: list[OffsetFetchResponseTopics] = f.array(OffsetFetchResponseTopics, "8+", default_factory=list)
    error_code: int = f.int16("8+", default=0)


class OffsetFetchResponse(f.Message):
    API_KEY = 9
    VALID = range(11)
    FLEXIBLE = 6

    throttle_time_ms: int = f.int32("3+", default=0, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = f.array(OffsetFetchResponseTopic, "0-7", default_factory=list)
    error_code: int = f.int16("2-7", default=0, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = f.array(OffsetFetchResponseGroup, "8+", default_factory=list)


REQUEST = OffsetFetchRequest
RESPONSE = OffsetFetchResponse
