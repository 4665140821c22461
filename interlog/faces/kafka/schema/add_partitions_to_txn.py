"""API 24, AddPartitionsToTxn. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AddPartitionsToTxnTopic(f.Message):
    name: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class AddPartitionsToTxnTransaction(f.Message):
    transactional_id: str = f.string("4+", default="")
    producer_id: int = f.int64("4+", default=0)
    producer_epoch: int = f.int16("4+", default=0)
    verify_only: bool = f.boolean("4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = f.array(AddPartitionsToTxnTopic, "4+", default_factory=list)


class AddPartitionsToTxnRequest(f.Message):
    API_KEY = 24
    VALID = range(6)
    FLEXIBLE = 3

    transactions: list[AddPartitionsToTxnTransaction] = f.array(
        AddPartitionsToTxnTransaction, "4+", default_factory=list
    )
    v3_and_below_transactional_id: str = f.string("0-3", default="")
    v3_and_below_producer_id: int = f.int64("0-3", default=0)
    v3_and_below_producer_epoch: int = f.int16("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = f.array(AddPartitionsToTxnTopic, "0-3", default_factory=list)


class AddPartitionsToTxnPartitionResult(f.Message):
    partition_index: int = f.int32(default=0)
    partition_error_code: int = f.int16(default=0)


class AddPartitionsToTxnTopicResult(f.Message):
    name: str = f.string(default="")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = f.array(
        AddPartitionsToTxnPartitionResult, default_factory=list
    )


class AddPartitionsToTxnResult(f.Message):
    transactional_id: str = f.string("4+", default="")
    topic_results: list[AddPartitionsToTxnTopicResult] = f.array(
        AddPartitionsToTxnTopicResult, "4+", default_factory=list
    )


class AddPartitionsToTxnResponse(f.Message):
    API_KEY = 24
    VALID = range(6)
    FLEXIBLE = 3

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16("4+", default=0, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = f.array(
        AddPartitionsToTxnResult, "4+", default_factory=list
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = f.array(
        AddPartitionsToTxnTopicResult, "0-3", default_factory=list
    )


REQUEST = AddPartitionsToTxnRequest
RESPONSE = AddPartitionsToTxnResponse
