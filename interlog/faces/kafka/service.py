"""What all Kafka connections of a broker share: the core, the settings, who is connected, and what things are called.

The launcher makes one and asks it for a face per connection.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from interlog.base.metrics import Metrics
from interlog.core.access_objects import USER
from interlog.core.broker import Core
from interlog.core.catalog_objects import DEFAULT_NAMESPACE, Change, ObjectItem, QueueItem, TopicItem, What
from interlog.core.groups import GroupSettings
from interlog.faces.face import Peer, Wake
from interlog.faces.kafka.acls import Acls
from interlog.faces.kafka.authorization import Authorization
from interlog.faces.kafka.quotas import Quotas

if TYPE_CHECKING:
    from interlog.faces.kafka.connection import KafkaConnection
    from interlog.faces.kafka.fetch_sessions import FetchSessions
    from interlog.faces.kafka.guest_words import KafkaGuestWords
    from interlog.faces.kafka.share_sessions import ShareSessions
    from interlog.faces.kafka.views import Views

SETTLING_HEARTBEAT_MS: Final = 500  # how often members send a heartbeat, at the least, while partitions change hands


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    namespace: str = DEFAULT_NAMESPACE
    node_id: int = 0  # of this broker, which leads everything
    advertised: str = ""  # host or host:port that clients are told; empty: the address that they came to
    advertised_tls: str = ""  # the same for those who come over TLS
    auto_create: bool = True
    telemetry: bool = False  # what clients find of it, they speak about in their logs
    default_partitions: int = 1
    min_session_ms: int = 1_000
    max_session_ms: int = 1_800_000
    rebalance_delay_ms: int = 0  # how long the first member of a group waits for more
    group_session_ms: int = 45_000  # of members who do not say so themselves,
    group_heartbeat_ms: int = 3_000  # and are told to send a heartbeat so often
    offsets_retention_ms: int = 7 * 86_400_000
    max_request_bytes: int = 100 << 20
    fetch_max_bytes: int = 55 << 20  # of one answer, unless its first batch alone is larger
    authentication: bool = False  # clients must say who they are
    login_s: float = 30.0  # how long that may take
    request_s: float = 60.0  # how long the rest of a request may keep still
    idle_s: float = 600.0  # how long a connection may keep still on which nothing is owed


class KafkaService:
    def __init__(self, core: Core, settings: KafkaSettings, metrics: Metrics) -> None:
        self.core = core
        self.settings = settings
        self.acls = Acls(core.catalog, settings.namespace)
        self.authorization = Authorization(core.access, self.acls, settings.namespace)
        self.quotas = Quotas(core.catalog, settings.namespace, core.clock)
        self.connections: dict[KafkaConnection, None] = {}
        self.produced = metrics.counter("interlog_kafka_produced_bytes_total", "Bytes of batches from Kafka clients.")
        self.fetched = metrics.counter("interlog_kafka_fetched_bytes_total", "Bytes of batches for Kafka clients.")
        core.groups.settings = GroupSettings(
            rebalance_delay_ms=settings.rebalance_delay_ms,
            session_ms=settings.group_session_ms,
            heartbeat_ms=settings.group_heartbeat_ms,
            settling_heartbeat_ms=min(SETTLING_HEARTBEAT_MS, settings.group_heartbeat_ms),
            retention_ms=settings.offsets_retention_ms,
        )
        core.groups.guest_words = self._guest_words
        core.catalog.observe(self._changed)

    def _guest_words(self, namespace: str) -> "KafkaGuestWords":
        from interlog.faces.kafka.guest_words import KafkaGuestWords  # here, because few groups ever move

        return KafkaGuestWords(self.core.catalog, namespace)

    def close(self) -> None:
        """The broker goes on without it: who is connected is sent away, and nothing is kept on its behalf."""
        for connection in list(self.connections):
            connection.shut_down()
        self.core.catalog.forget(self._changed)
        self.acls.close()
        self.quotas.close()
        if "views" in self.__dict__:
            self.views.close()

    def _changed(self, change: Change) -> None:
        """Connections of a user that is deleted end."""
        item = change.item
        if change.what is What.REMOVED and isinstance(item, ObjectItem) and item.kind == USER:
            for connection in list(self.connections):
                if connection.user == item.name:
                    connection.end(f"user '{item.name}' is deleted")

    @cached_property
    def views(self) -> "Views":
        from interlog.faces.kafka.views import Views  # here, because a start needs none

        return Views(self.core)

    @cached_property
    def sessions(self) -> "FetchSessions":
        from interlog.faces.kafka.fetch_sessions import FetchSessions

        return FetchSessions(self.core.clock)

    @cached_property
    def share_sessions(self) -> "ShareSessions":
        from interlog.faces.kafka.share_sessions import ShareSessions

        return ShareSessions(self.core.deliveries.release)

    def topic_id(self, item: TopicItem | QueueItem) -> bytes:
        """The same as long as the topic lives, and no other topic's."""
        return self.views.id_of(item)

    @property
    def cluster_id(self) -> str:
        return urlsafe_b64encode(self.core.folder_id).decode().rstrip("=")

    def address(self, peer: Peer) -> tuple[str, int]:
        """Where this client is told to come: what is advertised, or where it came to."""
        advertised = self.settings.advertised_tls if peer.tls else self.settings.advertised
        if not advertised:
            return peer.local_host or "localhost", peer.local_port
        host, colon, port = advertised.rpartition(":")
        if not colon or not port.isdecimal() or (":" in host and not host.startswith("[")):
            return advertised.strip("[]"), peer.local_port
        return host.strip("[]"), int(port)

    def face(self, wake: Wake, peer: Peer) -> "KafkaConnection":
        from interlog.faces.kafka.connection import KafkaConnection

        return KafkaConnection(self, wake, peer)
