"""What a face is to the driver that feeds it: bytes in, bytes out, one face a connection.

The rhythm, per turn of the event loop: the driver gives each connection's burst to its face (`receive`), commits
once for all of them, then takes what each face has to say (`take_output`). A face that must not answer yet parks
the reply on the ticket of the tick under way; when the ticket resolves, the face puts the reply into its output and
calls `wake`, and the driver comes for it.

A face is made with its `wake`. It may be called at any time on the owner's thread, as often as one likes: it only
notes that the face wants to be asked. Inside `receive` it is not needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from interlog.journal.slices import FileRange

Buffer = bytes | bytearray | memoryview
Output = Buffer | FileRange  # a range of a file need not pass through memory
Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as far as the socket tells."""

    address: str = "local"  # as host:port
    host: str = ""
    port: int = 0
    loopback: bool = True
    local_host: str = ""
    local_port: int = 0
    tls: bool = False
    certificate: tuple[str, ...] = ()  # names in the client's certificate, where it was checked: common name first


MakeFace = Callable[[Wake, Peer], "Face"]


class Face(Protocol):
    @property
    def closed(self) -> bool:
        """Nothing more will be taken in or said: write what `take_output` still gives and hang up.

        Input may still come before the driver looks; a closed face ignores it.
        """
        ...

    @property
    def holding(self) -> bool:
        """Feed no more input for now (a full disk, too much parked). `wake` tells that this changed."""
        ...

    @property
    def parked(self) -> int:
        """How many replies wait for durability. A broker that stops waits for them to leave."""
        ...

    def receive(self, data: bytes) -> None:
        """What the peer sent, whole or in parts, in order.

        Empty: it will send no more; the driver hangs up once nothing is parked.
        """
        ...

    def take_output(self) -> Sequence[Output]:
        """All there is to say, in order; the caller owns it from here on."""
        ...

    def pause(self) -> None:
        """The peer reads too slowly: say only what is owed (replies), push nothing (deliveries)."""
        ...

    def resume(self) -> None:
        """The peer has caught up."""
        ...

    def check(self) -> None:
        """Called about once a second: heartbeats, idle limits. `wake` if there is something to say."""
        ...

    def shut_down(self) -> None:
        """The broker stops: take nothing new, say goodbye in the protocol's way, close once the parked replies left."""
        ...

    def connection_lost(self) -> None:
        """The peer is gone. Called exactly once, last."""
        ...
