"""OffsetCommit, OffsetFetch and OffsetDelete."""

from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import offset_commit as oc
from interlog.faces.kafka.schema import offset_fetch as of
from interlog.faces.kafka.schema.join_group import JoinGroupRequestProtocol
from interlog.faces.kafka.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka.play import Client, Play, playing

DAY_MS = 86_400_000


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed_in_every_version(play: Play, client: Client, version: int) -> None:
    topic_id = g.topic(play)
    name: dict[str, Any] = {"name": "", "topic_id": topic_id} if version >= 10 else {}
    request = g.commit_request({0: 10, 3: 0, 4: 7}, **name)
    first = request.topics[0].partitions[0]
    first.committed_metadata = "wo"
    if version >= 6:
        first.committed_leader_epoch = 4
    (topic,) = client.ask(request, version).topics
    assert (topic.name, topic.topic_id) == (("", topic_id) if version >= 10 else ("t", bytes(16)))
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
        (0, 0),
        (3, 0),
        (4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    (found,) = client.ask(of.OffsetFetchRequest("g", None), 7).topics
    assert [(one.partition_index, one.committed_offset, one.metadata) for one in found.partitions] == [
        (0, 10, "wo"),
        (3, 0, ""),
    ]
    assert found.partitions[0].committed_leader_epoch == (4 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 8))
def test_offsets_are_fetched_in_every_version_of_one_group(play: Play, client: Client, version: int) -> None:
    g.topic(play)
    g.commit(client, {1: 10})
    ask = of.OffsetFetchRequest(
        "g", [of.OffsetFetchRequestTopic("t", [0, 1, 9]), of.OffsetFetchRequestTopic("none", [0])]
    )
    response = client.ask(ask, version)
    assert response.error_code == 0
    topics = [
        (topic.name, [(one.committed_offset, one.error_code) for one in topic.partitions]) for topic in response.topics
    ]
    assert topics == [("t", [(-1, 0), (10, 0), (-1, 0)]), ("none", [(-1, 0)])]
    unknown = client.ask(of.OffsetFetchRequest("none", ask.topics), version)
    assert unknown.error_code == 0
    assert {one.committed_offset for topic in unknown.topics for one in topic.partitions} == {-1}
    if version >= 2:
        assert client.ask(of.OffsetFetchRequest("none", None), version).topics == []
        assert client.ask(of.OffsetFetchRequest("", None), version).error_code == ErrorCode.INVALID_GROUP_ID
    else:
        refused = client.ask(of.OffsetFetchRequest("", ask.topics), version)
        assert {one.error_code for topic in refused.topics for one in topic.partitions} == {ErrorCode.INVALID_GROUP_ID}


@pytest.mark.parametrize("version", range(8, 11))
def test_offsets_are_fetched_in_every_version_of_many_groups(play: Play, client: Client, version: int) -> None:
    topic_id = g.topic(play)
    g.commit(client, {1: 10})
    g.commit(client, {0: 20}, group="other")
    by_id = version >= 10
    asked = [
        of.OffsetFetchRequestTopics("" if by_id else "t", topic_id if by_id else bytes(16), [0, 1]),
        of.OffsetFetchRequestTopics("" if by_id else "none", bytes(15) + b"x" if by_id else bytes(16), [0]),
    ]
    groups = [
        of.OffsetFetchRequestGroup("g", topics=asked),
        of.OffsetFetchRequestGroup("other", topics=None),
        of.OffsetFetchRequestGroup("", topics=None),
    ]
    one, other, refused = client.ask(of.OffsetFetchRequest(groups=groups), version).groups
    known, unknown = one.topics
    assert [partition.committed_offset for partition in known.partitions] == [-1, 10]
    assert [partition.error_code for partition in unknown.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID if by_id else 0]
    assert (known.name, known.topic_id) == (("", topic_id) if by_id else ("t", bytes(16)))
    (all_of_it,) = other.topics
    assert [(found.partition_index, found.committed_offset) for found in all_of_it.partitions] == [(0, 20)]
    assert refused.error_code == ErrorCode.INVALID_GROUP_ID


def test_commits_that_are_refused_one_by_one(play: Play, client: Client) -> None:
    g.topic(play)
    request = g.commit_request({0: 1, 1: 2, 2: 3, 9: 4})
    request.topics[0].partitions[2].committed_metadata = "x" * 4097
    request.topics.append(oc.OffsetCommitRequestTopic("none", partitions=[oc.OffsetCommitRequestPartition(0, 1)]))
    response = client.ask(request, 9)
    assert [[one.error_code for one in topic.partitions] for topic in response.topics] == [
        [0, 0, ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ]
    assert g.fetched(client, 0, 1, 2) == [1, 2, -1]
    assert g.commit(client, {0: 1}, group="") == [ErrorCode.INVALID_GROUP_ID]
    assert g.commit(client, {0: 1}, group="g" * 256) == [ErrorCode.INVALID_GROUP_ID]
    unknown = g.commit_request({0: 1}, name="", topic_id=bytes(15) + b"x")
    (topic,) = client.ask(unknown, 10).topics
    assert [one.error_code for one in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_offsets_that_are_none_are_kept_for_clients_that_mean_a_place_by_them(play: Play, client: Client) -> None:
    g.topic(play)
    assert g.commit(client, {0: -2, 1: -1, 2: 1 << 62}) == [0, 0, 0]  # kafkajs: from the earliest on, from now on
    play.restart()
    assert g.fetched(play.connect(), 0, 1, 2) == [-2, -1, 1 << 62]


def test_a_commit_is_answered_once_it_lasts(play: Play, client: Client) -> None:
    g.topic(play)
    client.send(g.commit_request({0: 5}), 9)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert client.listen()[0].topics[0].partitions[0].error_code == 0
    play.restart()
    assert g.fetched(play.connect(), 0) == [5]


def test_only_members_of_the_generation_commit_while_there_are_any(play: Play, client: Client) -> None:
    g.topic(play)
    other = play.connect()
    joined = g.join(play, client)
    me: dict[str, Any] = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    assert g.commit(other, {0: 1}, **me) == [ErrorCode.REBALANCE_IN_PROGRESS]
    client.ask(g.sync_request(joined, 5), 5)
    assert g.commit(other, {0: 1}, **me) == [0]
    assert g.commit(other, {0: 1}) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert g.commit(other, {0: 1}, **{**me, "member_id": "nobody"}) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert g.commit(other, {0: 1}, **{**me, "generation_id_or_member_epoch": 2}) == [ErrorCode.ILLEGAL_GENERATION]
    assert g.commit(other, {0: 1}, **me, group_instance_id="i") == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_durable_queue_has_offsets_like_a_topic(play: Play, client: Client) -> None:
    play.core.declare_queue("/", "q")
    play.core.declare_queue("/", "passing", durable=False)
    play.turn()
    assert g.commit(client, {0: 4}, name="q") == [0]
    assert g.fetched(client, 0, name="q") == [4]
    assert g.commit(client, {0: 4}, name="passing") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_deleted_topic_takes_its_offsets_with_it(play: Play, client: Client) -> None:
    g.topic(play)
    g.commit(client, {0: 4})
    play.core.delete_topic("/", "t")
    play.turn()
    assert g.fetched(client, 0) == [-1]
    g.topic(play)
    assert g.fetched(client, 0) == [-1]


def delete(client: Client, group: str, *topics: tuple[str, int]) -> Any:
    asked = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index)]) for name, index in topics]
    response = client.ask(OffsetDeleteRequest(group, asked), 0)
    return response.error_code or [one.error_code for topic in response.topics for one in topic.partitions]


def test_offsets_are_deleted_where_nobody_reads(play: Play, client: Client) -> None:
    g.topic(play)
    g.topic(play, "u")
    assert delete(client, "g", ("t", 0)) == ErrorCode.GROUP_ID_NOT_FOUND
    g.commit(client, {0: 4, 1: 5})
    g.commit(client, {0: 6}, name="u")
    assert delete(client, "g", ("t", 0), ("t", 2), ("t", 9), ("none", 0)) == [
        0,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert g.fetched(client, 0, 1) == [-1, 5]
    g.form(play, client)  # it reads t
    assert delete(client, "g", ("t", 1), ("u", 0)) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert g.fetched(client, 1) == [5]
    assert g.fetched(client, 0, name="u") == [-1]
    assert delete(client, "", ("t", 1)) == ErrorCode.INVALID_GROUP_ID
    play.restart()
    assert g.fetched(play.connect(), 0, 1) == [-1, 5]


def test_offsets_of_groups_that_are_no_consumers_or_cannot_be_read_stay(play: Play, client: Client) -> None:
    g.topic(play)
    g.commit(client, {0: 4})
    joined = g.form(play, client, protocols=[JoinGroupRequestProtocol("range", b"what?")])
    assert delete(client, "g", ("t", 0)) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert joined.error_code == 0
    g.commit(client, {0: 4}, group="connectors")
    client.send(g.join_request(group="connectors", protocol_type="connect"), 3)
    play.advance(1)
    client.listen()
    assert delete(client, "connectors", ("t", 0)) == ErrorCode.NON_EMPTY_GROUP


def test_offsets_expire(tmp_path: Any) -> None:
    for play in playing(tmp_path / "data", offsets_retention_ms=3_600_000):
        client = play.connect()
        g.topic(play)
        g.commit(client, {0: 4})
        play.advance(3_500_000)
        client = play.connect()
        g.commit(client, {1: 5})
        assert g.fetched(client, 0) == [4]
        play.advance(200_000)
        assert g.fetched(client, 0, 1) == [-1, 5]
        play.restart()
        assert g.fetched(play.connect(), 0, 1) == [-1, 5]


def test_what_a_transaction_is_about_to_change_is_not_stable(play: Play, client: Client, monkeypatch: Any) -> None:
    g.topic(play)
    g.commit(client, {0: 4, 1: 5})
    number = play.core.catalog.topic("/", "t").partitions[0]
    monkeypatch.setattr(play.core.transactions, "is_pending", lambda *key: key == ("/", "g", number), raising=True)
    ask = of.OffsetFetchRequest("g", [of.OffsetFetchRequestTopic("t", [0, 1])], require_stable=True)
    (topic,) = client.ask(ask, 7).topics
    assert [(one.committed_offset, one.error_code) for one in topic.partitions] == [
        (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT),
        (5, 0),
    ]
    assert g.fetched(client, 0) == [4]
