"""Users, passwords and permissions, on a catalog that is replayed and loaded."""

import random
from typing import Any

import pytest

from interlog.base.clock import ManualClock
from interlog.base.errors import ExistsError, InvalidError, NotFoundError, RefusedError
from interlog.core import access_logins, access_secrets
from interlog.core.access import Access, Permission, TopicPermission, User
from interlog.core.access_secrets import derive, kept, nobodys
from interlog.core.catalog import Catalog
from tests.unit.test_catalog import FakeStorage, Table


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few iterations: what is tested is not their number."""
    monkeypatch.setattr(access_secrets, "ITERATIONS", {"sha256": 10, "sha512": 10})
    monkeypatch.setattr(access_secrets, "LEAST_ITERATIONS", 5)


class Rig:
    def __init__(self, loopback_users: tuple[str, ...] = ("guest",)) -> None:
        self.storage = FakeStorage()
        self.catalog = Catalog(self.storage)
        self.clock = ManualClock()
        self.access = Access(self.catalog, random.Random(7), self.clock, loopback_users)

    def login(self, user: str, password: str | bytes, *, loopback: bool = True, source: str = "") -> User:
        return self.access.login(user, password, loopback=loopback, source=source)

    def refused(self, user: str, password: str | bytes, *, loopback: bool = True, source: str = "") -> str:
        with pytest.raises(RefusedError) as caught:
            self.login(user, password, loopback=loopback, source=source)
        return str(caught.value)

    @property
    def derivations(self) -> int:
        return self.access._logins.derivations


@pytest.fixture
def rig() -> Rig:
    return Rig()


WRONG = "The user name or the password is wrong."


# -- the first user


def test_a_fresh_folder_has_one_administrator_who_may_do_everything(rig: Rig) -> None:
    assert rig.access.make_first_user()
    assert rig.access.users() == [User("guest", ("administrator",), True)]
    assert rig.login("guest", "guest").administrator
    assert rig.access.permissions() == [Permission("/", "guest", ".*", ".*", ".*")]
    assert not rig.access.make_first_user()


def test_the_first_user_stays_deleted(rig: Rig) -> None:
    rig.access.make_first_user("root", "secret")
    rig.access.delete_user("root")
    replayed = Catalog(FakeStorage())
    for payload in rig.storage.payloads:
        replayed.apply(payload)
    table = Table()
    table.save(rig.catalog.take_changes())
    loaded = Catalog(FakeStorage())
    loaded.load(table.sorted())
    for catalog in (rig.catalog, replayed, loaded):
        access = Access(catalog, random.Random(1), rig.clock)
        assert not access.make_first_user()
        assert access.users() == []


# -- logging in


def test_only_the_right_password_comes_in(rig: Rig) -> None:
    rig.access.add_user("ann", "pä ss", ["monitoring"])
    assert rig.login("ann", "pä ss") == User("ann", ("monitoring",), True)
    assert rig.login("ann", "pä ss".encode()) == rig.access.user("ann")
    for user, password in [
        ("ann", "pa ss"),
        ("ann", ""),
        ("bob", "pä ss"),
        ("ann", "x" * 2000),
        ("", ""),
        ("\ud800", "x"),
    ]:
        assert rig.refused(user, password) == WRONG
    assert rig.refused("ann", "\ud800") == WRONG


def test_a_user_without_a_password_comes_in_by_certificate_only(rig: Rig) -> None:
    rig.access.add_user("robot", None)
    assert not rig.access.user("robot").has_password
    assert rig.refused("robot", "") == WRONG
    assert rig.refused("robot", "x") == WRONG
    assert rig.access.login_external("robot").name == "robot"
    with pytest.raises(RefusedError, match="There is no user human"):
        rig.access.login_external("human")


def test_some_users_come_from_this_machine_only(rig: Rig) -> None:
    rig.access.make_first_user()
    rig.access.add_user("ann", "x")
    assert "loopback_users" in rig.refused("guest", "guest", loopback=False)
    assert rig.refused("guest", "wrong", loopback=False) == WRONG  # the hint is for who knows the password
    rig.login("ann", "x", loopback=False)
    open_rig = Rig(())
    open_rig.access.make_first_user()
    open_rig.login("guest", "guest", loopback=False)


def test_who_does_not_exist_costs_what_a_wrong_password_costs(rig: Rig) -> None:
    rig.access.add_user("ann", "x")
    rig.access.add_user("robot", None)
    for count, user in enumerate(("ann", "robot", "nobody"), 1):
        rig.refused(user, "wrong")
        assert rig.derivations == count
    secret = rig.access.secret("ann", "sha256")
    assert secret is not None
    fake = nobodys("sha256", "nobody", b"seed")
    assert (fake.iterations, len(fake.salt), len(fake.stored_key)) == (
        secret.iterations,
        len(secret.salt),
        len(secret.stored_key),
    )
    assert fake == nobodys("sha256", "nobody", b"seed") != nobodys("sha256", "nobodx", b"seed")


def test_an_answer_is_worked_out_once_and_again_after_a_change(rig: Rig) -> None:
    rig.access.add_user("ann", "old")
    for _ in range(10):
        rig.login("ann", "old")
        rig.refused("ann", "new")
    assert rig.derivations == 2
    rig.access.set_password("ann", "new")
    rig.login("ann", "new")
    rig.refused("ann", "old")
    rig.access.set_password("ann", None)
    rig.refused("ann", "new")
    rig.access.delete_user("ann")
    rig.refused("ann", "new")
    rig.access.add_user("ann", "new")
    rig.login("ann", "new")


def test_names_and_passwords_do_not_run_into_each_other(rig: Rig) -> None:
    rig.access.add_user("a", "bc")
    rig.login("a", "bc")
    assert rig.refused("ab", "c") == WRONG


def test_what_is_remembered_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_logins, "_MOST_REMEMBERED", 3)
    monkeypatch.setattr(access_logins, "_MOST_ADDRESSES", 3)
    rig.access.add_user("ann", "right")
    rig.login("ann", "right")
    for number in range(10):
        rig.refused("ann", f"wrong {number}", source=f"10.0.0.{number}")
    logins = rig.access._logins
    assert (len(logins._wrong), len(logins._tries)) == (3, 3)
    before = rig.derivations
    rig.login("ann", "right")
    assert rig.derivations == before, "wrong answers do not push out right ones"


def test_an_address_that_guesses_is_not_listened_to_for_a_while(rig: Rig) -> None:
    rig.access.add_user("ann", "right")
    rig.access.add_user("bob", "right")
    rig.login("ann", "right", source="evil")
    for number in range(access_logins._TRIES):
        assert rig.refused("ann", str(number), source="evil") == WRONG
    before = rig.derivations
    assert "Too many wrong passwords came from evil" in rig.refused("bob", "right", source="evil")
    assert rig.derivations == before
    rig.login("ann", "right", source="evil")  # known to be right
    rig.login("bob", "right", source="good")
    rig.clock.advance(500)
    assert rig.refused("ann", "one more", source="evil") == WRONG
    assert "Too many" in rig.refused("ann", "and another", source="evil")
    rig.clock.advance(500)
    rig.login("bob", "right", source="evil")


def test_the_same_wrong_password_again_and_again_costs_nothing(rig: Rig) -> None:
    """A client with an old password tries for ever, and the others at its address must not suffer."""
    rig.access.add_user("ann", "right")
    for _ in range(1_000):
        assert rig.refused("ann", "old", source="office") == WRONG
    rig.login("ann", "right", source="office")
    assert rig.derivations == 2


# -- how passwords are kept


def test_what_is_kept_is_scram_as_rfc_7677_computes_it() -> None:
    # The example of RFC 7677, section 3: user «user», password «pencil».
    import base64
    import hashlib
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    secret = derive("sha256", b"pencil", salt, 4096)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(secret.stored_key, message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == secret.stored_key
    server = base64.b64encode(hmac.digest(secret.server_key, message, "sha256"))
    assert server == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_both_hashes_are_kept_each_with_its_salt(rig: Rig) -> None:
    rig.access.add_user("ann", "x")
    rig.access.add_user("bob", "x")
    value = rig.catalog.object("user", "", "ann")
    assert value is not None
    for hash in ("sha256", "sha512"):
        secret = kept(value.value["secrets"], hash)
        assert secret is not None and secret.fits(b"x") and not secret.fits(b"y")
    secrets = [rig.access.secret(user, hash) for user in ("ann", "bob") for hash in ("sha256", "sha512")]
    assert len({one.salt for one in secrets if one}) == 4
    assert rig.access.secret("nobody", "sha256") is None
    assert not any(b'"x"' in payload for payload in rig.storage.payloads)


# -- users


def test_users_are_made_changed_and_removed(rig: Rig) -> None:
    access = rig.access
    access.add_user("b", "x", ["a", "a", "administrator"])
    access.add_user("a", "x")
    assert [user.name for user in access.users()] == ["a", "b"]
    assert access.user("b").tags == ("a", "administrator")
    with pytest.raises(ExistsError, match="there is a user a already"):
        access.add_user("a", "y")
    access.set_tags("b", ())
    assert not access.user("b").administrator
    rig.login("b", "x")
    access.set_password("b", "y")
    rig.login("b", "y")
    access.delete_user("b")
    assert access.find("b") is None
    for call in (access.user, access.delete_user, lambda name: access.set_tags(name, ())):
        with pytest.raises(NotFoundError, match="there is no user b"):
            call("b")
    with pytest.raises(NotFoundError):
        access.set_password("b", "z")


@pytest.mark.parametrize(
    ("name", "password", "tags", "sentence"),
    [
        ("", "x", (), "the name of a user takes 1 to 255 bytes, not 0"),
        ("x" * 256, "x", (), "the name of a user takes 1 to 255 bytes, not 256"),
        ("u", "", (), "a password takes 1 to 1024 bytes, not 0"),
        ("u", "é" * 513, (), "a password takes 1 to 1024 bytes, not 1026"),
        ("u", "\ud800", (), "a password must be text"),
        ("u", "x", ("a b",), "'a b' cannot be a tag"),
        ("u", "x", ("",), "'' cannot be a tag"),
        ("u", "x", [f"t{number}" for number in range(33)], "a user can have 32 tags, not 33"),
    ],
)
def test_what_cannot_be_a_user_is_a_sentence(rig: Rig, name: str, password: str, tags: Any, sentence: str) -> None:
    with pytest.raises(InvalidError, match=f"^{sentence}"):
        rig.access.add_user(name, password, tags)
    assert rig.access.users() == []


# -- permissions


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (".*", ["", "a", "amq.gen-1"], []),
        ("", [""], ["a", "amq.default"]),
        ("^$", [""], ["a"]),
        ("order", ["order", "orders", "my-order"], ["Order", ""]),  # unanchored
        ("^order", ["order", "orders"], ["my-order"]),
        ("^order$", ["order"], ["orders"]),
        ("^(a|b)\\.", ["a.x", "b.y"], ["c.z", "a"]),
        ("ü+", ["über"], ["uber"]),
    ],
)
def test_patterns_are_searched_for(rig: Rig, pattern: str, yes: list[str], no: list[str]) -> None:
    rig.access.add_user("ann", "x")
    rig.access.set_permissions("/", "ann", "^$", pattern, "^$")
    rig.access.set_topic_permissions("/", "ann", "e", pattern, "^$")
    for _ in range(2):  # worked out, and remembered
        for name, expected in [*((name, True) for name in yes), *((name, False) for name in no)]:
            assert rig.access.may_use_key("ann", "/", "write", "e", name) is expected
            if name:
                assert rig.access.may("ann", "/", "write", name) is expected


def test_the_default_exchange_has_a_name_here(rig: Rig) -> None:
    rig.access.add_user("ann", "x")
    rig.access.set_permissions("/", "ann", "", r"^amq\.default$", "")
    assert rig.access.may("ann", "/", "write", "")
    assert rig.access.may("ann", "/", "write", "amq.default")
    assert not rig.access.may("ann", "/", "read", "")


def test_permissions_hold_in_their_namespace_only_and_change_at_once(rig: Rig) -> None:
    access = rig.access
    access.add_user("ann", "x")
    access.add_user("bob", "x")
    rig.catalog.create_namespace("other")
    assert not access.may_enter("ann", "/")
    assert not access.may("ann", "/", "read", "q")
    generation = access.generation
    access.set_permissions("/", "ann", "^c", "^w", "^r")
    assert access.generation > generation
    assert access.may_enter("ann", "/") and not access.may_enter("ann", "other") and not access.may_enter("bob", "/")
    assert [access.may("ann", "/", what, "w1") for what in ("configure", "write", "read")] == [False, True, False]
    assert not access.may("ann", "other", "write", "w1")
    assert not access.may("bob", "/", "write", "w1")
    assert not access.may("nobody", "nowhere", "write", "w1")
    access.set_permissions("/", "ann", "", "", "")
    assert access.may_enter("ann", "/") and not access.may("ann", "/", "write", "w1")
    access.set_permissions("other", "ann", ".*", ".*", ".*")
    assert access.permissions("other") == [Permission("other", "ann", ".*", ".*", ".*")]
    assert [one.namespace for one in access.permissions(user="ann")] == ["/", "other"]
    assert access.permissions(user="bob") == []
    rig.catalog.remove_namespace("other")
    assert not access.may("ann", "other", "write", "w1")
    rig.catalog.create_namespace("other")
    assert not access.may_enter("ann", "other")
    access.clear_permissions("/", "ann")
    assert not access.may_enter("ann", "/")
    with pytest.raises(NotFoundError, match="has no permissions"):
        access.clear_permissions("/", "ann")


def test_a_user_made_anew_has_no_permissions_of_its_forerunner(rig: Rig) -> None:
    access = rig.access
    access.add_user("ann", "x")
    access.set_permissions("/", "ann", ".*", ".*", ".*")
    access.set_topic_permissions("/", "ann", "e", "^a", "^a")
    access.delete_user("ann")
    access.add_user("ann", "x")
    assert not access.may_enter("ann", "/")
    assert access.may_use_key("ann", "/", "write", "e", "b")


def test_permissions_on_keys_narrow_what_is_allowed(rig: Rig) -> None:
    access = rig.access
    access.add_user("ann", "x")
    access.add_user("an", "x")
    assert access.may_use_key("ann", "/", "write", "e", "anything")
    access.set_topic_permissions("/", "ann", "e", r"^a\.", "^b")
    access.set_topic_permissions("/", "ann", "", "^d", "")
    assert access.may_use_key("ann", "/", "write", "e", "a.x")
    assert not access.may_use_key("ann", "/", "write", "e", "b.x")
    assert access.may_use_key("ann", "/", "read", "e", "b.x")
    assert access.may_use_key("ann", "/", "write", "other", "b.x")
    assert access.may_use_key("an", "/", "write", "ne", "b.x")
    assert not access.may_use_key("ann", "/", "write", "", "b.x")
    assert access.topic_permissions() == [
        TopicPermission("/", "ann", "amq.default", "^d", ""),
        TopicPermission("/", "ann", "e", r"^a\.", "^b"),
    ]
    access.clear_topic_permissions("/", "ann", "e")
    assert access.may_use_key("ann", "/", "write", "e", "b.x")
    access.clear_topic_permissions("/", "ann")
    assert access.topic_permissions() == []


def test_names_in_braces_stand_for_who_asks_and_where(rig: Rig) -> None:
    access = rig.access
    rig.catalog.create_namespace("shop")
    for name in ("a.n", "bob"):
        access.add_user(name, "x")
        access.set_topic_permissions("shop", name, "e", r"^{vhost}\.{username}\.", "^{other}$")
    assert access.may_use_key("a.n", "shop", "write", "e", "shop.a.n.x")
    assert access.may_use_key("bob", "shop", "write", "e", "shop.bob.x")
    assert not access.may_use_key("bob", "shop", "write", "e", "shop.a.n.x")
    assert not access.may_use_key("a.n", "shop", "write", "e", "shop.aXn.x")
    assert access.may_use_key("bob", "shop", "read", "e", "{other}")


@pytest.mark.parametrize("pattern", ["(", "*", "a{2,1}", "[[:alpha:]]", "(?<=a+)b", "\ud800", "x" * 1025])
def test_what_is_no_pattern_is_refused_with_a_sentence(rig: Rig, pattern: str) -> None:
    rig.access.add_user("ann", "x")
    with pytest.raises(InvalidError, match=r"^the write pattern "):
        rig.access.set_permissions("/", "ann", ".*", pattern, ".*")
    with pytest.raises(InvalidError, match=r"^the read pattern "):
        rig.access.set_topic_permissions("/", "ann", "e", "", pattern)
    assert not rig.access.permissions() and not rig.access.topic_permissions()


def test_a_kept_pattern_that_no_longer_is_one_fits_nothing(rig: Rig) -> None:
    rig.access.add_user("ann", "x")
    rig.catalog.put("permission", "/", "ann", {"configure": "(", "write": ".*", "read": ""})
    assert not rig.access.may("ann", "/", "configure", "q")
    assert rig.access.may("ann", "/", "write", "q")


def test_permissions_need_a_user_and_a_namespace(rig: Rig) -> None:
    with pytest.raises(NotFoundError, match="there is no user ann"):
        rig.access.set_permissions("/", "ann", "", "", "")
    rig.access.add_user("ann", "x")
    with pytest.raises(NotFoundError, match="there is no namespace nowhere"):
        rig.access.set_permissions("nowhere", "ann", "", "", "")
    with pytest.raises(NotFoundError, match="there is no namespace nowhere"):
        rig.access.set_topic_permissions("nowhere", "ann", "e", "", "")
    with pytest.raises(NotFoundError, match="there is no namespace nowhere"):
        rig.access.permissions("nowhere")


def test_everything_is_as_it_was_after_a_replay_and_after_a_load(rig: Rig) -> None:
    rig.access.make_first_user()
    rig.access.add_user("ann", "x", ["t"])
    rig.access.set_permissions("/", "ann", "a", "b", "c")
    rig.access.set_topic_permissions("/", "ann", "e", "d", "f")
    replayed = Catalog(FakeStorage())
    for payload in rig.storage.payloads:
        replayed.apply(payload)
    table = Table()
    table.save(rig.catalog.take_changes())
    loaded = Catalog(FakeStorage())
    loaded.load(table.sorted())
    for catalog in (replayed, loaded):
        access = Access(catalog, random.Random(1), rig.clock)
        assert access.users() == rig.access.users()
        assert access.permissions() == rig.access.permissions()
        assert access.topic_permissions() == rig.access.topic_permissions()
        assert access.login("ann", "x", loopback=True).tags == ("t",)


def test_what_is_remembered_of_permissions_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from interlog.core import access, access_patterns

    monkeypatch.setattr(access, "_MOST_REMEMBERED", 3)
    monkeypatch.setattr(access_patterns, "_MOST_REMEMBERED", 3)
    rig.access.add_user("ann", "x")
    rig.access.set_permissions("/", "ann", "1", "1", "1")
    for number in range(20):
        assert rig.access.may("ann", "/", "read", str(number)) is ("1" in str(number))
        assert not rig.access.may(f"user {number}", "/", "read", "1")
    assert len(rig.access._patterns) <= 3


# -- secrets made elsewhere, and exchanges


def test_a_secret_may_be_set_for_one_hash_function_alone(rig: Rig) -> None:
    made = derive("sha512", b"pencil", b"salt", 10)
    rig.access.set_secret("ann", made)
    assert rig.access.user("ann") == User("ann", (), True)
    assert rig.access.secret("ann", "sha512") == made
    assert rig.access.secret("ann", "sha256") is None
    assert rig.login("ann", "pencil").name == "ann"  # in the clear it is checked against what there is
    assert rig.refused("ann", "pen") == WRONG
    rig.access.set_tags("ann", ["monitoring"])
    other = derive("sha256", b"brush", b"salt", 10)
    rig.access.set_secret("ann", other)
    assert rig.access.user("ann").tags == ("monitoring",)
    assert (rig.access.secret("ann", "sha256"), rig.access.secret("ann", "sha512")) == (other, made)
    assert rig.login("ann", "brush").name == "ann"


def test_secrets_are_taken_one_by_one_and_the_user_stays(rig: Rig) -> None:
    rig.access.add_user("ann", "pencil", ["management"])
    rig.access.clear_secret("ann", "sha256")
    with pytest.raises(NotFoundError):
        rig.access.clear_secret("ann", "sha256")
    rig.access.clear_secret("ann", "sha512")
    assert rig.access.user("ann") == User("ann", ("management",), False)
    assert rig.refused("ann", "pencil") == WRONG
    with pytest.raises(NotFoundError):
        rig.access.clear_secret("bob", "sha256")
    with pytest.raises(InvalidError):
        rig.access.set_secret("", derive("sha256", b"x", b"salt", 10))


def test_an_exchange_for_nobody_looks_like_any_other_after_a_restart_too(rig: Rig) -> None:
    rig.access.add_user("ann", "pencil")
    assert rig.access.exchange("ann", "sha256") == rig.access.secret("ann", "sha256")
    fake = rig.access.exchange("nobody", "sha512")
    replayed = Catalog(FakeStorage())
    for payload in rig.storage.payloads:
        replayed.apply(payload)
    again = Access(replayed, random.Random(8), rig.clock)
    assert again.exchange("nobody", "sha512") == fake != again.exchange("nobodx", "sha512")
    with pytest.raises(RefusedError):
        rig.access.login_proved("nobody", fake, loopback=True)


def test_who_has_proved_a_secret_is_let_in_if_it_still_holds(rig: Rig) -> None:
    rig.access.add_user("ann", "pencil")
    rig.access.add_user("guest", "guest")
    secret = rig.access.exchange("ann", "sha256")
    assert rig.access.login_proved("ann", secret, loopback=False).name == "ann"
    with pytest.raises(RefusedError, match="own machine"):
        rig.access.login_proved("guest", rig.access.exchange("guest", "sha256"), loopback=False)
    rig.access.set_password("ann", "brush")
    with pytest.raises(RefusedError):
        rig.access.login_proved("ann", secret, loopback=True)


def test_an_address_of_many_wrong_proofs_is_not_listened_to(rig: Rig) -> None:
    for _ in range(20):
        rig.access.exchange("ann", "sha256", source="10.0.0.1")
        rig.access.proof_refused("10.0.0.1")
    with pytest.raises(RefusedError, match=r"10\.0\.0\.1"):
        rig.access.exchange("ann", "sha256", source="10.0.0.1")
    assert "10.0.0.1" in rig.refused("ann", "pencil", source="10.0.0.1")
    rig.access.exchange("ann", "sha256", source="10.0.0.2")
