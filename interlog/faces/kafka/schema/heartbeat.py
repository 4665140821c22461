"""API 12, Heartbeat. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class HeartbeatRequest(f.Message):
    API_KEY = 12
    VALID = range(5)
    FLEXIBLE = 4

    group_id: str = f.string(default="")
    generation_id: int = f.int32(default=0)
    member_id: str = f.string(default="")
    group_instance_id: str | None = f.string("3+", default=None, nullable="3+")


class HeartbeatResponse(f.Message):
    API_KEY = 12
    VALID = range(5)
    FLEXIBLE = 4

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    error_code: int = f.int16(default=0)


REQUEST = HeartbeatRequest
RESPONSE = HeartbeatResponse
