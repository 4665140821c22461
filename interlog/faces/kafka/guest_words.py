"""Subscriptions and assignments, as consumers of classic groups write them: for groups that move to the newer kind.

In: what a member says of itself, or was told. Out: topics and the catalog's partitions; and the other way round. All
versions begin alike, so a newer one is read as far as it is known.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

from interlog.base.errors import InvalidError
from interlog.core.catalog import Catalog
from interlog.core.groups import read_partitions
from interlog.faces.kafka.codec import decode, encode
from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.group_answers import CONSUMER, indexes_of
from interlog.faces.kafka.schema.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from interlog.faces.kafka.schema.fields import Message

_VERSION_BYTES: Final = 2
_NEWEST: Final = 3

M = TypeVar("M", bound=Message)


class KafkaGuestWords:
    type = CONSUMER

    def __init__(self, catalog: Catalog, namespace: str) -> None:
        self._catalog = catalog
        self._namespace = namespace

    def wants(self, metadata: bytes) -> tuple[frozenset[str], frozenset[int]]:
        told = _read(ConsumerProtocolSubscription, metadata)
        owned = ((one.topic, one.partitions) for one in told.owned_partitions)
        return frozenset(told.topics), self._numbers(owned)

    def assigned(self, assignment: bytes) -> frozenset[int]:
        told = _read(ConsumerProtocolAssignment, assignment)
        return self._numbers((one.topic, one.partitions) for one in told.assigned_partitions)

    def _numbers(self, topics: Iterable[tuple[str, list[int]]]) -> frozenset[int]:
        found: set[int] = set()
        for name, indexes in topics:
            numbers = read_partitions(self._catalog.find(self._namespace, name)) or ()  # of one that is gone, none
            found.update(numbers[index] for index in indexes if 0 <= index < len(numbers))
        return frozenset(found)

    def assignment(self, partitions: frozenset[int]) -> bytes:
        topics = [
            ConsumerProtocolAssignmentTopicPartition(name, [index for index, _ in found])
            for name, found in indexes_of(self._catalog, self._namespace, partitions).items()
        ]
        version = 0  # every consumer knows it
        body = encode(ConsumerProtocolAssignment, version, ConsumerProtocolAssignment(topics))
        return version.to_bytes(_VERSION_BYTES, "big") + body


def _read(table: type[M], data: bytes) -> M:
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    try:
        if version < 0:
            raise WireError(f"there is no version {version}")
        return decode(table, min(version, _NEWEST), data, _VERSION_BYTES)[0]
    except WireError as error:
        raise InvalidError(str(error)) from None
