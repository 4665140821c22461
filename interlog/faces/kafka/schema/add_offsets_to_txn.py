"""API 25, AddOffsetsToTxn. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class AddOffsetsToTxnRequest(f.Message):
    API_KEY = 25
    VALID = range(5)
    FLEXIBLE = 3

    transactional_id: str = f.string(default="")
    producer_id: int = f.int64(default=0)
    producer_epoch: int = f.int16(default=0)
    group_id: str = f.string(default="")


class AddOffsetsToTxnResponse(f.Message):
    API_KEY = 25
    VALID = range(5)
    FLEXIBLE = 3

    throttle_time_ms: int = f.int32(default=0)
    error_code: int = f.int16(default=0)


REQUEST = AddOffsetsToTxnRequest
RESPONSE = AddOffsetsToTxnResponse
