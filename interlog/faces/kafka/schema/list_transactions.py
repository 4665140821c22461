"""API 66, ListTransactions. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ListTransactionsRequest(f.Message):
    API_KEY = 66
    VALID = range(3)
    FLEXIBLE = 0

    state_filters: list[str] = f.array("string", default_factory=list)
    producer_id_filters: list[int] = f.array("int64", default_factory=list)
    duration_filter: int = f.int64("1+", default=-1)
    transactional_id_pattern: str | None = f.string("2+", default=None, nullable="2+")


class TransactionState(f.Message):
    transactional_id: str = f.string(default="")
    producer_id: int = f.int64(default=0)
    transaction_state: str = f.string(default="")


class ListTransactionsResponse(f.Message):
    API_KEY = 66
    VALID = range(3)
    FLEXIBLE = 0

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    unknown_state_filters: list[str] = f.array("string", default_factory=list)
    transaction_states: list[TransactionState] = f.array(TransactionState, default_factory=list)


REQUEST = ListTransactionsRequest
RESPONSE = ListTransactionsResponse
