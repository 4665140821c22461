"""API 30, CreateAcls. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AclCreation(f.Message):
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")
    resource_pattern_type: int = f.int8("1+", default=3)
    principal: str = f.string(default="")
    host: str = f.string(default="")
    operation: int = f.int8(default=0)
    permission_type: int = f.int8(default=0)


class CreateAclsRequest(f.Message):
    API_KEY = 30
    VALID = range(4)
    FLEXIBLE = 2

    creations: list[AclCreation] = f.array(AclCreation, default_factory=list)


class AclCreationResult(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")


class CreateAclsResponse(f.Message):
    API_KEY = 30
    VALID = range(4)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    results: list[AclCreationResult] = f.array(AclCreationResult, default_factory=list)


REQUEST = CreateAclsRequest
RESPONSE = CreateAclsResponse
