"""API 51, AlterUserScramCredentials. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ScramCredentialDeletion(f.Message):
    name: str = f.string(default="")
    mechanism: int = f.int8(default=0)


class ScramCredentialUpsertion(f.Message):
    name: str = f.string(default="")
    mechanism: int = f.int8(default=0)
    iterations: int = f.int32(default=0)
    salt: bytes = f.binary(default=b"")
    salted_password: bytes = f.binary(default=b"")


class AlterUserScramCredentialsRequest(f.Message):
    API_KEY = 51
    VALID = range(1)
    FLEXIBLE = 0

    deletions: list[ScramCredentialDeletion] = f.array(ScramCredentialDeletion, default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = f.array(ScramCredentialUpsertion, default_factory=list)


class AlterUserScramCredentialsResult(f.Message):
    user: str = f.string(default="")
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")


class AlterUserScramCredentialsResponse(f.Message):
    API_KEY = 51
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    results: list[AlterUserScramCredentialsResult] = f.array(AlterUserScramCredentialsResult, default_factory=list)


REQUEST = AlterUserScramCredentialsRequest
RESPONSE = AlterUserScramCredentialsResponse
