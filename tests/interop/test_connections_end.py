"""Connections that end leave nothing behind, and nothing that only the collector of cycles would find."""

import gc
from collections.abc import Callable

import pytest

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.channel import Channel
from interlog.faces.amqp.connection import AmqpConnection
from interlog.faces.amqp.consumer import QueueConsumer
from interlog.net.driver import Connection
from interlog.testing import RunningBroker
from tests.amqp_socket import SocketClient, until

KINDS = (Connection, AmqpConnection, Channel, QueueConsumer)


def close(one: SocketClient) -> None:
    one.client.close()
    one.cut()


def cut(one: SocketClient) -> None:
    one.cut()


@pytest.mark.parametrize("end", [close, cut])
def test_a_connection_that_ended_is_gone_at_once(broker: RunningBroker, end: Callable[[SocketClient], None]) -> None:
    gc.collect()
    gc.disable()
    try:
        for number in range(3):
            one = SocketClient(broker)
            one.declare(f"work-{number}", exclusive=True)
            one.client.call(1, m.ConfirmSelect(), m.ConfirmSelectOk)
            one.consume(f"work-{number}")
            one.publish(f"work-{number}", b"one")
            one.publish(f"work-{number}", b"two")
            one.hear(3)  # two deliveries and a confirm, at least
            end(one)

        def alive() -> int:
            return broker.call(lambda core: sum(isinstance(one, KINDS) for one in gc.get_objects()))

        until(lambda: alive() == 0, "the connections are gone")
    finally:
        gc.enable()
