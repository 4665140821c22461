"""API 44, IncrementalAlterConfigs. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AlterableConfig(f.Message):
    name: str = f.string(default="")
    config_operation: int = f.int8(default=0)
    value: str | None = f.string(default="", nullable="0+")


class AlterConfigsResource(f.Message):
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")
    configs: list[AlterableConfig] = f.array(AlterableConfig, default_factory=list)


class IncrementalAlterConfigsRequest(f.Message):
    API_KEY = 44
    VALID = range(2)
    FLEXIBLE = 1

    resources: list[AlterConfigsResource] = f.array(AlterConfigsResource, default_factory=list)
    validate_only: bool = f.boolean(default=False)


class AlterConfigsResourceResponse(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")


class IncrementalAlterConfigsResponse(f.Message):
    API_KEY = 44
    VALID = range(2)
    FLEXIBLE = 1

    throttle_time_ms: int = f.int32(default=0)
    responses: list[AlterConfigsResourceResponse] = f.array(AlterConfigsResourceResponse, default_factory=list)


REQUEST = IncrementalAlterConfigsRequest
RESPONSE = IncrementalAlterConfigsResponse
