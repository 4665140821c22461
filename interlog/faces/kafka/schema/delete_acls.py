"""API 31, DeleteAcls. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DeleteAclsFilter(f.Message):
    resource_type_filter: int = f.int8(default=0)
    resource_name_filter: str | None = f.string(default="", nullable="0+")
    pattern_type_filter: int = f.int8("1+", default=3)
    principal_filter: str | None = f.string(default="", nullable="0+")
    host_filter: str | None = f.string(default="", nullable="0+")
    operation: int = f.int8(default=0)
    permission_type: int = f.int8(default=0)


class DeleteAclsRequest(f.Message):
    API_KEY = 31
    VALID = range(4)
    FLEXIBLE = 2

    filters: list[DeleteAclsFilter] = f.array(DeleteAclsFilter, default_factory=list)


class DeleteAclsMatchingAcl(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    resource_type: int = f.int8(default=0)
    resource_name: str = f.string(default="")
    pattern_type: int = f.int8("1+", default=3)
    principal: str = f.string(default="")
    host: str = f.string(default="")
    operation: int = f.int8(default=0)
    permission_type: int = f.int8(default=0)


class DeleteAclsFilterResult(f.Message):
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = f.array(DeleteAclsMatchingAcl, default_factory=list)


class DeleteAclsResponse(f.Message):
    API_KEY = 31
    VALID = range(4)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0)
    filter_results: list[DeleteAclsFilterResult] = f.array(DeleteAclsFilterResult, default_factory=list)


REQUEST = DeleteAclsRequest
RESPONSE = DeleteAclsResponse
