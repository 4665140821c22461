"""Consumers of streams: records by offset, as basic.deliver with their offset in a header.

A stream is a topic; one that other protocols gave several partitions is read from all of them in turn. Acknowledging
makes room for more and changes nothing else: nothing is taken out of a stream by reading.
"""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from interlog.base.errors import InterlogError, NotFoundError
from interlog.base.log import get_log
from interlog.core.deaths import header
from interlog.core.topics import Topic, Watch
from interlog.faces.amqp import errors
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.argument_checks import period_ms
from interlog.faces.amqp.consumer import UNLIMITED
from interlog.faces.amqp.consumer_arguments import consumer_settings
from interlog.faces.amqp.errors import ReplyCode, precondition
from interlog.faces.amqp.messages import Deliveries
from interlog.faces.amqp.values import Timestamp
from interlog.journal.record import Record

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel

log = get_log("amqp")

READ_BYTES: Final = 256 << 10
_FILTER_VALUE: Final = b"x-stream-filter-value"


def consume_stream(channel: "Channel", method: m.BasicConsume, tag: str, topic: Topic) -> None:
    connection = channel.connection
    where = errors.subject("queue", topic.item.name, connection.vhost)
    if method.no_ack:
        raise errors.not_implemented(f"automatic acknowledgement not supported by stream queues {where}")
    if not channel.prefetch:
        raise precondition(f"consumer prefetch count is not set for '{where}'")
    asked = consumer_settings("stream", topic.item.name, connection.vhost, method.arguments)
    start = _start(channel, topic, asked.get("offset", "next"))
    wanted = asked.get("filter")
    values = None
    if wanted is not None:
        values = frozenset(str(one).encode() for one in (wanted if isinstance(wanted, list) else [wanted]))
    consumer = StreamConsumer(
        channel,
        tag,
        topic,
        start,
        values,
        unfiltered=asked.get("unfiltered", False),
        timeout_ms=asked.get("timeout_ms"),
    )
    channel.consumers[tag] = consumer
    if not method.nowait:
        channel.reply(m.BasicConsumeOk(tag))
    consumer.push()


def _start(channel: "Channel", topic: Topic, offset: Any) -> list[int]:
    """Where to begin, in each partition."""
    partitions = range(len(topic))
    if isinstance(offset, Timestamp):
        return [_at_time(topic, index, int(offset) * 1_000) for index in partitions]
    if isinstance(offset, int):
        return [int(offset)] * len(topic)
    if offset == "first":
        return [topic.log_start(index) for index in partitions]
    if offset == "last":
        return [max(topic.log_start(index), topic.log_end(index) - 1) for index in partitions]
    if offset == "next":
        return [topic.log_end(index) for index in partitions]
    back_ms = period_ms(offset)
    assert back_ms is not None, "the arguments have been checked"
    since_ms = channel.connection.now_ms - back_ms
    return [_at_time(topic, index, since_ms) for index in partitions]


def _at_time(topic: Topic, index: int, timestamp_ms: int) -> int:
    found = topic.offset_for_time(index, timestamp_ms)
    return topic.log_end(index) if found is None else found[0]


class StreamConsumer:
    __slots__ = (
        "_ahead",
        "_deliveries",
        "_next",
        "_stopped",
        "_turn",
        "_unfiltered",
        "_values",
        "_watches",
        "channel",
        "outstanding",
        "prefetch",
        "tag",
        "timeout_ms",
        "topic",
    )

    def __init__(
        self,
        channel: "Channel",
        tag: str,
        topic: Topic,
        start: list[int],
        values: frozenset[bytes] | None,
        *,
        unfiltered: bool,
        timeout_ms: int | None = None,
    ) -> None:
        self.channel = channel
        self.tag = tag
        self.topic = topic
        self.prefetch = channel.prefetch
        self.outstanding = 0
        self.timeout_ms = timeout_ms
        self._next = start
        self._turn = 0  # the partition that is read first, when there is room again
        self._values = values  # of the filter: other messages are passed over
        self._unfiltered = unfiltered  # those without a value are wanted too
        self._ahead: deque[tuple[int, Record]] = deque()
        self._watches: dict[int, Watch] = {}
        self._stopped = False
        self._deliveries = Deliveries(channel.number, tag, offsets=True)

    def push(self) -> None:
        """Deliver what there is room for; where there is no more, be called when more comes."""
        channel = self.channel
        try:
            while not self._stopped and (room := self._room()) > 0:
                if not self._ahead and not self._read():
                    return
                count = min(room, len(self._ahead))
                self._deliver([self._ahead.popleft() for _ in range(count)])
        except NotFoundError:
            self._gone()
        except (InterlogError, OSError) as error:
            log.error("a stream cannot be read", stream=self.topic.item.name, reason=error)
            self._stopped = True
            channel.connection.close_channel(
                channel, errors.AmqpError(ReplyCode.INTERNAL_ERROR, "the stream cannot be read", hard=False)
            )

    def _room(self) -> int:
        channel = self.channel
        if not channel.may_push(None):
            return 0
        room = self.prefetch - self.outstanding if self.prefetch else UNLIMITED
        if channel.shared_prefetch:
            room = min(room, channel.shared_prefetch - channel.outstanding)
        return room

    def _read(self) -> bool:
        """Read ahead; whether there is anything."""
        topic = self.topic
        count = len(topic)
        if not count:
            raise NotFoundError("the stream is gone")
        while len(self._next) < count:
            self._next.append(topic.log_start(len(self._next)))
        for index in (*range(self._turn, count), *range(self._turn)):
            start = max(self._next[index], topic.log_start(index))
            while start < topic.log_end(index) and not self._ahead:
                found, after = topic.records(index, start, READ_BYTES)
                if after == start:
                    break  # a transaction is still open there
                start = after
                self._ahead.extend(one for one in found if self._wants(one[1]))
            self._next[index] = start
            if self._ahead:
                self._turn = (index + 1) % count
                return True
            if index not in self._watches:
                self._watches[index] = topic.watch(index, partial(self._grown, index))
        return False

    def _wants(self, record: Record) -> bool:
        if self._values is None:
            return True
        value = header(record, _FILTER_VALUE)
        return self._unfiltered if value is None else value in self._values

    def _deliver(self, records: list[tuple[int, Record]]) -> None:
        channel = self.channel
        connection = channel.connection
        tag = channel.next_tag
        channel.next_tag = tag + len(records)
        for at, (offset, _) in enumerate(records):
            channel.unacked[tag + at] = (self, None, None, offset, connection.second)
        self.outstanding += len(records)
        channel.outstanding += len(records)
        messages = [(offset, record, 0, False, 0, -1) for offset, record in records]
        connection.out_bytes += self._deliveries.write(connection.out, messages, tag, connection.body_max)
        connection.delivered(len(records))

    def _grown(self, index: int) -> None:
        self._watches.pop(index, None)
        self.push()

    def _gone(self) -> None:
        self.stop()
        self.channel.consumer_lost(self)

    def acknowledged(self, count: int = 1) -> None:
        self.outstanding -= count
        self.push()

    def look_again(self) -> None:
        self.push()

    def stop(self) -> None:
        self._stopped = True
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        self._ahead.clear()
