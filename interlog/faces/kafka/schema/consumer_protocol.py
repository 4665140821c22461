"""What members of a group with protocol type consumer tell one another. Made by tools/kafka_schemas.py: change that."""

from __future__ import annotations

from interlog.faces.kafka.schema import fields as f


class ConsumerProtocolSubscriptionTopicPartition(f.Message):
    topic: str = f.string("1+", default="")
    partitions: list[int] = f.array("int32", "1+", default_factory=list)


class ConsumerProtocolSubscription(f.Message):
    VALID = range(4)

    topics: list[str] = f.array("string", default_factory=list)
    user_data: bytes | None = f.binary(default=None, nullable="0+")
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = f.array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", default_factory=list, ignorable=True
    )
    generation_id: int = f.int32("2+", default=-1, ignorable=True)
    rack_id: str | None = f.string("3+", default=None, nullable="3+", ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(f.Message):
    topic: str = f.string(default="")
    partitions: list[int] = f.array("int32", default_factory=list)


class ConsumerProtocolAssignment(f.Message):
    VALID = range(4)

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = f.array(
        ConsumerProtocolAssignmentTopicPartition, default_factory=list
    )
    user_data: bytes | None = f.binary(default=None, nullable="0+")
