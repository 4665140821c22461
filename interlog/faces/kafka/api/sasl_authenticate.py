"""SaslAuthenticate: the tokens of a mechanism, until it is known who is there. Sessions have no end of their own."""

from interlog.base.errors import RefusedError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: Request, body: SaslAuthenticateRequest) -> SaslAuthenticateResponse | None:
    connection = request.connection
    sasl = connection.sasl
    if sasl is None or not sasl.expects_token:
        why = "SaslAuthenticate comes after SaslHandshake, and once"
        return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, why)
    try:
        token = sasl.take(bytes(body.auth_bytes))
    except RefusedError:
        refused = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, sasl.refusal)
        connection.refuse_later(lambda: request.answer(refused))
        return None
    if sasl.user is not None:
        connection.authenticated(sasl.user)
    return SaslAuthenticateResponse(ErrorCode.NONE, None, token)
