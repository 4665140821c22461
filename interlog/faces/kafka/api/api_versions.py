"""ApiVersions: which APIs are served, in which versions. The first thing that clients ask.

A version of it that is not known is answered all the same, in version 0 with an error, so that the client can ask
again in a version that is. Features are what clients look up to choose between two ways of doing something.
"""

import re
from typing import Final, NamedTuple

from interlog.faces.kafka.api.index import SERVED, TELEMETRY
from interlog.faces.kafka.codec import encode
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.framing import API_VERSIONS, response_head
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class Feature(NamedTuple):
    least: int
    most: int
    level: int  # in force


FEATURES: Final[dict[str, Feature]] = {
    "share.version": Feature(0, 1, 1),
    "transaction.version": Feature(0, 2, 2),
}


def handle(request: Request, body: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= 3:
        software = (body.client_software_name, body.client_software_version)
        if not all(_SOFTWARE.fullmatch(one) for one in software):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        request.connection.client_software = " ".join(software)
    # Version 3 has no place for a feature whose range begins at 0.
    features = {name: one for name, one in FEATURES.items() if one.least or request.version >= 4}
    offered = (key for key in sorted(SERVED) if request.service.settings.telemetry or key not in TELEMETRY)
    return ApiVersionsResponse(
        api_keys=[ApiVersion(key, SERVED[key].versions[0], SERVED[key].versions[-1]) for key in offered],
        supported_features=[SupportedFeatureKey(name, one.least, one.most) for name, one in features.items()],
        finalized_features_epoch=0 if features else -1,
        finalized_features=[FinalizedFeatureKey(name, one.level, one.level) for name, one in features.items()],
    )


def answer_unsupported(request: Request) -> None:
    versions = SERVED[API_VERSIONS].versions
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(API_VERSIONS, versions[0], versions[-1])]
    )
    body = encode(ApiVersionsResponse, 0, answer)
    request.connection.send(request, [response_head(request.header, len(body), version=0) + body])
