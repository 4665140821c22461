"""What the operator sets for Kafka clients acts: topics made for the asking, sessions, and what is shown of it."""

from pathlib import Path
from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import describe_configs as dc
from interlog.faces.kafka.schema import fetch, join_group, metadata
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import NODE_ID, Client, playing

BROKER = 4


def _asked_for(client: Client, name: str, version: int = 12, **more: Any) -> tuple[int, int]:
    """The error, and how many partitions a topic has."""
    (topic,) = client.ask(metadata.MetadataRequest([metadata.MetadataRequestTopic(name=name)], **more), version).topics
    return topic.error_code, len(topic.partitions)


def _shown(client: Client, *names: str) -> list[str]:
    resource = dc.DescribeConfigsResource(BROKER, str(NODE_ID), list(names))
    (result,) = client.ask(dc.DescribeConfigsRequest([resource]), 4).results
    found = {one.name: one.value for one in result.configs}
    return [found[name] for name in names]


def test_topics_are_made_for_the_asking_with_as_many_partitions_as_are_set(tmp_path: Path) -> None:
    for play in playing(tmp_path / "data", default_partitions=3):
        client = play.connect()
        assert _asked_for(client, "kept", allow_auto_topic_creation=False)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert _asked_for(client, "made", allow_auto_topic_creation=True) == (0, 3)
        assert _asked_for(client, "made-as-of-old", 1) == (0, 3)
        assert _asked_for(client, "a b", allow_auto_topic_creation=True)[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert a.create(client, "told", -1).num_partitions == 3
        assert _shown(client, "auto.create.topics.enable", "num.partitions") == ["true", "3"]
        play.restart()
        assert _asked_for(play.connect(), "made", allow_auto_topic_creation=False) == (0, 3)


def test_topics_are_not_made_where_the_operator_does_not_want_it(tmp_path: Path) -> None:
    for play in playing(tmp_path / "data", auto_create=False):
        client = play.connect()
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert _asked_for(client, "t", allow_auto_topic_creation=True) == (unknown, 0)
        assert a.send(client, [Record(None, b"x", (), play.clock.now_ms())]).error_code == unknown
        assert a.create(client, "t").error_code == 0
        assert _shown(client, "auto.create.topics.enable") == ["false"]


@pytest.mark.parametrize(("session_ms", "error"), [(999, 26), (1_000, 0), (60_000, 0), (60_001, 26)])
def test_sessions_are_within_what_is_set(tmp_path: Path, session_ms: int, error: int) -> None:
    for play in playing(tmp_path / "data", min_session_ms=1_000, max_session_ms=60_000):
        client = play.connect()
        protocols = [join_group.JoinGroupRequestProtocol("range", b"")]
        ask = join_group.JoinGroupRequest("g", session_ms, 1_000, "", None, "consumer", protocols)
        client.send(ask, 3)
        play.advance(10)
        (joined,) = client.listen()
        assert joined.error_code == error
        names = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")
        assert _shown(client, *names) == ["1000", "60000"]


def test_an_answer_to_a_fetch_holds_as_much_as_is_set(tmp_path: Path) -> None:
    for play in playing(tmp_path / "data", fetch_max_bytes=5_000):
        client = play.connect()
        assert a.create(client, "t", 2).error_code == 0
        for number in range(6):
            record = Record(None, bytes(2_000), (), play.clock.now_ms())
            assert a.send(client, [record], index=number % 2).error_code == 0
        assert _sizes(client) == [4, 0]  # thousands of bytes: two batches, and no room for a third
        assert _shown(client, "fetch.max.bytes") == ["5000"]


def _sizes(client: Client) -> list[int]:
    wanted = [fetch.FetchPartition(index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(2)]
    answer = client.ask(fetch.FetchRequest(topics=[fetch.FetchTopic("t", partitions=wanted)]), 11)
    return [len(one.records or b"") // 1_000 for one in answer.responses[0].partitions]


def test_the_broker_has_the_number_that_is_set(tmp_path: Path) -> None:
    for play in playing(tmp_path / "data", node_id=7):
        client = play.connect()
        answer = client.ask(metadata.MetadataRequest([metadata.MetadataRequestTopic(name="t")]), 12)
        assert (answer.controller_id, [broker.node_id for broker in answer.brokers]) == (7, [7])
        ((partition,),) = [topic.partitions for topic in answer.topics]
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (7, [7], [7])
        resource = dc.DescribeConfigsResource(BROKER, "7", ["node.id", "broker.id"])
        (described,) = client.ask(dc.DescribeConfigsRequest([resource]), 4).results
        assert {one.name: one.value for one in described.configs} == {"node.id": "7", "broker.id": "7"}
