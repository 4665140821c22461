"""A queue as its users know it: lanes by priority, consumers in turn, limits, deaths.

In come messages that were routed here, consumers and what they answer; out go messages to consumers, and those that
cannot be kept to the dead letters. Storage is the lanes' business (core/queues.py).

Nothing is handed out at once: who changes something wakes the queue, and the coming commit looks at it once (`look`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from interlog.core.catalog_objects import QueueItem
from interlog.core.consumers import Consumer, Ring
from interlog.core.deaths import Reason, expires_ms
from interlog.core.dedupe import WaitingKeys
from interlog.core.leases import Message
from interlog.core.queue_settings import QueueSettings
from interlog.core.queues import Queue
from interlog.journal.record import Record

HAND_OUT_BYTES: Final = 256 << 10  # at once, to one consumer
_ROUNDS: Final = 64  # over so many rounds, at least, a backlog is dealt out among several consumers


class House(Protocol):
    """All queues together, as one of them knows them."""

    woken: "list[WorkQueue]"
    timed: "dict[WorkQueue, None]"

    def now_ms(self) -> int: ...

    def dead(self, queue: "WorkQueue", messages: Iterable[Message], reason: Reason) -> None:
        """These left the queue for good; send them on where they go then."""
        ...

    def abandoned(self, queue: "WorkQueue") -> None:
        """Its last consumer went, and it is to go with them."""
        ...


class WorkQueue:
    __slots__ = (
        "_attentive",
        "_due_ms",
        "_house",
        "_keys",
        "_lane",
        "_may_expire",
        "_plain",
        "_quorum",
        "_ring",
        "_since_ms",
        "_unknown",
        "closed",
        "item",
        "lanes",
        "owner",
        "settings",
        "takes_runs",
        "used_ms",
        "woken",
    )

    def __init__(self, house: House, item: QueueItem, lanes: Sequence[Queue], settings: QueueSettings) -> None:
        self._house = house
        self.item = item
        self.lanes = list(lanes)  # by priority, the lowest first
        self.owner: object | None = None  # the connection that has it alone
        self.woken = False
        self.closed = False
        self.used_ms = house.now_ms()
        self._lane = self.lanes[0]
        self._ring = Ring(settings.single_active)
        self._may_expire = False
        self._since_ms: int | None = None  # when the first message came that nobody was asked to take yet
        self._due_ms: int | None = None  # when to look for messages whose time is over; None: not before another comes
        # What came before this start may have a time of its own: found out when somebody looks, or in its turn.
        self._unknown = any(lane.ready for lane in self.lanes)
        self._keys = WaitingKeys() if settings.dedupe else None
        if self._keys is not None:
            for lane in self.lanes:
                lane.on_gone = self._keys.gone
        self.settings: QueueSettings
        self.change(item, settings)

    def change(self, item: QueueItem, settings: QueueSettings) -> None:
        """Other settings, from now on."""
        self.item = item
        self.settings = settings
        self._quorum = settings.kind == "quorum"
        self._ring.single_active = settings.single_active
        self._plain = len(self.lanes) == 1 and not (settings.limited or self._quorum or settings.dedupe)
        may_refuse = settings.limited and settings.overflow != "drop-head"
        self.takes_runs = len(self.lanes) == 1 and not (may_refuse or settings.dedupe)
        if settings.expires_ms is not None:
            self._house.timed[self] = None
        self._attend()
        if not self._unknown:
            if settings.message_ttl_ms is not None:
                self._watch_time()
            self.wake()

    def _watch_time(self) -> None:
        self._may_expire = True
        self._house.timed[self] = None

    def find_out(self) -> None:
        """Messages from before this start: from now on their time is watched."""
        if self._unknown:
            if self._keys is not None:
                self._keys.replace(record for lane in self.lanes for record in lane.stored())
            self._unknown = False
            self._watch_time()
            self.wake()

    def _attend(self) -> None:
        """Whether a message that comes in is a reason to look."""
        self._attentive = bool(self._ring) or self.settings.limited or self.settings.message_ttl_ms is not None

    def __repr__(self) -> str:
        return f"WorkQueue({self.item.namespace!r}, {self.item.name!r})"

    # -- what it is

    @property
    def namespace(self) -> str:
        return self.item.namespace

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def durable(self) -> bool:
        return self.item.durable

    @property
    def ready(self) -> int:
        return sum([lane.ready for lane in self.lanes])

    @property
    def leased(self) -> int:
        return sum([lane.leased for lane in self.lanes])

    @property
    def ready_bytes(self) -> int:
        return sum([lane.ready_bytes for lane in self.lanes])

    @property
    def consumer_count(self) -> int:
        return len(self._ring)

    @property
    def ring(self) -> Ring:
        return self._ring

    def settled(self) -> "WorkQueue":
        """The queue once everything that was asked so far has had its effect: for who counts."""
        self.find_out()
        if self.woken:
            self.look()
        return self

    # -- messages in

    def append(self, record: Record, size: int, persistent: bool, priority: int = 0, expires: bool = False) -> bool:
        """Take a message in; False if the queue is full and refuses it."""
        if self._plain:
            self._lane.append(record, size, persistent)
        else:
            if self._refuses(size):
                if self.settings.overflow == "reject-publish-dlx":
                    message: Message = (-1, record, 0, False, size, 0 if persistent else -1)
                    self._house.dead(self, (message,), Reason.MAX_LENGTH)
                return False
            if self._keys is not None:
                self.find_out()
                if self._keys.has(record):
                    return True  # it is there already
                self._keys.add(record)
            lanes = self.lanes
            lane = lanes[priority if priority < len(lanes) else -1]
            lane.append(record, size, persistent or self._quorum)
        if expires and not self._may_expire:
            self._watch_time()
        if self._may_expire and self._since_ms is None:
            self._since_ms = record.timestamp_ms
        if expires:
            self.wake()
        elif self._attentive and not self.woken:
            self.woken = True
            self._house.woken.append(self)
        return True

    def append_run(self, records: Sequence[Record], sizes: Sequence[int], persistent: bool) -> None:
        """Take in messages that came together, where `takes_runs`: none is looked at by itself."""
        self._lane.append_run(records, sizes, persistent or self._quorum)
        if self._may_expire and self._since_ms is None:
            self._since_ms = records[0].timestamp_ms
        if self._attentive:
            self.wake()

    def _refuses(self, size: int) -> bool:
        settings = self.settings
        if settings.overflow == "drop-head" or not settings.limited:
            return False
        if not self._is_full(size):
            return False
        self.look()  # what consumers would have taken by now is not in the way
        return self._is_full(size)

    def _is_full(self, size: int) -> bool:
        settings = self.settings
        if settings.max_length is not None and self.ready >= settings.max_length:
            return True
        return settings.max_bytes is not None and self.ready_bytes + size > settings.max_bytes

    # -- consumers

    def add_consumer(self, consumer: Consumer, *, exclusive: bool = False) -> None:
        """InUseError if another one has the queue alone."""
        self._ring.add(consumer, exclusive)
        self._attend()
        self.wake()

    def remove_consumer(self, consumer: Consumer) -> None:
        """It gets nothing any more; what it holds it still holds."""
        if not self._ring.remove(consumer):
            return
        self._attend()
        self.used_ms = self._house.now_ms()
        if self.settings.auto_delete and not self._ring:
            self._house.abandoned(self)
        elif self._ring:
            self.wake()

    def wake(self) -> None:
        """Look at this queue in the coming commit: somebody has room, or something came back."""
        if not self.woken and not self.closed:
            self.woken = True
            self._house.woken.append(self)

    def get(self, holder: int, *, for_good: bool) -> tuple[Queue, Message] | None:
        """The first message, for one who asks."""
        self.used_ms = self._house.now_ms()
        self.settled()
        if self._may_expire:
            self._expire(self.used_ms)
        for lane in reversed(self.lanes):
            if lane.ready:
                found = lane.drop_head(1) if for_good else lane.lease(holder, 1)
                if self._may_expire:
                    self._expire(self.used_ms)  # another message is the first, and who asks is told what is left
                    self._note_due()
                if found:
                    return lane, found[0]
        return None

    # -- what holders do

    def ack(self, lane: Queue, offsets: Iterable[int], holder: int) -> int:
        return lane.ack_many(offsets, holder)

    def requeue(self, lane: Queue, offsets: Iterable[int], holder: int) -> None:
        """Back where they stood; those that came back too often are dead."""
        limit = self.settings.delivery_limit if self._quorum else None  # where deliveries are counted
        if limit is not None and limit >= 0:
            messages = lane.held(holder, offsets)
            spent = [message[0] for message in messages if message[2] >= limit]
            if spent:
                self._bury(lane, spent, holder, Reason.DELIVERY_LIMIT)
            offsets = [message[0] for message in messages if message[2] < limit]
        lane.release(offsets, holder, count=self._quorum)
        self.wake()

    def reject(self, lane: Queue, offsets: Iterable[int], holder: int) -> None:
        """Not wanted: to the dead letters, or gone."""
        self._bury(lane, offsets, holder, Reason.REJECTED)

    def release_holder(self, holder: int) -> None:
        """All that the holder has goes back: it is gone."""
        for lane in self.lanes:
            messages = lane.held(holder)
            if messages:
                self.requeue(lane, [message[0] for message in messages], holder)

    def _bury(self, lane: Queue, offsets: Iterable[int], holder: int, reason: Reason) -> None:
        messages = lane.held(holder, offsets)
        lane.ack_many([message[0] for message in messages], holder)
        self._house.dead(self, messages, reason)

    def purge(self) -> int:
        self.settled()
        count = sum([lane.purge() for lane in self.lanes])
        if self._keys is not None:
            self._keys.replace(record for lane in self.lanes for record in lane.out())
        return count

    # -- looking

    def look(self) -> None:
        """Hand out what is ready; let go of what is too old or too much."""
        self.woken = False
        if self.closed:
            return
        if self._unknown:
            self.find_out()
        if self._may_expire:
            now_ms = self._house.now_ms()
            self._expire(
                now_ms - 1, self._since_ms
            )  # what came just now may still reach a consumer, however short it lives
            self._hand_out()
            self._since_ms = None
            self._expire(now_ms)
        elif self._ring:
            self._hand_out()
        if self.settings.limited:
            self._trim()
        if self._may_expire:
            self._note_due()

    def poll(self, now_ms: int) -> bool:
        """What time asks for. True if nobody has used the queue for as long as it may be idle."""
        if self._may_expire and self._due_ms is not None and now_ms >= self._due_ms:
            self._expire(now_ms)
            self._note_due()
        expires_ms = self.settings.expires_ms
        if expires_ms is not None:
            return not self._ring and now_ms - self.used_ms >= expires_ms
        if not self._may_expire:
            self._house.timed.pop(self, None)
        return False

    def close(self) -> None:
        """The queue is gone: tell its consumers."""
        self.closed = True
        self._house.timed.pop(self, None)
        for consumer in self._ring.all():
            self._ring.remove(consumer)
            consumer.cancelled()

    def _hand_out(self) -> None:
        for lane in reversed(self.lanes):
            if lane.ready and not self._hand_out_of(lane):
                return

    def _hand_out_of(self, lane: Queue) -> bool:
        """Deal out one lane; False if it has more than there is room for."""
        for ring in self._ring.levels():
            idle = turns = 0
            share = 1
            while idle < len(ring):
                if not lane.ready:
                    return True
                consumer = ring[0]
                ring.rotate(-1)
                room = consumer.room()
                if turns == 0:
                    turns = len(ring)
                    share = room if turns == 1 else max(1, lane.ready // (turns * _ROUNDS))
                turns -= 1
                if room <= 0:
                    idle += 1
                    continue
                idle = 0
                most = min(room, share)
                if consumer.for_good:
                    messages = lane.drop_head(most, HAND_OUT_BYTES)
                else:
                    messages = lane.lease(consumer.holder, most, HAND_OUT_BYTES)
                if not messages:
                    return True
                if self._may_expire:
                    messages = self._living(lane, messages, consumer)
                if messages:
                    consumer.take(self, lane, messages)
        return False

    def _living(self, lane: Queue, messages: list[Message], consumer: Consumer) -> list[Message]:
        """Without those whose time was over while longer-lived ones stood before them."""
        expired = self._expired(self._house.now_ms() - 1, self._since_ms)
        dead = [message for message in messages if expired(message[0], message[1])]
        if not dead:
            return messages
        if not consumer.for_good:
            lane.ack_many([message[0] for message in dead], consumer.holder)
        self._house.dead(self, dead, Reason.EXPIRED)
        gone = {message[0] for message in dead}
        return [message for message in messages if message[0] not in gone]

    def _expired(self, upto_ms: int, since_ms: int | None) -> Callable[[int, Record], bool]:
        """Whose time is over; those that came since then live."""
        ttl_ms = self.settings.message_ttl_ms

        def expired(offset: int, record: Record) -> bool:
            if since_ms is not None and record.timestamp_ms >= since_ms:
                return False
            if ttl_ms is not None and record.timestamp_ms + ttl_ms <= upto_ms:
                return True
            own_ms = expires_ms(record)
            return own_ms is not None and own_ms <= upto_ms

        return expired

    def _expire(self, upto_ms: int, since_ms: int | None = None) -> None:
        expired = self._expired(upto_ms, since_ms)
        for lane in self.lanes:
            messages = lane.expire_head(expired)
            if messages:
                self._house.dead(self, messages, Reason.EXPIRED)

    def _note_due(self) -> None:
        """When the next message's time is over, as things stand: only those in front can expire."""
        ttl_ms = self.settings.message_ttl_ms
        due: list[int] = []
        for lane in self.lanes:
            message = lane.peek_head()
            if message is None:
                continue
            if ttl_ms is not None:
                due.append(message[1].timestamp_ms + ttl_ms)
            own_ms = expires_ms(message[1])
            if own_ms is not None:
                due.append(own_ms)
        self._due_ms = min(due, default=None)
        if not due and ttl_ms is None and not self.ready and not self.leased:
            self._may_expire = False

    def _trim(self) -> None:
        """As much as is too much goes from the head, whatever its priority."""
        settings = self.settings
        most = settings.max_length
        for lane in reversed(self.lanes):
            while (most is not None and self.ready > most and lane.ready) or (
                settings.max_bytes is not None and self.ready_bytes > settings.max_bytes and lane.ready
            ):
                excess = 1 if most is None else max(1, self.ready - most)
                messages = lane.drop_head(min(excess, 1_000))
                if not messages:
                    return
                self._house.dead(self, messages, Reason.MAX_LENGTH)
