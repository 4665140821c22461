"""API 26, EndTxn. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class EndTxnRequest(f.Message):
    API_KEY = 26
    VALID = range(6)
    FLEXIBLE = 3

    transactional_id: str = f.string(default="")
    producer_id: int = f.int64(default=0)
    producer_epoch: int = f.int16(default=0)
    committed: bool = f.boolean(default=False)


class EndTxnResponse(f.Message):
    API_KEY = 26
    VALID = range(6)
    FLEXIBLE = 3

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)
    producer_id: int = f.int64("5+", default=-1, ignorable=True)
    producer_epoch: int = f.int16("5+", default=-1, ignorable=True)


REQUEST = EndTxnRequest
RESPONSE = EndTxnResponse
