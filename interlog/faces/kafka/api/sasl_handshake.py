"""SaslHandshake: which mechanism it will be. Version 1 asks for tokens in SaslAuthenticate, version 0 for bare ones."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.sasl import MECHANISMS, Sasl, State
from interlog.faces.kafka.schema.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: Request, body: SaslHandshakeRequest) -> SaslHandshakeResponse | None:
    connection = request.connection
    if connection.sasl is None:
        connection.sasl = Sasl(request.core.access, connection.peer)
    sasl = connection.sasl
    mechanisms = list(MECHANISMS)
    if sasl.state is not State.READY:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE, mechanisms)
    if body.mechanism not in MECHANISMS:
        request.answer(SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms))
        connection.end(f"the SASL mechanism {body.mechanism[:40]!r} is not known")
        return None
    sasl.begin(body.mechanism, raw=request.version == 0)
    return SaslHandshakeResponse(ErrorCode.NONE, mechanisms)
