"""What Kafka calls the core's refusals of batches and of steps of transactions.

Producing has its own words for some: clients of any version must know what they are told there.
"""

from typing import Final

from interlog.core.producers import Refusal
from interlog.faces.kafka.errors import ErrorCode

CODES: Final = {
    Refusal.OUT_OF_ORDER: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Refusal.STALE_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
    Refusal.NOT_OPEN: ErrorCode.INVALID_TXN_STATE,
    Refusal.NOT_INCLUDED: ErrorCode.TRANSACTION_ABORTABLE,
    Refusal.UNKNOWN_PRODUCER: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    Refusal.FENCED: ErrorCode.PRODUCER_FENCED,
    Refusal.BAD_TIMEOUT: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    Refusal.STALE_COORDINATOR: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    Refusal.NO_SUCH_TRANSACTION: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    Refusal.TOO_MANY: ErrorCode.POLICY_VIOLATION,
}


def code_of(refusal: Refusal, *, fenced: bool = True) -> ErrorCode:
    """`fenced`: whether who asks knows the word PRODUCER_FENCED; older versions and producing do not."""
    code = CODES[refusal]
    if code is ErrorCode.PRODUCER_FENCED and not fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
