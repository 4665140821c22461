"""What the APIs of groups have in common: the core's refusals as Kafka's errors, names, topics and partitions.

A group's name is refused before its members are looked at; who may not read a group is told nothing of it.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from interlog.core.catalog import Catalog
from interlog.core.cursors import MAX_NAME_BYTES
from interlog.core.group_words import GroupKind, Refused
from interlog.core.groups import read_partitions
from interlog.faces.kafka.codec import decode
from interlog.faces.kafka.errors import ErrorCode, WireError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.consumer_protocol import ConsumerProtocolSubscription

CONSUMER: Final = "consumer"  # the type of protocol whose metadata are subscriptions

TYPES: Final = {GroupKind.CLASSIC: "classic", GroupKind.BALANCED: "consumer", GroupKind.SHARE: "share"}

_CODES: Final = {
    None: ErrorCode.NONE,
    Refused.UNKNOWN_MEMBER: ErrorCode.UNKNOWN_MEMBER_ID,
    Refused.NEEDS_ID: ErrorCode.MEMBER_ID_REQUIRED,
    Refused.ILLEGAL_GENERATION: ErrorCode.ILLEGAL_GENERATION,
    Refused.REBALANCING: ErrorCode.REBALANCE_IN_PROGRESS,
    Refused.INCONSISTENT_PROTOCOL: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    Refused.FULL: ErrorCode.GROUP_MAX_SIZE_REACHED,
    Refused.FENCED_INSTANCE: ErrorCode.FENCED_INSTANCE_ID,
    Refused.UNRELEASED_INSTANCE: ErrorCode.UNRELEASED_INSTANCE_ID,
    Refused.FENCED_EPOCH: ErrorCode.FENCED_MEMBER_EPOCH,
    Refused.STALE_EPOCH: ErrorCode.STALE_MEMBER_EPOCH,
    Refused.EPOCHS_NEEDED: ErrorCode.UNSUPPORTED_VERSION,
    Refused.UNKNOWN_ASSIGNOR: ErrorCode.UNSUPPORTED_ASSIGNOR,
    Refused.BAD_PATTERN: ErrorCode.INVALID_REGULAR_EXPRESSION,
    Refused.OTHER_KIND: ErrorCode.GROUP_ID_NOT_FOUND,
    Refused.NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    Refused.NOT_EMPTY: ErrorCode.NON_EMPTY_GROUP,
}


def code_of(refused: Refused | None) -> ErrorCode:
    return _CODES[refused]


def refusal(request: Request, group: str, what: str = "read") -> ErrorCode:
    """Why this group cannot be spoken of at all; NONE if it can."""
    if not request.may(what, group, "group"):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if 1 <= len(group.encode()) <= MAX_NAME_BYTES else ErrorCode.INVALID_GROUP_ID


def host(request: Request) -> str:
    """Where a member is, as Kafka writes it."""
    return f"/{request.connection.peer.host}"


def topics_of(request: Request, partitions: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
    """The topics that have these partitions: the index of each, and its number."""
    return indexes_of(request.core.catalog, request.namespace, partitions)


def indexes_of(catalog: Catalog, namespace: str, partitions: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
    indexes: dict[str, dict[int, int]] = {}
    found: dict[str, list[tuple[int, int]]] = {}
    for partition in sorted(partitions):
        item = catalog.owner(partition)
        if item is None or item.namespace != namespace:
            continue
        if item.name not in indexes:
            indexes[item.name] = {number: index for index, number in enumerate(read_partitions(item) or ())}
        index = indexes[item.name].get(partition)
        if index is not None:
            found.setdefault(item.name, []).append((index, partition))
    return found


def subscribed(metadata: Iterable[bytes]) -> set[str] | None:
    """The topics in members' subscriptions; None if one of them cannot be read."""
    topics: set[str] = set()
    for data in metadata:
        try:
            # All versions begin alike; what newer ones add is not looked at.
            topics.update(decode(ConsumerProtocolSubscription, 0, data, 2)[0].topics)
        except WireError:
            return None
    return topics


def assigned_topics(request: Request, partitions: Iterable[int]) -> Iterator[tuple[bytes, str, list[int]]]:
    """Id, name and partitions of each topic among these, as far as it is there."""
    for name, found in topics_of(request, partitions).items():
        view = request.service.views.find(request.namespace, name)
        if view is not None:
            yield view.id, name, [index for index, _ in found]
