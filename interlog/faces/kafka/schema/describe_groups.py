"""API 15, DescribeGroups. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribeGroupsRequest(f.Message):
    API_KEY = 15
    VALID = range(7)
    FLEXIBLE = 5

    groups: list[str] = f.array("string", default_factory=list)
    include_authorized_operations: bool = f.boolean("3+", default=False)


class DescribedGroupMember(f.Message):
    member_id: str = f.string(default="")
    group_instance_id: str | None = f.string("4+", default=None, nullable="4+", ignorable=True)
    client_id: str = f.string(default="")
    client_host: str = f.string(default="")
    member_metadata: bytes = f.binary(default=b"")
    member_assignment: bytes = f.binary(default=b"")


class DescribedGroup(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string("6+", default=None, nullable="6+", ignorable=True)
    group_id: str = f.string(default="")
    group_state: str = f.string(default="")
    protocol_type: str = f.string(default="")
    protocol_data: str = f.string(default="")
    members: list[DescribedGroupMember] = f.array(DescribedGroupMember, default_factory=list)
    authorized_operations: int = f.int32("3+", default=-2147483648)


class DescribeGroupsResponse(f.Message):
    API_KEY = 15
    VALID = range(7)
    FLEXIBLE = 5

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    groups: list[DescribedGroup] = f.array(DescribedGroup, default_factory=list)


REQUEST = DescribeGroupsRequest
RESPONSE = DescribeGroupsResponse
