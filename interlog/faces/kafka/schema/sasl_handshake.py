"""API 17, SaslHandshake. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class SaslHandshakeRequest(f.Message):
    API_KEY = 17
    VALID = range(2)

    mechanism: str = f.string(default="")


class SaslHandshakeResponse(f.Message):
    API_KEY = 17
    VALID = range(2)

    error_code: int = f.int16(default=0)
    mechanisms: list[str] = f.array("string", default_factory=list)


REQUEST = SaslHandshakeRequest
RESPONSE = SaslHandshakeResponse
