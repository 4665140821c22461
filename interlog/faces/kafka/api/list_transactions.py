"""ListTransactions: all transactional ids that the client may know of, by state, producer, age and name."""

from interlog.base.errors import InvalidError
from interlog.core.name_pattern import name_pattern
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from interlog.faces.kafka.transaction_states import KNOWN, NAMES


def handle(request: Request, body: ListTransactionsRequest) -> ListTransactionsResponse:
    states = set(body.state_filters)
    producers = set(body.producer_id_filters)
    try:
        pattern = name_pattern(body.transactional_id_pattern) if body.transactional_id_pattern else None
    except InvalidError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    now_ms = request.core.clock.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[state for state in body.state_filters if state not in KNOWN],
        transaction_states=[
            TransactionState(one.name, one.producer_id, NAMES[one.state])
            for one in request.core.transactions.all(request.namespace)
            if (not producers or one.producer_id in producers)
            and (not states or NAMES[one.state] in states)
            and (body.duration_filter < 0 or now_ms - one.start_ms > body.duration_filter)
            and (pattern is None or pattern.fits(one.name))
            and request.may("describe", one.name, "transactional_id")
        ],
    )
