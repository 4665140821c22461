"""How a client of a crash test reads: whole partitions, what of them is committed, and the cursors of groups.

In come a connection and what is to be read; out goes what a client makes of the answers: for who reads what is
committed, it passes over what it was told is aborted, and over the control batches.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from interlog.core import markers
from interlog.faces.kafka.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from interlog.faces.kafka.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from interlog.faces.kafka.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from interlog.journal import batch as batches
from tests.crash.bodies import number_of
from tests.crash.kafka_client import Client
from tests.crash.kafka_model import TOPICS, End, Log, Place, Reader, Stored
from tests.crash.model import Wrong

EARLIEST, LATEST = -2, -1


def offset(client: Client, place: Place, which: int, *, committed: bool = False) -> int:
    asked = [ListOffsetsTopic(place[0], [ListOffsetsPartition(place[1], timestamp=which)])]
    answer = client.call(ListOffsetsRequest(-1, int(committed), asked), 5)
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise Wrong(f"{place} has no offset {which}: error {found.error_code}")
    at: int = found.offset
    return at


def fetch(client: Client, place: Place, at: int, *, committed: bool, version: int = 11, most: int = 1 << 16) -> Any:
    partition = FetchPartition(place[1], fetch_offset=at, partition_max_bytes=most)
    topics = [FetchTopic(place[0], partitions=[partition])]
    answer = client.call(FetchRequest(max_bytes=1 << 20, isolation_level=int(committed), topics=topics), version)
    found = answer.responses[0].partitions[0]
    if found.error_code:
        raise Wrong(f"{place} cannot be read from {at} on: error {found.error_code}")
    return found


def _batches(data: bytes) -> Iterator[tuple[batches.BatchHeader, bytes]]:
    for at, header in batches.batches(data):
        whole = data[at : at + header.length]
        batches.check(whole)
        yield header, whole


def read_committed(
    client: Client, place: Place, at: int, largest: int, version: int
) -> tuple[list[Stored], int, set[tuple[int, int]]]:
    """What counts from an offset on, out of one answer; the offset after it; and what was told to be aborted."""
    found = fetch(client, place, at, committed=True, version=version)
    aborted = {(one.producer_id, one.first_offset) for one in found.aborted_transactions or ()}
    upcoming = sorted((first, producer) for producer, first in aborted)
    passing: set[int] = set()
    counts = []
    begin = at
    for header, whole in _batches(bytes(found.records or b"")):
        while upcoming and upcoming[0][0] <= header.last_offset:
            passing.add(upcoming.pop(0)[1])
        if header.is_control:
            marker = markers.read(whole)
            if marker is not None and not marker.committed:
                passing.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in passing):
            producer = header.producer_id if header.is_transactional else -1
            records = [one for one in batches.decode(whole) if one[0] >= begin]
            counts += [Stored(one, number_of(record.value or b"", largest), producer) for one, record in records]
        at = header.next_offset
        if at > found.last_stable_offset:
            raise Wrong(f"{place} is stable up to {found.last_stable_offset}, and what lies before {at} was sent")
    return counts, at, aborted


def _marks(client: Client, place: Place) -> tuple[int, int, int]:
    """Where a log begins and ends, and up to where it is stable."""
    return offset(client, place, EARLIEST), offset(client, place, LATEST), offset(client, place, LATEST, committed=True)


def read_log(client: Client, place: Place, largest: int, rng: random.Random) -> Log:
    """All of a partition, in both ways of reading it; again, where it has changed meanwhile."""
    marks = _marks(client, place)
    while True:
        start, end, stable = marks
        stored = _read_stored(client, place, start, end, largest, rng)
        visible: list[int] = []
        aborted: set[tuple[int, int]] = set()
        at = start
        while at < stable:
            counts, after, told = read_committed(client, place, at, largest, rng.choice((4, 11, 12)))
            visible += [one.number for one in counts]
            aborted |= told
            if after == at:
                raise Wrong(f"{place} is stable up to {stable}, and there is nothing at {at}")
            at = after
        before, marks = marks, _marks(client, place)
        if marks == before:
            return Log(start, end, stable, stored, visible, aborted)


def _read_stored(
    client: Client, place: Place, at: int, end: int, largest: int, rng: random.Random
) -> list[Stored | End]:
    stored: list[Stored | End] = []
    epoch = -1
    while at < end:
        most = rng.choice((1, 1_000, 1 << 20))
        found = fetch(client, place, at, committed=False, version=rng.choice((4, 7, 11, 12)), most=most)
        begin = at
        for header, whole in _batches(bytes(found.records or b"")):
            if header.leader_epoch < epoch:
                raise Wrong(f"{place} has epoch {header.leader_epoch} after {epoch}")
            epoch = header.leader_epoch
            marker = markers.read(whole) if header.is_control else None
            if marker is not None:
                stored.append(End(header.base_offset, header.producer_id, marker.committed))
            else:
                producer = header.producer_id if header.is_transactional else -1
                for one, record in batches.decode(whole):
                    if one >= begin:
                        stored.append(Stored(one, number_of(record.value or b"", largest), producer))
            at = header.next_offset
        if at == begin:
            raise Wrong(f"{place} goes to {end}, and there is nothing at {at}")
    return stored


def read_cursors(
    client: Client, groups: Iterable[str], *, stable: bool = False
) -> tuple[dict[Reader, tuple[int, str]], bool]:
    """The cursors of groups; and whether any of them may soon change, which is told if they are to be stable."""
    asked = [
        OffsetFetchRequestGroup(
            group,
            topics=[OffsetFetchRequestTopics(topic, partition_indexes=list(range(n))) for topic, n in TOPICS.items()],
        )
        for group in groups
    ]
    answer = client.call(OffsetFetchRequest(groups=asked, require_stable=stable), 8)
    found = {}
    unstable = False
    for group in answer.groups:
        if group.error_code:
            raise Wrong(f"the cursors of {group.group_id} cannot be read: error {group.error_code}")
        for topic in group.topics:
            for one in topic.partitions:
                unstable |= one.error_code != 0
                if one.committed_offset >= 0:
                    found[group.group_id, (topic.name, one.partition_index)] = (one.committed_offset, one.metadata)
    return found, unstable
