"""SCRAM against the RFCs' examples, a client of another make, and what no client should send."""

import warnings
from base64 import b64decode, b64encode

import pytest

from interlog.core.access_secrets import Secret, derive
from interlog.faces.kafka.scram import MAX_MESSAGE_BYTES, Scram, ScramError, WrongProof

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")  # of RFC 7677


def secret(password: str = "pencil", hash: str = "sha256") -> Secret:
    return derive(hash, password.encode(), SALT, 4096)


def scram(nonce: str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", of: Secret | None = None) -> Scram:
    return Scram(lambda user: of or secret(), nonce)


FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def test_the_example_of_rfc_7677() -> None:
    server = scram()
    assert (
        server.first(FIRST) == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.user == "user"
    assert server.final(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_example_of_rfc_5802() -> None:
    of = derive("sha1", b"pencil", bytes.fromhex("4125c247e43ab1e93c6dff76"), 4096)
    server = Scram(lambda user: of, "3rfcNHYJY1ZVvWVs7j")
    first = server.first(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL")
    assert first == b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
    final = b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    assert server.final(final) == b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_pythons_client_agrees(mechanism: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own makers
        oracle = pytest.importorskip("kafka.net.sasl.scram", reason="kafka-python is the oracle")
    ScramClient = oracle.ScramClient
    of = secret("pässword", mechanism[6:].replace("-", "").lower())
    client, server = ScramClient("ann", "pässword", mechanism), scram("abc", of)
    client.process_server_first_message(server.first(client.first_message()))
    client.process_server_final_message(server.final(client.final_message()))
    client, server = ScramClient("ann", "password", mechanism), scram("abc", of)
    client.process_server_first_message(server.first(client.first_message()))
    with pytest.raises(WrongProof):
        server.final(client.final_message())


@pytest.mark.parametrize(
    ("said", "user"),
    [
        (b"y,,n=user,r=abc", "user"),  # the client could bind a channel, and saw that it is not offered
        (b"n,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=abc", "a,b=c"),
        ("n,,n=Jürgen,r=abc,x=y,zz=".encode(), "Jürgen"),
    ],
)
def test_first_messages_that_are_taken(said: bytes, user: str) -> None:
    server = scram("xyz")
    assert server.first(said).startswith(b"r=abcxyz,s=")
    assert server.user == user


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=bob,n=user,r=abc",
        b"n,,m=must,n=user,r=abc",
        b"n,,n=a=2,r=abc",
        b"n,,n=user,r=abc,tokenauth=true",
        b"n,,n=\xff,r=abc",
        b"n,,n=user,r=" + b"a" * MAX_MESSAGE_BYTES,
    ],
)
def test_first_messages_that_are_refused(said: bytes) -> None:
    with pytest.raises(ScramError):
        scram().first(said)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (b"c=biws", b"c=" + b64encode(b"y,,"), ScramError),
        (b"c=biws", b"c=b", ScramError),
        (b"$k0", b"$k1", ScramError),
        (b"$k0", b"", ScramError),
        (b"p=dHzb", b"p=dHzc", WrongProof),
        (b"ndVQ=", b"ndVQ", ScramError),
        (b"Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"", WrongProof),
        (b",p=", b",q=", ScramError),
        (FINAL, b"", ScramError),
    ],
)
def test_last_messages_that_are_refused(old: bytes, new: bytes, error: type[ScramError]) -> None:
    server = scram()
    server.first(FIRST)
    with pytest.raises(ScramError) as refused:
        server.final(FINAL.replace(old, new))
    assert type(refused.value) is error


def test_a_last_message_without_a_first() -> None:
    with pytest.raises(ScramError):
        scram().final(FINAL)
