"""Access: who may come in, and what they may do.

Comes in: names, passwords, patterns. Goes out: a user or a refusal, yes or no. Everything lasting is in the catalog:
users (in no namespace), their permissions in a namespace, and permissions on routing keys there; so a namespace takes
its own along when it goes.

A permission has three patterns (see access_patterns) for the names of exchanges, queues and topics: configure (make,
remove), write (publish, bind to), read (consume, bind from). Which operation needs which is the face's business. The
default exchange is asked for as "amq.default" or "".

Passwords cost about 3 ms to check the first time, so that guessing is slow; later logins of the same user with the
same password cost some microseconds (see access_logins). A face answers a refusal no sooner than `refusal_delay_ms`
later: it parks the reply, and nothing waits but that connection.
"""

import random
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeVar

from interlog.base.clock import Clock
from interlog.base.errors import ExistsError, InvalidError, NotFoundError, RefusedError
from interlog.core import access_secrets as secrets
from interlog.core.access_logins import MAX_PASSWORD_BYTES, Answer, Logins
from interlog.core.access_objects import (
    ADMINISTRATOR,
    KINDS,
    PERMISSION,
    TOPIC_PERMISSION,
    USER,
    Permission,
    TopicPermission,
    User,
    checked_patterns,
    permission_of,
    topic_name,
    topic_permission_of,
    user_of,
    user_value,
)
from interlog.core.access_patterns import Pattern, filled
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import DEFAULT_NAMESPACE, Change, ObjectItem, check_name

__all__ = ["Access", "Permission", "TopicPermission", "User"]

GUEST: Final = "guest"
REFUSAL_DELAY_MS: Final = 500
_WRONG: Final = "The user name or the password is wrong."
_MOST_REMEMBERED: Final = 10_000  # permissions whose patterns are kept compiled

# One object of this kind tells that the first user was made; who removes that user does not find it again.
_MARK: Final = ("access", "", "first_user")
_SEED: Final = ("access", "", "seed")

Hash = Literal["sha256", "sha512"]

K = TypeVar("K")
_Patterns = Mapping[str, Pattern] | None


class Access:
    """Users and permissions of one broker."""

    refusal_delay_ms = REFUSAL_DELAY_MS

    def __init__(
        self, catalog: Catalog, rng: random.Random, clock: Clock, loopback_users: Iterable[str] = (GUEST,)
    ) -> None:
        self._catalog = catalog
        self._rng = rng
        self._logins = Logins(rng, clock)
        self._loopback_users = frozenset(loopback_users)
        self._patterns: dict[tuple[str, str], _Patterns] = {}  # by user and namespace
        self._key_patterns: dict[tuple[str, str, str], _Patterns] = {}  # by user, namespace and exchange
        self.generation = 0  # rises with each change: an answer holds for one generation
        catalog.observe(self._changed)

    def make_first_user(self, name: str = GUEST, password: str = GUEST) -> bool:
        """On a folder that never had one: an administrator who may do everything in the default namespace."""
        if self._catalog.object(*_MARK) is not None:
            return False
        if self.find(name) is None:
            # A password that everybody knows is not worth the time of a start.
            least = dict.fromkeys(secrets.ITERATIONS, secrets.LEAST_ITERATIONS)
            self._put(name, password, (ADMINISTRATOR,), least if password == GUEST else secrets.ITERATIONS)
        self.set_permissions(DEFAULT_NAMESPACE, name, ".*", ".*", ".*")
        self._catalog.put(*_MARK, {})
        return True

    # -- coming in

    def login(self, user: str, password: str | bytes, *, loopback: bool, source: str = "") -> User:
        """The user, or RefusedError with a sentence for the log: the client is told less, and later.

        `source` is the client's host; one that sends many wrong passwords is refused unheard for a while.
        """
        item = self._catalog.object(USER, "", user)
        try:
            secret = password.encode() if isinstance(password, str) else bytes(password)
        except UnicodeEncodeError:
            secret = b""  # nobody's
        answer = self._logins.check(user, secret, item, source)
        if answer is Answer.LATER:
            raise RefusedError(f"Too many wrong passwords came from {source}; it is not listened to for a while.")
        if answer is Answer.WRONG or item is None:
            raise RefusedError(_WRONG)
        return self._admit(item, loopback)

    def _admit(self, item: ObjectItem, loopback: bool) -> User:
        if not loopback and item.name in self._loopback_users:
            raise RefusedError(
                f"The user {item.name} may only come from the broker's own machine. Make another user, or take it out "
                "of the setting loopback_users."
            )
        return user_of(item)

    def exchange(self, user: str, hash: Hash, *, source: str = "") -> secrets.Secret:
        """What the server's side of a SCRAM exchange needs: nobody's secret for who has none, which no proof fits.

        RefusedError for an address that sent too many wrong proofs.
        """
        if not self._logins.may_try(source):
            raise RefusedError(f"Too many wrong passwords came from {source}; it is not listened to for a while.")
        return self.secret(user, hash) or secrets.nobodys(hash, user, self._seed())

    def login_proved(self, user: str, secret: secrets.Secret, *, loopback: bool) -> User:
        """The user whose exchange went well, if the secret is still theirs."""
        item = self._catalog.object(USER, "", user)
        if item is None or secrets.kept(item.value.get("secrets", {}), secret.hash) != secret:
            raise RefusedError(_WRONG)
        return self._admit(item, loopback)

    def nonce(self) -> str:
        """The server's part of an exchange: nobody can guess it, and it comes once."""
        return self._rng.randbytes(24).hex()

    def proof_refused(self, source: str) -> None:
        """An exchange ended with a wrong proof."""
        self._logins.spend(source)

    def _seed(self) -> bytes:
        """Kept, for what is made up for a name must not change from one start to the next."""
        item = self._catalog.object(*_SEED)
        if item is None:
            item = self._catalog.put(*_SEED, {"seed": self._rng.randbytes(32).hex()})
        return bytes.fromhex(item.value["seed"])

    def login_external(self, name: str) -> User:
        """The user of a name that a certificate has proved."""
        found = self.find(name)
        if found is None:
            raise RefusedError(f"There is no user {name}, which is the name in the client's certificate.")
        return found

    def secret(self, user: str, hash: Hash) -> secrets.Secret | None:
        """What is kept of a password; None for who has none of this kind, or does not exist."""
        item = self._catalog.object(USER, "", user)
        return None if item is None else secrets.kept(item.value.get("secrets", {}), hash)

    # -- what they may

    def may(self, user: str, namespace: str, what: Literal["configure", "write", "read"], name: str) -> bool:
        try:
            patterns = self._patterns[user, namespace]
        except KeyError:
            patterns = _compiled(self._catalog.object(PERMISSION, namespace, user), "configure", "write", "read")
            _remember(self._patterns, (user, namespace), patterns)
        return patterns is not None and patterns[what].fits(name or "amq.default")

    def may_enter(self, user: str, namespace: str) -> bool:
        """Whether the user has any permission there."""
        return self._catalog.object(PERMISSION, namespace, user) is not None

    def may_use_key(self, user: str, namespace: str, what: Literal["write", "read"], exchange: str, key: str) -> bool:
        """Whether the routing key is allowed, where permissions on keys of this exchange were set for the user."""
        exchange = exchange or "amq.default"
        try:
            patterns = self._key_patterns[user, namespace, exchange]
        except KeyError:
            item = self._catalog.object(TOPIC_PERMISSION, namespace, topic_name(user, exchange))
            patterns = _compiled(item, "write", "read", username=user, vhost=namespace)
            _remember(self._key_patterns, (user, namespace, exchange), patterns)
        return patterns is None or patterns[what].fits(key)

    # -- users

    def find(self, name: str) -> User | None:
        item = self._catalog.object(USER, "", name)
        return None if item is None else user_of(item)

    def user(self, name: str) -> User:
        return user_of(self._item(name))

    def users(self) -> list[User]:
        """In order of their names."""
        return [user_of(item) for item in self._catalog.objects(USER, "")]

    def add_user(self, name: str, password: str | None, tags: Iterable[str] = ()) -> User:
        """Without a password the user can only come in by a certificate."""
        if self.find(name) is not None:
            raise ExistsError(f"there is a user {name} already")
        return self.put_user(name, password, tags)

    def put_user(self, name: str, password: str | None, tags: Iterable[str] = ()) -> User:
        """Make a user, or put another password and other tags in place of those it has."""
        return self._put(name, password, tags, secrets.ITERATIONS)

    def set_password(self, name: str, password: str | None) -> None:
        tags = self.user(name).tags
        self._catalog.put(USER, "", name, user_value(tags, self._secrets(password, secrets.ITERATIONS)))

    def set_secret(self, name: str, secret: secrets.Secret) -> None:
        """For one hash function, in place of what the user has for it. A user that is not there is made."""
        item = self._catalog.object(USER, "", name)
        if item is None:
            check_name(USER, name)
        tags: Iterable[str] = () if item is None else item.value["tags"]
        kept = {} if item is None else dict(item.value.get("secrets", {}))
        kept[secret.hash] = secrets.as_json(secret)
        self._catalog.put(USER, "", name, user_value(tags, kept))

    def clear_secret(self, name: str, hash: Hash) -> None:
        """The user stays, with what it has for the other hash function or with no password."""
        item = self._item(name)
        kept = dict(item.value.get("secrets", {}))
        if kept.pop(hash, None) is None:
            raise NotFoundError(f"the user {name} has no {hash} secret")
        self._catalog.put(USER, "", name, user_value(item.value["tags"], kept))

    def set_tags(self, name: str, tags: Iterable[str]) -> None:
        self._catalog.put(USER, "", name, user_value(tags, self._item(name).value.get("secrets")))

    def delete_user(self, name: str) -> None:
        """The user and all its permissions."""
        self._item(name)
        for permission in self.permissions(user=name):
            self.clear_permissions(permission.namespace, name)
        for one in self.topic_permissions(user=name):
            self.clear_topic_permissions(one.namespace, name, one.exchange)
        self._catalog.discard(USER, "", name)

    def _item(self, name: str) -> ObjectItem:
        item = self._catalog.object(USER, "", name)
        if item is None:
            raise NotFoundError(f"there is no user {name}")
        return item

    def _put(self, name: str, password: str | None, tags: Iterable[str], iterations: Mapping[str, int]) -> User:
        check_name(USER, name)
        return user_of(self._catalog.put(USER, "", name, user_value(tags, self._secrets(password, iterations))))

    def _secrets(self, password: str | None, iterations: Mapping[str, int]) -> dict[str, object] | None:
        if password is None:
            return None
        try:
            encoded = password.encode()
        except UnicodeEncodeError:
            raise InvalidError("a password must be text that UTF-8 can write") from None
        if not 1 <= len(encoded) <= MAX_PASSWORD_BYTES:
            raise InvalidError(f"a password takes 1 to {MAX_PASSWORD_BYTES} bytes, not {len(encoded)}")
        return secrets.keep(encoded, self._rng, iterations)

    # -- permissions

    def permissions(self, namespace: str | None = None, user: str | None = None) -> list[Permission]:
        """Of one namespace or all, of one user or all, in order of their names."""
        found = map(permission_of, self._of_kind(PERMISSION, namespace))
        return [one for one in found if user is None or one.user == user]

    def set_permissions(self, namespace: str, user: str, configure: str, write: str, read: str) -> None:
        """In place of those that the user has there. InvalidError if a pattern is no regular expression."""
        self._item(user)
        self._catalog.namespace(namespace)
        patterns = checked_patterns(configure=configure, write=write, read=read)
        self._catalog.put(PERMISSION, namespace, user, patterns)

    def clear_permissions(self, namespace: str, user: str) -> None:
        if not self.may_enter(user, namespace):
            raise NotFoundError(f"the user {user} has no permissions in namespace {namespace}")
        self._catalog.discard(PERMISSION, namespace, user)

    def topic_permissions(self, namespace: str | None = None, user: str | None = None) -> list[TopicPermission]:
        found = map(topic_permission_of, self._of_kind(TOPIC_PERMISSION, namespace))
        return [one for one in found if user is None or one.user == user]

    def set_topic_permissions(self, namespace: str, user: str, exchange: str, write: str, read: str) -> None:
        self._item(user)
        self._catalog.namespace(namespace)
        exchange = exchange or "amq.default"
        value = {"user": user, "exchange": exchange, **checked_patterns(write=write, read=read)}
        self._catalog.put(TOPIC_PERMISSION, namespace, topic_name(user, exchange), value)

    def clear_topic_permissions(self, namespace: str, user: str, exchange: str | None = None) -> None:
        """Those on one exchange, or on all."""
        for one in self.topic_permissions(namespace, user):
            if exchange is None or one.exchange == (exchange or "amq.default"):
                self._catalog.discard(TOPIC_PERMISSION, namespace, topic_name(user, one.exchange))

    def _of_kind(self, kind: str, namespace: str | None) -> list[ObjectItem]:
        catalog = self._catalog
        spaces = catalog.namespaces() if namespace is None else [catalog.namespace(namespace)]
        return [item for space in spaces for item in catalog.objects(kind, space.name)]

    # -- told by the catalog

    def _changed(self, change: Change) -> None:
        if isinstance(change.item, ObjectItem) and change.item.kind in KINDS:
            self.generation += 1
            self._patterns.clear()
            self._key_patterns.clear()


def _compiled(item: ObjectItem | None, *deeds: str, **names: str) -> _Patterns:
    """Ready to be asked; a name in braces stands for what it is here."""
    return None if item is None else {deed: Pattern(filled(item.value[deed], names)) for deed in deeds}


def _remember(patterns: dict[K, _Patterns], key: K, found: _Patterns) -> None:
    if len(patterns) >= _MOST_REMEMBERED:
        patterns.clear()
    patterns[key] = found
