"""A SCRAM client for tests, small enough to be seen through."""

import hashlib
import hmac
from base64 import b64decode, b64encode


class ScramClient:
    def __init__(self, user: str, password: str, mechanism: str, nonce: str = "fyko+d2lbbFgONRv9qkxdawL") -> None:
        self._hash = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._bare = f"n={user},r={nonce}"
        self._password = password
        self._salted = b""
        self._said = ""
        self._unproved = ""

    def first_message(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def process_server_first_message(self, said: bytes) -> None:
        fields = dict(field.split("=", 1) for field in said.decode().split(","))
        self._salted = hashlib.pbkdf2_hmac(
            self._hash, self._password.encode(), b64decode(fields["s"]), int(fields["i"])
        )
        self._unproved = f"c=biws,r={fields['r']}"
        self._said = f"{self._bare},{said.decode()},{self._unproved}"

    def final_message(self) -> bytes:
        key = hmac.digest(self._salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, key).digest()
        signature = hmac.digest(stored, self._said.encode(), self._hash)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        return f"{self._unproved},p={b64encode(proof).decode()}".encode()

    def process_server_final_message(self, said: bytes) -> None:
        key = hmac.digest(self._salted, b"Server Key", self._hash)
        assert said == b"v=" + b64encode(hmac.digest(key, self._said.encode(), self._hash))
