"""SCRAM (RFC 5802, RFC 7677), the server's side: two messages in, two messages out.

In come a client's messages and what is kept of its password; out go the server's, or ScramError. A proof that does
not fit is a WrongProof: somebody guessed. Channel binding is not offered. Delegation tokens of Kafka, which come as an
extension, are refused.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final

from interlog.base.errors import InterlogError
from interlog.core.access_secrets import Secret

MAX_MESSAGE_BYTES: Final = 4_096

_FIRST: Final = re.compile(r"([ny],(?:a=([^,]*))?,)(n=([^,]+),r=([!-+\--~]+)((?:,[A-Za-z]+=[^,]*)*))")
_FINAL: Final = re.compile(r"(c=([^,]+),r=([!-+\--~]+)(?:,[A-Za-z]+=[^,]*)*),p=([A-Za-z0-9+/=]+)")
_ESCAPED: Final = re.compile(r"=(2C|3D)?")


class ScramError(InterlogError):
    """The client's message is none, or not one that can be answered."""


class WrongProof(ScramError):
    """The client does not know the password."""


class Scram:
    """One exchange. `first`, then `final`; `user` and `secret` are known after the first."""

    def __init__(self, secret_of: Callable[[str], Secret], nonce: str) -> None:
        self.user = ""
        self.secret: Secret | None = None
        self._secret_of = secret_of
        self._nonce = nonce
        self._binding = b""
        self._said = ""

    def first(self, message: bytes) -> bytes:
        match = _FIRST.fullmatch(_text(message))
        if match is None:
            raise ScramError("the first SCRAM message is not one that can be answered")
        header, authorization, bare, name, nonce, extensions = match.groups()
        if ",tokenauth=true" in extensions:
            raise ScramError("delegation tokens are not known here")
        self.user = _unescape(name)
        if authorization and _unescape(authorization) != self.user:
            raise ScramError("nobody can be somebody else: the authorization id differs from the user name")
        self.secret = secret = self._secret_of(self.user)
        self._binding = header.encode()
        self._nonce = nonce + self._nonce
        answer = f"r={self._nonce},s={b64encode(secret.salt).decode()},i={secret.iterations}"
        self._said = f"{bare},{answer}"
        return answer.encode()

    def final(self, message: bytes) -> bytes:
        match = _FINAL.fullmatch(_text(message))
        secret = self.secret
        if match is None or secret is None:
            raise ScramError("the last SCRAM message is not one")
        unproved, binding, nonce, proof = match.groups()
        if _decode(binding) != self._binding:
            raise ScramError("the last SCRAM message binds another channel than the first")
        if not hmac.compare_digest(nonce, self._nonce):
            raise ScramError("the last SCRAM message belongs to another exchange")
        said = f"{self._said},{unproved}".encode()
        signature = hmac.digest(secret.stored_key, said, secret.hash)
        given = _decode(proof)
        if len(given) != len(signature):
            raise WrongProof("the proof is of another length")
        client_key = bytes(one ^ other for one, other in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(secret.hash, client_key).digest(), secret.stored_key):
            raise WrongProof("the proof does not fit")
        return b"v=" + b64encode(hmac.digest(secret.server_key, said, secret.hash))


def _text(message: bytes) -> str:
    if len(message) > MAX_MESSAGE_BYTES:
        raise ScramError(f"a SCRAM message of {len(message)} bytes; {MAX_MESSAGE_BYTES} is the limit")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a SCRAM message is not UTF-8") from None


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ScramError("a SCRAM message is not base64 where it must be") from None


def _unescape(name: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[1] is None:
            raise ScramError("the user name is not escaped as it must be")
        return "," if match[1] == "2C" else "="

    return _ESCAPED.sub(plain, name)
