"""Metadata and DescribeCluster: the broker and its topics, in every version; topics that are made for the asking."""

from typing import Any

import pytest

from interlog.faces.face import Peer
from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import metadata as m
from interlog.faces.kafka.schema.describe_cluster import DescribeClusterRequest
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import NODE_ID, Client, Play

NO_ID = bytes(16)
NOT_ASKED = -(1 << 31)
VERSIONS = pytest.mark.parametrize("version", SERVED[3].versions)


@pytest.fixture(autouse=True)
def topics(play: Play, client: Client) -> None:
    assert a.create(client, "t", 3).error_code == 0
    play.core.declare_queue("/", "q")
    play.turn()


def ask(client: Client, *names: str | bytes | None, version: int = 13, create: bool = False) -> dict[Any, Any]:
    """What was answered of each topic, by name, or by id where it has none."""
    wanted = [
        m.MetadataRequestTopic(name, None) if isinstance(name, bytes) else m.MetadataRequestTopic(name=name)
        for name in names
    ]
    answer = client.ask(m.MetadataRequest(wanted, create) if version >= 4 else m.MetadataRequest(wanted), version)
    assert len({(one.name, one.topic_id) for one in answer.topics}) == len(answer.topics)
    return {one.name or one.topic_id: one for one in answer.topics}


@VERSIONS
def test_every_version(play: Play, client: Client, version: int) -> None:
    answer = client.ask(m.MetadataRequest([m.MetadataRequestTopic(name="t")]), version)
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (NODE_ID, "127.0.0.1", 9092, None)
    assert answer.controller_id == (NODE_ID if version >= 1 else -1)
    assert answer.cluster_id == (play.service.cluster_id if version >= 2 else None)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
    assert topic.topic_id == (play.service.topic_id(play.core.catalog.topic("/", "t")) if version >= 10 else NO_ID)
    assert topic.topic_authorized_operations == answer.cluster_authorized_operations == NOT_ASKED
    epoch = play.core.storage.epoch if version >= 7 else -1
    told = [(one.error_code, one.partition_index, one.leader_id, one.leader_epoch) for one in topic.partitions]
    assert told == [(0, index, NODE_ID, epoch) for index in range(3)]
    assert all(one.replica_nodes == one.isr_nodes == [NODE_ID] for one in topic.partitions)
    assert all(one.offline_replicas == [] for one in topic.partitions)


@VERSIONS
def test_all_and_none(client: Client, version: int) -> None:
    """A list without topics means all of them in version 0, and none later."""
    nothing = client.ask(m.MetadataRequest([]), version)
    everything = nothing if version == 0 else client.ask(m.MetadataRequest(None), version)
    assert sorted(one.name for one in everything.topics) == ["q", "t"]
    if version:
        assert nothing.topics == []
        assert len(nothing.brokers) == 1


@VERSIONS
def test_topics_are_made_for_the_asking(play: Play, client: Client, version: int) -> None:
    made = ask(client, "new", version=version, create=True)["new"]
    assert (made.error_code, len(made.partitions)) == (0, 1)
    assert len(play.core.topic("/", "new")) == 1
    if version >= 4:
        other = ask(client, "other", version=version, create=False)["other"]
        assert (other.error_code, other.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
        assert play.core.catalog.find("/", "other") is None


def test_one_that_is_made_is_told_of_when_it_lasts(play: Play, client: Client) -> None:
    client.send(m.MetadataRequest([m.MetadataRequestTopic(name="new")]), 9)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert len(client.listen()) == 1


@VERSIONS
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("é", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("n" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("passing", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_names_that_no_topic_is_made_under(
    play: Play, client: Client, version: int, name: str, error: ErrorCode
) -> None:
    play.core.declare_queue("/", "passing", durable=False)
    found = ask(client, "t", name, version=version, create=True)
    assert found["t"].error_code == 0
    (other,) = [one for one in found.values() if one.name != "t"]
    assert (other.error_code, other.name, other.partitions) == (error, name, [])


@pytest.mark.parametrize("version", [10, 12, 13])
def test_topics_by_id(play: Play, client: Client, version: int) -> None:
    id = play.service.topic_id(play.core.catalog.topic("/", "t"))
    found = ask(client, id, b"x" * 16, version=version)
    assert (found["t"].error_code, found["t"].topic_id, len(found["t"].partitions)) == (0, id, 3)
    unknown = found[b"x" * 16]
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert unknown.name == (None if version >= 12 else "")


@pytest.mark.parametrize("version", [8, 10, 13])
def test_what_a_client_may_do(client: Client, version: int) -> None:
    request = m.MetadataRequest([m.MetadataRequestTopic(name="t")], include_topic_authorized_operations=True)
    request.include_cluster_authorized_operations = version <= 10
    answer = client.ask(request, version)
    read, write, describe = 1 << 3, 1 << 4, 1 << 8
    operations = answer.topics[0].topic_authorized_operations
    assert operations & read and operations & write and operations & describe
    assert (answer.cluster_authorized_operations != NOT_ASKED) == (version <= 10)


def test_a_queue_is_a_topic_to_be_read(client: Client) -> None:
    found = ask(client, "q")["q"]
    assert (found.error_code, len(found.partitions)) == (0, 1)


@pytest.mark.parametrize("version", SERVED[60].versions)
def test_the_cluster_in_every_version(play: Play, client: Client, version: int) -> None:
    answer = client.ask(DescribeClusterRequest(True), version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert (answer.cluster_id, answer.controller_id, answer.endpoint_type) == (play.service.cluster_id, NODE_ID, 1)
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (NODE_ID, "127.0.0.1", 9092)
    assert (broker.rack, broker.is_fenced) == (None, False)
    assert answer.cluster_authorized_operations > 0
    answer = client.ask(DescribeClusterRequest(), version)
    assert answer.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", [1, 2])
def test_endpoints_that_are_not_here(client: Client, version: int) -> None:
    for kind, error in (
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (99, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ):
        answer = client.ask(DescribeClusterRequest(endpoint_type=kind), version)
        assert (answer.error_code, answer.brokers) == (error, [])
        assert answer.error_message


@pytest.mark.parametrize(
    ("advertised", "expected"),
    [
        ("", ("10.0.0.7", 9094)),
        ("kafka.example", ("kafka.example", 9094)),
        ("kafka.example:19092", ("kafka.example", 19092)),
        ("[::1]:19092", ("::1", 19092)),
    ],
)
def test_the_address_that_clients_are_told(tmp_path: Any, advertised: str, expected: tuple[str, int]) -> None:
    play = Play(tmp_path / "other", advertised=advertised)
    client = play.connect(Peer(local_host="10.0.0.7", local_port=9094))
    (broker,) = client.ask(m.MetadataRequest([]), 9).brokers
    assert (broker.host, broker.port) == expected
    (broker,) = client.ask(DescribeClusterRequest(), 0).brokers
    assert (broker.host, broker.port) == expected
    play.close()
