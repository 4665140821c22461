"""AddPartitionsToTxn: a transaction begins, or goes on, in more partitions. All of them are added, or none.

From version 4 on it is for brokers, which may ask for many transactions at a time, and whether partitions are added.
"""

from interlog.core.producers import ProducerError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.producer_errors import code_of
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

Results = list[AddPartitionsToTxnTopicResult]
Answers = dict[tuple[str, int], ErrorCode]  # by topic and partition


def handle(request: Request, body: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse | None:
    if request.version >= 4:
        if not request.may("cluster_action", "kafka-cluster", "cluster"):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        response = AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(one.transactional_id, _results(one.topics, _answers(request, one)))
                for one in body.transactions
            ]
        )
        request.answer_when_durable(response)
        return None
    one = AddPartitionsToTxnTransaction(
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        False,
        body.v3_and_below_topics,
    )
    if not request.may("write", one.transactional_id, "transactional_id"):
        answers = dict.fromkeys(_named(one.topics), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(one.topics, answers))
    results = _results(one.topics, _answers(request, one))
    request.answer_when_durable(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))
    return None


def _named(topics: list[AddPartitionsToTxnTopic]) -> list[tuple[str, int]]:
    return [(topic.name, partition) for topic in topics for partition in topic.partitions]


def _answers(request: Request, one: AddPartitionsToTxnTransaction) -> Answers:
    found: dict[int, tuple[str, int]] = {}
    errors: Answers = {}
    for name, index in _named(one.topics):
        view = request.service.views.find(request.namespace, name)
        partition = None if view is None or view.topic is None else view.partition(index)
        if request.version < 4 and not request.may("write", name):
            errors[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif partition is None:
            errors[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            found[partition.id] = (name, index)
    if errors:
        return {**dict.fromkeys(found.values(), ErrorCode.OPERATION_NOT_ATTEMPTED), **errors}
    transactions, key = request.core.transactions, (request.namespace, one.transactional_id)
    try:
        if one.verify_only:
            missing = transactions.check(*key, one.producer_id, one.producer_epoch, found)
            answers = dict.fromkeys(found.values(), ErrorCode.NONE)
            answers.update((found[partition], ErrorCode.TRANSACTION_ABORTABLE) for partition in missing)
            return answers
        transactions.add_partitions(*key, one.producer_id, one.producer_epoch, found)
    except ProducerError as error:
        code = code_of(error.refusal, fenced=request.version >= 2)
        if not one.transactional_id:
            code = ErrorCode.INVALID_REQUEST
        return dict.fromkeys(found.values(), code)
    return dict.fromkeys(found.values(), ErrorCode.NONE)


def _results(topics: list[AddPartitionsToTxnTopic], answers: Answers) -> Results:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(partition, answers[topic.name, partition])
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]
