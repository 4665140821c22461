"""What the core can be told: durability, sizes, limits, intervals. Checked by whoever made them."""

from dataclasses import dataclass
from typing import Literal

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class CoreSettings:
    durability: Literal["sync", "os"] = "sync"
    flush_ms: int = 1000  # the longest that anything written stays unsynced where nobody waits
    journal_file_bytes: int = 256 * MIB
    journal_roll_ms: int = 3_600_000  # 0: files are closed by size only
    segment_bytes: int = 64 * MIB
    checkpoint_ms: int = 30_000
    checkpoint_bytes: int = 64 * MIB  # of journal: so much is replayed at the most after a kill
    checkpoint_entries: int = 250_000  # ... and so many entries, which may be small
    memory_bytes: int = 512 * MIB  # of messages, in all queues
    queue_memory_bytes: int = 8 * MIB  # of messages, in one queue; what is beyond is on disk
    tail_bytes: int = 16 * MIB  # the newest batches of all partitions
    decode_limit_bytes: int = 64 * MIB  # so much more than its own bytes a batch may take, unpacked
    min_free_bytes: int = 50_000_000
    loopback_users: tuple[str, ...] = ("guest",)  # may only come from this machine
    housekeeping_ms: int = 5_000  # how often retention, compaction and rewriting are looked at
    producer_expiration_ms: int = 86_400_000  # after which a producer that sends nothing is forgotten
    transaction_max_timeout_ms: int = 900_000  # the longest that a producer may ask for
    transaction_expiration_ms: int = 7 * 86_400_000  # after which a transactional id that is not used is forgotten
