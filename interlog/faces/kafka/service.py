"""What all Kafka connections of a broker share: the core, the settings, who is connected, and what things are called.

The launcher makes one and asks it for a face per connection.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from interlog.base.metrics import Metrics
from interlog.core.broker import Core
from interlog.core.catalog_objects import DEFAULT_NAMESPACE, QueueItem, TopicItem
from interlog.faces.face import Peer, Wake

if TYPE_CHECKING:
    from interlog.faces.kafka.connection import KafkaConnection

NODE_ID: Final = 1  # of this broker, which leads everything


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    namespace: str = DEFAULT_NAMESPACE
    advertised: str = ""  # host:port that clients are told; empty: the address that they came to
    auto_create: bool = True
    default_partitions: int = 1
    min_session_ms: int = 1_000
    max_session_ms: int = 1_800_000
    rebalance_delay_ms: int = 0  # how long the first member of a group waits for more
    offsets_retention_ms: int = 7 * 86_400_000
    max_request_bytes: int = 100 << 20
    authentication: bool = False  # clients must say who they are
    login_s: float = 30.0  # how long that may take
    request_s: float = 60.0  # how long the rest of a request may keep still
    idle_s: float = 600.0  # how long a connection may keep still on which nothing is owed


class KafkaService:
    def __init__(self, core: Core, settings: KafkaSettings, metrics: Metrics) -> None:
        self.core = core
        self.settings = settings
        self.connections: dict[KafkaConnection, None] = {}

    def topic_id(self, item: TopicItem | QueueItem) -> bytes:
        """The same as long as the topic lives, and no other topic's: partitions' numbers are given once."""
        number = item.partitions[0].to_bytes(8, "big")
        return sha256(b"topic" + self.core.folder_id + number).digest()[:16]

    @property
    def cluster_id(self) -> str:
        return urlsafe_b64encode(self.core.folder_id).decode().rstrip("=")

    def face(self, wake: Wake, peer: Peer) -> "KafkaConnection":
        from interlog.faces.kafka.connection import KafkaConnection

        return KafkaConnection(self, wake, peer)
