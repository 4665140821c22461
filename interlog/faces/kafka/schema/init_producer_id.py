"""API 22, InitProducerId. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class InitProducerIdRequest(f.Message):
    API_KEY = 22
    VALID = range(7)
    FLEXIBLE = 2

    transactional_id: str | None = f.string(default="", nullable="0+")
    transaction_timeout_ms: int = f.int32(default=0)
    producer_id: int = f.int64("3+", default=-1)
    producer_epoch: int = f.int16("3+", default=-1)
    enable2_pc: bool = f.boolean("6+", default=False)
    keep_prepared_txn: bool = f.boolean("6+", default=False)


class InitProducerIdResponse(f.Message):
    API_KEY = 22
    VALID = range(7)
    FLEXIBLE = 2

    throttle_time_ms: int = f.int32(default=0, ignorable=True)
    error_code: int = f.int16(default=0)
    producer_id: int = f.int64(default=-1)
    producer_epoch: int = f.int16(default=0)
    ongoing_txn_producer_id: int = f.int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = f.int16("6+", default=-1)


REQUEST = InitProducerIdRequest
RESPONSE = InitProducerIdResponse
