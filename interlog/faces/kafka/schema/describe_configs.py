"""API 32, DescribeConfigs. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribeConfigsResource(f.Message):
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")
    configuration_keys: list[str] | None = f.array("string", default_factory=list, nullable="0+")


class DescribeConfigsRequest(f.Message):
    API_KEY = 32
    VALID = range(5)
    FLEXIBLE = 4

    resources: list[DescribeConfigsResource] = f.array(DescribeConfigsResource, default_factory=list)
    include_synonyms: bool = f.boolean("1+", default=False)
    include_documentation: bool = f.boolean("3+", default=False)


class DescribeConfigsSynonym(f.Message):
    name: str = f.string("1+", default="")
    value: str | None = f.string("1+", default="", nullable="0+")
    source: int = f.int8("1+", default=0)


class DescribeConfigsResourceResult(f.Message):
    name: str = f.string(default="")
    value: str | None = f.string(default="", nullable="0+")
    read_only: bool = f.boolean(default=False)
    is_default: bool = f.boolean("0", default=False)
    config_source: int = f.int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = f.boolean(default=False)
    synonyms: list[DescribeConfigsSynonym] = f.array(DescribeConfigsSynonym, "1+", default_factory=list, ignorable=True)
    config_type: int = f.int8("3+", default=0, ignorable=True)
    documentation: str | None = f.string("3+", default="", nullable="0+", ignorable=True)


class DescribeConfigsResult(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")
    configs: list[DescribeConfigsResourceResult] = f.array(DescribeConfigsResourceResult, default_factory=list)


class DescribeConfigsResponse(f.Message):
    API_KEY = 32
    VALID = range(5)
    FLEXIBLE = 4

    throttle_time_ms: int = f.int32(default=0)
    results: list[DescribeConfigsResult] = f.array(DescribeConfigsResult, default_factory=list)


REQUEST = DescribeConfigsRequest
RESPONSE = DescribeConfigsResponse
