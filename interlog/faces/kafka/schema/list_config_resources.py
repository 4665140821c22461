"""API 74, ListConfigResources. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ListConfigResourcesRequest(f.Message):
    API_KEY = 74
    VALID = range(2)
    FLEXIBLE = 0

    resource_types: list[int] = f.array("int8", "1+", default_factory=list)


class ConfigResource(f.Message):
    resource_name: str = f.string(default="")
    resource_type: int = f.int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(f.Message):
    API_KEY = 74
    VALID = range(2)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    config_resources: list[ConfigResource] = f.array(ConfigResource, default_factory=list)


REQUEST = ListConfigResourcesRequest
RESPONSE = ListConfigResourcesResponse
