"""The handshake: protocol header, start, login, tune, open; heartbeats; the ways in which a connection ends."""

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.frames import HEARTBEAT, HEARTBEAT_FRAME, METHOD, PROTOCOL_HEADER, frame, method_frame
from interlog.faces.amqp.tables import encode_table
from interlog.faces.face import Peer
from tests.playbooks.amqp.play import CAPABILITIES, Client, Play

PLAIN = b"\0guest\0guest"


def start_ok(mechanism: str = "PLAIN", response: bytes = PLAIN, closes: bool = True) -> m.ConnectionStartOk:
    properties = {"capabilities": CAPABILITIES if closes else {}}
    return m.ConnectionStartOk(properties, mechanism, response, "en_US")


def greeted(play: Play, peer: Peer | None = None) -> Client:
    client = play.stranger(peer)
    client.feed(PROTOCOL_HEADER)
    client.expect(m.ConnectionStart)
    return client


def tuned(play: Play) -> Client:
    client = greeted(play)
    client.send(start_ok())
    client.expect(m.ConnectionTune(2_047, 131_072, 60))
    return client


def test_start_tells_who_we_are_and_what_works(play: Play) -> None:
    client = play.stranger()
    client.feed(PROTOCOL_HEADER)
    (start,) = client.listen()
    assert isinstance(start, m.ConnectionStart)
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.mechanisms == b"PLAIN AMQPLAIN" and start.locales == b"en_US"
    product, version, platform = (start.server_properties[name] for name in ("product", "version", "platform"))
    assert (product, version) == ("RabbitMQ", "3.13.7") and platform.startswith("Interlog ")
    assert all(start.server_properties["capabilities"].values())


def test_header_may_come_in_pieces_and_with_more_behind_it(play: Play) -> None:
    client = play.stranger()
    for byte in PROTOCOL_HEADER:
        client.silence()
        client.feed(bytes((byte,)))
    client.expect(m.ConnectionStart)
    client = play.stranger()
    client.feed(PROTOCOL_HEADER + method_frame(0, start_ok().encode()))
    client.expect(m.ConnectionStart, m.ConnectionTune)


@pytest.mark.parametrize(
    "greeting",
    [
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x01\x01\x00\x0a",
        b"AMQP\x03\x01\x00\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
    ],
)
def test_other_protocols_are_answered_with_ours(play: Play, greeting: bytes) -> None:
    client = play.stranger()
    client.feed(greeting)
    play.turn()
    assert client.raw == PROTOCOL_HEADER and client.hung_up


def test_amqplain(play: Play) -> None:
    client = greeted(play)
    client.send(start_ok("AMQPLAIN", encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:]))
    client.expect(m.ConnectionTune)


@pytest.mark.parametrize("response", [encode_table({"LOGIN": "guest"})[4:], b""])
def test_amqplain_without_a_password(play: Play, response: bytes) -> None:
    text = "AMQPLAIN auth info is missing LOGIN or PASSWORD field"
    greeted(play).fatal(start_ok("AMQPLAIN", response), code=ReplyCode.ACCESS_REFUSED, text=text)


def test_external_is_offered_to_who_shows_a_certificate(play: Play) -> None:
    play.core.access.add_user("machine", None)
    play.core.access.set_permissions("/", "machine", ".*", ".*", ".*")
    client = play.stranger(Peer(tls=True, certificate=("CN=machine", "machine")))
    client.feed(PROTOCOL_HEADER)
    (start,) = client.listen()
    assert isinstance(start, m.ConnectionStart) and start.mechanisms == b"PLAIN AMQPLAIN EXTERNAL"
    client.send(start_ok("EXTERNAL", b""))
    client.expect(m.ConnectionTune)
    client.send(m.ConnectionTuneOk(100, 8_192, 0), m.ConnectionOpen("/"))
    client.expect(m.ConnectionOpenOk())
    assert client.face.user == "machine"


def test_external_without_a_certificate_is_no_mechanism(play: Play) -> None:
    greeted(play).fatal(
        start_ok("EXTERNAL", b""), code=ReplyCode.COMMAND_INVALID, text="unknown authentication mechanism 'EXTERNAL'"
    )


def test_external_of_a_name_that_is_no_user(play: Play) -> None:
    client = greeted(play, Peer(tls=True, certificate=("nobody",)))
    client.send(start_ok("EXTERNAL", b""))
    client.silence()
    play.later(2_000)
    (close,) = client.listen()
    assert isinstance(close, m.ConnectionClose) and close.reply_code == 403


@pytest.mark.parametrize("response", [b"\0guest\0wrong", b"\0nobody\0guest", b"guest\0guest", b"\0\xff\0guest", b""])
def test_wrong_password_is_told_late(play: Play, response: bytes) -> None:
    client = greeted(play)
    client.send(start_ok(response=response))
    client.silence()
    play.later(2_000)
    (close,) = client.listen()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == ReplyCode.ACCESS_REFUSED
    assert close.reply_text == (
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile."
    )
    client.send(m.ConnectionCloseOk())
    client.silence()
    assert client.hung_up


def test_wrong_password_only_hangs_up_on_clients_that_know_no_better(play: Play) -> None:
    client = greeted(play)
    client.send(start_ok(response=b"\0guest\0wrong", closes=False))
    client.silence()
    play.later(2_000)
    client.silence()
    assert client.hung_up


def test_what_comes_behind_a_wrong_password_is_not_listened_to(play: Play) -> None:
    client = greeted(play)
    client.send(start_ok(response=b"\0guest\0wrong"), m.ConnectionTuneOk(0, 0, 0), m.ConnectionOpen("/"))
    assert client.face.user == "" and not any(isinstance(one, m.ConnectionOpenOk) for one in client.listen())


def test_guest_may_only_come_from_here(play: Play) -> None:
    client = greeted(play, Peer(address="10.0.0.9:1", host="10.0.0.9", loopback=False))
    client.send(start_ok())
    play.later(2_000)
    (close,) = client.listen()
    assert isinstance(close, m.ConnectionClose) and close.reply_code == 403


def test_unknown_mechanism(play: Play) -> None:
    greeted(play).fatal(
        start_ok("KERBEROS"), code=ReplyCode.COMMAND_INVALID, text="unknown authentication mechanism 'KERBEROS'"
    )


@pytest.mark.parametrize(
    ("channel_max", "frame_max", "text"),
    [
        (0, 131_072, "negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"),
        (2_048, 131_072, "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)"),
        (10, 0, "negotiated frame_max = 0 is higher than the maximum allowed value (131072)"),
        (10, 131_073, "negotiated frame_max = 131073 is higher than the maximum allowed value (131072)"),
        (10, 4_095, "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)"),
    ],
)
def test_tune_has_bounds(play: Play, channel_max: int, frame_max: int, text: str) -> None:
    tuned(play).fatal(m.ConnectionTuneOk(channel_max, frame_max, 0), code=ReplyCode.NOT_ALLOWED, text=text)


def test_frame_max_is_kept_both_ways(play: Play) -> None:
    client = play.connect(frame_max=8_192)
    client.queue()
    client.send(m.BasicPublish("", "q"))
    body = bytes(range(256)) * 80
    client.feed(frame(2, 1, b"\0\x3c\0\0" + len(body).to_bytes(8, "big") + b"\0\0"))
    for at in range(0, len(body), 8_184):
        client.feed(frame(3, 1, body[at : at + 8_184]))
    sizes: list[int] = []
    take = client._take

    def measured(kind: int, channel: int, payload: bytes) -> None:
        sizes.append(len(payload) + 8)
        take(kind, channel, payload)

    client._take = measured  # type: ignore[method-assign]
    got = client.get()
    assert got is not None and got.body == body
    assert max(sizes) == 8_192
    client.fatal(
        frame(METHOD, 1, bytes(8_193)),
        code=ReplyCode.FRAME_ERROR,
        text="type 1, all octets = <<>>: {frame_too_large,8193,8184}",
    )


def test_unknown_vhost(play: Play) -> None:
    client = tuned(play)
    client.send(m.ConnectionTuneOk(100, 8_192, 0))
    client.fatal(m.ConnectionOpen("nowhere"), code=ReplyCode.NOT_ALLOWED, text="vhost nowhere not found")


def test_vhost_of_others(play: Play) -> None:
    play.core.create_namespace("theirs")
    client = tuned(play)
    client.send(m.ConnectionTuneOk(100, 8_192, 0))
    client.fatal(
        m.ConnectionOpen("theirs"),
        code=ReplyCode.NOT_ALLOWED,
        text="access to vhost 'theirs' refused for user 'guest'",
    )


@pytest.mark.parametrize(
    "method",
    [m.ConnectionTuneOk(), m.ConnectionOpen("/"), m.ConnectionUpdateSecret(b"x", "y"), m.ConnectionSecureOk(b"x")],
)
def test_methods_out_of_turn_before_login(play: Play, method: m.ConnectionOpen) -> None:
    greeted(play).fatal(method, code=ReplyCode.CHANNEL_ERROR, text="unexpected method in connection state starting")


def test_channels_before_open(play: Play) -> None:
    client = tuned(play)
    client.send(m.ChannelOpen())
    (close,) = client.listen()
    assert isinstance(close, m.ConnectionClose) and close.reply_code == ReplyCode.CHANNEL_ERROR


def test_who_says_nothing_is_not_waited_for(play: Play) -> None:
    client = play.stranger()
    play.later(11_000, step=1_000)
    assert client.hung_up


def test_close_is_agreed_to(client: Client) -> None:
    client.send(m.ConnectionClose(200, "bye", 0, 0))
    client.expect(m.ConnectionCloseOk())
    client.leave()


def test_who_said_close_hangs_up_and_what_it_had_under_way_is_dropped(play: Play, client: Client) -> None:
    client.queue(exclusive=True)
    client.send(method_frame(0, m.ConnectionClose(200, "bye", 0, 0).encode()) + b"\x09" * 100)
    client.expect(m.ConnectionCloseOk())
    assert not client.hung_up  # a reset would take the answer back
    client.publish(b"x" * 100_000)
    client.send(b"\x09" * 100)
    client.silence()
    play.later(6_000, step=1_000)
    assert client.hung_up


def test_update_secret(client: Client) -> None:
    client.send(m.ConnectionUpdateSecret(b"guest", "it was time"))
    client.expect(m.ConnectionUpdateSecretOk())


def test_shutdown_says_goodbye(play: Play, client: Client) -> None:
    client.face.shut_down()
    client.expect(m.ConnectionClose(320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"))
    client.send(m.ConnectionCloseOk())
    client.silence()
    assert client.hung_up


def test_a_peer_that_never_agrees_is_hung_up_on(play: Play, client: Client) -> None:
    client.face.shut_down()
    client.listen()
    play.later(7_000, step=1_000)
    assert client.hung_up


# -- heartbeats


def test_we_beat_when_there_is_nothing_to_say(play: Play) -> None:
    client = play.connect(heartbeat=10)
    for _ in range(30):
        client.feed(HEARTBEAT_FRAME)
        play.later(1_000)
    assert 5 <= client.heartbeats <= 7


def test_silent_peers_are_hung_up_on(play: Play) -> None:
    client = play.connect(heartbeat=10)
    play.later(20_000, step=1_000)
    assert not client.hung_up
    play.later(2_000, step=1_000)
    assert client.hung_up


def test_without_heartbeats_silence_is_no_offence(play: Play) -> None:
    client = play.connect(heartbeat=0)
    play.later(3_600_000, step=60_000)
    assert not client.hung_up and client.heartbeats == 0


def test_anything_said_is_a_sign_of_life(play: Play) -> None:
    client = play.connect(heartbeat=10)
    for _ in range(10):
        play.later(9_000, step=3_000)
        client.queue()
    assert not client.hung_up


def test_heartbeats_of_channels(client: Client) -> None:
    client.fatal(frame(HEARTBEAT, 1, b""), code=ReplyCode.UNEXPECTED_FRAME, text="type 8, all octets = <<>>")


def test_heartbeats_that_say_something(client: Client) -> None:
    text = 'type 8, all octets = <<"hello">>: unknown_frame'
    client.fatal(frame(HEARTBEAT, 0, b"hello"), code=ReplyCode.FRAME_ERROR, text=text)


# -- who is gone


def test_connections_of_a_deleted_vhost_are_closed(play: Play) -> None:
    play.core.create_namespace("v")
    play.core.access.set_permissions("v", "guest", ".*", ".*", ".*")
    client, other = play.connect(vhost="v"), play.connect()
    client.queue()
    play.core.delete_namespace("v")
    client.expect(m.ConnectionClose(320, "CONNECTION_FORCED - vhost 'v' is deleted", 0, 0))
    other.silence()
    client.send(m.ConnectionCloseOk())
    client.silence()
    assert client.hung_up and not other.hung_up


def test_connections_of_a_deleted_user_are_closed(play: Play) -> None:
    play.core.access.add_user("eve", "secret")
    play.core.access.set_permissions("/", "eve", ".*", ".*", ".*")
    client, other = play.connect("eve", "secret"), play.connect()
    play.core.access.delete_user("eve")
    client.expect(m.ConnectionClose(320, "CONNECTION_FORCED - user 'eve' is deleted"))
    other.silence()


# -- alarms


class Memory:
    """An alarm, as the core gives one."""

    over = False
    limit_bytes = 1_000

    def __init__(self, play: Play) -> None:
        self._budget = play.core.memory
        play.core.memory = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> object:
        return getattr(self._budget, name)


def test_alarms_hold_publishers_back_and_nobody_else(play: Play) -> None:
    memory = Memory(play)
    publisher, consumer, old = play.connect(), play.connect(), play.connect(capabilities={})
    consumer.queue()
    publisher.publish(b"before")
    memory.over = True
    assert consumer.get() is not None
    publisher.silence()
    publisher.publish(b"during")  # taken, and the last one
    old.publish(b"old's")
    (blocked,) = publisher.listen()
    assert isinstance(blocked, m.ConnectionBlocked) and "memory" in blocked.reason
    old.silence()
    assert publisher.face.holding and old.face.holding and not consumer.face.holding
    publisher.publish(b"too late")
    play.later(1_000)
    assert consumer.drain() == [b"during", b"old's"]
    memory.over = False
    play.later(1_000)
    publisher.expect(m.ConnectionUnblocked())
    old.silence()
    assert consumer.drain() == [b"too late"]
    assert not publisher.face.holding
