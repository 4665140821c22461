"""API 72, PushTelemetry. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class PushTelemetryRequest(f.Message):
    API_KEY = 72
    VALID = range(1)
    FLEXIBLE = 0

    client_instance_id: bytes = f.uuid(default=f.NO_UUID)
    subscription_id: int = f.int32(default=0)
    terminating: bool = f.boolean(default=False)
    compression_type: int = f.int8(default=0)
    metrics: bytes = f.binary(default=b"")


class PushTelemetryResponse(f.Message):
    API_KEY = 72
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


REQUEST = PushTelemetryRequest
RESPONSE = PushTelemetryResponse
