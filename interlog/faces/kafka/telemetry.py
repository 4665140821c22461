"""Clients' metrics, which they send to a broker that asks for some. This one asks for none, and says so.

Nothing is kept of a client: the number of its subscription follows from its own id.
"""

from hashlib import sha256
from typing import Final
from uuid import UUID

from interlog.base.crc32c import crc32c
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.journal.codecs import Codec

PUSH_INTERVAL_MS: Final = 300_000  # and how often a client asks again whether something is wanted
MOST_BYTES: Final = 1 << 20
CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
RESERVED: Final = (NO_UUID, (1).to_bytes(16, "big"))  # no client may be called so


def new_instance(nonce: str) -> bytes:
    return UUID(bytes=sha256(nonce.encode()).digest()[:16], version=4).bytes


def subscription(instance: bytes) -> int:
    return int.from_bytes(crc32c(instance).to_bytes(4, "big"), "big", signed=True)
