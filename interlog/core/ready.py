"""The ready messages of a queue, in their order: a heap of those that came back, a head in memory, a backlog.

In come new messages at the back and returned ones where they stood; out go the first ones. When the head has its share
of memory, what follows goes to the backlog, and so does all that comes after it, until the backlog has been read back:
that keeps the order. The first message is always kept in memory.
"""

from collections import deque
from heapq import heapify, heappop

from interlog.base.errors import InterlogError
from interlog.core.backlog import READ_BYTES, Backlog, Log
from interlog.core.leases import Message
from interlog.core.memory import OVERHEAD_BYTES
from interlog.core.queue_state import QueueState
from interlog.core.spill import SpillFolder


class Ready:
    """The part of a queue that holds its ready messages; the queue itself adds leases and the tick."""

    __slots__ = ("_backlog", "_head", "_head_cost", "_paging", "_returned", "_returned_bytes", "_share")

    def __init__(self, state: QueueState, log: Log, spill: SpillFolder, share_bytes: int) -> None:
        self._share = share_bytes
        self._returned: list[Message] = []
        self._returned_bytes = 0
        self._head: deque[Message] = deque()
        self._head_cost = 0  # bytes and overhead of _head
        # What is read ahead takes a multiple of its bytes on disk when messages are small.
        self._backlog = Backlog(state, log, spill, max(min(READ_BYTES, share_bytes // 8), 1))
        self._paging = len(self._backlog) > 0  # there is something in the backlog

    @property
    def ready(self) -> int:
        """How many messages could be leased."""
        return len(self._head) + len(self._returned) + (len(self._backlog) if self._paging else 0)

    @property
    def ready_bytes(self) -> int:
        head = self._head_cost - OVERHEAD_BYTES * len(self._head)
        return head + self._returned_bytes + (self._backlog.bytes if self._paging else 0)

    def pageable_bytes(self) -> int:
        """What paging out could free at most."""
        first = self._head[0][4] + OVERHEAD_BYTES if self._head else 0
        return self._head_cost - first + self._backlog.ahead_bytes()

    def _ready_memory(self) -> int:
        """About what the ready messages hold in memory."""
        returned = self._returned_bytes + OVERHEAD_BYTES * len(self._returned)
        return self._head_cost + returned + self._backlog.resident_bytes()

    def _clear_ready(self) -> tuple[list[Message], tuple[int, int, int, int]]:
        """Forget everything, unread: messages that were in memory, and what Backlog.clear says of the others."""
        messages = [*self._head, *self._returned]
        self._head.clear()
        self._returned.clear()
        self._head_cost = self._returned_bytes = 0
        first, last, stored, size, unflushed = self._backlog.clear()
        self._paging = False
        return messages + unflushed, (first, last, stored, size)

    def _pop_ready(self, most: int, max_bytes: int) -> tuple[list[Message], int]:
        """Take the first messages, up to `most` and `max_bytes` (0: any) but one at least; and their bytes."""
        returned = self._returned
        head = self._head
        if not returned and not self._paging and 0 < len(head) <= most:
            size = self._head_cost - OVERHEAD_BYTES * len(head)
            if not max_bytes or size <= max_bytes:  # all there is
                out = list(head)
                head.clear()
                self._head_cost = 0
                return out, size
        out = []
        size = 0
        while returned and len(out) < most:
            if max_bytes and out and size + returned[0][4] > max_bytes:
                return out, size
            message = heappop(returned)
            out.append(message)
            size += message[4]
            self._returned_bytes -= message[4]
        pop = head.popleft
        while len(out) < most:
            before = size
            had = len(head)
            if max_bytes:
                while head and len(out) < most and (not out or size + head[0][4] <= max_bytes):
                    message = pop()
                    size += message[4]
                    out.append(message)
            else:
                for _ in range(min(most - len(out), had)):
                    message = pop()
                    size += message[4]
                    out.append(message)
            self._head_cost -= size - before + OVERHEAD_BYTES * (had - len(head))
            if head or not self._paging or len(out) >= most:
                break
            try:
                if not self._page_in(most - len(out)):
                    break
            except (InterlogError, OSError):
                if not out:
                    raise
                break
        return out, size

    def _find_ready(self, offset: int) -> Message | None:
        """Take one message from wherever it stands; None if it is not here. Not fast."""
        for at, message in enumerate(self._returned):
            if message[0] == offset:
                del self._returned[at]
                heapify(self._returned)
                self._returned_bytes -= message[4]
                return message
        for at, message in enumerate(self._head):
            if message[0] == offset:
                del self._head[at]
                self._head_cost -= message[4] + OVERHEAD_BYTES
                return message
        return self._backlog.take_one(offset) if self._paging else None

    def _page_out(self, free_bytes: int) -> None:
        """Move messages from the back of the head to the backlog, to free about so much. One stays in memory."""
        backlog = self._backlog
        free_bytes -= backlog.ahead_bytes()
        backlog.drop_ahead()
        head = self._head
        tail: list[Message] = []
        cost = 0
        while len(head) > 1 and cost < free_bytes:
            message = head.pop()
            cost += message[4] + OVERHEAD_BYTES
            tail.append(message)
        if not tail:
            return
        tail.reverse()
        try:
            backlog.push_front(tail)
        except OSError:
            head.extend(tail)  # no room to spill to: they stay
        else:
            self._head_cost -= cost
            self._paging = True

    def _page_in(self, most: int) -> bool:
        """Bring messages of the backlog into the head; whether any came."""
        messages = self._backlog.take(max(self._share // 2, 1), max(most, 256))
        self._head += messages
        self._head_cost += sum([message[4] for message in messages]) + OVERHEAD_BYTES * len(messages)
        self._paging = len(self._backlog) > 0
        return bool(messages)
