"""A channel: what one client does in order, independent of its other channels.

In come the channel's frames, cut by the connection; out go frames into the connection's output. A reply that must wait
for the disk holds back everything that follows it on this channel (`reply`); confirms have an order of their own.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from interlog.core.publishing import LASTS, REFUSED, ROUTED
from interlog.core.queues import Queue
from interlog.core.work_queue import WorkQueue
from interlog.faces.amqp import errors
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.consumer import QueueConsumer
from interlog.faces.amqp.errors import AmqpError, ReplyCode
from interlog.faces.amqp.frames import method_frame
from interlog.faces.amqp.messages import BASIC_CLASS, CONTENT_HEAD, CONTENT_HEAD_BYTES, Deliveries, content_of, returned
from interlog.faces.amqp.properties import with_headers
from interlog.faces.amqp.publish import Route, publish_specially
from interlog.faces.amqp.wire import Method
from interlog.journal.journal import Outcome
from interlog.journal.record import Record

if TYPE_CHECKING:
    from interlog.faces.amqp.connection import AmqpConnection
    from interlog.faces.amqp.stream_consumer import StreamConsumer
    from interlog.faces.amqp.transaction import Transaction

AnyConsumer = "QueueConsumer | StreamConsumer"
# Who got it (None: basic.get), from which queue and lane (None: a stream), its offset, and in which second.
Unacked = tuple["QueueConsumer | StreamConsumer | None", WorkQueue | None, Queue | None, int, int]

_PART_BYTES: Final = 64  # what a frame of a body costs beside its bytes, until the body is whole


class State(Enum):
    OPEN = "open"
    CLOSING = "closing"  # the client was told why, and has not said that it knows
    CLOSED = "closed"


class _Gate:
    """A reply that waits for the disk, and what must come after it."""

    __slots__ = ("frames",)

    def __init__(self, frame: bytes) -> None:
        self.frames = [frame]


class _Confirms:
    """Messages up to a number, to be confirmed together; those a full queue refused among them."""

    __slots__ = ("refused", "upto")

    def __init__(self, upto: int, refused: list[int]) -> None:
        self.upto = upto
        self.refused = refused


def _timeout_ms(consumer: "QueueConsumer | StreamConsumer | None", queue: WorkQueue | None, default: int) -> int:
    """What the consumer says, or else its queue, or else the broker; 0 is for ever."""
    if consumer is not None and consumer.timeout_ms is not None:
        return consumer.timeout_ms
    if queue is not None and queue.settings.consumer_timeout_ms is not None:
        return queue.settings.consumer_timeout_ms
    return default


class Channel:
    __slots__ = (
        "_body",
        "_body_missing",
        "_confirmed",
        "_gates",
        "_gathered",
        "_lasting",
        "_oldest",
        "_others_ms",
        "_pending",
        "_properties",
        "_publishing",
        "_refused",
        "_turn",
        "client_stopped",
        "confirming",
        "connection",
        "consumers",
        "core",
        "holder",
        "last_queue",
        "next_tag",
        "number",
        "outstanding",
        "prefetch",
        "published",
        "reply_address",
        "reply_tag",
        "shared_prefetch",
        "state",
        "transaction",
        "unacked",
    )

    def __init__(self, connection: "AmqpConnection", number: int) -> None:
        self.connection = connection
        self.core = connection.core
        self.number = number
        self.state = State.OPEN
        self.holder = self.core.new_holder()
        self.consumers: dict[str, QueueConsumer | StreamConsumer] = {}
        self.unacked: dict[int, Unacked] = {}  # by delivery tag, rising
        self.next_tag = 1
        self._oldest = 1  # no tag below is unacked
        self.prefetch = 0  # of consumers to come
        self.shared_prefetch = 0  # of all of them together
        self.outstanding = 0  # unacked ones that consumers got
        self.client_stopped = False  # by channel.flow
        self.last_queue = ""
        self.confirming = False
        self.published = 0  # since confirm.select
        self.transaction: Transaction | None = None
        self.reply_address: str | None = None
        self.reply_tag = ""
        self._confirmed = 0
        self._lasting = False  # something of this burst must be synced before it is confirmed
        self._refused: list[int] = []
        self._turn = 0  # which consumer is asked first
        self._pending: deque[_Confirms] = deque()
        self._gates: deque[_Gate] = deque()
        self._others_ms = 0  # the shortest timeout of messages whose consumer is gone, or that had none
        self._publishing: Route | None = None
        self._properties: bytes | None = None  # of the message whose body comes in
        self._body: list[bytes] = []
        self._body_missing = 0
        self._gathered = 0  # bytes held for a body that is not whole

    # -- frames in

    @property
    def awaits_content(self) -> bool:
        return self._publishing is not None

    def publish(self, raw: bytes) -> None:
        """A basic.publish method came: its payload. Its content follows."""
        if self._publishing is not None:
            raise self.unexpected(m.BasicPublish.id)
        routes = self.connection.routes
        route = routes.get(raw)
        self._publishing = routes.make(self, raw) if route is None else route

    def header(self, data: bytes, start: int, end: int) -> None:
        if self._publishing is None or self._properties is not None:
            raise self.unexpected()
        if end - start < CONTENT_HEAD_BYTES:
            raise errors.frame_error(2, data[start:end], "content header is cut short")
        class_id, weight, size = CONTENT_HEAD.unpack_from(data, start)
        if weight:
            raise self.unexpected()
        if class_id != BASIC_CLASS:
            what = f"expected content header for class {BASIC_CLASS}, got one for class {class_id} instead"
            raise errors.unexpected_frame(what)
        properties = data[start + CONTENT_HEAD_BYTES : end]
        if not size:
            self._complete(properties, b"")
            return
        if size > self.connection.settings.max_message_bytes:
            raise errors.message_too_large(size, self.connection.settings.max_message_bytes)
        self._properties = properties
        self._body_missing = size

    def body(self, data: bytes, start: int, end: int) -> None:
        properties = self._properties
        if properties is None:
            raise self.unexpected()
        missing = self._body_missing - (end - start)
        if missing > 0:
            self._body.append(data[start:end])
            self._body_missing = missing
            self._gathered += _PART_BYTES + end - start
            self.connection.gather(_PART_BYTES + end - start)
            return
        if missing < 0:
            raise errors.body_too_long()
        if self._body:
            self._body.append(data[start:end])
            body = b"".join(self._body)
            self._body.clear()
            self._let_go_of_body()
        else:
            body = data[start:end]
        self._properties = None
        self._complete(properties, body)

    def unexpected(self, method_id: int = 0) -> AmqpError:
        if self._properties is not None:
            what = "expected content body, got non content body frame instead"
        elif self._publishing is not None:
            what = f"expected content header for class {BASIC_CLASS}, got non content header frame instead"
        else:
            what = "expected method frame, got non method frame instead"
        return errors.unexpected_frame(what, method_id)

    def forget_content(self) -> None:
        """What was coming in is not wanted any more."""
        self._publishing = self._properties = None
        self._body.clear()
        self._let_go_of_body()

    def _let_go_of_body(self) -> None:
        self.connection.gathered -= self._gathered
        self._gathered = 0

    # -- publishing

    def _complete(self, properties: bytes, body: bytes) -> None:
        route = self._publishing
        assert route is not None
        self._publishing = None
        if self.transaction is not None:
            self.connection.published += 1
            self.transaction.publish(self, self.renewed(route), properties, body)
            return
        result = self.send_on(route, properties, body)
        self.took(1, result, (0,) if result & REFUSED else ())

    @property
    def takes_runs(self) -> bool:
        """Whether whole messages may be taken in together."""
        return self._publishing is None and self.transaction is None

    def took(self, count: int, result: int, refused: Iterable[int]) -> None:
        """So many messages were sent on, with this result; which of them a full queue refused."""
        connection = self.connection
        connection.published += count
        if self.confirming:
            first = self.published + 1
            self.published += count
            if not connection.confirms_due or connection.confirms_due[-1] is not self:
                connection.confirms_due.append(self)
            if result & LASTS:
                self._lasting = True
            if result & REFUSED:
                self._refused += [first + at for at in refused]

    def send_on(self, route: Route, properties: bytes, body: bytes) -> int:
        """To where the route leads; ROUTED, LASTS and REFUSED as they apply."""
        if route.generation != self.core.generation:
            route = self.renewed(route)
        content = content_of(properties)
        target = route.target
        self.connection.routed += 1 if target is None else len(target.queues)
        if target is not None and content.plain:
            known = route.known.get(properties)
            if known is None:
                known = route.know(properties, content)
            record = Record(route.key, body, known[0], self.connection.now_ms)
            result = target.publish(record, len(body) + known[1], content.persistent)
        else:
            result = publish_specially(self, route, content, body)
        if not result & ROUTED and route.mandatory:
            shown = with_headers(properties, {}, ("BCC",))
            self.write(returned(self.number, route, shown, body, self.connection.body_max))
        return result

    def renewed(self, route: Route) -> Route:
        """The same as things are now."""
        if route.generation == self.core.generation:
            return route
        return self.connection.routes.renew(self, route.raw)

    def settle_confirms(self) -> None:
        """The burst is over: what was published in it is confirmed, at once or when it lasts."""
        upto, refused, self._refused = self.published, self._refused, []
        if self._lasting:
            self._lasting = False
            self._pending.append(_Confirms(upto, refused))
            self.connection.parked += 1
            self.core.ticket.when_durable(self._durable)
        elif self._pending:
            last = self._pending[-1]  # confirms stay in order: these follow with what is before them
            last.upto = upto
            last.refused += refused
        else:
            self._confirm(upto, refused)

    def _durable(self, outcome: Outcome) -> None:
        self.connection.parked -= 1
        confirms = self._pending.popleft()
        if self.state is not State.OPEN or self.connection.is_over:
            return
        if outcome is Outcome.DURABLE:
            self._confirm(confirms.upto, confirms.refused)
        else:
            self._confirm(confirms.upto, list(range(self._confirmed + 1, confirms.upto + 1)))
        self.connection.wake()

    def _confirm(self, upto: int, refused: list[int]) -> None:
        for number in refused:
            self._ack_upto(number - 1)
            self._say(m.BasicNack(number))
            self._confirmed = number
        self._ack_upto(upto)

    def _ack_upto(self, upto: int) -> None:
        if upto > self._confirmed:
            self._say(m.BasicAck(upto, upto - self._confirmed > 1))
            self._confirmed = upto

    # -- out

    def _say(self, method: Method) -> None:
        self.write(method_frame(self.number, method.encode()))  # behind what was returned of it

    def reply(self, method: Method, *, lasts: bool = False) -> None:
        """An answer; one that `lasts` leaves when what was done in this tick is synced."""
        frame = method_frame(self.number, method.encode())
        if not lasts:
            self.write(frame)
            return
        gate = _Gate(frame)
        self._gates.append(gate)
        self.connection.parked += 1
        self.core.ticket.when_durable(partial(self._open_gate, gate))

    def write(self, frames: bytes) -> None:
        """Frames of this channel, in their order."""
        if self._gates:
            self._gates[-1].frames.append(frames)
        else:
            self.connection.out.append(frames)

    def _open_gate(self, gate: _Gate, outcome: Outcome) -> None:
        self.connection.parked -= 1
        self._gates.remove(gate)
        if self.connection.is_over:
            return
        if outcome is not Outcome.DURABLE:
            self.connection.fail(AmqpError(ReplyCode.INTERNAL_ERROR, "the journal could not be written"))
            return
        self.connection.out += gate.frames
        self.connection.wake()
        if not self._gates:
            self.look_again()

    # -- deliveries

    def may_push(self, queue: WorkQueue | None) -> bool:
        """Whether anything may be delivered now. If not, the queue is woken when it may."""
        connection = self.connection
        if self._gates or self.client_stopped or self.state is not State.OPEN:
            return False
        if connection.is_full:
            connection.starve(self)
            return False
        return True

    def look_again(self) -> None:
        """Something that kept messages away is over. Who was first the last time is the last one now."""
        consumers = [*self.consumers.values()]
        if consumers:
            self._turn = (self._turn + 1) % len(consumers)
        for consumer in consumers[self._turn :] + consumers[: self._turn]:
            consumer.look_again()

    def hold(self, queue: WorkQueue, lane: Queue, offset: int) -> int:
        """A message that was asked for, and is to be acknowledged; its tag."""
        tag = self.next_tag
        self.next_tag = tag + 1
        self.unacked[tag] = (None, queue, lane, offset, self.connection.second)
        self._remember_timeout(_timeout_ms(None, queue, 0))
        return tag

    # -- acknowledgements

    def ack(self, tag: int, multiple: bool) -> None:
        if not multiple and self.transaction is None:
            found = self.unacked.pop(tag, None)
            if found is None:
                raise errors.unknown_delivery_tag(tag)
            consumer, queue, lane, offset, _ = found
            if lane is not None and queue is not None and not queue.closed:
                lane.ack(offset, self.holder)
            if consumer is not None:
                self._make_room(consumer, 1)
                if self.shared_prefetch:
                    self.look_again()
            return
        entries = self.collect(tag, multiple)
        if self.transaction is not None:
            self.transaction.acknowledge(entries, self.acknowledge)
        else:
            self.acknowledge(entries)

    def ack_each(self, tags: Iterable[int]) -> None:
        """These deliveries, one by one, outside transactions."""
        entries: dict[int, Unacked] = {}
        for tag in tags:
            found = self.unacked.pop(tag, None)
            if found is None:
                self.acknowledge(entries)
                raise errors.unknown_delivery_tag(tag)
            entries[tag] = found
        self.acknowledge(entries)

    def reject(self, tag: int, multiple: bool, requeue: bool) -> None:
        entries = self.collect(tag, multiple)
        act = self.requeue if requeue else self.discard
        if self.transaction is not None:
            self.transaction.acknowledge(entries, act)
        else:
            act(entries)

    def collect(self, tag: int, multiple: bool) -> dict[int, Unacked]:
        """Take out of the unacked: one, or all up to the tag (0: all there are)."""
        unacked = self.unacked
        if not multiple:
            found = unacked.pop(tag, None)
            if found is None:
                raise errors.unknown_delivery_tag(tag)
            return {tag: found}
        if tag == 0:
            entries = dict(unacked)
            unacked.clear()
            self._oldest = self.next_tag
            return entries
        if tag not in unacked:
            raise errors.unknown_delivery_tag(tag)
        entries = {}
        for one in range(self._oldest, tag + 1):
            found = unacked.pop(one, None)
            if found is not None:
                entries[one] = found
        self._oldest = tag + 1
        return entries

    def give_back(self, entries: dict[int, Unacked]) -> None:
        """These were collected, and are unacked again."""
        merged = sorted({**self.unacked, **entries}.items())
        self.unacked.clear()
        self.unacked.update(merged)
        self._oldest = min([self._oldest, *entries])

    def acknowledge(self, entries: dict[int, Unacked]) -> None:
        self._settle(entries, lambda queue, lane, offsets: queue.ack(lane, offsets, self.holder))

    def requeue(self, entries: dict[int, Unacked]) -> None:
        self._settle(entries, lambda queue, lane, offsets: queue.requeue(lane, offsets, self.holder))

    def discard(self, entries: dict[int, Unacked]) -> None:
        self._settle(entries, lambda queue, lane, offsets: queue.reject(lane, offsets, self.holder))

    def _settle(self, entries: dict[int, Unacked], act: Callable[[WorkQueue, Queue, list[int]], object]) -> None:
        by_lane: dict[Queue, tuple[WorkQueue, list[int]]] = {}
        counts: dict[QueueConsumer | StreamConsumer, int] = {}
        for consumer, queue, lane, offset, _ in entries.values():
            if queue is not None and lane is not None:
                by_lane.setdefault(lane, (queue, []))[1].append(offset)
            if consumer is not None:
                counts[consumer] = counts.get(consumer, 0) + 1
        for lane, (queue, offsets) in by_lane.items():
            if not queue.closed:
                act(queue, lane, offsets)
        for consumer, count in counts.items():
            self._make_room(consumer, count)
        if self.shared_prefetch:
            self.look_again()

    def _make_room(self, consumer: "QueueConsumer | StreamConsumer", count: int) -> None:
        self.outstanding -= count
        if self.shared_prefetch:
            consumer.outstanding -= count  # whose the room is, all of them are asked: see look_again
        else:
            consumer.acknowledged(count)

    def overdue(self, now_s: int) -> int | None:
        """For how long a delivery may be unacknowledged, where one is for longer than that; milliseconds."""
        default = self.connection.settings.consumer_timeout_ms
        limits = [default, self._others_ms, *[self._timeout_of(one) for one in self.consumers.values()]]
        least = min([limit for limit in limits if limit], default=0)
        for consumer, queue, _, _, second in self.unacked.values():
            age_ms = (now_s - second) * 1_000
            if age_ms <= least:
                break  # and what follows is younger
            limit = _timeout_ms(consumer, queue, default)
            if limit and age_ms > limit:
                return limit
        return None

    def _timeout_of(self, consumer: "QueueConsumer | StreamConsumer") -> int:
        queue = consumer.queue if isinstance(consumer, QueueConsumer) else None
        return _timeout_ms(consumer, queue, self.connection.settings.consumer_timeout_ms)

    def _remember_timeout(self, limit_ms: int) -> None:
        """Of messages that nobody among the consumers has."""
        if limit_ms:
            self._others_ms = min(limit_ms, self._others_ms or limit_ms)

    # -- consumers

    def consumer_lost(self, consumer: "QueueConsumer | StreamConsumer") -> None:
        """Its queue is gone: tell a client that wants to know."""
        if self.consumers.pop(consumer.tag, None) is not None and self.connection.wants_cancels:
            self.connection.tell_cancelled(self, consumer.tag)

    def say_cancelled(self, tag: str) -> None:
        if self.state is State.OPEN:
            self.write(method_frame(self.number, m.BasicCancel(tag, True).encode()))

    def consume_replies(self, tag: str) -> None:
        """From here on this channel has an address for answers that need no queue."""
        self.reply_tag = tag
        self.reply_address = self.connection.service.replies.address(self)

    def take_reply(self, record: Record) -> None:
        if self.state is not State.OPEN or self.connection.is_drowning(len(record.value or b"")):
            return  # nobody reads: an answer of this kind is kept nowhere
        frames: list[bytes] = []
        message = (0, record, 0, False, 0, -1)
        written = Deliveries(self.number, self.reply_tag).write(
            frames, (message,), self.next_tag, self.connection.body_max
        )
        self.next_tag += 1
        self.connection.out_bytes += written
        self.write(b"".join(frames))
        self.connection.delivered(1)

    def _forget_replies(self) -> None:
        if self.reply_address is not None:
            self.connection.service.replies.forget(self.reply_address)
            self.reply_address = None
            self.reply_tag = ""

    def cancel(self, tag: str) -> None:
        if tag == self.reply_tag:
            self._forget_replies()
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            self._remember_timeout(self._timeout_of(consumer))
            consumer.stop()

    # -- the end

    def release(self) -> None:
        """Give back all it has: the channel is gone, or about to be."""
        self.forget_content()
        self._forget_replies()
        consumers, self.consumers = self.consumers, {}
        queues: Iterable[WorkQueue] = dict.fromkeys(
            [queue for _, queue, _, _, _ in self.unacked.values() if queue is not None]
        )
        for queue in queues:
            if not queue.closed:
                queue.release_holder(self.holder)
        if self.transaction is not None:
            for queue in self.transaction.queues():
                if not queue.closed:
                    queue.release_holder(self.holder)
        for consumer in consumers.values():
            consumer.stop()
        self.unacked.clear()
        self.outstanding = 0
