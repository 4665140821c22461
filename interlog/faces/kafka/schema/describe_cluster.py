"""API 60, DescribeCluster. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribeClusterRequest(f.Message):
    API_KEY = 60
    VALID = range(3)
    FLEXIBLE = 0

    include_cluster_authorized_operations: bool = f.boolean(default=False)
    endpoint_type: int = f.int8("1+", default=1)
    include_fenced_brokers: bool = f.boolean("2+", default=False)


class DescribeClusterBroker(f.Message):
    broker_id: int = f.int32(default=0)
    host: str = f.string(default="")
    port: int = f.int32(default=0)
    rack: str | None = f.string(default=None, nullable="0+")
    is_fenced: bool = f.boolean("2+", default=False, ignorable=True)


class DescribeClusterResponse(f.Message):
    API_KEY = 60
    VALID = range(3)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default=None, nullable="0+")
    endpoint_type: int = f.int8("1+", default=1)
    cluster_id: str = f.string(default="")
    controller_id: int = f.int32(default=-1)
    brokers: list[DescribeClusterBroker] = f.array(DescribeClusterBroker, default_factory=list)
    cluster_authorized_operations: int = f.int32(default=-2147483648)


REQUEST = DescribeClusterRequest
RESPONSE = DescribeClusterResponse
