"""What tools ask of a cluster: disks, leaders, moving partitions, what has configs, clients' metrics. One broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import alter_partition_reassignments as ar
from interlog.faces.kafka.schema import alter_replica_log_dirs as al
from interlog.faces.kafka.schema import describe_log_dirs as ld
from interlog.faces.kafka.schema import describe_quorum as dq
from interlog.faces.kafka.schema import describe_topic_partitions as dp
from interlog.faces.kafka.schema import elect_leaders as el
from interlog.faces.kafka.schema import incremental_alter_configs as ia
from interlog.faces.kafka.schema import list_config_resources as lr
from interlog.faces.kafka.schema import list_partition_reassignments as lp
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.faces.kafka.schema.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from interlog.faces.kafka.schema.push_telemetry import PushTelemetryRequest
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import NODE_ID, Client, Play

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture(autouse=True)
def topic(client: Client) -> None:
    assert a.create(client, "t", 2).error_code == 0


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Client]:
    """Who may read and write everything, and is no administrator."""
    for play in a.closed(tmp_path / "closed", eve=(".*", ".*", ".*")):
        yield a.login(play, "eve")


# -- the data folder


@pytest.mark.parametrize("version", range(5))
def test_the_data_folder_is_described_with_what_is_in_it(play: Play, client: Client, version: int) -> None:
    assert a.create(client, "u").error_code == 0
    before = _sizes(client, version, None)
    assert before == {("t", 0): 0, ("t", 1): 0, ("u", 0): 0}
    assert a.send(client, [Record(None, b"x" * 1_000, (), play.clock.now_ms())], index=1).error_code == 0
    assert 1_000 < _sizes(client, version, None)["t", 1] < 1_200
    asked = [ld.DescribableLogDirTopic("t", [0, 7, 0]), ld.DescribableLogDirTopic("none", [0])]
    assert _sizes(client, version, asked) == {("t", 0): 0}
    assert _sizes(client, version, []) == {}


def _sizes(client: Client, version: int, topics: Any) -> dict[tuple[str, int], int]:
    answer = client.ask(ld.DescribeLogDirsRequest(topics), version)
    (folder,) = answer.results
    assert (answer.error_code, folder.error_code) == (0, 0)
    assert folder.log_dir == str(client.play.core.folder)
    if version >= 4:
        assert 0 < folder.usable_bytes < folder.total_bytes
    assert all((one.offset_lag, one.is_future_key) == (0, False) for topic in folder.topics for one in topic.partitions)
    return {
        (topic.name, one.partition_index): one.partition_size for topic in folder.topics for one in topic.partitions
    }


def test_a_queue_has_a_size_too(play: Play, client: Client) -> None:
    play.core.declare_queue("/", "q", durable=True)
    assert _sizes(client, 4, [ld.DescribableLogDirTopic("q", [0])]) == {("q", 0): 0}


@pytest.mark.parametrize("version", range(3))
def test_partitions_stay_in_their_folder(client: Client, version: int) -> None:
    here = al.AlterReplicaLogDirTopic("t", [0, 7]), al.AlterReplicaLogDirTopic("none", [0])
    dirs = [al.AlterReplicaLogDir(str(client.play.core.folder), [*here])]
    dirs.append(al.AlterReplicaLogDir("/elsewhere", [al.AlterReplicaLogDirTopic("t", [1])]))
    assert _moved(client, version, dirs) == [
        ("t", 0, 0),
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, ErrorCode.LOG_DIR_NOT_FOUND),
    ]


def test_folders_are_the_business_of_administrators(stranger: Client) -> None:
    dirs = [al.AlterReplicaLogDir("/elsewhere", [al.AlterReplicaLogDirTopic("none", [0])])]
    assert _moved(stranger, 2, dirs) == [("none", 0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)]


def _moved(client: Client, version: int, dirs: list[al.AlterReplicaLogDir]) -> list[tuple[str, int, int]]:
    answer = client.ask(al.AlterReplicaLogDirsRequest(dirs), version)
    return [
        (topic.topic_name, one.partition_index, one.error_code) for topic in answer.results for one in topic.partitions
    ]


def test_who_may_not_look_at_the_cluster_sees_no_folder(stranger: Client) -> None:
    answer = stranger.ask(ld.DescribeLogDirsRequest(None), 4)
    assert (answer.error_code, answer.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


# -- leaders and replicas


@pytest.mark.parametrize("version", range(3))
def test_no_election_is_needed(client: Client, version: int) -> None:
    asked = [el.TopicPartitions("t", [0, 5]), el.TopicPartitions("none", [0])]
    answer = client.ask(el.ElectLeadersRequest(topic_partitions=asked), version)
    assert answer.error_code == 0
    assert [
        (topic.topic, one.partition_id, one.error_code)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    ] == [
        ("t", 0, ErrorCode.ELECTION_NOT_NEEDED),
        ("t", 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert client.ask(el.ElectLeadersRequest(topic_partitions=None), version).replica_election_results == []


def test_an_election_that_does_not_exist(client: Client) -> None:
    answer = client.ask(el.ElectLeadersRequest(7, [el.TopicPartitions("t", [0])]), 2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "index", "replicas", "error"),
    [
        ("t", 0, [NODE_ID], ErrorCode.NONE),
        ("t", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 2, [NODE_ID], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, [NODE_ID], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_partitions_stay_where_they_are(client: Client, name: str, index: int, replicas: Any, error: int) -> None:
    asked = [ar.ReassignableTopic(name, [ar.ReassignablePartition(index, replicas)])]
    answer = client.ask(ar.AlterPartitionReassignmentsRequest(topics=asked), 0)
    (one,) = answer.responses[0].partitions
    assert (answer.error_code, one.partition_index, one.error_code) == (0, index, error)
    assert (one.error_message is None) == (error == 0)
    under_way = client.ask(lp.ListPartitionReassignmentsRequest(), 0)
    assert (under_way.error_code, under_way.topics) == (0, [])


def test_leaders_and_replicas_are_the_business_of_administrators(stranger: Client) -> None:
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    election = stranger.ask(el.ElectLeadersRequest(topic_partitions=[el.TopicPartitions("t", [0])]), 2)
    assert election.error_code == refused
    assert stranger.ask(ar.AlterPartitionReassignmentsRequest(), 0).error_code == refused
    assert stranger.ask(lp.ListPartitionReassignmentsRequest(), 0).error_code == refused


@pytest.mark.parametrize("version", range(3))
def test_the_broker_is_its_own_quorum(client: Client, version: int) -> None:
    asked = [(name, [dq.RequestPartitionData(0), dq.RequestPartitionData(1)]) for name in ("__cluster_metadata", "t")]
    answer = client.ask(dq.DescribeQuorumRequest([dq.RequestTopicData(*one) for one in asked]), version)
    assert answer.error_code == 0
    first, *others = [one for topic in answer.topics for one in topic.partitions]
    assert (first.error_code, first.leader_id, first.leader_epoch) == (0, NODE_ID, client.play.core.storage.epoch)
    assert [voter.replica_id for voter in first.current_voters] == [NODE_ID]
    assert [one.error_code for one in others] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3
    if version >= 2:
        assert [(node.node_id, len(node.listeners)) for node in answer.nodes] == [(NODE_ID, 1)]


def test_the_quorum_is_the_business_of_those_who_may_look_at_the_cluster(stranger: Client) -> None:
    answer = stranger.ask(dq.DescribeQuorumRequest([]), 2)
    assert (answer.error_code, answer.nodes) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


# -- what has configs


@pytest.mark.parametrize(
    ("types", "names"),
    [
        ([], [(TOPIC, "t"), (BROKER, str(NODE_ID)), (GROUP, "g")]),
        ([GROUP], [(GROUP, "g")]),
        ([BROKER, TOPIC, BROKER], [(BROKER, str(NODE_ID)), (TOPIC, "t")]),
        ([LOGGER, METRICS], []),
    ],
)
def test_what_has_configs_is_listed(client: Client, types: list[int], names: list[tuple[int, str]]) -> None:
    change = ia.AlterableConfig("consumer.session.timeout.ms", 0, "50000")
    client.ask(ia.IncrementalAlterConfigsRequest([ia.AlterConfigsResource(GROUP, "g", [change])]), 1)
    answer = client.ask(lr.ListConfigResourcesRequest(types), 1)
    assert answer.error_code == 0
    assert [(one.resource_type, one.resource_name) for one in answer.config_resources] == names


def test_what_the_first_version_asks_for_is_not_there(client: Client) -> None:
    answer = client.ask(lr.ListConfigResourcesRequest(), 0)
    assert (answer.error_code, answer.config_resources) == (0, [])


def test_a_type_that_nobody_knows_is_not_listed(client: Client, stranger: Client) -> None:
    assert client.ask(lr.ListConfigResourcesRequest([TOPIC, 99]), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    refused = stranger.ask(lr.ListConfigResourcesRequest(), 1)
    assert (refused.error_code, refused.config_resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


# -- clients' metrics


def test_nobody_wants_metrics(client: Client) -> None:
    answer = client.ask(GetTelemetrySubscriptionsRequest(), 0)
    assert (answer.error_code, answer.requested_metrics) == (0, [])
    assert answer.push_interval_ms == 300_000
    instance = answer.client_instance_id
    assert instance != NO_UUID
    assert client.ask(GetTelemetrySubscriptionsRequest(), 0).client_instance_id != instance
    again = client.ask(GetTelemetrySubscriptionsRequest(instance), 0)
    assert (again.client_instance_id, again.subscription_id) == (instance, answer.subscription_id)

    def push(id: bytes = instance, subscription: int = answer.subscription_id, codec: int = 0, size: int = 3) -> int:
        request = PushTelemetryRequest(id, subscription, False, codec, b"x" * size)
        return int(client.ask(request, 0).error_code)

    assert push() == ErrorCode.NONE
    assert push(id=NO_UUID) == ErrorCode.INVALID_REQUEST
    assert push(subscription=answer.subscription_id ^ 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert push(codec=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert push(size=(1 << 20) + 1) == ErrorCode.TELEMETRY_TOO_LARGE


# -- topics, page by page


def _pages(client: Client, *names: str, limit: int = 2_000, cursor: Any = None) -> tuple[list[Any], Any]:
    request = dp.DescribeTopicPartitionsRequest([dp.TopicRequest(name) for name in names], limit, cursor)
    answer = client.ask(request, 0)
    found = [
        (topic.error_code, topic.name, [one.partition_index for one in topic.partitions]) for topic in answer.topics
    ]
    after = answer.next_cursor
    return found, None if after is None else dp.RequestCursor(after.topic_name, after.partition_index)


def test_topics_are_described_page_by_page(client: Client) -> None:
    assert a.create(client, "u", 3).error_code == 0
    assert _pages(client) == ([(0, "t", [0, 1]), (0, "u", [0, 1, 2])], None)
    first, cursor = _pages(client, "u", "t", limit=3)
    assert first == [(0, "t", [0, 1]), (0, "u", [0])]
    assert _pages(client, "u", "t", limit=3, cursor=cursor) == ([(0, "u", [1, 2])], None)
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert _pages(client, "none", "a b") == ([(invalid, "a b", []), (unknown, "none", [])], None)


def test_a_page_that_begins_nowhere_is_none(client: Client) -> None:
    for cursor in (dp.RequestCursor("t", -1), dp.RequestCursor("none", 0)):
        assert _pages(client, "t", cursor=cursor) == ([(ErrorCode.INVALID_REQUEST, "t", [])], None)
