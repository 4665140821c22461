"""What all AMQP connections of a broker share: the core, the settings, who is connected, and who waits for replies.

The launcher makes one and asks it for a face per connection.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from interlog.base.metrics import Metrics
from interlog.base.version import VERSION
from interlog.core.access_objects import USER
from interlog.core.broker import Core
from interlog.core.catalog_objects import Change, Namespace, ObjectItem, What
from interlog.faces.amqp.messages import headers_of
from interlog.faces.face import Peer, Wake

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel
    from interlog.faces.amqp.connection import AmqpConnection

REPLY_TO: Final = "amq.rabbitmq.reply-to"
REPLY_PREFIX: Final = REPLY_TO + "."

# Whose behaviour is served. Clients choose by these two: kombu counts prefetch as RabbitMQ does only where it reads
# RabbitMQ, 3.3 or later and before 4.0. Who we are stands in `platform`.
PRODUCT: Final = "RabbitMQ"
PRODUCT_VERSION: Final = "3.13.7"

# What is advertised works; nothing else is.
CAPABILITIES: Final = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "direct_reply_to": True,
}


@dataclass(frozen=True, slots=True)
class AmqpSettings:
    heartbeat_s: int = 60
    frame_max: int = 131_072
    channel_max: int = 2_047
    max_message_bytes: int = 128 << 20
    consumer_timeout_ms: int = 1_800_000
    handshake_s: float = 10.0
    mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN", "EXTERNAL")


class Replies:
    """Who waits for answers without a queue: each has an address that nobody can guess."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}

    def address(self, channel: "Channel") -> str:
        name = REPLY_PREFIX + secrets.token_urlsafe(18)
        self._channels[name] = channel
        return name

    def find(self, name: str) -> "Channel | None":
        return self._channels.get(name)

    def forget(self, name: str) -> None:
        self._channels.pop(name, None)


class AmqpService:
    def __init__(self, core: Core, settings: AmqpSettings, metrics: Metrics) -> None:
        self.core = core
        self.settings = settings
        self.replies = Replies()
        self.connections: dict[AmqpConnection, None] = {}
        self.published = metrics.counter("interlog_amqp_published_total", "Messages that AMQP clients published.")
        self.delivered = metrics.counter("interlog_amqp_delivered_total", "Messages handed to AMQP clients.")
        self.properties: dict[str, Any] = {
            "product": PRODUCT,
            "version": PRODUCT_VERSION,
            "platform": f"Interlog {VERSION}",
            "cluster_name": "interlog",
            "information": "Interlog, a message broker for the clients you already have.",
            "copyright": "Apache License 2.0",
            "capabilities": CAPABILITIES,
        }
        core.publishing.headers_of = headers_of
        core.catalog.observe(self._changed)

    def _changed(self, change: Change) -> None:
        """Connections of a vhost or a user that is deleted end."""
        item = change.item
        if change.what is not What.REMOVED:
            return
        if isinstance(item, Namespace):
            for connection in self.connections:
                if connection.vhost == item.name:
                    connection.doom(f"vhost '{item.name}' is deleted")
        elif isinstance(item, ObjectItem) and item.kind == USER:
            for connection in self.connections:
                if connection.user == item.name:
                    connection.doom(f"user '{item.name}' is deleted")

    def face(self, wake: Wake, peer: Peer) -> "AmqpConnection":
        from interlog.faces.amqp.connection import AmqpConnection

        return AmqpConnection(self, wake, peer)


MakeFace = Callable[[Wake, Peer], "AmqpConnection"]
