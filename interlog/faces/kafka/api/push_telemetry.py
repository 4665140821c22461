"""PushTelemetry: nobody asked for metrics, so what a client sends is looked at for form and let go."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from interlog.faces.kafka.telemetry import CODECS, MOST_BYTES, RESERVED, subscription
from interlog.journal.codecs import Codec


def handle(request: Request, body: PushTelemetryRequest) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=_error(body))


def _error(body: PushTelemetryRequest) -> ErrorCode:
    if body.client_instance_id in RESERVED:
        return ErrorCode.INVALID_REQUEST
    if body.subscription_id != subscription(body.client_instance_id):
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if body.compression_type not in (Codec.NONE, *CODECS):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(body.metrics) > MOST_BYTES:
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE
