"""Settings so small that what happens to a broker in a year happens in a second."""

import os
import random
import shutil
from typing import Literal

from interlog.core.broker import CoreSettings

_MEMORY = "/dev/shm"
_ROOM_BYTES = 1 << 30


def scratch() -> str | None:
    """Where data folders are made: in memory, if there is room. Syncs are modelled; real ones only cost."""
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _ROOM_BYTES:
        return None
    return _MEMORY


def tiny_settings(rng: random.Random, durability: Literal["sync", "os"]) -> CoreSettings:
    return CoreSettings(
        durability=durability,
        flush_ms=rng.choice((50, 1000)),
        journal_file_bytes=rng.choice((8, 16, 32, 64)) << 10,
        journal_roll_ms=rng.choice((0, 0, 3_000)),
        segment_bytes=rng.choice((4, 16, 64)) << 10,
        checkpoint_ms=rng.choice((200, 2_000, 60_000)),
        checkpoint_bytes=rng.choice((4, 32, 512)) << 10,
        checkpoint_entries=rng.choice((40, 1_000)),
        memory_bytes=rng.choice((32, 256)) << 10,
        queue_memory_bytes=rng.choice((2, 8, 64)) << 10,
        tail_bytes=rng.choice((0, 4 << 10, 1 << 20)),
        min_free_bytes=0,
        housekeeping_ms=rng.choice((100, 5_000)),
    )
