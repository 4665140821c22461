"""What the APIs of share groups have in common: who may speak of a group, and what a member says of what it holds.

Comes in: parts of requests. Goes out: keys of the core, verdicts, and the KafkaError that a request, or one of its
partitions, gets.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from interlog.core.cursors import MAX_NAME_BYTES
from interlog.core.share_delivery import Said
from interlog.core.share_partition import Verdict
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.group_answers import refusal
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.share_sessions import Key
from interlog.faces.kafka.views import View

_RENEWS: Final = 2  # the first version that knows of it
_VERDICTS: Final = {
    0: Verdict.REJECT,  # there is no such record
    1: Verdict.ACCEPT,
    2: Verdict.RELEASE,
    3: Verdict.REJECT,
    4: Verdict.RENEW,
}
_RENEW: Final = 4


class Batch(Protocol):
    """As both APIs have it."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Partition(Protocol):
    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[Batch]: ...


def member_of(request: Request, group: str | None, member: str | None) -> Key:
    """Who asks; KafkaError if it cannot be one, or may not read the group."""
    if not group or not member:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "GroupId and MemberId can't be empty.")
    error = refusal(request, group)
    if error:
        raise KafkaError(error)
    if len(member) > MAX_NAME_BYTES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"MemberId takes {MAX_NAME_BYTES} characters at the most.")
    return request.namespace, group, member


def check_group(request: Request, key: Key) -> None:
    if not request.core.groups.is_share(key[0], key[1]):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {key[1]} is not a share group.")


def topic_of(request: Request, topic_id: bytes) -> View:
    """A topic that may be read; KafkaError if it is none."""
    view = request.service.views.find_id(request.namespace, topic_id)
    if view is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not request.may("read", view.name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return view


def number_of(view: View, index: int) -> int:
    """The core's number of a partition."""
    partition = view.partition(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return partition.id


def settle(request: Request, key: Key, topic_id: bytes, one: Partition, *, renews: bool) -> KafkaError | None:
    """What a member says of the records of one partition. None if all of it was taken in, else nothing was."""
    namespace, group, member = key
    try:
        said = list(_said(one.acknowledgement_batches, renews=renews and request.version >= _RENEWS))
        number = number_of(topic_of(request, topic_id), one.partition_index)
    except KafkaError as error:
        return error
    if not request.core.deliveries.settle((namespace, group, number), member, said):
        sentence = "The member does not hold all of the records that it acknowledges."
        return KafkaError(ErrorCode.INVALID_RECORD_STATE, sentence)
    return None


def _said(batches: Iterable[Batch], *, renews: bool) -> Iterator[Said]:
    before = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first < 0 or last < first or first <= before:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Acknowledged batches must ascend.")
        if len(types) not in (1, last - first + 1):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "There must be one acknowledge type, or one for each offset.")
        for type in types:
            if type not in _VERDICTS or (type == _RENEW and not renews):
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Acknowledge type {type} is not known here.")
        before = last
        if len(types) == 1:
            yield Said(first, last, _VERDICTS[types[0]])
        else:
            yield from (Said(first + at, first + at, _VERDICTS[type]) for at, type in enumerate(types))
