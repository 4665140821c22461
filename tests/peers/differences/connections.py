"""Connections and channels: greetings, logins, tuning, heartbeats, closing."""

from typing import Any

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.frames import PROTOCOL_HEADER, frame
from interlog.faces.amqp.tables import encode_table
from interlog.faces.amqp.wire import Method
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import CAPABILITIES, Line, Talk


@conversation()
def other_greetings(talk: Talk) -> None:
    for said in (
        b"AMQP\x00\x00\x09\x00",
        b"AMQP\x02\x01\x01\x00",
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"AMQX\x00\x00\x09\x01",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ):
        stranger = talk.stranger()
        stranger.reach()
        stranger.say(said)
        stranger.raw()
        stranger.cut()


@conversation("RabbitMQ takes the headers of 0-8 and 0-9 for that of 0-9-1")
def greetings_of_old(talk: Talk) -> None:
    for said in (b"AMQP\x01\x01\x00\x09", b"AMQP\x01\x01\x08\x00"):
        stranger = talk.stranger()
        stranger.reach()
        stranger.say(said)
        stranger.raw()
        stranger.cut()


def _start(talk: Talk) -> Line:
    stranger = talk.stranger()
    stranger.reach()
    stranger.do(PROTOCOL_HEADER)
    return stranger


@conversation()
def greeted(talk: Talk) -> None:
    stranger = talk.stranger()
    stranger.reach()
    stranger.say(PROTOCOL_HEADER)
    heard = stranger.hear()
    properties = heard[0][1].server_properties
    talk.note(f"capabilities {sorted(properties['capabilities'].items())}")
    talk.note(f"product {properties['product']}")
    talk.note(f"kinds {sorted((name, type(value).__name__) for name, value in properties.items())}")


def _log_in(talk: Talk, *logins: tuple[str, bytes]) -> None:
    for mechanism, response in logins:
        for capabilities in (CAPABILITIES, {}):
            stranger = _start(talk)
            stranger.say(m.ConnectionStartOk({"capabilities": capabilities}, mechanism, response, "en_US"))
            stranger.hear(first=3.0)
            stranger.cut()


@conversation()
def logins(talk: Talk) -> None:
    user = talk.user("someone", ".*", ".*", ".*")
    amqplain = encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:]
    _log_in(
        talk,
        ("PLAIN", b"\0guest\0wrong"),
        ("PLAIN", b"\0nobody\0guest"),
        ("PLAIN", b"\0guest\0"),
        ("PLAIN", b"\0\0"),
        ("PLAIN", f"\0{user}\0secret".encode()),
        ("AMQPLAIN", amqplain),
        ("AMQPLAIN", encode_table({"LOGIN": "guest", "PASSWORD": "wrong"})[4:]),
    )


@conversation("it says why before it hangs up, where RabbitMQ says nothing while the handshake lasts")
def malformed_logins(talk: Talk) -> None:
    _log_in(
        talk,
        ("PLAIN", b""),
        ("PLAIN", b"nonsense"),
        ("PLAIN", b"authz\0guest\0guest"),
        ("AMQPLAIN", encode_table({"LOGIN": "guest"})[4:]),
        ("AMQPLAIN", b"nonsense"),
        ("EXTERNAL", b""),
        ("NONSENSE", b""),
        ("", b""),
        ("plain", b"\0guest\0guest"),
    )


def _tuning(talk: Talk) -> Line:
    stranger = _start(talk)
    stranger.do(m.ConnectionStartOk({"capabilities": CAPABILITIES}, "PLAIN", b"\0guest\0guest", "en_US"))
    return stranger


def _tune(talk: Talk, *limits: tuple[int, int]) -> None:
    for channel_max, frame_max in limits:
        stranger = _tuning(talk)
        stranger.say(m.ConnectionTuneOk(channel_max, frame_max, 0), m.ConnectionOpen(talk.vhost))
        stranger.hear()
        stranger.cut()


@conversation()
def tuned(talk: Talk) -> None:
    _tune(talk, (2047, 131072), (1, 4096), (1, 8192), (1, 8191))


@conversation("it says why before it hangs up, where RabbitMQ says nothing while the handshake lasts")
def tuned_out_of_bounds(talk: Talk) -> None:
    _tune(
        talk,
        (0, 0),
        (0, 131072),
        (2048, 131072),
        (65535, 131072),
        (1, 1),
        (2047, 131073),
        (2047, 0),
    )


@conversation("it names the method that was one too many")
def channel_max(talk: Talk) -> None:
    client = talk.client(channel_max=2)
    client.do(m.ChannelOpen(), channel=2)
    client.do(m.ChannelOpen(), channel=3)
    client = talk.client("b", channel_max=1, channels=())
    client.do(m.ChannelOpen(), channel=2)


@conversation()
def vhosts(talk: Talk) -> None:
    stranger_user = talk.user("stranger")
    talk.ask("DELETE", f"/api/permissions/{talk.vhost}/{stranger_user}")
    for vhost in ("none", "", "/none", talk.vhost + "/"):
        stranger = _tuning(talk)
        stranger.say(m.ConnectionTuneOk(2047, 131072, 0))
        stranger.do(m.ConnectionOpen(vhost))
        stranger.cut()
    stranger = _start(talk)
    plain = f"\0{stranger_user}\0secret".encode()
    stranger.do(m.ConnectionStartOk({"capabilities": CAPABILITIES}, "PLAIN", plain, "en_US"))
    stranger.say(m.ConnectionTuneOk(2047, 131072, 0))
    stranger.do(m.ConnectionOpen(talk.vhost))


@conversation("it says why before it hangs up, where RabbitMQ says nothing while the handshake lasts")
def out_of_turn(talk: Talk) -> None:
    ok = m.ConnectionStartOk({"capabilities": CAPABILITIES}, "PLAIN", b"\0guest\0guest", "en_US")
    tune = m.ConnectionTuneOk(2047, 131072, 0)
    opened = m.ConnectionOpen(talk.vhost)
    cases: list[list[Method | bytes]] = [
        [tune],
        [opened],
        [m.ConnectionClose(200, "bye", 0, 0)],
        [m.ConnectionCloseOk()],
        [ok, ok],
        [ok, opened],
        [ok, m.ConnectionClose(200, "bye", 0, 0)],
        [ok, tune, tune],
        [ok, tune, m.ConnectionClose(200, "bye", 0, 0)],
        [ok, tune, opened, opened],
        [ok, tune, opened, tune],
        [frame(8, 0, b"")],
        [frame(4, 0, b"xx")],
        [b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0b\x00"],
    ]
    for said in cases:
        stranger = _start(talk)
        for one in said[:-1]:
            stranger.do(one, first=0.5)
        stranger.do(said[-1], first=2.0)
        stranger.cut()
    stranger = _start(talk)
    stranger.do(m.ChannelOpen(), channel=1)
    stranger.cut()
    stranger = _start(talk)
    stranger.do(m.QueueDeclare("q"), channel=1)


@conversation()
def closed(talk: Talk) -> None:
    client = talk.client()
    client.do(m.ConnectionClose(200, "bye", 0, 0))
    client = talk.client()
    client.queue()
    client.publish("a")
    client.do(m.ChannelClose(200, "bye", 0, 0))
    client.do(m.QueueDeclare("q"))
    client = talk.client()
    client.do(m.ChannelClose(200, "bye", 0, 0))
    client.do(m.ChannelOpen())
    client.count()
    client.do(m.ChannelOpen())


@conversation()
def reused_after_an_error(talk: Talk) -> None:
    client = talk.client(channels=(1, 2))
    client.say(m.QueueDeclare("none", passive=True), m.QueueDeclare("a"), m.QueueDeclare("b"))
    client.hear()
    client.do(m.QueueDeclare("a", passive=True))
    client.do(m.QueueDeclare("c"), channel=2)


@conversation()
def heartbeats(talk: Talk) -> None:
    client = talk.client(heartbeat=1)
    client.hear(first=1.6, quiet=1.6)
    talk.note(f"heartbeats: {client.heartbeats > 0}")
    client.hear(first=4.0)


@conversation()
def heartbeats_kept_up(talk: Talk) -> None:
    client = talk.client(heartbeat=1)
    for _ in range(8):
        client.say(frame(8, 0, b""))
        talk.sleep(0.5)
    client.hear(first=0.2)
    client.queue()


@conversation()
def secrets_updated(talk: Talk) -> None:
    client = talk.client()
    client.do(m.ConnectionUpdateSecret(b"guest", "refresh"))
    client.do(m.ConnectionUpdateSecret(b"wrong", "refresh"))
    client.queue()


@conversation()
def deleted_under_a_connection(talk: Talk) -> None:
    user = talk.user("leaving", ".*", ".*", ".*")
    client = talk.client(user=user)
    client.queue()
    talk.ask("DELETE", f"/api/users/{user}")
    client.hear(first=2.0)
    client.cut()


@conversation("it waits for the client to agree that the connection is over")
def vhost_deleted_under_a_connection(talk: Talk) -> None:
    client = talk.client()
    client.queue()
    talk.ask("DELETE", f"/api/vhosts/{talk.vhost}")
    client.hear(first=2.0)
    client.cut()


@conversation()
def without_capabilities(talk: Talk) -> None:
    client, other = talk.client("old", capabilities={}), talk.client("b")
    client.queue()
    client.consume()
    other.do(m.QueueDelete("q"))
    client.hear(first=0.3)
    client.do(m.ConfirmSelect())
    client.publish("a", "none")
    client.hear()
    client.do(m.BasicNack(1, False, False))


@conversation()
def old_requests(talk: Talk) -> None:
    client = talk.client()
    for values in ({}, {"exclusive": True, "active": True, "read": True}):
        made: Any = m.AccessRequest("/data", **values)
        client.do(made)
