"""Passwords over the wire: who has which, set and removed; and that they are those of all protocols."""

import hashlib
from typing import Any

import pytest

from interlog.base.errors import RefusedError
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from interlog.faces.kafka.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from interlog.faces.kafka.schema.sasl_authenticate import SaslAuthenticateRequest
from interlog.faces.kafka.schema.sasl_handshake import SaslHandshakeRequest
from tests.playbooks.kafka.logins import login
from tests.playbooks.kafka.play import Client, Play
from tests.playbooks.kafka.scram_client import ScramClient

SHA_256, SHA_512 = 1, 2
HASHES = {SHA_256: "sha256", SHA_512: "sha512"}
SALT = b"0123456789abcdef"


def described(client: Client, *names: str) -> dict[str, Any]:
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in names])
    answer = client.ask(request, 0)
    assert (answer.error_code, answer.error_message, answer.throttle_time_ms) == (0, None, 0)
    return {
        one.user: one.error_code or {info.mechanism: info.iterations for info in one.credential_infos}
        for one in answer.results
    }


def upsertion(name: str, password: str, mechanism: int = SHA_256, iterations: int = 4_096) -> ScramCredentialUpsertion:
    salted = hashlib.pbkdf2_hmac(HASHES.get(mechanism, "sha256"), password.encode(), SALT, max(iterations, 1))
    return ScramCredentialUpsertion(name, mechanism, iterations, SALT, salted)


def alter(client: Client, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        [one for one in changes if isinstance(one, ScramCredentialDeletion)],
        [one for one in changes if isinstance(one, ScramCredentialUpsertion)],
    )
    answer = client.ask(request, 0)
    assert answer.throttle_time_ms == 0
    told = {one.user: one.error_code for one in answer.results}
    assert len(told) == len(answer.results)
    assert all((one.error_message is None) == (one.error_code == 0) for one in answer.results)
    return told


def scram(play: Play, user: str, password: str, mechanism: str) -> bool:
    client, of = play.connect(), ScramClient(user, password, mechanism)
    assert client.ask(SaslHandshakeRequest(mechanism), 1).error_code == 0
    of.process_server_first_message(client.ask(SaslAuthenticateRequest(of.first_message()), 2).auth_bytes)
    client.send(SaslAuthenticateRequest(of.final_message()), 2)
    play.advance(500)
    (answer,) = client.listen()
    if answer.error_code:
        return False
    of.process_server_final_message(answer.auth_bytes)
    return True


def test_who_has_what(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil")
    play.core.access.add_user("cert", None)
    assert described(client) == {
        "ann": {SHA_256: 16_384, SHA_512: 8_192},
        "guest": {SHA_256: 4_096, SHA_512: 4_096},
    }
    assert client.ask(DescribeUserScramCredentialsRequest(None), 0).results[0].user == "ann"
    assert described(client, "ann", "cert", "nobody", "", "guest", "guest") == {
        "ann": {SHA_256: 16_384, SHA_512: 8_192},
        "cert": ErrorCode.RESOURCE_NOT_FOUND,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "": ErrorCode.RESOURCE_NOT_FOUND,
        "guest": ErrorCode.DUPLICATE_RESOURCE,
    }


@pytest.mark.parametrize(("mechanism", "name"), [(SHA_256, "SCRAM-SHA-256"), (SHA_512, "SCRAM-SHA-512")])
def test_a_user_is_made_and_comes_in(play: Play, client: Client, mechanism: int, name: str) -> None:
    assert alter(client, upsertion("ann", "pencil", mechanism, 5_000)) == {"ann": 0}
    assert described(client, "ann") == {"ann": {mechanism: 5_000}}
    assert scram(play, "ann", "pencil", name)
    assert not scram(play, "ann", "brush", name)
    assert login(play, "ann", "pencil").face.user == "ann"
    assert play.core.access.login("ann", "pencil", loopback=True).tags == ()
    other = "SCRAM-SHA-512" if mechanism == SHA_256 else "SCRAM-SHA-256"
    assert not scram(play, "ann", "pencil", other)


def test_what_was_set_lasts(play: Play, client: Client) -> None:
    alter(client, upsertion("ann", "pencil"))
    play.restart()
    assert scram(play, "ann", "pencil", "SCRAM-SHA-256")
    client = play.connect()
    assert alter(client, ScramCredentialDeletion("ann", SHA_256)) == {"ann": 0}
    play.restart()
    assert described(play.connect(), "ann") == {"ann": ErrorCode.RESOURCE_NOT_FOUND}
    assert play.core.access.user("ann").has_password is False


def test_an_answer_waits_for_the_disk(play: Play, client: Client) -> None:
    client.send(AlterUserScramCredentialsRequest([], [upsertion("ann", "pencil")]), 0)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert len(client.listen()) == 1


def test_another_password_for_one_mechanism_leaves_the_other(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil", ["monitoring"])
    assert alter(client, upsertion("ann", "brush", SHA_256)) == {"ann": 0}
    assert scram(play, "ann", "brush", "SCRAM-SHA-256")
    assert scram(play, "ann", "pencil", "SCRAM-SHA-512")
    assert play.core.access.user("ann").tags == ("monitoring",)


def test_a_password_that_is_removed_opens_nothing(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil")
    both = [ScramCredentialDeletion("ann", SHA_512)]
    assert alter(client, *both) == {"ann": 0}
    assert not scram(play, "ann", "pencil", "SCRAM-SHA-512")
    assert scram(play, "ann", "pencil", "SCRAM-SHA-256")
    assert alter(client, *both) == {"ann": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(client, ScramCredentialDeletion("ann", SHA_256)) == {"ann": 0}
    with pytest.raises(RefusedError):
        play.core.access.login("ann", "pencil", loopback=True)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (upsertion("ann", "pencil", iterations=4_095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", "pencil", iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", "pencil", iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("", "pencil"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("x" * 256, "pencil"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialUpsertion("ann", SHA_256, 4_096, b"", b"x"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialUpsertion("ann", SHA_256, 4_096, SALT, b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialUpsertion("ann", SHA_256, 4_096, bytes(1_025), b"x"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", "pencil", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("ann", "pencil", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramCredentialDeletion("ann", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramCredentialDeletion("", SHA_256), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialDeletion("ann", SHA_256), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_what_is_refused_costs_the_others_nothing(
    client: Client, change: ScramCredentialUpsertion | ScramCredentialDeletion, error: ErrorCode
) -> None:
    assert alter(client, change, upsertion("bob", "brush")) == {change.name: error, "bob": 0}
    assert described(client, "bob", "ann") == {"bob": {SHA_256: 4_096}, "ann": ErrorCode.RESOURCE_NOT_FOUND}


def test_the_same_user_twice_is_not_touched(play: Play, client: Client) -> None:
    twice = (upsertion("ann", "one"), upsertion("ann", "two", SHA_512), upsertion("bob", "brush"))
    assert alter(client, *twice) == {"ann": ErrorCode.DUPLICATE_RESOURCE, "bob": 0}
    assert play.core.access.find("ann") is None
    play.core.access.add_user("ann", "pencil")
    mixed = (ScramCredentialDeletion("ann", SHA_512), upsertion("ann", "one"))
    assert alter(client, *mixed) == {"ann": ErrorCode.DUPLICATE_RESOURCE}
    assert play.core.access.login("ann", "pencil", loopback=True).name == "ann"


def test_it_takes_the_right_to_alter_the_cluster(play: Play) -> None:
    play.core.access.add_user("ann", "pencil", ["monitoring"])
    play.core.access.set_permissions("/", "ann", ".*", ".*", ".*")
    ann = login(play, "ann", "pencil")
    assert alter(ann, upsertion("bob", "x"), ScramCredentialDeletion("guest", SHA_256)) == {
        "guest": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        "bob": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
    assert "ann" in described(ann)
    play.core.access.set_tags("ann", [])
    answer = ann.ask(DescribeUserScramCredentialsRequest([UserName("ann")]), 0)
    assert (answer.error_code, answer.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
