"""DescribeUserScramCredentials: for which mechanisms users have a password, and how many rounds it took."""

from collections import Counter

from interlog.faces.kafka.acls import CLUSTER_NAME
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.sasl import SCRAM, SCRAM_NUMBERS
from interlog.faces.kafka.schema.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle(request: Request, body: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    if not request.may("describe", CLUSTER_NAME, "cluster"):
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    response = DescribeUserScramCredentialsResponse(error_message=None)
    if not body.users:
        names = [user.name for user in request.core.access.users() if user.has_password]
        response.results = [_result(request, name) for name in names]
        return response
    for name, times in Counter(user.name for user in body.users).items():
        if times > 1:
            result = DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, _TWICE + name)
        else:
            result = _result(request, name)
        response.results.append(result)
    return response


def _result(request: Request, name: str) -> DescribeUserScramCredentialsResult:
    infos = []
    for number, mechanism in SCRAM_NUMBERS.items():
        secret = request.core.access.secret(name, SCRAM[mechanism])
        if secret is not None:
            infos.append(CredentialInfo(number, secret.iterations))
    if not infos:
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, _UNKNOWN + name)
    return DescribeUserScramCredentialsResult(name, ErrorCode.NONE, None, infos)
