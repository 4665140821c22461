"""API 46, ListPartitionReassignments. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ListPartitionReassignmentsTopics(f.Message):
    name: str = f.string(default="")
    partition_indexes: list[int] = f.array("int32", default_factory=list)


class ListPartitionReassignmentsRequest(f.Message):
    API_KEY = 46
    VALID = range(1)
    FLEXIBLE = 0

    timeout_ms: int = f.int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = f.array(
        ListPartitionReassignmentsTopics, default=None, nullable="0+"
    )


class OngoingPartitionReassignment(f.Message):
    partition_index: int = f.int32(default=0)
    replicas: list[int] = f.array("int32", default_factory=list)
    adding_replicas: list[int] = f.array("int32", default_factory=list)
    removing_replicas: list[int] = f.array("int32", default_factory=list)


class OngoingTopicReassignment(f.Message):
    name: str = f.string(default="")
    partitions: list[OngoingPartitionReassignment] = f.array(OngoingPartitionReassignment, default_factory=list)


class ListPartitionReassignmentsResponse(f.Message):
    API_KEY = 46
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    topics: list[OngoingTopicReassignment] = f.array(OngoingTopicReassignment, default_factory=list)


REQUEST = ListPartitionReassignmentsRequest
RESPONSE = ListPartitionReassignmentsResponse
