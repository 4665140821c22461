"""Publishing: returns, more keys, who says who they are; confirms, transactions, and answers without a queue."""

from typing import Any

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import ReplyCode
from interlog.faces.amqp.properties import Properties
from interlog.faces.amqp.service import REPLY_TO
from interlog.faces.amqp.wire import Method
from tests.playbooks.amqp.play import Client, Content, Play, content


def nack(tag: int) -> m.BasicNack:
    return m.BasicNack(tag, False, False)


# -- returned


def test_mandatory_messages_come_back_as_they_were(client: Client) -> None:
    client.publish(b"x" * 10, "nowhere", "amq.topic", mandatory=True, content_type="a/b", headers={"h": 1})
    (message,) = client.messages()
    assert message.method == m.BasicReturn(312, "NO_ROUTE", "amq.topic", "nowhere")
    assert message.properties.content_type == "a/b" and message.headers == {"h": 1} and message.body == b"x" * 10
    client.publish(b"", "nowhere", mandatory=True)
    (message,) = client.messages()
    assert message.method == m.BasicReturn(312, "NO_ROUTE", "", "nowhere") and message.body == b""


def test_what_nobody_asked_for_is_gone(client: Client) -> None:
    client.publish(b"x", "nowhere", "amq.topic")
    client.silence()


def test_mandatory_messages_that_somebody_wants(client: Client) -> None:
    client.queue()
    client.publish(b"x", mandatory=True)
    client.silence()
    client.ask(m.QueueDelete("q"), m.QueueDeleteOk)
    client.publish(b"y", mandatory=True)
    assert client.bodies() == [b"y"]


def test_returned_before_it_is_confirmed(client: Client) -> None:
    client.confirms()
    client.publish(b"x", "nowhere", mandatory=True)
    returned, confirmed = client.listen()
    assert isinstance(returned, Content) and confirmed == m.BasicAck(1)


def test_large_returns_fit_the_frames_agreed(play: Play) -> None:
    client = play.connect(frame_max=8_192)
    client.send(m.BasicPublish("", "nowhere", mandatory=True), content(b"x" * 20_000, part=8_184))
    assert client.bodies() == [b"x" * 20_000]


# -- keys


def test_more_keys(client: Client) -> None:
    for name in "abc":
        client.queue(name)
    client.publish(b"x", "a", headers={"CC": ["b", "nowhere"], "BCC": ["c", "a"]})
    found = [client.get(name) for name in "abc"]
    assert [message is not None for message in found] == [True] * 3
    for message in found:
        assert message is not None
        assert message.headers == {"CC": ["b", "nowhere"]} and message.routing_key == "a"
    assert client.get("a") is None


def test_more_keys_may_be_the_only_ones_that_lead_anywhere(client: Client) -> None:
    client.queue()
    client.publish(b"x", "nowhere", headers={"CC": ["q"]}, mandatory=True)
    client.publish(b"y", "nowhere", headers={"BCC": ["q"]}, mandatory=True)
    client.publish(b"z", "nowhere", headers={"CC": ["none"]}, mandatory=True)
    assert client.bodies() == [b"z"] and client.drain() == [b"x", b"y"]


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize(("value", "kind"), [("q", "longstr"), (None, "void"), (1, "signedint"), ({"a": 1}, "table")])
def test_keys_that_are_none(client: Client, name: str, value: Any, kind: str) -> None:
    client.queue()
    client.publish(b"x", headers={name: value})
    (close,) = client.listen()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_text == f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'


@pytest.mark.parametrize("value", [[], [1], ["q", 5]])
def test_keys_that_are_ignored(client: Client, value: Any) -> None:
    client.queue()
    client.publish(b"x", headers={"CC": value})
    assert client.drain() == [b"x"]


def test_returns_do_not_tell_of_bcc(client: Client) -> None:
    client.publish(b"x", "none", headers={"BCC": ["none"], "a": 1}, mandatory=True)
    (message,) = client.messages()
    assert message.headers == {"a": 1}


# -- who


def test_user_id(play: Play, client: Client) -> None:
    client.queue()
    client.publish(b"x", user_id="guest")
    assert client.drain() == [b"x"]
    client.refused(
        m.BasicPublish("", "q"),
        content(b"x", Properties(user_id="eve").encode()),
        code=ReplyCode.PRECONDITION_FAILED,
        text="user_id property set to 'eve' but authenticated user was 'guest'",
    )
    play.core.access.add_user("proxy", "secret", ["impersonator"])
    play.core.access.set_permissions("/", "proxy", ".*", ".*", ".*")
    proxy = play.connect("proxy", "secret")
    proxy.publish(b"y", user_id="eve")
    message = client.get()
    assert message is not None and message.properties.user_id == "eve"


def test_properties_come_out_as_they_went_in(client: Client) -> None:
    said = Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"a": [1, 2.5, None, True, b"\xff", {"b": "c"}]},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        user_id="guest",
        app_id="app",
        cluster_id="cluster",
    )
    client.queue()
    client.send(m.BasicPublish("", "q"), content(b"x", said.encode()))
    message = client.get()
    assert message is not None and message.properties == said


# -- confirms


def test_confirms_are_numbered_and_in_order(play: Play, client: Client) -> None:
    client.queue(durable=True)
    client.queue("passing")
    client.publish(b"before")
    client.confirms()
    client.publish(b"1", delivery_mode=2)
    client.publish(b"2", "passing")
    client.publish(b"3", "nowhere")
    play.turn(sync=False)
    assert client.heard == []  # nothing is confirmed ahead of what must last
    client.expect(m.BasicAck(3, True))
    client.confirms()  # asked again: counted on
    client.publish(b"4")
    client.expect(m.BasicAck(4))


def test_what_need_not_last_is_not_waited_for(play: Play, client: Client) -> None:
    client.queue("passing")
    client.queue(durable=True)
    client.confirms()
    client.publish(b"1", "passing", delivery_mode=2)
    client.publish(b"2", delivery_mode=1)
    play.turn(sync=False)
    assert [one for _, one in client.heard] == [m.BasicAck(1), m.BasicAck(2)]


def test_confirms_of_one_burst_are_one(client: Client) -> None:
    from interlog.faces.amqp.frames import method_frame

    client.queue()
    client.confirms()
    one = method_frame(1, m.BasicPublish("", "q").encode()) + content(b"x")
    client.feed(one * 50)
    client.expect(m.BasicAck(50, True))


def test_confirm_select_without_an_answer(client: Client) -> None:
    client.send(m.ConfirmSelect(nowait=True))
    client.publish(b"x")
    client.expect(m.BasicAck(1))


def test_an_error_confirms_what_was_before_it(client: Client) -> None:
    client.queue()
    client.confirms()
    client.send(
        m.BasicPublish("", "q"), content(b"a"), m.BasicPublish("nope", ""), content(b"b"), m.BasicPublish("", "q")
    )
    heard = client.listen()
    assert heard[0] == m.BasicAck(1) and isinstance(heard[1], m.ChannelClose) and len(heard) == 2


def test_what_is_refused_is_not_confirmed(client: Client) -> None:
    client.queue()
    client.confirms()
    client.publish(b"a")
    client.publish(b"b", expiration="soon")
    client.expect(m.BasicAck(1), m.ChannelClose)


def test_a_publish_is_refused_when_its_message_is_whole(client: Client) -> None:
    """So that nothing of it comes after the client agreed that the channel is closed."""
    client.send(m.BasicPublish("none", "k"))
    client.silence()
    client.refused(content(b"abc"), code=ReplyCode.NOT_FOUND, text="no exchange 'none' in vhost '/'")


def test_confirmed_is_there_after_a_kill(play: Play, client: Client) -> None:
    client.queue(durable=True)
    client.confirms()
    for number in range(20):
        client.publish(b"%d" % number, delivery_mode=2)
    client.listen()
    client.publish(b"never confirmed", delivery_mode=2)
    play.restart()
    assert play.connect().drain()[:20] == [b"%d" % number for number in range(20)]


# -- tx


def tx(client: Client) -> None:
    client.ask(m.TxSelect(), m.TxSelectOk)


def test_commit_publishes(client: Client) -> None:
    client.queue()
    tx(client)
    client.publish(b"a")
    client.publish(b"b", "nowhere", mandatory=True)
    client.silence()
    assert client.get() is None
    client.send(m.TxCommit())
    returned, committed = client.listen()
    assert isinstance(returned, Content) and returned.body == b"b" and committed == m.TxCommitOk()
    assert client.drain() == [b"a"]
    client.ask(m.TxCommit(), m.TxCommitOk)  # of nothing


def test_rollback_forgets(client: Client) -> None:
    client.queue()
    tx(client)
    client.publish(b"a")
    client.ask(m.TxRollback(), m.TxRollbackOk)
    client.ask(m.TxCommit(), m.TxCommitOk)
    assert client.get() is None


@pytest.mark.parametrize(
    "said", [m.BasicAck(2, True), m.BasicNack(2, True, False), m.BasicReject(1, False), m.BasicNack(0, True, True)]
)
def test_answers_wait_for_the_commit(client: Client, said: Method) -> None:
    client.queue()
    client.publish(b"a")
    client.publish(b"b")
    tx(client)
    client.consume()
    assert client.bodies() == [b"a", b"b"]
    client.send(said)
    client.silence()
    client.ask(m.TxRollback(), m.TxRollbackOk)
    client.send(said)  # it can be said again
    client.silence()
    client.send(m.TxCommit())
    heard = client.listen()
    assert heard[0] == m.TxCommitOk()
    returned = getattr(said, "requeue", False)
    assert len(heard) == (3 if returned else 1)


def test_what_was_not_committed_goes_back(play: Play, client: Client) -> None:
    client.queue()
    client.publish(b"a")
    tx(client)
    client.get(no_ack=False)
    client.send(m.BasicAck(1))
    client.publish(b"never")
    client.drop()
    client = play.connect()
    assert client.drain() == [b"a"]


def test_commit_lasts(play: Play, client: Client) -> None:
    client.queue(durable=True)
    client.publish(b"old", delivery_mode=2)
    tx(client)
    client.get(no_ack=False)
    client.send(m.BasicAck(1))
    client.publish(b"new", delivery_mode=2)
    client.send(m.TxCommit())
    play.turn(sync=False)
    assert client.heard == []
    client.expect(m.TxCommitOk())
    play.restart()
    assert play.connect().drain() == [b"new"]


def test_errors_in_a_transaction_come_at_once(client: Client) -> None:
    tx(client)
    client.refused(
        m.BasicPublish("nope", ""), content(b""), code=ReplyCode.NOT_FOUND, text="no exchange 'nope' in vhost '/'"
    )
    tx(client)
    client.refused(m.BasicAck(7), code=ReplyCode.PRECONDITION_FAILED, text="unknown delivery tag 7")


def test_a_channel_has_one_mode(client: Client) -> None:
    tx(client)
    tx(client)
    client.refused(m.ConfirmSelect(), code=ReplyCode.PRECONDITION_FAILED, text="cannot switch from tx to confirm mode")
    client.confirms()
    client.refused(m.TxSelect(), code=ReplyCode.PRECONDITION_FAILED, text="cannot switch from confirm to tx mode")


def test_a_queue_that_went_in_between(client: Client) -> None:
    client.queue()
    tx(client)
    client.publish(b"a", mandatory=True)
    client.open(2)
    client.ask(m.QueueDelete("q"), m.QueueDeleteOk, channel=2)
    client.send(m.TxCommit())
    returned, committed = client.listen()
    assert isinstance(returned, Content) and committed == m.TxCommitOk()


# -- answers without a queue


def asked(client: Client, server: Client) -> str:
    """The address under which the client's channel can be answered."""
    client.publish(b"?", "rpc", reply_to=REPLY_TO)
    message = server.get("rpc")
    assert message is not None
    address = message.properties.reply_to
    assert address is not None and address.startswith(REPLY_TO + ".")
    return address


def test_direct_reply_to(play: Play, client: Client) -> None:
    server = play.connect()
    server.queue("rpc")
    client.send(m.BasicConsume(REPLY_TO, "replies", no_ack=True))
    client.expect(m.BasicConsumeOk("replies"))
    address = asked(client, server)
    assert server.queue(address, passive=True) == m.QueueDeclareOk(address, 0, 1)
    server.publish(b"!", address, correlation_id="7", mandatory=True)
    server.silence()
    (message,) = client.messages()
    assert message.method == m.BasicDeliver("replies", 1, False, "", address)
    assert message.body == b"!" and message.properties.correlation_id == "7"
    client.ask(m.BasicCancel("replies"), m.BasicCancelOk)
    server.publish(b"late", address, mandatory=True)
    assert server.bodies() == [b"late"]
    client.silence()
    server.refused(
        m.QueueDeclare(address, passive=True), code=ReplyCode.NOT_FOUND, text=f"no queue '{address}' in vhost '/'"
    )


@pytest.mark.parametrize("how", ["channel", "connection"])
def test_addresses_go_with_who_asked(play: Play, client: Client, how: str) -> None:
    server = play.connect()
    server.queue("rpc")
    client.ask(m.BasicConsume(REPLY_TO, "", no_ack=True), m.BasicConsumeOk)
    address = asked(client, server)
    if how == "channel":
        client.ask(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk)
    else:
        client.drop()
    server.publish(b"late", address, mandatory=True)
    assert server.bodies() == [b"late"]
    assert play.service.replies.find(address) is None


def test_each_channel_has_its_own_address(play: Play, client: Client) -> None:
    server = play.connect()
    server.queue("rpc")
    client.open(2)
    for channel in (1, 2):
        client.ask(m.BasicConsume(REPLY_TO, "r", no_ack=True), m.BasicConsumeOk, channel=channel)
    first = asked(client, server)
    client.publish(b"?", "rpc", channel=2, reply_to=REPLY_TO)
    message = server.get("rpc")
    assert message is not None and message.properties.reply_to not in (None, first)
    server.publish(b"!", message.properties.reply_to or "")
    assert client.bodies(1) == [] and client.bodies(2) == [b"!"]


REPLIES: list[tuple[list[Method | bytes], str]] = [
    ([m.BasicConsume(REPLY_TO, "r")], "reply consumer cannot acknowledge"),
    (
        [m.BasicPublish("", "q"), content(b"?", Properties(reply_to=REPLY_TO).encode())],
        "fast reply consumer does not exist",
    ),
]


@pytest.mark.parametrize(("said", "text"), REPLIES)
def test_replies_refused(client: Client, said: list[Method | bytes], text: str) -> None:
    client.queue()
    client.refused(*said, code=ReplyCode.PRECONDITION_FAILED, text=text)


def test_one_reply_consumer_a_channel(client: Client) -> None:
    client.ask(m.BasicConsume(REPLY_TO, "r", no_ack=True), m.BasicConsumeOk)
    client.refused(
        m.BasicConsume(REPLY_TO, "s", no_ack=True),
        code=ReplyCode.PRECONDITION_FAILED,
        text="reply consumer already set",
    )


def test_replies_to_who_does_not_read_are_bounded(play: Play, client: Client) -> None:
    server = play.connect()
    server.queue("rpc")
    client.ask(m.BasicConsume(REPLY_TO, "r", no_ack=True), m.BasicConsumeOk)
    address = asked(client, server)
    client.face.pause()
    for _ in range(40):
        server.publish(b"x" * 500_000, address)
    assert sum(map(len, client.face.out)) < 10 << 20
    client.face.resume()
    play.turn()
    client.heard.clear()
    server.publish(b"again", address)
    assert client.bodies() == [b"again"]


# -- names and bytes


@pytest.mark.parametrize("body", [b"", b"\0", bytes(range(256)) * 100])
def test_any_bytes(client: Client, body: bytes) -> None:
    client.queue("ü" * 100)
    client.publish(body, "ü" * 100, headers={"ü": "ö", "bytes": b"\xff\xfe"})
    message = client.get("ü" * 100)
    assert message is not None and message.body == body
    assert message.headers == {"ü": "ö", "bytes": b"\xff\xfe"}


def test_a_publish_without_a_content_is_forgotten_with_its_channel(client: Client) -> None:
    client.queue()
    client.send(m.BasicPublish("", "q"))
    client.drop()


def test_update_secret(client: Client) -> None:
    client.ask(m.ConnectionUpdateSecret(b"new", "because"), m.ConnectionUpdateSecretOk)
    client.queue()
