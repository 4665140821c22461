"""AddOffsetsToTxn: a transaction begins, or goes on, with cursors of a group to come."""

from interlog.base.errors import InvalidError
from interlog.core.producers import ProducerError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(request: Request, body: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse | None:
    name = body.transactional_id
    if not request.may("write", name, "transactional_id"):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.may("read", body.group_id, "group"):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not name:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    transactions = request.core.transactions
    try:
        transactions.add_group(request.namespace, name, body.producer_id, body.producer_epoch, body.group_id)
    except ProducerError as error:
        return AddOffsetsToTxnResponse(error_code=code_of(error.refusal, fenced=request.version >= 2))
    except InvalidError:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    request.answer_when_durable(
        AddOffsetsToTxnResponse(), lambda: AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    )
    return None
