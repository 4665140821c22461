"""What a client may do, as sets of Kafka's operations: of a topic, a group or the cluster."""

from collections.abc import Iterable
from typing import Final

from interlog.faces.kafka.acls import CLUSTER_NAME, Operation
from interlog.faces.kafka.request import Connection

NOT_ASKED: Final = -(1 << 31)  # in place of a set of operations

_OF_TOPIC: Final = ("read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs")
_OF_GROUP: Final = ("read", "delete", "describe", "describe_configs", "alter_configs")
_OF_CLUSTER: Final = (
    "create",
    "alter",
    "describe",
    "cluster_action",
    "describe_configs",
    "alter_configs",
    "idempotent_write",
)


def may_see(connection: Connection, topic: str) -> bool:
    """Who may do anything with a topic may know of it."""
    return connection.may("describe", topic)


def administers(connection: Connection) -> bool:
    return connection.may("alter", CLUSTER_NAME, "cluster")


def topic_operations(connection: Connection, name: str) -> int:
    return _allowed(connection, name, "topic", _OF_TOPIC)


def group_operations(connection: Connection, name: str) -> int:
    return _allowed(connection, name, "group", _OF_GROUP)


def cluster_operations(connection: Connection) -> int:
    return _allowed(connection, CLUSTER_NAME, "cluster", _OF_CLUSTER)


def _allowed(connection: Connection, name: str, resource: str, operations: Iterable[str]) -> int:
    return sum(1 << Operation[what.upper()] for what in operations if connection.may(what, name, resource))
