"""tx and confirm: a channel is in one of the two modes, or in none.

A transaction gathers publishes and acknowledgements; commit does them all in one tick, so they last together or not at
all, and is answered when they do.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from interlog.core.publishing import REFUSED
from interlog.core.work_queue import WorkQueue
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.errors import precondition
from interlog.faces.amqp.messages import content_of
from interlog.faces.amqp.publish import check_content

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel, Unacked
    from interlog.faces.amqp.publish import Route

MAX_BYTES: Final = 64 << 20  # of messages in one transaction

Entries = "dict[int, Unacked]"


class Transaction:
    __slots__ = ("_acknowledged", "_bytes", "_published")

    def __init__(self) -> None:
        self._published: list[tuple[Route, bytes, bytes]] = []
        self._bytes = 0
        self._acknowledged: list[tuple[dict[int, Unacked], Callable[[dict[int, Unacked]], None]]] = []

    def publish(self, channel: "Channel", route: "Route", properties: bytes, body: bytes) -> None:
        check_content(channel, content_of(properties))
        self._bytes += len(properties) + len(body)
        if self._bytes > MAX_BYTES:
            raise precondition(f"a transaction takes {MAX_BYTES} bytes of messages at most")
        self._published.append((route, properties, body))

    def acknowledge(self, entries: "dict[int, Unacked]", act: "Callable[[dict[int, Unacked]], None]") -> None:
        self._acknowledged.append((entries, act))

    def queues(self) -> Iterable[WorkQueue]:
        """Those that wait for what was acknowledged and is not committed."""
        found: dict[WorkQueue, None] = {}
        for entries, _ in self._acknowledged:
            for _, queue, _, _, _ in entries.values():
                if queue is not None:
                    found[queue] = None
        return found

    def commit(self, channel: "Channel") -> None:
        published = [(channel.renewed(route), properties, body) for route, properties, body in self._published]
        for _, properties, _ in published:
            check_content(channel, content_of(properties))  # all or nothing: this is the last that can be refused
        for route, properties, body in published:
            if channel.send_on(route, properties, body) & REFUSED:
                # What was not refused stays: a full queue is no reason to lose the rest.
                continue
        for entries, act in self._acknowledged:
            act(entries)
        self._clear()

    def rollback(self, channel: "Channel") -> None:
        for entries, _ in self._acknowledged:
            channel.give_back(entries)
        self._clear()

    def _clear(self) -> None:
        self._published.clear()
        self._acknowledged.clear()
        self._bytes = 0


def confirm_select(channel: "Channel", method: m.ConfirmSelect) -> None:
    if channel.transaction is not None:
        raise precondition("cannot switch from tx to confirm mode")
    channel.confirming = True
    if not method.nowait:
        channel.reply(m.ConfirmSelectOk())


def select(channel: "Channel", method: m.TxSelect) -> None:
    if channel.confirming:
        raise precondition("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction()
    channel.reply(m.TxSelectOk())


def commit(channel: "Channel", method: m.TxCommit) -> None:
    _transaction(channel).commit(channel)
    channel.reply(m.TxCommitOk(), lasts=True)


def rollback(channel: "Channel", method: m.TxRollback) -> None:
    _transaction(channel).rollback(channel)
    channel.reply(m.TxRollbackOk())


def _transaction(channel: "Channel") -> Transaction:
    if channel.transaction is None:
        raise precondition("channel is not transactional")
    return channel.transaction
