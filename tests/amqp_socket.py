"""An AMQP client on a real socket that reads only when it is asked to."""

import socket
import time
from collections.abc import Callable
from types import TracebackType

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.properties import Properties
from interlog.testing import RunningBroker
from tests.crash.amqp_client import Client, Heard
from tests.crash.brokers import Gone

PATIENCE_SECONDS = 30.0


class SocketLink:
    def __init__(self, host: str, port: int) -> None:
        self.sock = socket.create_connection((host, port), PATIENCE_SECONDS)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def turn(self) -> bytes:
        data = self.sock.recv(1 << 16)
        if not data:
            raise Gone
        return data

    def last_words(self) -> bytes:
        return b""


class SocketClient:
    """One connection with channel 1 open. What nobody waits for is in `heard`."""

    def __init__(self, broker: RunningBroker) -> None:
        self.heard: list[Heard] = []
        self._link = SocketLink(broker.host, broker.port)
        self.client = Client(self._link, self.heard.append)
        self.client.open(1)

    def __enter__(self) -> "SocketClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    def cut(self) -> None:
        """Without a goodbye."""
        self._link.sock.close()

    def declare(self, queue: str, *, exclusive: bool = False) -> None:
        self.client.call(1, m.QueueDeclare(queue, exclusive=exclusive), m.QueueDeclareOk)

    def consume(self, queue: str, *, no_ack: bool = False) -> None:
        self.client.call(1, m.BasicConsume(queue, no_ack=no_ack), m.BasicConsumeOk)

    def publish(self, queue: str, body: bytes) -> None:
        self.client.publish(1, m.BasicPublish("", queue), Properties(), body)

    def hear(self, count: int) -> list[Heard]:
        """Read until so many were heard that nobody waited for."""
        while len(self.heard) < count:
            self.client.turn()
        return self.heard


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)
