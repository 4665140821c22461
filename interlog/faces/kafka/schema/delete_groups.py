"""API 42, DeleteGroups. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DeleteGroupsRequest(f.Message):
    API_KEY = 42
    VALID = range(3)
    FLEXIBLE = 2

    groups_names: list[str] = f.array("string", default_factory=list)


class DeletableGroupResult(f.Message):
    group_id: str = f.string(default="")
    error_code: int = f.int16(default=0)


class DeleteGroupsResponse(f.Message):
    API_KEY = 42
    VALID = range(3)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    results: list[DeletableGroupResult] = f.array(DeletableGroupResult, default_factory=list)


REQUEST = DeleteGroupsRequest
RESPONSE = DeleteGroupsResponse
