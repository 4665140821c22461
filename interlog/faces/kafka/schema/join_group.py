"""API 11, JoinGroup. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class JoinGroupRequestProtocol(f.Message):
    name: str = f.string(default="")
    metadata: bytes = f.binary(default=b"")


class JoinGroupRequest(f.Message):
    API_KEY = 11
    VALID = range(10)
    FLEXIBLE = 6

    group_id: str = f.string(default="")
    session_timeout_ms: int = f.int32(default=0)
    rebalance_timeout_ms: int = f.int32("1+", default=-1, ignorable=True)
    member_id: str = f.string(default="")
    group_instance_id: str | None = f.string("5+", default=None, nullable="5+")
    protocol_type: str = f.string(default="")
    protocols: list[JoinGroupRequestProtocol] = f.array(JoinGroupRequestProtocol, default_factory=list)
    reason: str | None = f.string("8+", default=None, nullable="8+", ignorable=True)


class JoinGroupResponseMember(f.Message):
    member_id: str = f.string(default="")
    group_instance_id: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)
    metadata: bytes = f.binary(default=b"")


class JoinGroupResponse(f.Message):
    API_KEY = 11
    VALID = range(10)
    FLEXIBLE = 6

    throttle_time_ms: int = f.int32("2+", default=0, ignorable=True)
    error_code: int = f.int16(default=0)
    generation_id: int = f.int32(default=-1)
    protocol_type: str | None = f.string("7+", default=None, nullable="7+", ignorable=True)
    protocol_name: str | None = f.string(default="", nullable="7+")
    leader: str = f.string(default="")
    skip_assignment: bool = f.boolean("9+", default=False)
    member_id: str = f.string(default="")
    members: list[JoinGroupResponseMember] = f.array(JoinGroupResponseMember, default_factory=list)


REQUEST = JoinGroupRequest
RESPONSE = JoinGroupResponse
