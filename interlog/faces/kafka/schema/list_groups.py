"""API 16, ListGroups. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ListGroupsRequest(f.Message):
    API_KEY = 16
    VALID = range(6)
    FLEXIBLE = 3

    states_filter: list[str] = f.array("string", "4+", default_factory=list)
    types_filter: list[str] = f.array("string", "5+", default_factory=list)


class ListedGroup(f.Message):
    group_id: str = f.string(default="")
    protocol_type: str = f.string(default="")
    group_state: str = f.string("4+", default="", ignorable=True)
    group_type: str = f.string("5+", default="", ignorable=True)


class ListGroupsResponse(f.Message):
    API_KEY = 16
    VALID = range(6)
    FLEXIBLE = 3

    throttle_time_ms: int = f.int32("1+", default=0, ignorable=True)
    error_code: int = f.int16(default=0)
    groups: list[ListedGroup] = f.array(ListedGroup, default_factory=list)


REQUEST = ListGroupsRequest
RESPONSE = ListGroupsResponse
