"""Requests made by dice: each of an API that is served, with names, numbers and batches that mean something more often
than not; and the same hurt.

In: an API, a version and dice. Out: a request's body. What is called "victim" is never named.
"""

import random
import struct
from typing import Any, Final

from interlog.base.crc32c import crc32c
from interlog.faces.kafka.codec import api, encode
from interlog.faces.kafka.schema.fields import NO_UUID, Field, Message
from interlog.faces.kafka.schema.reading import MOST_ELEMENTS
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec
from interlog.journal.record import Record
from tests.old_messages import message, packed

NOW_MS: Final = 1_700_000_000_000
NAMES: Final = ("t", "c", "q", "gone", "new", "", ".", "a b", "n" * 250, "é", "__consumer_offsets")
GROUPS: Final = ("g", "g", "h", "h", "balanced", "balanced", "", "G" * 300)
MEMBERS: Final = ("", "m", "n", "m")
TRANSACTIONS: Final = ("tx", "tx", "ty", "", "T" * 300)
CONFIGS: Final = ("cleanup.policy", "retention.ms", "segment.bytes", "max.message.bytes", "no.such")
VALUES: Final = ("compact", "delete", "1000", "-1", "100000", "x", "")
PATTERNS: Final = ("", "t.*", "(", "(?i)T", "a{1000}" * 3, "[[:alpha:]]+")
TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "name": NAMES,
    "topic": NAMES,
    "topic_name": NAMES,
    "topics": NAMES,
    "subscribed_topic_names": ("t", "c", "q", "new", "gone"),
    "subscribed_topic_regex": PATTERNS,
    "topic_names": NAMES,
    "group_id": GROUPS,
    "groups": GROUPS,
    "group_ids": GROUPS,
    "groups_names": GROUPS,
    "key": GROUPS + TRANSACTIONS,
    "coordinator_keys": GROUPS + TRANSACTIONS,
    "member_id": MEMBERS,
    "group_instance_id": ("i", "j", ""),
    "instance_id": ("i", "j", ""),
    "transactional_id": TRANSACTIONS,
    "transactional_ids": TRANSACTIONS,
    "v3_and_below_transactional_id": TRANSACTIONS,
    "protocol_type": ("consumer", "connect", ""),
    "protocol_name": ("range", "roundrobin", ""),
    "server_assignor": ("uniform", "range", "none"),
    "config_name": CONFIGS,
    "resource_name": (*NAMES, "1", "kafka-cluster"),
    "value": VALUES,
    "state_filters": ("Ongoing", "Empty", "none"),
    "states_filter": ("Stable", "Empty", "none"),
    "types_filter": ("classic", "consumer", "none"),
    "client_software_name": ("play", "", "-"),
    "client_software_version": ("1.0", ""),
    "mechanism": ("PLAIN", "SCRAM-SHA-256", "none"),
}
SMALL: Final = (0, 0, 0, 1, 1, 2, 3, -1, -2)
NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "acks": (-1, -1, 1, 0, 5),
    "timeout_ms": (0, 100, 30_000, -1),
    "max_wait_ms": (0, 0, 100, 500, -1, (1 << 31) - 1),
    "min_bytes": (0, 1, 1, 100_000, -1, (1 << 31) - 1),
    "max_bytes": (1 << 20, 1, 0, -1, (1 << 31) - 1),
    "partition_max_bytes": (1 << 20, 100, 0, -1, (1 << 31) - 1),
    "session_timeout_ms": (10_000, 10_000, 1, -1, (1 << 31) - 1),
    "rebalance_timeout_ms": (10_000, 10_000, 0, -1, (1 << 31) - 1),
    "transaction_timeout_ms": (10_000, 60_000, 0, -1, (1 << 31) - 1),
    "num_partitions": (1, 2, -1, 0, 100_000_000),
    "count": (1, 3, 5, 0, -1, 100_000_000),
    "replication_factor": (1, 1, -1, 0, 3),
    "session_id": (0, 0, 1, 77, -1),
    "response_partition_limit": (1, 2, 2_000, 0, -1),
    "timestamp": (-1, -2, -3, -4, -5, -6, -7, 0, NOW_MS),
    "resource_type": (2, 4, 8, 0, 99),
}
INDEXES: Final = (0, 0, 0, 1, 1, 2, -1, (1 << 31) - 1, -(1 << 31))
LIMITS: Final = {
    "boolean": (False, True),
    "int8": (-128, 127),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}


class Dice:
    """What a request is made with; `ids` are those of topics that are there."""

    def __init__(self, seed: int, ids: list[bytes]) -> None:
        self.random = random.Random(seed)
        self.ids = ids
        self.size = 40  # elements of arrays that may still be made

    def request(self, key: int, version: int) -> Message:
        tables = api(key)
        assert tables is not None
        return self.message(tables.request, version)

    def body(self, key: int, version: int) -> bytes:
        request = self.request(key, version)
        return encode(type(request), version, request)

    def message(self, table: type[Message], version: int) -> Message:
        made = table()
        for field in table.FIELDS:
            if version in field.versions and not (field.tag >= 0 and self.random.random() < 0.5):
                setattr(made, field.name, self.value(field, version))
        return made

    def value(self, field: Field, version: int) -> Any:
        dice = self.random
        if version in field.nullable and dice.random() < 0.2:
            return None
        if field.kind == "array":
            count = min(dice.choice((0, 1, 1, 1, 2, 3)), self.size)
            self.size -= count
            return [self.item(field.name, field.item, version) for _ in range(count)]
        return self.item(field.name, field.item if field.kind == "struct" else field.kind, version)

    def item(self, name: str, kind: Any, version: int) -> Any:
        dice = self.random
        if not isinstance(kind, str):
            return self.message(kind, version)
        if kind == "string":
            return dice.choice(TEXTS.get(name, ("", "x", "t", "g")))
        if kind == "binary":
            return dice.choice((b"", b"\0\0", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", dice.randbytes(dice.randrange(40))))
        if kind == "records":
            return self.records()
        if kind == "uuid":
            return dice.choice((NO_UUID, dice.randbytes(16), *self.ids, *self.ids))
        if kind == "float64":
            return dice.choice((0.0, 1.5, -1.0, float("inf"), float("nan")))
        if kind == "boolean":
            return dice.random() < 0.5
        if dice.random() < 0.05:
            least, most = LIMITS[kind]
            return dice.choice((least, most))
        if "partition" in name or name == "topics" or name.endswith("index") or name == "indexes":
            return self.fits(kind, dice.choice(INDEXES))
        return self.fits(kind, dice.choice(NUMBERS.get(name, SMALL)))

    def fits(self, kind: str, number: int) -> int:
        least, most = LIMITS[kind]
        return min(max(number, least), most)

    # -- batches

    def records(self) -> bytes:
        dice = self.random
        how = dice.random()
        if how < 0.1:
            return dice.randbytes(dice.randrange(100))
        if how < 0.25:
            return self.old()
        made = self.batch()
        if how < 0.5:
            return made
        if how < 0.6:
            return made + self.batch()
        hurt = self.hurt(made)
        return self.seal(hurt) if how < 0.9 else hurt

    def batch(self) -> bytes:
        dice = self.random
        count = dice.choice((1, 1, 2, 5))
        records = [
            Record(dice.choice((b"k", None)), dice.choice((b"value", b"", None)), ((b"h", b"1"),), NOW_MS + number)
            for number in range(count)
        ]
        producer = dice.choice(((-1, -1, -1), (-1, -1, -1), (0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (5, 3, 7)))
        return batches.encode(
            records,
            base_offset=dice.choice((0, 0, 7, -1)),
            codec=dice.choice(list(Codec)),
            attributes=dice.choice((0, 0, 0, 0, 8, 16, 16, 32, 48, 64)),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )

    def old(self) -> bytes:
        dice = self.random
        magic = dice.choice((0, 1))
        one = message(b"v", b"k", magic, time_ms=NOW_MS)
        made = dice.choice((one, one * 3, packed(one * 2, dice.choice((1, 2, 3)), magic)))
        return self.hurt(made) if dice.random() < 0.4 else made

    def seal(self, batch: bytes) -> bytes:
        """With the length and the CRC that it would have if it were sound."""
        if len(batch) < batches.HEADER_BYTES:
            return batch
        length, crc = struct.pack(">i", len(batch) - 12), struct.pack(">I", crc32c(batch[21:]))
        return batch[:8] + length + batch[12:17] + crc + batch[21:]

    def hurt(self, data: bytes) -> bytes:
        """Some of it is different: bits, lengths, what is there twice, what is not there."""
        dice = self.random
        made = bytearray(data)
        for _ in range(dice.choice((1, 1, 2, 5))):
            if not made:
                break
            at = dice.randrange(len(made))
            how = dice.randrange(7)
            if how == 0:
                made[at] ^= 1 << dice.randrange(8)
            elif how == 1:
                made[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
            elif how == 2:
                del made[at:]
            elif how == 3:
                del made[at : at + dice.randrange(1, 5)]
            elif how == 4:
                made[at:at] = dice.randbytes(dice.randrange(1, 5))
            elif how == 5:
                made[at : at + 4] = struct.pack(">i", dice.choice((-1, -2, 1 << 20, (1 << 31) - 1, MOST_ELEMENTS)))
            else:
                made[at:at] = made[at : at + dice.randrange(1, 30)]
        return bytes(made)
