"""Share sessions: what a member of a share group reads, kept here, so that it need not say all of it each time.

Comes in: what each fetch and each acknowledgement says of its session, and connections that end. Goes out: the session,
or the KafkaError that the request gets. A session is a member's, and ends with the connection it was begun on: what
the member holds is then others'.
"""

from collections.abc import Callable, Iterable
from typing import Final

from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Connection

MOST_SESSIONS: Final = 2_000
MOST_PARTITIONS: Final = 10_000  # of one session
_MAX_EPOCH: Final = (1 << 31) - 1
INITIAL: Final = 0  # epochs: begins a session,
FINAL: Final = -1  # ends it

Key = tuple[str, str, str]  # namespace, group, member
PartitionKey = tuple[bytes, int]  # a topic's id, index

OnEnd = Callable[[str, str, str], None]


class ShareSession:
    __slots__ = ("connection", "epoch", "partitions", "waiting")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.epoch = 1  # of the next request
        self.partitions: dict[PartitionKey, None] = {}  # in the order in which they are read
        self.waiting: dict[Callable[[], None], None] = {}  # called when it ends: fetches that wait

    def read(self, wanted: Iterable[PartitionKey], forgotten: Iterable[PartitionKey] = ()) -> None:
        """What is new, and what is no longer read."""
        for partition in wanted:
            self.partitions.setdefault(partition)
        for partition in forgotten:
            self.partitions.pop(partition, None)
        if len(self.partitions) > MOST_PARTITIONS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"A session can read {MOST_PARTITIONS} partitions at the most.")

    def to_back(self, partition: PartitionKey) -> None:
        """It gave something: the others come first now."""
        if partition in self.partitions:
            del self.partitions[partition]
            self.partitions[partition] = None


class ShareSessions:
    def __init__(self, on_end: OnEnd) -> None:
        self._on_end = on_end
        self._sessions: dict[Key, ShareSession] = {}
        self._connections: dict[Connection, dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, key: Key, connection: Connection, wanted: Iterable[PartitionKey]) -> ShareSession:
        """A new one, in place of one that the member may have had. What it holds it goes on holding."""
        self._drop(key)
        if len(self._sessions) >= MOST_SESSIONS:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(connection)
        session.read(wanted)
        self._sessions[key] = session
        if connection not in self._connections:
            self._connections[connection] = {}
            connection.when_over(lambda: self._lost(connection))
        self._connections[connection][key] = None
        return session

    def go_on(
        self, key: Key, epoch: int, wanted: Iterable[PartitionKey] = (), forgotten: Iterable[PartitionKey] = ()
    ) -> ShareSession:
        """The next request of a session, with what is new and what is no longer read."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.read(wanted, forgotten)
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        return session

    def check(self, key: Key) -> None:
        """There must be a session to end."""
        if key not in self._sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)

    def end(self, key: Key) -> None:
        self._drop(key)
        self._on_end(*key)

    def _drop(self, key: Key) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            keys = self._connections.get(session.connection, {})
            keys.pop(key, None)
            for call in list(session.waiting):
                call()

    def _lost(self, connection: Connection) -> None:
        for key in list(self._connections.pop(connection, ())):
            self.end(key)
