"""Which brokers have which partition: one broker has all, and who says otherwise is told."""

from collections.abc import Sequence

from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request


def check_replicas(request: Request, replicas: Sequence[int]) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless it is this broker, once."""
    node = request.node_id
    if not replicas:
        why = "The manual partition assignment includes an empty replica list."
    elif any(broker != node for broker in replicas):
        stranger = next(broker for broker in replicas if broker != node)
        why = f"The manual partition assignment includes broker {stranger}, but no such broker is registered."
    elif len(replicas) > 1:
        why = f"The manual partition assignment includes the broker {node} more than once."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
