"""API 29, DescribeAcls. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribeAclsRequest(f.Message):
    API_KEY = 29
    VALID = range(4)
    FLEXIBLE = 2

    resource_type_filter: int = f.int8(default=0)
    resource_name_filter: str | None = f.string(default="", nullable="0+")
    pattern_type_filter: int = f.int8("1+", default=3)
    principal_filter: str | None = f.string(default="", nullable="0+")
    host_filter: str | None = f.string(default="", nullable="0+")
    operation: int = f.int8(default=0)
    permission_type: int = f.int8(default=0)


class AclDescription(f.Message):
    principal: str = f.string(default="")
    host: str = f.string(default="")
    operation: int = f.int8(default=0)
    permission_type: int = f.int8(default=0)


class DescribeAclsResource(f.Message):
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")
    pattern_type: int = f.int8("1+", default=3)
    acls: list[AclDescription] = f.array(AclDescription, default_factory=list)


class DescribeAclsResponse(f.Message):
    API_KEY = 29
    VALID = range(4)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    resources: list[DescribeAclsResource] = f.array(DescribeAclsResource, default_factory=list)


REQUEST = DescribeAclsRequest
RESPONSE = DescribeAclsResponse
