"""API 65, DescribeTransactions. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class DescribeTransactionsRequest(f.Message):
    API_KEY = 65
    VALID = range(1)
    FLEXIBLE = 0

    transactional_ids: list[str] = f.array("string", default_factory=list)


class TopicData(f.Message):
    topic: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class TransactionState(f.Message):
    error_code: int = f.int16(default=0)
    transactional_id: str = f.string(default="")
    transaction_state: str = f.string(default="")
    transaction_timeout_ms: int = f.int32(default=0)
    transaction_start_time_ms: int = f.int64(default=0)
    producer_id: int = f.int64(default=0)
    producer_epoch: int = f.int16(default=0)
    topics: list[TopicData] = f.array(TopicData, default_factory=list)


class DescribeTransactionsResponse(f.Message):
    API_KEY = 65
    VALID = range(1)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    transaction_states: list[TransactionState] = f.array(TransactionState, default_factory=list)


REQUEST = DescribeTransactionsRequest
RESPONSE = DescribeTransactionsResponse
