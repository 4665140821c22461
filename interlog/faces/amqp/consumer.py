"""Consumers of one channel: a queue's messages as basic.deliver, no more at a time than the client said it can take."""

from typing import TYPE_CHECKING, Final

from interlog.core.leases import Message
from interlog.core.queues import Queue
from interlog.core.work_queue import WorkQueue
from interlog.faces.amqp.messages import Deliveries

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel

UNLIMITED: Final = 2_000  # of an unlimited prefetch, at once


class QueueConsumer:
    __slots__ = (
        "_deliveries",
        "channel",
        "for_good",
        "holder",
        "outstanding",
        "prefetch",
        "priority",
        "queue",
        "starving",
        "tag",
        "timeout_ms",
    )

    def __init__(
        self,
        channel: "Channel",
        tag: str,
        queue: WorkQueue,
        *,
        for_good: bool,
        prefetch: int,
        priority: int,
        timeout_ms: int | None = None,
    ) -> None:
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.for_good = for_good
        self.holder = channel.holder
        self.prefetch = 0 if for_good else prefetch
        self.priority = priority
        self.timeout_ms = timeout_ms  # how long a message may be unacknowledged, where this consumer has a say in it
        self.outstanding = 0
        self.starving = False  # was refused for want of acknowledgements: tell the queue when one comes
        self._deliveries = Deliveries(channel.number, tag, counts=queue.settings.kind == "quorum")

    def room(self) -> int:
        channel = self.channel
        if not channel.may_push(self.queue):
            return 0
        if self.for_good:
            # What it takes is not counted, but waits for what is: the channel has as much as it wants.
            full = channel.shared_prefetch and channel.outstanding >= channel.shared_prefetch
            return 0 if full else UNLIMITED
        room = self.prefetch - self.outstanding if self.prefetch else UNLIMITED
        if channel.shared_prefetch:
            room = min(room, channel.shared_prefetch - channel.outstanding)
        if room <= 0:
            self.starving = True
        return room

    def take(self, queue: WorkQueue, lane: Queue, messages: list[Message]) -> None:
        channel = self.channel
        connection = channel.connection
        tag = channel.next_tag
        channel.next_tag = tag + len(messages)
        if not self.for_good:
            unacked = channel.unacked
            second = connection.second
            at = tag
            for message in messages:
                unacked[at] = (self, queue, lane, message[0], second)
                at += 1
            self.outstanding += len(messages)
            channel.outstanding += len(messages)
        connection.out_bytes += self._deliveries.write(connection.out, messages, tag, connection.body_max)
        connection.delivered(len(messages))

    def acknowledged(self, count: int = 1) -> None:
        self.outstanding -= count
        if self.starving:
            self.starving = False
            self.queue.wake()

    def cancelled(self) -> None:
        """The queue is gone."""
        self.channel.consumer_lost(self)

    def stop(self) -> None:
        self.queue.remove_consumer(self)

    def look_again(self) -> None:
        self.queue.wake()
