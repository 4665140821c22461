"""API 48, DescribeClientQuotas. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ComponentData(f.Message):
    entity_type: str = f.string(default="")
    match_type: int = f.int8(default=0)
    match: str | None = f.string(default="", nullable="0+")


class DescribeClientQuotasRequest(f.Message):
    API_KEY = 48
    VALID = range(2)
    FLEXIBLE = 1

    components: list[ComponentData] = f.array(ComponentData, default_factory=list)
    strict: bool = f.boolean(default=False)


class EntityData(f.Message):
    entity_type: str = f.string(default="")
    entity_name: str | None = f.string(default="", nullable="0+")


class ValueData(f.Message):
    key: str = f.string(default="")
    value: float = f.float64(default=0.0)


class EntryData(f.Message):
    entity: list[EntityData] = f.array(EntityData, default_factory=list)
    values: list[ValueData] = f.array(ValueData, default_factory=list)


class DescribeClientQuotasResponse(f.Message):
    API_KEY = 48
    VALID = range(2)
    FLEXIBLE = 1

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    entries: list[EntryData] | None = f.array(EntryData, default_factory=list, nullable="0+")


REQUEST = DescribeClientQuotasRequest
RESPONSE = DescribeClientQuotasResponse
