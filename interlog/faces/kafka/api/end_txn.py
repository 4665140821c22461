"""EndTxn: a transaction is committed or aborted. From version 5 on each end gives the producer its next epoch."""

from interlog.core.producers import ProducerError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.end_txn import EndTxnRequest, EndTxnResponse

_BUMPS = 5


def handle(request: Request, body: EndTxnRequest) -> EndTxnResponse | None:
    name, bump = body.transactional_id, request.version >= _BUMPS
    if not request.may("write", name, "transactional_id"):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not name:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    producer = body.producer_id, body.producer_epoch
    try:
        id, epoch = request.core.transactions.end(request.namespace, name, *producer, commit=body.committed, bump=bump)
    except ProducerError as error:
        return EndTxnResponse(error_code=code_of(error.refusal, fenced=request.version >= 2))
    response = EndTxnResponse(producer_id=id, producer_epoch=epoch) if bump else EndTxnResponse()
    request.answer_when_durable(response, lambda: EndTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return None
