"""Which brokers have which partition: one broker has all, and who says otherwise is told."""

from collections.abc import Sequence

from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.service import NODE_ID


def check_replicas(replicas: Sequence[int]) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless it is this broker, once."""
    if not replicas:
        why = "The manual partition assignment includes an empty replica list."
    elif any(broker != NODE_ID for broker in replicas):
        stranger = next(broker for broker in replicas if broker != NODE_ID)
        why = f"The manual partition assignment includes broker {stranger}, but no such broker is registered."
    elif len(replicas) > 1:
        why = f"The manual partition assignment includes the broker {NODE_ID} more than once."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
