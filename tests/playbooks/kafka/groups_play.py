"""What the playbooks of groups say again and again."""

from typing import Any

from interlog.faces.kafka.codec import encode
from interlog.faces.kafka.schema import consumer_group_heartbeat as g8
from interlog.faces.kafka.schema import join_group as j
from interlog.faces.kafka.schema import offset_commit as oc
from interlog.faces.kafka.schema import offset_fetch as of
from interlog.faces.kafka.schema import sync_group as s
from interlog.faces.kafka.schema.consumer_protocol import ConsumerProtocolSubscription
from tests.playbooks.kafka.play import Client, Play


def topic(play: Play, name: str = "t", partitions: int = 4) -> bytes:
    """Make it; its id."""
    play.core.create_topic("/", name, partitions)
    play.turn()
    return play.service.topic_id(play.core.catalog.topic("/", name))


def subscription(*topics: str) -> bytes:
    return b"\0\0" + encode(ConsumerProtocolSubscription, 0, ConsumerProtocolSubscription(list(topics)))


def join_request(member: str = "", group: str = "g", **more: Any) -> j.JoinGroupRequest:
    more.setdefault("session_timeout_ms", 10_000)
    more.setdefault("rebalance_timeout_ms", 30_000)
    more.setdefault("protocol_type", "consumer")
    more.setdefault("protocols", [j.JoinGroupRequestProtocol("range", subscription("t"))])
    return j.JoinGroupRequest(group, member_id=member, **more)


def join(play: Play, client: Client, version: int = 9, member: str = "", **more: Any) -> Any:
    """Join alone, with the id that is given if it takes one; the response."""
    request = join_request(member, **more)
    if version == 0:
        request.rebalance_timeout_ms = -1
    client.send(request, version)
    play.advance(1)
    (response,) = client.listen()
    if response.error_code == 79:
        return join(play, client, version, response.member_id, **more)
    return response


def sync_request(
    joined: Any, version: int, assignments: dict[str, bytes] | None = None, group: str = "g"
) -> s.SyncGroupRequest:
    request = s.SyncGroupRequest(group, joined.generation_id, joined.member_id)
    if version >= 5:
        request.protocol_type, request.protocol_name = "consumer", "range"
    request.assignments = [s.SyncGroupRequestAssignment(*one) for one in (assignments or {}).items()]
    return request


def form(play: Play, client: Client, group: str = "g", **more: Any) -> Any:
    """A group of one; what it was told when it joined."""
    joined = join(play, client, group=group, **more)
    assert joined.error_code == 0
    assert client.ask(sync_request(joined, 5, {joined.member_id: b"all"}, group), 5).assignment == b"all"
    return joined


def commit_request(
    offsets: dict[int, int], name: str = "t", group: str = "g", topic_id: bytes = bytes(16), **more: Any
) -> oc.OffsetCommitRequest:
    partitions = [oc.OffsetCommitRequestPartition(index, offset) for index, offset in offsets.items()]
    return oc.OffsetCommitRequest(group, topics=[oc.OffsetCommitRequestTopic(name, topic_id, partitions)], **more)


def commit(client: Client, offsets: dict[int, int], version: int = 9, **more: Any) -> list[int]:
    """The error of each partition."""
    response = client.ask(commit_request(offsets, **more), version)
    return [one.error_code for topic in response.topics for one in topic.partitions]


def fetched(client: Client, *indexes: int, group: str = "g", name: str = "t", version: int = 7) -> list[int]:
    """The offsets that a group has committed."""
    response = client.ask(of.OffsetFetchRequest(group, [of.OffsetFetchRequestTopic(name, list(indexes))]), version)
    assert response.error_code == 0
    return [one.committed_offset for topic in response.topics for one in topic.partitions]


def beat(client: Client, member: str = "m", epoch: int = 0, version: int = 1, **more: Any) -> Any:
    """A heartbeat of a consumer group's member; the first one joins."""
    if epoch == 0:
        more.setdefault("rebalance_timeout_ms", 10_000)
        more.setdefault("topic_partitions", [])
        if "subscribed_topic_regex" not in more:
            more.setdefault("subscribed_topic_names", ["t"])
    request = g8.ConsumerGroupHeartbeatRequest(more.pop("group", "g"), member, epoch, **more)
    return client.ask(request, version)


def assigned(response: Any) -> dict[bytes, list[int]]:
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}


def owned(topics: dict[bytes, list[int]]) -> list[g8.RequestTopicPartitions]:
    return [g8.RequestTopicPartitions(*one) for one in topics.items()]
