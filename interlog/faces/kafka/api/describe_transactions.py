"""DescribeTransactions: the state of transactions, by their transactional ids."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from interlog.faces.kafka.transaction_states import NAMES


def handle(request: Request, body: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(request, name) for name in body.transactional_ids]
    )


def _describe(request: Request, name: str) -> TransactionState:
    if not request.may("describe", name, "transactional_id"):
        return TransactionState(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, name)
    if not name:
        return TransactionState(ErrorCode.INVALID_REQUEST, name)
    found = request.core.transactions.find(request.namespace, name)
    if found is None:
        return TransactionState(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, name)
    topics: dict[str, list[int]] = {}
    for partition in sorted(found.partitions):
        item = request.core.catalog.owner(partition)
        if item is not None and request.may("describe", item.name):
            topics.setdefault(item.name, []).append(item.partitions.index(partition))
    return TransactionState(
        transactional_id=name,
        transaction_state=NAMES[found.state],
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[TopicData(topic, partitions) for topic, partitions in topics.items()],
    )
