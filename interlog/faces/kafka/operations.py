"""The set of operations that a client may do with a topic, a group or the cluster, as the bits that Kafka answers."""

from typing import Final

from interlog.faces.kafka.request import Connection

NOT_ASKED: Final = -(1 << 31)  # in place of a set of operations

_NUMBERS: Final = {
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster_action": 9,
    "describe_configs": 10,
    "alter_configs": 11,
    "idempotent_write": 12,
}
_OF: Final = {
    "topic": ("read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs"),
    "group": ("read", "delete", "describe", "describe_configs", "alter_configs"),
    "cluster": (
        "create",
        "alter",
        "describe",
        "cluster_action",
        "describe_configs",
        "alter_configs",
        "idempotent_write",
    ),
}
CLUSTER: Final = "kafka-cluster"  # the name of the one there is


def may_see(connection: Connection, topic: str) -> bool:
    return connection.may("describe", topic)


def allowed(connection: Connection, resource: str, name: str) -> int:
    return sum(1 << _NUMBERS[what] for what in _OF[resource] if connection.may(what, name, resource))
