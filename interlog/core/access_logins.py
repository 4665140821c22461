"""Logins: is this the user's password? Right answers are remembered, and guessing is slowed down.

Comes in: a name, a password, what the catalog has of the user, and where the question came from. Goes out: yes, no, or
"not now". A derivation costs milliseconds of the one thread, so three things spare it: an answer that was given before
is given again for as long as the user is the same; a wrong answer likewise; and an address with too many wrong
passwords is not listened to for a while, except for what is already known to be right.
"""

import hmac
import random
from enum import Enum
from typing import Final

from interlog.base.clock import Clock
from interlog.core import access_secrets as secrets
from interlog.core.catalog_objects import ObjectItem

MAX_PASSWORD_BYTES: Final = 1024
_MOST_REMEMBERED: Final = 10_000
_MOST_ADDRESSES: Final = 10_000
_TRIES: Final = 20  # wrong passwords an address may send at once
_TRIES_A_SECOND: Final = 2.0  # and how fast it earns new ones

_Remembered = dict[bytes, ObjectItem | None]


class Answer(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    LATER = "later"


class Logins:
    """Answers, and how many tries each address has left."""

    def __init__(self, rng: random.Random, clock: Clock) -> None:
        self.derivations = 0  # how many passwords had to be worked out
        self._rng = rng
        self._key = b""
        self._clock = clock
        self._right: _Remembered = {}
        self._wrong: _Remembered = {}
        self._tries: dict[str, tuple[float, float]] = {}  # address → tries left, and when that was so

    def check(self, name: str, password: bytes, item: ObjectItem | None, source: str) -> Answer:
        if not password or len(password) > MAX_PASSWORD_BYTES:
            return Answer.WRONG  # no user has such a one
        if not self._key:
            self._key = self._rng.randbytes(32)
        digest = self._digest(name, password)
        # An object of the catalog is replaced by a change: what is remembered holds for this very object.
        if item is not None and self._right.get(digest) is item:
            return Answer.RIGHT
        if digest in self._wrong and self._wrong[digest] is item:
            return Answer.WRONG
        if not self.may_try(source):
            return Answer.LATER
        found = None if item is None else secrets.any_kept(item.value.get("secrets", {}))
        secret = found or secrets.nobodys("sha256", name, self._key)
        self.derivations += 1
        if secret.fits(password) and found is not None:
            _remember(self._right, digest, item)
            return Answer.RIGHT
        self.spend(source)
        _remember(self._wrong, digest, item)
        return Answer.WRONG

    def _digest(self, name: str, password: bytes) -> bytes:
        encoded = name.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, len(encoded).to_bytes(4, "big") + encoded + password, "sha256")

    def _left(self, source: str, now: float) -> float:
        left, then = self._tries.get(source, (float(_TRIES), now))
        return min(float(_TRIES), left + (now - then) * _TRIES_A_SECOND)

    def may_try(self, source: str) -> bool:
        """Whether the address is listened to."""
        return not source or self._left(source, self._clock.monotonic()) >= 1

    def spend(self, source: str) -> None:
        """It sent a wrong one."""
        if not source:
            return
        now = self._clock.monotonic()
        left = self._left(source, now) - 1
        self._tries.pop(source, None)  # to the end: whoever tried longest ago is forgotten first
        self._tries[source] = (left, now)
        if len(self._tries) > _MOST_ADDRESSES:
            del self._tries[next(iter(self._tries))]


def _remember(answers: _Remembered, digest: bytes, item: ObjectItem | None) -> None:
    if len(answers) >= _MOST_REMEMBERED and digest not in answers:
        del answers[next(iter(answers))]
    answers[digest] = item
