"""API 14, SyncGroup. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class SyncGroupRequestAssignment(f.Message):
    member_id: str = f.string(default="")
    assignment: bytes = f.binary(default=b"")


class SyncGroupRequest(f.Message):
    API_KEY = 14
    VALID = range(6)
    FLEXIBLE = 4

    group_id: str = f.string(default="")
    generation_id: int = f.int32(default=0)
    member_id: str = f.string(default="")
    group_instance_id: str | None = f.string("3+", default=None, nullable="3+")
    protocol_type: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = f.array(SyncGroupRequestAssignment, default_factory=list)


class SyncGroupResponse(f.Message):
    API_KEY = 14
    VALID = range(6)
    FLEXIBLE = 4

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    error_code: int = f.int16(default=0)
    protocol_type: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = f.string("5+", default=None, nullable="5+", ignorable=True)
    assignment: bytes = f.binary(default=b"")


REQUEST = SyncGroupRequest
RESPONSE = SyncGroupResponse
