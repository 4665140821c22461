"""InitProducerId: an id for a producer that numbers its batches; with a transactional id, the one to go on with.

What is open under a transactional id is aborted on the spot, so nobody is told to come again later.
"""

from interlog.base.errors import InvalidError
from interlog.core.producers import ProducerError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(request: Request, body: InitProducerIdRequest) -> InitProducerIdResponse | None:
    name = body.transactional_id
    if name is None:
        if not request.may("idempotent_write", "kafka-cluster", "cluster"):
            return _refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    elif not request.may("write", name, "transactional_id"):
        return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (body.producer_id == -1) != (body.producer_epoch == -1):
        return _refusal(ErrorCode.INVALID_REQUEST)
    core = request.core
    try:
        if name is None:
            found = core.producers.new_id(), 0
        else:
            current = None if body.producer_id == -1 else (body.producer_id, body.producer_epoch)
            found = core.transactions.init(request.namespace, name, body.transaction_timeout_ms, current)
    except ProducerError as error:
        return _refusal(code_of(error.refusal, fenced=request.version >= 4))
    except InvalidError:
        return _refusal(ErrorCode.INVALID_REQUEST)
    request.answer_when_durable(
        InitProducerIdResponse(producer_id=found[0], producer_epoch=found[1]),
        lambda: _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    )
    return None


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
