"""API 77, ShareGroupDescribe. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ShareGroupDescribeRequest(f.Message):
    API_KEY = 77
    VALID = range(1, 2)
    FLEXIBLE = 0

    group_ids: list[str] = f.array("string", default_factory=list)
    include_authorized_operations: bool = f.boolean(default=False)


class TopicPartitions(f.Message):
    topic_id: bytes = f.uuid(default=f.NO_UUID)
    topic_name: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class Assignment(f.Message):
    topic_partitions: list[TopicPartitions] = f.array(TopicPartitions, default_factory=list)


class Member(f.Message):
    member_id: str = f.string(default="")
    rack_id: str | None = f.string(default=None, nullable="0+")
    member_epoch: int = f.int32(default=0)
    client_id: str = f.string(default="")
    client_host: str = f.string(default="")
    subscribed_topic_names: list[str] = f.array("string", default_factory=list)
    assignment: Assignment = f.struct(Assignment, default_factory=Assignment)


class DescribedGroup(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    group_id: str = f.string(default="")
    group_state: str = f.string(default="")
    group_epoch: int = f.int32(default=0)
    assignment_epoch: int = f.int32(default=0)
    assignor_name: str = f.string(default="")
    members: list[Member] = f.array(Member, default_factory=list)
    authorized_operations: int = f.int32(default=-2147483648)


class ShareGroupDescribeResponse(f.Message):
    API_KEY = 77
    VALID = range(1, 2)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    groups: list[DescribedGroup] = f.array(DescribedGroup, default_factory=list)


REQUEST = ShareGroupDescribeRequest
RESPONSE = ShareGroupDescribeResponse
