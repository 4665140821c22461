"""API 18, ApiVersions. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ApiVersionsRequest(f.Message):
    API_KEY = 18
    VALID = range(5)
    FLEXIBLE = 3

    client_software_name: str = f.string("3+", default="", ignorable=True)
    client_software_version: str = f.string("3+", default="", ignorable=True)


class ApiVersion(f.Message):
    api_key: int = f.int16(default=0)
    min_version: int = f.int16(default=0)
    max_version: int = f.int16(default=0)


class SupportedFeatureKey(f.Message):
    name: str = f.string("3+", default="")
    min_version: int = f.int16("3+", default=0)
    max_version: int = f.int16("3+", default=0)


class FinalizedFeatureKey(f.Message):
    name: str = f.string("3+", default="")
    max_version_level: int = f.int16("3+", default=0)
    min_version_level: int = f.int16("3+", default=0)


class ApiVersionsResponse(f.Message):
    API_KEY = 18
    VALID = range(5)
    FLEXIBLE = 3

    error_code: int = f.int16(default=0)
    api_keys: list[ApiVersion] = f.array(ApiVersion, default_factory=list)
    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    supported_features: list[SupportedFeatureKey] = f.array(
        SupportedFeatureKey, "3+", default_factory=list, tag=0, ignorable=True
    )
    finalized_features_epoch: int = f.int64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = f.array(
        FinalizedFeatureKey, "3+", default_factory=list, tag=2, ignorable=True
    )
    zk_migration_ready: bool = f.boolean("3+", default=False, tag=3, ignorable=True)


REQUEST = ApiVersionsRequest
RESPONSE = ApiVersionsResponse
