"""API 50, DescribeUserScramCredentials. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class UserName(f.Message):
    name: str = f.string(default="")


class DescribeUserScramCredentialsRequest(f.Message):
    API_KEY = 50
    VALID = range(1)
    FLEXIBLE = 0

    users: list[UserName] | None = f.array(UserName, default_factory=list, nullable="0+")


class CredentialInfo(f.Message):
    mechanism: int = f.int8(default=0)
    iterations: int = f.int32(default=0)


class DescribeUserScramCredentialsResult(f.Message):
    user: str = f.string(default="")
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    credential_infos: list[CredentialInfo] = f.array(CredentialInfo, default_factory=list)


class DescribeUserScramCredentialsResponse(f.Message):
    API_KEY = 50
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    error_message: str | None = f.string(default="", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = f.array(
        DescribeUserScramCredentialsResult, default_factory=list
    )


REQUEST = DescribeUserScramCredentialsRequest
RESPONSE = DescribeUserScramCredentialsResponse
