"""What the playbooks of share groups say again and again."""

from collections.abc import Sequence
from typing import Any

from interlog.faces.kafka.schema import share_acknowledge as sa
from interlog.faces.kafka.schema import share_fetch as sf
from interlog.faces.kafka.schema import share_group_heartbeat as hb
from interlog.journal import batch as batches
from tests.playbooks.kafka.play import Client

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Acks = Sequence[tuple[int, int, int | list[int]]]  # first, last, what of all of them or of each


def beat(client: Client, member: str = "m", epoch: int = 0, group: str = "g", **more: Any) -> Any:
    """A heartbeat; the first one joins."""
    if epoch == 0:
        more.setdefault("subscribed_topic_names", ["t"])
    return client.ask(hb.ShareGroupHeartbeatRequest(group, member, epoch, **more), 1)


class Member:
    """A member of a share group that reads one partition, with its session."""

    def __init__(self, client: Client, topic: bytes, name: str = "m", group: str = "g", index: int = 0) -> None:
        self.client = client
        self.topic = topic
        self.name = name
        self.group = group
        self.index = index
        self.epoch = 0
        assert beat(client, name, group=group).error_code == 0

    def fetch_request(self, acks: Acks = (), **more: Any) -> sf.ShareFetchRequest:
        more.setdefault("max_records", 100)
        epoch = more.pop("epoch", self.epoch)
        batches = [sf.AcknowledgementBatch(first, last, _types(what)) for first, last, what in acks]
        wanted = more.pop("topics", None)
        if wanted is None:
            wanted = [sf.FetchTopic(self.topic, [sf.FetchPartition(self.index, batches)])]
        return sf.ShareFetchRequest(self.group, self.name, epoch, topics=wanted, **more)

    def fetch(self, acks: Acks = (), version: int = 2, **more: Any) -> Any:
        """The whole answer."""
        answer = self.client.ask(self.fetch_request(acks, **more), version)
        if not answer.error_code:
            self.epoch += 1
        return answer

    def take(self, acks: Acks = (), **more: Any) -> list[tuple[int, int, int]]:
        """What was given: first, last, how often delivered."""
        return acquired(self.fetch(acks, **more))

    def say(self, *acks: tuple[int, int, int | list[int]], version: int = 2, **more: Any) -> Any:
        """Acknowledge; the whole answer."""
        epoch = more.pop("epoch", self.epoch)
        batches = [sa.AcknowledgementBatch(first, last, _types(what)) for first, last, what in acks]
        topics = [sa.AcknowledgeTopic(self.topic, [sa.AcknowledgePartition(self.index, batches)])] if acks else []
        answer = self.client.ask(
            sa.ShareAcknowledgeRequest(self.group, self.name, epoch, topics=topics, **more), version
        )
        if not answer.error_code:
            self.epoch += 1
        return answer

    def done(self, *acks: tuple[int, int, int | list[int]], **more: Any) -> int:
        """Acknowledge; the partition's error."""
        answer = self.say(*acks, **more)
        assert answer.error_code == 0
        ((one,),) = [topic.partitions for topic in answer.responses]
        return int(one.error_code)


def _types(what: int | list[int]) -> list[int]:
    return [what] if isinstance(what, int) else what


def partitions(answer: Any) -> list[Any]:
    assert answer.error_code == 0
    return [one for topic in answer.responses for one in topic.partitions]


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    found = partitions(answer)
    assert not any(one.error_code for one in found)
    return [(one.first_offset, one.last_offset, one.delivery_count) for part in found for one in part.acquired_records]


def values(answer: Any) -> list[bytes | None]:
    """The records that were given, as a client picks them out of the batches."""
    found = []
    for part in partitions(answer):
        data = bytes(part.records)
        mine = {offset for one in part.acquired_records for offset in range(one.first_offset, one.last_offset + 1)}
        for at, header in batches.batches(data):
            if not header.is_control:
                records = batches.decode(data[at : at + header.length])
                found += [record.value for offset, record in records if offset in mine]
    return found
