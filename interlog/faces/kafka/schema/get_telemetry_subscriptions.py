"""API 71, GetTelemetrySubscriptions. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class GetTelemetrySubscriptionsRequest(f.Message):
    API_KEY = 71
    VALID = range(1)
    FLEXIBLE = 0

    client_instance_id: bytes = f.uuid(default=f.NO_UUID)


class GetTelemetrySubscriptionsResponse(f.Message):
    API_KEY = 71
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    client_instance_id: bytes = f.uuid(default=f.NO_UUID)
    subscription_id: int = f.int32(default=0)
    accepted_compression_types: list[int] = f.array("int8", default_factory=list)
    push_interval_ms: int = f.int32(default=0)
    telemetry_max_bytes: int = f.int32(default=0)
    delta_temporality: bool = f.boolean(default=False)
    requested_metrics: list[str] = f.array("string", default_factory=list)


REQUEST = GetTelemetrySubscriptionsRequest
RESPONSE = GetTelemetrySubscriptionsResponse
