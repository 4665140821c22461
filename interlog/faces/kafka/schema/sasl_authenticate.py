"""API 36, SaslAuthenticate. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class SaslAuthenticateRequest(f.Message):
    API_KEY = 36
    VALID = range(3)
    FLEXIBLE = 2

    auth_bytes: bytes = f.binary(default=b"")


class SaslAuthenticateResponse(f.Message):
    API_KEY = 36
    VALID = range(3)
    FLEXIBLE = 2

    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    auth_bytes: bytes = f.binary(default=b"")
    session_lifetime_ms: int = f.int64("1+", default=0, ignorable=True)


REQUEST = SaslAuthenticateRequest
RESPONSE = SaslAuthenticateResponse
