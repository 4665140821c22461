"""API 49, AlterClientQuotas. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class RequestEntityData(f.Message):
    entity_type: str = f.string(default="")
    entity_name: str | None = f.string(default="", nullable="0+")


class OpData(f.Message):
    key: str = f.string(default="")
    value: float = f.float64(default=0.0)
    remove: bool = f.boolean(default=False)


class RequestEntryData(f.Message):
    entity: list[RequestEntityData] = f.array(RequestEntityData, default_factory=list)
    ops: list[OpData] = f.array(OpData, default_factory=list)


class AlterClientQuotasRequest(f.Message):
    API_KEY = 49
    VALID = range(2)
    FLEXIBLE = 1

    entries: list[RequestEntryData] = f.array(RequestEntryData, default_factory=list)
    validate_only: bool = f.boolean(default=False)


class ResponseEntityData(f.Message):
    entity_type: str = f.string(default="")
    entity_name: str | None = f.string(default="", nullable="0+")


class ResponseEntryData(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    entity: list[ResponseEntityData] = f.array(ResponseEntityData, default_factory=list)


class AlterClientQuotasResponse(f.Message):
    API_KEY = 49
    VALID = range(2)
    FLEXIBLE = 1

    throttle_time_ms: int = f.int32(default=0)
    entries: list[ResponseEntryData] = f.array(ResponseEntryData, default_factory=list)


REQUEST = AlterClientQuotasRequest
RESPONSE = AlterClientQuotasResponse
