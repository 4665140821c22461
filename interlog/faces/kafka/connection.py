"""One Kafka connection: requests in, responses out in the same order, whenever they are ready."""

from typing import TYPE_CHECKING

from interlog.faces.face import Peer, Wake

if TYPE_CHECKING:
    from interlog.faces.kafka.service import KafkaService


class KafkaConnection:
    def __init__(self, service: "KafkaService", wake: Wake, peer: Peer) -> None:
        self.service = service
        self.core = service.core
        self.wake = wake
        self.peer = peer
