"""GetTelemetrySubscriptions: a client gets a name for itself, and hears that nobody wants its metrics."""

from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.faces.kafka.schema.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from interlog.faces.kafka.telemetry import CODECS, MOST_BYTES, PUSH_INTERVAL_MS, new_instance, subscription


def handle(request: Request, body: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
    instance = body.client_instance_id
    if instance == NO_UUID:
        instance = new_instance(request.core.access.nonce())
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance,
        subscription_id=subscription(instance),
        accepted_compression_types=list(CODECS),
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=MOST_BYTES,
        delta_temporality=True,
        requested_metrics=[],
    )
