"""What a handler of an API is given, and how it answers.

An API is a module of `api/`, named in `api/index.py`. It has

    def handle(request: Request, body: MetadataRequest) -> MetadataResponse | None

which returns the answer, or None when `request` is answered later or never. Answers leave in the order in which the
requests came, whenever they are given. `answer_when_durable` keeps one back until all that was done so far lasts. An
error that goes out of `handle` ends the connection: what can be answered is the handler's business, for each API has
its own place for it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from interlog.faces.kafka.framing import RequestHeader
from interlog.faces.kafka.schema.fields import Message
from interlog.journal.slices import Slice

if TYPE_CHECKING:
    from interlog.core.access import User
    from interlog.core.broker import Core
    from interlog.faces.face import Peer
    from interlog.faces.kafka.quotas import Toll
    from interlog.faces.kafka.sasl import Sasl
    from interlog.faces.kafka.service import KafkaService


class Connection(Protocol):
    """As much of a connection as handlers know."""

    service: "KafkaService"
    core: "Core"
    peer: "Peer"
    namespace: str  # whose topics it sees
    user: str  # empty before it has said who it is
    client_software: str  # its name and version, where it told

    sasl: "Sasl | None"  # the conversation in which it says who it is, once it was begun

    def may(self, what: str, name: str, resource: str = "topic") -> bool:
        """`what` is one of Kafka's operations (read, write, create, delete, alter, describe, alter_configs,
        describe_configs), of a topic, a group, a transactional_id or the cluster."""
        ...

    def authenticated(self, user: "User") -> None: ...

    def refuse_later(self, answer: Callable[[], None]) -> None:
        """Nobody logged in: answer and hang up, after a while in which nothing more is read."""
        ...

    def mute(self, ms: float) -> None:
        """Read nothing for a while, or for longer than it is so already."""
        ...

    def send(self, request: "Request", parts: Sequence[Slice] | None) -> None: ...

    def park(self, then: Callable[[bool], None], *, written: bool = False) -> None:
        """Call back once it is known whether all that was done so far lasts; or, sooner, whether it is written."""
        ...

    def when_over(self, call: Callable[[], None]) -> None:
        """Once the connection has ended."""
        ...

    def end(self, reason: str) -> None:
        """Close it; what is owed is still said."""
        ...


class Request:
    """One request on its way. Who answers later keeps it, and may set `on_lost`: the connection ended first."""

    __slots__ = ("connection", "header", "on_lost", "parts", "toll", "version")

    def __init__(self, connection: Connection, header: RequestHeader) -> None:
        self.connection = connection
        self.header = header
        self.version = header.version
        self.parts: Sequence[Slice] | None = None  # its answer, once there is one; empty where none is owed
        self.on_lost: Callable[[], None] | None = None
        self.toll: Toll | None = None  # where there are quotas for its client

    @property
    def core(self) -> "Core":
        return self.connection.core

    @property
    def service(self) -> "KafkaService":
        return self.connection.service

    @property
    def node_id(self) -> int:
        """Of this broker."""
        return self.service.settings.node_id

    @property
    def namespace(self) -> str:
        return self.connection.namespace

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    def may(self, what: str, name: str, resource: str = "topic") -> bool:
        return self.connection.may(what, name, resource)

    def answer(self, response: Message) -> None:
        from interlog.faces.kafka.codec import encode
        from interlog.faces.kafka.framing import response as framed

        if self.toll is not None and self.pay() and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = self.toll.throttle_ms
        self.connection.send(self, [framed(self.header, encode(type(response), self.version, response))])

    def answer_parts(self, parts: Sequence[Slice]) -> None:
        """A body that is ready, in parts; ranges of files are sent without being read."""
        from interlog.faces.kafka.framing import response_parts

        self.pay()
        self.connection.send(self, response_parts(self.header, parts))

    def mutates(self, partitions: int, strict_since: int) -> None:
        """Partitions are to be made or deleted; KafkaError if there were too many of late."""
        if self.toll is not None:
            self.toll.charge_mutation(partitions, strict=self.version >= strict_since)

    def pay(self) -> int:
        """Have the client wait for as long as it must; the milliseconds."""
        if self.toll is None:
            return 0
        self.toll.charge_time()
        if self.toll.throttle_ms:
            self.connection.mute(self.toll.throttle_ms)
        return self.toll.throttle_ms

    def answer_nothing(self) -> None:
        """This request has no answer: those behind it need not wait."""
        self.connection.send(self, None)

    def answer_when_durable(self, response: Message, failed: Callable[[], Message] | None = None) -> None:
        """What was done must last before it is told. If it does not, `failed` makes the answer; else the end comes."""

        def settle(lasts: bool) -> None:
            if lasts:
                self.answer(response)
            elif failed is not None:
                self.answer(failed())
            else:
                self.connection.end("what it asked for may not last")

        self.connection.park(settle)
