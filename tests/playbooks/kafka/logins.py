"""Clients that have said who they are."""

from interlog.faces.face import Peer
from interlog.faces.kafka.schema.sasl_authenticate import SaslAuthenticateRequest
from interlog.faces.kafka.schema.sasl_handshake import SaslHandshakeRequest
from tests.playbooks.kafka.play import Client, Play


def login(play: Play, user: str, password: str, *, host: str = "127.0.0.1") -> Client:
    local = host.startswith("127.")
    client = play.connect(Peer(f"{host}:5000", host, 5000, local, "127.0.0.1", 9092))
    assert client.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
    answer = client.ask(SaslAuthenticateRequest(f"\0{user}\0{password}".encode()), 2)
    assert answer.error_code == 0, answer.error_message
    return client
