"""Passwords, kept so that nobody can read them, in SCRAM's form (RFC 5802).

Comes in: a password, once, when it is set, and again at each login. Goes out: for SHA-256 and SHA-512 each a salt, a
number of iterations, a stored key and a server key. A password sent in the clear is checked by deriving the stored
key from it; a SCRAM exchange needs nothing else than what is kept. Who sets a secret may have done the derivation
elsewhere, for one hash function only: then that is all there is.
"""

import hashlib
import hmac
import random
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# One derivation is what a login costs: 3 ms each on the machine this was written on. The least is what Kafka's clients
# accept; more than the most nobody may ask for, because who logs in has the broker pay it.
ITERATIONS: Final[Mapping[str, int]] = {"sha256": 16_384, "sha512": 8_192}
LEAST_ITERATIONS: Final = 4_096
MOST_ITERATIONS: Final = 16_384

_SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Secret:
    """What is kept of a password for one hash function."""

    hash: str  # sha256 or sha512
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def fits(self, password: bytes) -> bool:
        """Whether it is the password, in a time that does not depend on the answer. Costs a derivation."""
        key = _client_key(self.hash, password, self.salt, self.iterations)
        return hmac.compare_digest(hashlib.new(self.hash, key).digest(), self.stored_key)


def derive(hash: str, password: bytes, salt: bytes, iterations: int) -> Secret:
    return from_salted(hash, hashlib.pbkdf2_hmac(hash, password, salt, iterations), salt, iterations)


def from_salted(hash: str, salted: bytes, salt: bytes, iterations: int) -> Secret:
    """Of a password that was salted elsewhere."""
    client_key = hmac.digest(salted, b"Client Key", hash)
    stored_key = hashlib.new(hash, client_key).digest()
    return Secret(hash, salt, iterations, stored_key, hmac.digest(salted, b"Server Key", hash))


def keep(password: bytes, rng: random.Random, iterations: Mapping[str, int] = ITERATIONS) -> dict[str, Any]:
    """What the catalog keeps of a password, for every hash function."""
    return {
        hash: as_json(derive(hash, password, rng.randbytes(_SALT_BYTES), count)) for hash, count in iterations.items()
    }


def kept(secrets: Mapping[str, Any], hash: str) -> Secret | None:
    """What `keep` made, for one hash function."""
    one = secrets.get(hash)
    if one is None:
        return None
    salt, stored_key, server_key = (b64decode(one[name]) for name in ("salt", "stored_key", "server_key"))
    return Secret(hash, salt, one["iterations"], stored_key, server_key)


def any_kept(secrets: Mapping[str, Any]) -> Secret | None:
    """What a password sent in the clear is checked against."""
    return kept(secrets, "sha256") or kept(secrets, "sha512")


def nobodys(hash: str, user: str, seed: bytes) -> Secret:
    """A secret that no password fits, always the same for the same name: who has none costs what the others cost."""
    noise = hmac.digest(seed, user.encode("utf-8", "surrogatepass"), "sha512")
    size = hashlib.new(hash).digest_size
    return Secret(hash, noise[:_SALT_BYTES], ITERATIONS[hash], noise[-size:], noise[-size:])


def _client_key(hash: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hmac.digest(hashlib.pbkdf2_hmac(hash, password, salt, iterations), b"Client Key", hash)


def as_json(secret: Secret) -> dict[str, Any]:
    return {
        "salt": b64encode(secret.salt).decode(),
        "iterations": secret.iterations,
        "stored_key": b64encode(secret.stored_key).decode(),
        "server_key": b64encode(secret.server_key).decode(),
    }
