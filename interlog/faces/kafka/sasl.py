"""SASL: who is at the other end of a connection. In come tokens; out go tokens, and in the end a user.

A connection goes through it once, in Kafka's two ways: tokens inside SaslAuthenticate requests, or (SaslHandshake of
version 0) bare ones in frames of their own. It is there for every client, also where nobody needs to log in: who does
has its user's rights. A refusal is answered late, in words that are the same whatever was wrong.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final

from interlog.base.errors import RefusedError
from interlog.base.log import get_log
from interlog.core.access import Access, Hash, User
from interlog.faces.kafka.scram import Scram, ScramError, WrongProof

if TYPE_CHECKING:
    from interlog.faces.face import Peer

log = get_log("kafka")

PLAIN: Final = "PLAIN"
SCRAM: Final[dict[str, Hash]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SCRAM_NUMBERS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}  # in requests about passwords
MECHANISMS: Final = (PLAIN, *SCRAM)

_MAX_PLAIN_BYTES: Final = 4_096


class State(Enum):
    READY = "a mechanism is to be named"
    FIRST = "the first token is to come"
    FINAL = "the last token is to come"
    DONE = "the user is known"
    FAILED = "refused"


class Sasl:
    def __init__(self, access: Access, peer: "Peer") -> None:
        self.state = State.READY
        self.mechanism = ""
        self.raw = False  # tokens come in frames of their own
        self.user: User | None = None  # once it is done
        self._access = access
        self._peer = peer
        self._scram: Scram | None = None

    @property
    def expects_token(self) -> bool:
        return self.state in (State.FIRST, State.FINAL)

    @property
    def expects_raw_token(self) -> bool:
        return self.raw and self.expects_token

    @property
    def refusal(self) -> str:
        if self.mechanism == PLAIN:
            return "Authentication failed: Invalid username or password"
        why = "due to invalid credentials with SASL mechanism"
        return f"Authentication failed during authentication {why} {self.mechanism}"

    def begin(self, mechanism: str, *, raw: bool) -> None:
        """With one of MECHANISMS."""
        self.mechanism = mechanism
        self.raw = raw
        self.state = State.FIRST
        if mechanism in SCRAM:
            hash, source = SCRAM[mechanism], self._peer.host
            self._scram = Scram(lambda user: self._access.exchange(user, hash, source=source), self._access.nonce())

    def take(self, token: bytes) -> bytes:
        """The answer to a token; `user` is there after the last one. RefusedError has a sentence for the log."""
        try:
            if self._scram is None:
                self._done(self._plain(token))
                return b""
            if self.state is State.FIRST:
                answer = self._scram.first(token)
                self.state = State.FINAL
            else:
                answer = self._scram.final(token)
                assert self._scram.secret is not None
                user = self._access.login_proved(self._scram.user, self._scram.secret, loopback=self._peer.loopback)
                self._done(user)
            return answer
        except (RefusedError, ScramError) as error:
            self.state = State.FAILED
            if isinstance(error, WrongProof):
                self._access.proof_refused(self._peer.host)
            log.warning("login refused", peer=self._peer.address, mechanism=self.mechanism, reason=str(error))
            raise RefusedError(str(error)) from None

    def _done(self, user: User) -> None:
        self.user = user
        self.state = State.DONE

    def _plain(self, token: bytes) -> User:
        parts = token.split(b"\0") if len(token) <= _MAX_PLAIN_BYTES else ()
        if len(parts) != 3:
            raise RefusedError("The token is not a user and a password.")
        try:
            authorization, name = parts[0].decode(), parts[1].decode()
        except UnicodeDecodeError:
            raise RefusedError("The user's name is not UTF-8.") from None
        if authorization and authorization != name:
            raise RefusedError("Nobody can be somebody else: the authorization id differs from the user name.")
        return self._access.login(name, parts[2], loopback=self._peer.loopback, source=self._peer.host)
