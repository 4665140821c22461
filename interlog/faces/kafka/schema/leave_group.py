"""API 13, LeaveGroup. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class MemberIdentity(f.Message):
    member_id: str = f.string("3+", default="")
    group_instance_id: str | None = f.string("3+", default=None, nullable="3+")
    reason: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)


class LeaveGroupRequest(f.Message):
    API_KEY = 13
    VALID = range(6)
    FLEXIBLE = 4

    group_id: str = f.string(default="")
    member_id: str = f.string("0-2", default="")
    members: list[MemberIdentity] = f.array(MemberIdentity, "3+", default_factory=list)


class MemberResponse(f.Message):
    member_id: str = f.string("3+", default="")
    group_instance_id: str | None = f.string("3+", default="", nullable="3+")
    error_code: int = f.int16("3+", default=0)


class LeaveGroupResponse(f.Message):
    API_KEY = 13
    VALID = range(6)
    FLEXIBLE = 4

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    error_code: int = f.int16(default=0)
    members: list[MemberResponse] = f.array(MemberResponse, "3+", default_factory=list)


REQUEST = LeaveGroupRequest
RESPONSE = LeaveGroupResponse
