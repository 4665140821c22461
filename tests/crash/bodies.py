"""Bodies of messages that can be told apart: all of one follows from its number, so nothing can be changed unseen."""

import random

from tests.crash.model import Wrong


def body_of(number: int, largest: int) -> bytes:
    rng = random.Random(number)
    return b"%d " % number + rng.randbytes(int(largest ** rng.random()))


def number_of(body: bytes, largest: int) -> int:
    number = int(body.partition(b" ")[0])
    if body != body_of(number, largest):
        raise Wrong(f"message {number} came back changed")
    return number
