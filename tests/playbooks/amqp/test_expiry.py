"""Messages whose time is over while somebody holds them, and after a restart."""

from interlog.faces.amqp import methods as m
from tests.playbooks.amqp.play import Client, Play


def test_what_comes_back_too_late_is_not_delivered_again(play: Play, client: Client) -> None:
    client.queue()
    client.consume()
    client.publish(b"a", expiration="100")
    (message,) = client.messages()
    play.later(1_000)
    client.send(m.BasicCancel("c"))
    client.expect(m.BasicCancelOk("c"))
    client.send(m.BasicNack(message.delivery_tag, requeue=True))
    play.later(200)
    assert play.core.queue("/", "q").ready == 0


def test_a_restart_forgets_no_time(play: Play, client: Client) -> None:
    client.queue(durable=True)
    client.queue("ttl", durable=True, x_message_ttl=100)
    client.publish(b"a", expiration="100", delivery_mode=2)
    client.publish(b"b", "ttl", delivery_mode=2)
    play.restart(kill=False)
    assert [play.core.queue("/", name).ready for name in ("q", "ttl")] == [1, 1]
    play.later(1_000)
    assert [play.core.queue("/", name).ready for name in ("q", "ttl")] == [0, 0]


def test_who_asks_is_told_what_is_left(play: Play, client: Client) -> None:
    client.queue()
    client.publish(b"long", expiration="1000")
    client.publish(b"short", expiration="10")
    play.later(20)
    message = client.get()
    assert message is not None and message.message_count == 0


def test_what_is_over_behind_a_message_that_lives_longer_is_not_delivered(play: Play, client: Client) -> None:
    client.queue("dead")
    client.queue(x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    client.publish(b"long", expiration="1000")
    client.publish(b"short", expiration="10")
    client.publish(b"for ever")
    play.later(100)
    client.consume()
    assert client.bodies() == [b"long", b"for ever"]
    assert client.drain("dead") == [b"short"]


def test_who_waits_gets_what_lives_for_no_time_at_all(play: Play, client: Client) -> None:
    client.queue()
    client.consume()
    client.publish(b"now", expiration="0")
    play.clock.advance(20)  # the broker was busy
    assert client.bodies() == [b"now"]
    client.send(m.BasicReject(1, True))
    client.silence()
    assert client.ready() == 0
