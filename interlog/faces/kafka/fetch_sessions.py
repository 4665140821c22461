"""Fetch sessions: what a client reads, kept here, so that it need not say all of it each time (Kafka's KIP-227).

Comes in: what each fetch says of its session. Goes out: the partitions that are to be read, and the session that the
answer names. A session is any connection's of its user. They are few and forgotten first where they are used
least; a client whose session is gone begins a new one.
"""

import random
from collections.abc import Iterable
from typing import Final

from interlog.base.clock import Clock
from interlog.faces.kafka.errors import ErrorCode, KafkaError

MOST_SESSIONS: Final = 2_000
MOST_PARTITIONS: Final = 400_000  # of all sessions together
KEPT_SECONDS: Final = 120.0  # a session that was used since then is not forgotten for another's sake
_MAX_EPOCH: Final = (1 << 31) - 1
INITIAL: Final = 0  # epochs: begins a session,
FINAL: Final = -1  # has none, and ends the one it names

TopicKey = str | bytes  # a name, or since version 13 an id
Key = tuple[TopicKey, int]


class Wanted:
    """A partition that is read, and from where."""

    __slots__ = ("epoch", "fetched_epoch", "index", "log_end", "log_start", "max_bytes", "offset", "topic")

    def __init__(
        self, topic: TopicKey, index: int, offset: int, max_bytes: int, epoch: int = -1, fetched_epoch: int = -1
    ) -> None:
        self.topic = topic
        self.index = index
        self.offset = offset
        self.max_bytes = max_bytes
        self.epoch = epoch  # that the client takes for the current one
        self.fetched_epoch = fetched_epoch  # of what it has read last
        self.log_end = -1  # as the client was last told
        self.log_start = -1

    @property
    def key(self) -> Key:
        return self.topic, self.index


class FetchSession:
    __slots__ = ("epoch", "id", "partitions", "used_s", "user", "with_ids")

    def __init__(self, id: int, user: str, with_ids: bool) -> None:
        self.id = id
        self.user = user
        self.with_ids = with_ids
        self.epoch = 1  # of the next fetch
        self.used_s = 0.0
        self.partitions: dict[Key, Wanted] = {}  # in the order in which they are read

    def to_back(self, wanted: Wanted) -> None:
        """It gave something: the others come first now."""
        if self.partitions.pop(wanted.key, None) is not None:
            self.partitions[wanted.key] = wanted


class FetchSessions:
    def __init__(self, clock: Clock, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.SystemRandom()  # nobody guesses another's
        self._sessions: dict[int, FetchSession] = {}  # the one not used for longest first
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        return self._partitions

    def begin(self, user: str, wanted: Iterable[Wanted], *, with_ids: bool) -> FetchSession | None:
        """A new one; None where there is no room, and the client goes on without."""
        partitions = {one.key: one for one in wanted}
        now_s = self._clock.monotonic()
        while (
            len(self._sessions) >= MOST_SESSIONS or self._partitions + len(partitions) > MOST_PARTITIONS
        ) and self._sessions:
            oldest = next(iter(self._sessions.values()))
            if now_s - oldest.used_s < KEPT_SECONDS:
                return None
            self.end(oldest.id, oldest.user)
        if len(partitions) > MOST_PARTITIONS:
            return None
        id = self._rng.randint(1, _MAX_EPOCH)
        while id in self._sessions:
            id = self._rng.randint(1, _MAX_EPOCH)
        session = self._sessions[id] = FetchSession(id, user, with_ids)
        session.partitions = partitions
        session.used_s = now_s
        self._partitions += len(partitions)
        return session

    def go_on(
        self, id: int, epoch: int, user: str, *, with_ids: bool, wanted: Iterable[Wanted], forgotten: Iterable[Key]
    ) -> FetchSession:
        """The next fetch of a session, with what is new and what is no longer read; KafkaError if it cannot be."""
        session = self._sessions.get(id)
        if session is None or session.user != user:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.with_ids != with_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        partitions = session.partitions
        before = len(partitions)
        for one in wanted:
            known = partitions.get(one.key)
            if known is None:
                if self._partitions + len(partitions) - before >= MOST_PARTITIONS:
                    self.end(id, user)
                    raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
                partitions[one.key] = one
            else:
                known.offset = one.offset
                known.max_bytes = one.max_bytes
                known.epoch = one.epoch
                known.fetched_epoch = one.fetched_epoch
        for key in forgotten:
            partitions.pop(key, None)
        self._partitions += len(partitions) - before
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        session.used_s = self._clock.monotonic()
        self._sessions[id] = self._sessions.pop(id)
        return session

    def end(self, id: int, user: str) -> None:
        session = self._sessions.get(id)
        if session is not None and session.user == user:
            del self._sessions[id]
            self._partitions -= len(session.partitions)
