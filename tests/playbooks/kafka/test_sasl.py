"""Saying who one is: SaslHandshake and SaslAuthenticate, bare tokens, refusals, certificates."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.faces.face import Peer
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.api_versions import ApiVersionsRequest
from interlog.faces.kafka.schema.sasl_authenticate import SaslAuthenticateRequest
from interlog.faces.kafka.schema.sasl_handshake import SaslHandshakeRequest
from tests.playbooks.kafka.play import Client, Play, playing
from tests.playbooks.kafka.scram_client import ScramClient

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
REMOTE = Peer("10.0.0.9:5000", "10.0.0.9", 5000, loopback=False, local_host="10.0.0.1", local_port=9092)
DELAY_MS = 500
WRONG_SCRAM = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Play]:
    """A broker whose clients must log in."""
    yield from playing(tmp_path / "closed", authentication=True)


def handshake(client: Client, mechanism: str, version: int = 1) -> None:
    answer = client.ask(SaslHandshakeRequest(mechanism), version)
    assert (answer.error_code, answer.mechanisms) == (0, MECHANISMS)


def say(client: Client, token: bytes, version: int = 2) -> Any:
    return client.ask(SaslAuthenticateRequest(token), version)


def plain(client: Client, user: str = "guest", password: str = "guest", version: int = 2) -> Any:
    handshake(client, "PLAIN")
    return say(client, f"\0{user}\0{password}".encode(), version)


def scram_first(client: Client, of: ScramClient, version: int = 2) -> None:
    answer = say(client, of.first_message(), version)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    of.process_server_first_message(answer.auth_bytes)


def bare(play: Play, client: Client, token: bytes) -> bytes:
    """A token without a request around it, and its answer, likewise."""
    client.feed(len(token).to_bytes(4, "big") + token)
    play.core.commit()
    answer = b"".join(bytes(part) for part in client.face.take_output())  # type: ignore[arg-type]
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    return answer[4:]


def refused_late(play: Play, client: Client, token: bytes, message: str) -> None:
    client.send(SaslAuthenticateRequest(token), 2)
    assert client.listen() == []
    play.advance(DELAY_MS - 1)
    assert client.listen() == [] and not client.hung_up
    play.advance(1)
    (answer,) = client.listen()
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert client.hung_up


@pytest.mark.parametrize("version", range(3))
def test_plain(closed: Play, version: int) -> None:
    client = closed.connect()
    answer = plain(client, version=version)
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (0, None, b"")
    assert answer.session_lifetime_ms == 0
    assert client.face.user == "guest" and client.face.may("alter", "kafka-cluster", "cluster")


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize("version", range(3))
def test_scram(closed: Play, mechanism: str, version: int) -> None:
    client, of = closed.connect(), ScramClient("guest", "guest", mechanism)
    handshake(client, mechanism)
    scram_first(client, of, version)
    assert client.face.user == ""
    answer = say(client, of.final_message(), version)
    assert answer.error_code == 0
    of.process_server_final_message(answer.auth_bytes)
    assert client.face.user == "guest"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bare_tokens_as_old_clients_send_them(closed: Play, mechanism: str) -> None:
    client = closed.connect()
    handshake(client, mechanism, version=0)

    if mechanism == "PLAIN":
        assert bare(closed, client, b"\0guest\0guest") == b""
    else:
        of = ScramClient("guest", "guest", mechanism)
        of.process_server_first_message(bare(closed, client, of.first_message()))
        of.process_server_final_message(bare(closed, client, of.final_message()))
    assert client.face.user == "guest"


def test_a_wrong_bare_token_is_answered_by_silence_and_the_end(closed: Play) -> None:
    client = closed.connect()
    handshake(client, "PLAIN", version=0)
    client.feed(b"\0\0\0\x0b\0guest\0wrong")
    client.silence()
    closed.advance(DELAY_MS)
    client.refused()


def test_requests_come_as_requests_again_after_the_last_bare_token(closed: Play) -> None:
    client = closed.connect()
    handshake(client, "PLAIN", version=0)
    assert bare(closed, client, b"\0guest\0guest") == b""
    assert client.ask(ApiVersionsRequest(), 0).error_code == 0


def test_an_unknown_mechanism_is_told_what_there_is(closed: Play) -> None:
    client = closed.connect()
    client.send(SaslHandshakeRequest("GSSAPI"), 1)
    (answer,) = client.listen()
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, MECHANISMS)
    assert client.hung_up


def test_wrong_passwords_and_unknown_users_are_answered_alike_and_late(closed: Play) -> None:
    message = "Authentication failed: Invalid username or password"
    for token in (b"\0guest\0wrong", b"\0nobody\0guest", b"", b"\0guest", b"\0\xff\0guest", b"ann\0guest\0guest"):
        client = closed.connect()
        handshake(client, "PLAIN")
        refused_late(closed, client, token, message)


@pytest.mark.parametrize(("user", "password"), [("guest", "wrong"), ("nobody", "guest")])
def test_wrong_proofs_and_unknown_users_are_answered_alike_and_late(closed: Play, user: str, password: str) -> None:
    client, of = closed.connect(), ScramClient(user, password, "SCRAM-SHA-256")
    handshake(client, "SCRAM-SHA-256")
    scram_first(client, of)
    refused_late(closed, client, of.final_message(), WRONG_SCRAM)


def test_what_is_no_scram_message_is_refused_likewise(closed: Play) -> None:
    client = closed.connect()
    handshake(client, "SCRAM-SHA-256")
    refused_late(closed, client, b"n,,n=guest", WRONG_SCRAM)


def test_nothing_is_read_while_a_refusal_waits(closed: Play) -> None:
    client = closed.connect()
    handshake(client, "PLAIN")
    client.send(SaslAuthenticateRequest(b"\0guest\0wrong"), 2)
    client.send(ApiVersionsRequest(), 0)
    assert client.listen() == [] and client.face.holding
    closed.advance(DELAY_MS)
    assert [type(answer).__name__ for answer in client.listen()] == ["SaslAuthenticateResponse"]
    assert client.hung_up


def test_a_client_that_leaves_before_its_refusal_leaves_nothing_behind(closed: Play) -> None:
    client = closed.connect()
    handshake(client, "PLAIN")
    client.send(SaslAuthenticateRequest(b"\0guest\0wrong"), 2)
    client.listen()
    client.drop()
    assert len(closed.core.deadlines) == 0


def test_the_order_of_things(closed: Play) -> None:
    client = closed.connect()
    assert say(client, b"\0guest\0guest").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert plain(client).error_code == 0
    assert client.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert say(client, b"\0guest\0guest").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.face.user == "guest"


def test_guest_stays_at_home(closed: Play) -> None:
    client = closed.connect(REMOTE)
    handshake(client, "PLAIN")
    refused_late(closed, client, b"\0guest\0guest", "Authentication failed: Invalid username or password")
    client, of = closed.connect(REMOTE), ScramClient("guest", "guest", "SCRAM-SHA-256")
    handshake(client, "SCRAM-SHA-256")
    scram_first(client, of)
    refused_late(closed, client, of.final_message(), WRONG_SCRAM)


def test_an_address_that_guesses_is_not_listened_to(closed: Play) -> None:
    closed.core.access.add_user("ann", "pencil")
    for number in range(20):
        closed.core.access.exchange("ann", "sha256", source=REMOTE.host)
        closed.core.access.proof_refused(REMOTE.host)
        assert number < 20
    client = closed.connect(REMOTE)
    handshake(client, "SCRAM-SHA-256")
    refused_late(closed, client, b"n,,n=ann,r=abc", WRONG_SCRAM)


def test_logging_in_is_for_everybody_where_nobody_must(play: Play) -> None:
    play.core.access.add_user("ann", "pencil")
    play.core.access.set_permissions("/", "ann", "", "", "^mine")
    client = play.connect()
    assert client.face.may("write", "yours")
    assert plain(client, "ann", "pencil").error_code == 0
    assert client.face.may("read", "mine") and not client.face.may("write", "yours")


def test_a_certificate_names_the_user_and_a_login_another(closed: Play) -> None:
    closed.core.access.add_user("ann", None)
    peer = Peer("10.0.0.9:5000", "10.0.0.9", 5000, loopback=False, tls=True, certificate=("nobody", "ann"))
    assert closed.connect(peer).face.user == "ann"
    closed.core.access.add_user("bob", "brush")
    client = closed.connect(peer)
    assert plain(client, "bob", "brush").error_code == 0
    assert client.face.user == "bob"
    stranger = closed.connect(Peer(tls=True, certificate=("nobody",)))
    assert stranger.face.user == ""
