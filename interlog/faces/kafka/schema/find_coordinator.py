"""API 10, FindCoordinator. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class FindCoordinatorRequest(f.Message):
    API_KEY = 10
    VALID = range(7)
    FLEXIBLE = 3

    key: str = f.string("0-3", default="")
    key_type: int = f.int8("1+", default=0)
    coordinator_keys: list[str] = f.array("string", "4+", default_factory=list)


class Coordinator(f.Message):
    key: str = f.string("4+", default="")
    node_id: int = f.int32("4+", default=0)
    host: str = f.string("4+", default="")
    port: int = f.int32("4+", default=0)
    error_code: int = f.int16("4+", default=0)
    error_message: str | None = f.string("4+", default="", nullable="4+", ignorable=True)


class FindCoordinatorResponse(f.Message):
    API_KEY = 10
    VALID = range(7)
    FLEXIBLE = 3

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    error_code: int = f.int16("0-3", default=0)
    error_message: str | None = f.string("1-3", default="", nullable="1-3", ignorable=True)
    node_id: int = f.int32("0-3", default=0)
    host: str = f.string("0-3", default="")
    port: int = f.int32("0-3", default=0)
    coordinators: list[Coordinator] = f.array(Coordinator, "4+", default_factory=list)


REQUEST = FindCoordinatorRequest
RESPONSE = FindCoordinatorResponse
