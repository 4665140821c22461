"""Markers: the control batches that end a transaction in a partition, as Kafka writes them.

In: who ends what and how, or the bytes of a control batch. Out: the batch, or what it says. A marker is one record
whose key is version 0 and a type (0: abort, 1: commit) in 2 bytes each, big-endian, and whose value is version 0 in 2
bytes and the coordinator's epoch in 4.
"""

import struct
from typing import Final, NamedTuple

from interlog.base.errors import FormatError, LimitError
from interlog.journal import batch as batches
from interlog.journal.files import Buffer
from interlog.journal.record import Record

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_TYPES: Final = {0: False, 1: True}


class Marker(NamedTuple):
    committed: bool
    coordinator_epoch: int


def encode(producer_id: int, producer_epoch: int, marker: Marker, time_ms: int) -> bytes:
    record = Record(_KEY.pack(0, int(marker.committed)), _VALUE.pack(0, marker.coordinator_epoch), (), time_ms)
    return batches.encode(
        [record],
        base_offset=0,
        attributes=batches.CONTROL | batches.TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def read(batch: Buffer) -> Marker | None:
    """What a control batch says of its producer's transaction; None if it says nothing."""
    try:
        records = batches.decode(batch, verify=False)
        key, value = records[0][1].key or b"", records[0][1].value or b""
        _, kind = _KEY.unpack_from(key)
        _, coordinator_epoch = _VALUE.unpack_from(value)
    except (FormatError, LimitError, struct.error, IndexError):
        return None
    return Marker(_TYPES[kind], coordinator_epoch) if kind in _TYPES else None
