"""Transactions as clients ask for them: each API in each version, from the first id to the last marker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import add_partitions_to_txn as add
from interlog.faces.kafka.schema import describe_producers, fetch, produce, txn_offset_commit, write_txn_markers
from interlog.faces.kafka.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from interlog.faces.kafka.schema.api_versions import ApiVersionsRequest
from interlog.faces.kafka.schema.describe_transactions import DescribeTransactionsRequest
from interlog.faces.kafka.schema.end_txn import EndTxnRequest
from interlog.faces.kafka.schema.init_producer_id import InitProducerIdRequest
from interlog.faces.kafka.schema.list_transactions import ListTransactionsRequest
from interlog.faces.kafka.schema.sasl_authenticate import SaslAuthenticateRequest
from interlog.faces.kafka.schema.sasl_handshake import SaslHandshakeRequest
from interlog.journal import batch as batches
from tests.playbooks.kafka.play import Client, Play, playing
from tests.transaction_rig import batch

Producer = tuple[int, int]


def versions(key: int, *, most: int = 99) -> list[int]:
    return [version for version in SERVED[key].versions if version <= most]


@pytest.fixture(autouse=True)
def _topic(request: pytest.FixtureRequest) -> None:
    if "play" in request.fixturenames:
        request.getfixturevalue("play").core.create_topic("/", "t", 2)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Play]:
    """A broker where everybody logs in, and one user may do everything but what is asked here."""
    for play in playing(tmp_path / "closed", authentication=True):
        play.core.create_topic("/", "t", 2)
        play.core.access.add_user("reader", "secret")
        play.core.access.set_permissions("/", "reader", "", "", "^(t|g)$")
        play.core.access.add_user("writer", "secret")
        play.core.access.set_permissions("/", "writer", "", "^tx", "^nothing")
        yield play


def login(play: Play, user: str) -> Client:
    client = play.connect()
    client.ask(SaslHandshakeRequest("PLAIN"), 1)
    assert client.ask(SaslAuthenticateRequest(f"\0{user}\0secret".encode()), 2).error_code == 0
    return client


def init(
    client: Client, name: str | None = "tx", current: Producer = (-1, -1), version: int = 5, ms: int = 60_000
) -> Any:
    return client.ask(InitProducerIdRequest(name, ms, *current), version)


def begin(client: Client, name: str = "tx") -> Producer:
    answer = init(client, name)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def partitions(
    client: Client, producer: Producer, indexes: list[int], version: int = 3, name: str = "tx", topic: str = "t"
) -> list[int]:
    request = add.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[add.AddPartitionsToTxnTopic(topic, indexes)],
    )
    (answered,) = client.ask(request, version).results_by_topic_v3_and_below
    assert [one.partition_index for one in answered.results_by_partition] == indexes
    return [one.partition_error_code for one in answered.results_by_partition]


def send(
    client: Client,
    producer: Producer,
    values: list[bytes],
    sequence: int,
    *,
    index: int = 0,
    version: int = 11,
    name: str | None = "tx",
) -> Any:
    made = batch(values, producer, sequence, transactional=name is not None)
    data = produce.TopicProduceData("t", partition_data=[produce.PartitionProduceData(index, made)])
    answer = client.ask(produce.ProduceRequest(name, -1, 1_000, [data]), version)
    return answer.responses[0].partition_responses[0]


def offsets(client: Client, producer: Producer, offset: int, version: int = 3, **more: Any) -> int:
    one = txn_offset_commit.TxnOffsetCommitRequestPartition(0, offset, committed_metadata=more.pop("metadata", ""))
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(more.pop("topic", "t"), [one])
    request = txn_offset_commit.TxnOffsetCommitRequest(
        more.pop("name", "tx"), more.pop("group", "g"), *producer, topics=[topic], **more
    )
    code: int = client.ask(request, version).topics[0].partitions[0].error_code
    return code


def end(client: Client, producer: Producer, commit: bool = True, version: int = 4, name: str = "tx") -> Any:
    return client.ask(EndTxnRequest(name, *producer, commit), version)


def read(client: Client, index: int = 0, *, committed: bool = True) -> tuple[list[bytes | None], list[tuple[int, int]]]:
    """The values a client takes in, and what it was told was aborted."""
    asked = fetch.FetchTopic("t", partitions=[fetch.FetchPartition(index, fetch_offset=0, partition_max_bytes=1 << 20)])
    answer = client.ask(fetch.FetchRequest(isolation_level=int(committed), topics=[asked]), 11)
    (found,) = answer.responses[0].partitions
    values = []
    data = bytes(found.records or b"")
    for position, header in batches.batches(data):
        if not header.is_control:
            values += [record.value for _, record in batches.decode(data, position)]
    return values, [(one.producer_id, one.first_offset) for one in found.aborted_transactions or ()]


# -- InitProducerId


@pytest.mark.parametrize("version", versions(22))
def test_ids(client: Client, version: int) -> None:
    plain = [init(client, None, version=version) for _ in range(2)]
    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in plain] == [(0, 0, 0), (0, 1, 0)]
    first, second = init(client, version=version), init(client, version=version)
    assert (first.producer_id, first.producer_epoch) == (2, 0)
    assert (second.producer_id, second.producer_epoch) == (2, 1)
    assert init(client, "", version=version).error_code == ErrorCode.INVALID_REQUEST
    for ms in (0, 900_001):
        answer = init(client, version=version, ms=ms)
        assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_going_on_with_an_id(client: Client, version: int) -> None:
    producer = begin(client)
    bumped = init(client, current=producer, version=version)
    assert (bumped.producer_id, bumped.producer_epoch) == (producer[0], 1)
    again = init(client, current=producer, version=version)
    assert (again.producer_id, again.producer_epoch) == (producer[0], 1)
    begin(client)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert init(client, current=(producer[0], 1), version=version).error_code == fenced
    assert init(client, current=(producer[0], -1), version=version).error_code == ErrorCode.INVALID_REQUEST


def test_ids_are_told_when_they_last(play: Play, client: Client) -> None:
    client.send(InitProducerIdRequest("tx", 1_000), 5)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    (answer,) = client.listen()
    assert answer.error_code == 0


def test_clients_are_told_that_each_end_gives_an_epoch(client: Client) -> None:
    answer = client.ask(ApiVersionsRequest("a", "1"), 4)
    assert {one.name: one.max_version_level for one in answer.finalized_features}["transaction.version"] == 2


# -- the whole way, as older clients go it


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction(play: Play, client: Client, version: int, commit: bool) -> None:
    producer = begin(client)
    assert partitions(client, producer, [0, 1], version) == [0, 0]
    assert partitions(client, producer, [0], version) == [0]
    assert send(client, producer, [b"a", b"b"], 0).error_code == 0
    assert send(client, producer, [b"c"], 0, index=1).error_code == 0
    assert client.ask(AddOffsetsToTxnRequest("tx", *producer, "g"), version).error_code == 0
    assert offsets(client, producer, 7, version) == 0
    assert read(client) == ([], [])
    assert read(client, committed=False) == ([b"a", b"b"], [])
    partition = play.core.topic("/", "t").item.partitions[0]
    assert play.core.transactions.is_pending("/", "g", partition)
    assert end(client, producer, commit, version).error_code == 0
    cursor = play.core.cursors.fetch("/", "g", partition)
    assert (cursor.offset if cursor else None) == (7 if commit else None)
    assert read(client) == (([b"a", b"b"], []) if commit else ([b"a", b"b"], [(producer[0], 0)]))
    assert read(client, 1)[0] == [b"c"]
    # Again: it is known how it ended.
    assert end(client, producer, commit, version).error_code == 0
    assert end(client, producer, not commit, version).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_others_are_refused(client: Client, version: int) -> None:
    old = begin(client)
    producer = begin(client)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert partitions(client, old, [0, 1], version) == [fenced, fenced]
    assert client.ask(AddOffsetsToTxnRequest("tx", *old, "g"), version).error_code == fenced
    assert end(client, old, version=version).error_code == fenced
    assert offsets(client, old, 1, version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert partitions(client, (99, 0), [0], version) == [unknown]
    assert client.ask(AddOffsetsToTxnRequest("new", *producer, "g"), version).error_code == unknown
    assert end(client, producer, version=version, name="new").error_code == unknown
    assert offsets(client, (99, 0), 1, version) == unknown
    assert partitions(client, producer, [0], version, name="") == [ErrorCode.INVALID_REQUEST]
    assert client.ask(AddOffsetsToTxnRequest("", *producer, "g"), version).error_code == ErrorCode.INVALID_REQUEST
    assert end(client, producer, version=version, name="").error_code == ErrorCode.INVALID_REQUEST
    assert client.ask(AddOffsetsToTxnRequest("tx", *producer, ""), version).error_code == ErrorCode.INVALID_GROUP_ID
    assert end(client, producer, version=version).error_code == ErrorCode.INVALID_TXN_STATE


def test_partitions_that_are_not_there_cost_the_others_their_place(client: Client) -> None:
    producer = begin(client)
    unknown, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert partitions(client, producer, [0, 5, 1]) == [skipped, unknown, skipped]
    assert partitions(client, producer, [0], topic="nothing") == [unknown]
    assert end(client, producer).error_code == ErrorCode.INVALID_TXN_STATE


def test_queues_take_no_part(play: Play, client: Client) -> None:
    play.core.declare_queue("/", "q")
    assert partitions(client, begin(client), [0], topic="q") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


# -- batches that were not announced


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
        (12, 0),
    ],
)
def test_a_batch_for_a_partition_that_was_not_added(client: Client, version: int, code: int) -> None:
    producer = begin(client)
    assert send(client, producer, [b"a"], 0, version=version).error_code == code
    partitions(client, producer, [1])
    assert send(client, producer, [b"a"], 0, index=1, version=version).error_code == 0
    assert end(client, producer).error_code == 0
    assert read(client)[0] == ([] if code else [b"a"])


@pytest.mark.parametrize("version", [11, 12])
def test_batches_of_zombies(client: Client, version: int) -> None:
    old = begin(client)
    assert send(client, old, [b"old"], 0, version=12).error_code == 0
    producer = begin(client)
    stale = ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(client, old, [b"old"], 1, version=version).error_code == stale
    assert send(client, old, [b"old"], 0, index=1, version=version).error_code == stale
    assert send(client, (99, 0), [b"x"], 0, version=version).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert send(client, producer, [b"new"], 0, version=12).error_code == 0
    assert send(client, producer, [b"gap"], 5, version=12).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end(client, producer).error_code == 0
    values, aborted = read(client)
    assert (values, aborted) == ([b"old", b"new"], [(old[0], 0)])


@pytest.mark.parametrize("version", [3, 8, 12])
def test_batches_that_come_twice(client: Client, version: int) -> None:
    producer = (init(client, None).producer_id, 0)
    first = send(client, producer, [b"a", b"b"], 0, version=version, name=None)
    again = send(client, producer, [b"a", b"b"], 0, version=version, name=None)
    assert (first.error_code, first.base_offset) == (again.error_code, again.base_offset) == (0, 0)
    gap = send(client, producer, [b"c"], 3, version=version, name=None)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, producer, [b"c"], 2, version=version, name=None).base_offset == 2
    assert read(client)[0] == [b"a", b"b", b"c"]


# -- an epoch for each transaction


def test_each_end_gives_an_epoch(client: Client) -> None:
    producer = begin(client)
    for number in range(3):
        assert send(client, producer, [b"%d" % number], 0, version=12).error_code == 0
        assert offsets(client, producer, number, 5) == 0
        answer = end(client, producer, number != 1, 5)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer[0], number + 1)
        again = end(client, producer, number != 1, 5)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (0, producer[0], number + 1)
        late = send(client, producer, [b"late"], 1, version=12)
        assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        producer = (producer[0], number + 1)
    nothing = end(client, producer, False, 5)
    assert (nothing.error_code, nothing.producer_epoch) == (0, 4)
    assert end(client, (producer[0], 4), True, 5).error_code == ErrorCode.INVALID_TXN_STATE
    assert end(client, (producer[0], 1), True, 5).error_code == ErrorCode.PRODUCER_FENCED
    assert read(client) == ([b"0", b"1", b"2"], [(producer[0], 2)])


# -- TxnOffsetCommit


@pytest.mark.parametrize(
    ("version", "code"),
    [(0, ErrorCode.INVALID_TXN_STATE), (3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE), (5, 0)],
)
def test_offsets_of_a_group_that_was_not_added(client: Client, version: int, code: int) -> None:
    assert offsets(client, begin(client), 5, version) == code


@pytest.mark.parametrize("version", versions(28))
def test_offsets_that_cannot_be(client: Client, version: int) -> None:
    producer = begin(client)
    client.ask(AddOffsetsToTxnRequest("tx", *producer, "g"), 3)
    assert offsets(client, producer, 5, version, topic="nothing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offsets(client, producer, 5, version, metadata="x" * 5_000) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    if version >= 3:
        known = {"generation_id": 3, "member_id": "m"}
        assert offsets(client, producer, 5, version, **known) == ErrorCode.ILLEGAL_GENERATION
    assert offsets(client, producer, 5, version) == 0


# -- brokers, and who looks after them


@pytest.mark.parametrize("version", [4, 5])
def test_many_transactions_at_a_time(client: Client, version: int) -> None:
    producer = begin(client)
    topics = [add.AddPartitionsToTxnTopic("t", [0, 1])]

    def ask(verify: bool, name: str = "tx", epoch: int = 0) -> list[int]:
        one = add.AddPartitionsToTxnTransaction(name, producer[0], epoch, verify, topics)
        (answer,) = client.ask(add.AddPartitionsToTxnRequest([one]), version).results_by_transaction
        assert answer.transactional_id == name
        return [one.partition_error_code for one in answer.topic_results[0].results_by_partition]

    partitions(client, producer, [1])
    assert ask(True) == [ErrorCode.TRANSACTION_ABORTABLE, 0]
    assert ask(False) == [0, 0]
    assert ask(True) == [0, 0]
    assert ask(True, epoch=1) == [ErrorCode.PRODUCER_FENCED] * 2
    assert ask(True, name="other") == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def mark(client: Client, producer: Producer, commit: bool, coordinator: int, index: int = 0, topic: str = "t") -> int:
    topics = [write_txn_markers.WritableTxnMarkerTopic(topic, [index])]
    marker = write_txn_markers.WritableTxnMarker(*producer, commit, topics, coordinator)
    (answer,) = client.ask(write_txn_markers.WriteTxnMarkersRequest([marker]), 1).markers
    assert answer.producer_id == producer[0]
    code: int = answer.topics[0].partitions[0].error_code
    return code


def test_what_hangs_can_be_ended(client: Client) -> None:
    producer = begin(client)
    send(client, producer, [b"a"], 0, version=12)
    assert mark(client, (producer[0], 0), False, 0, topic="nothing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert mark(client, producer, False, 5) == 0
    assert mark(client, producer, False, 4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert read(client) == ([b"a"], [(producer[0], 0)])
    begin(client)
    assert mark(client, producer, False, 5) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_looking(play: Play, client: Client) -> None:
    producer = begin(client)
    begin(client, "idle")
    send(client, producer, [b"a", b"b"], 0, index=1, version=12)
    play.advance(1_000)
    request = describe_producers.DescribeProducersRequest([describe_producers.TopicRequest("t", [0, 1, 7])])
    (topic,) = client.ask(request, 0).topics
    assert [one.error_code for one in topic.partitions] == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert topic.partitions[0].active_producers == []
    (found,) = topic.partitions[1].active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (*producer, 1)
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (-1, 0)
    answer = client.ask(DescribeTransactionsRequest(["tx", "idle", "nothing", ""]), 0)
    states = [(one.error_code, one.transaction_state) for one in answer.transaction_states]
    not_found, invalid = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.INVALID_REQUEST
    assert states == [(0, "Ongoing"), (0, "Empty"), (not_found, ""), (invalid, "")]
    first = answer.transaction_states[0]
    assert [(one.topic, one.partitions) for one in first.topics] == [("t", [1])]
    assert (first.transaction_timeout_ms, first.producer_id, first.producer_epoch) == (60_000, *producer)
    assert play.clock.now_ms() - first.transaction_start_time_ms == 1_000

    def listed(version: int = 1, **filters: Any) -> list[str]:
        answer = client.ask(ListTransactionsRequest(**filters), version)
        assert answer.error_code == 0
        return [one.transactional_id for one in answer.transaction_states]

    assert listed(0) == ["idle", "tx"]
    assert listed(state_filters=["Ongoing"]) == ["tx"]
    assert listed(state_filters=["CompleteCommit"]) == []
    assert listed(producer_id_filters=[producer[0]]) == ["tx"]
    assert listed(state_filters=["Ongoing"], duration_filter=999) == ["tx"]
    assert listed(state_filters=["Ongoing"], duration_filter=1_000) == []
    assert listed(state_filters=["Nonsense"]) == []
    assert listed(2, transactional_id_pattern="t.") == ["tx"]
    assert listed(2, transactional_id_pattern="") == ["idle", "tx"]
    odd = client.ask(ListTransactionsRequest(transactional_id_pattern="(t"), 2)
    assert (odd.error_code, odd.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])
    unknown = client.ask(ListTransactionsRequest(["Nonsense", "PrepareAbort"]), 1).unknown_state_filters
    assert unknown == ["Nonsense"]


# -- time, and the end of the broker


@pytest.mark.parametrize("restarts", [False, True])
def test_what_takes_too_long_is_aborted(play: Play, client: Client, restarts: bool) -> None:
    answer = init(client, ms=5_000)
    producer = (answer.producer_id, answer.producer_epoch)
    send(client, producer, [b"a"], 0, version=12)
    play.advance(3_000)
    if restarts:
        play.restart()
        client = play.connect()
    play.advance(1_999)
    assert read(client) == ([], [])
    play.advance(1)
    assert read(client) == ([b"a"], [(producer[0], 0)])
    assert end(client, producer, version=5).error_code == ErrorCode.PRODUCER_FENCED
    assert end(client, producer).error_code == ErrorCode.PRODUCER_FENCED
    assert send(client, producer, [b"b"], 1, version=12).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert begin(client) == (producer[0], 2)


@pytest.mark.parametrize("offset", [3, -2])
def test_a_transaction_goes_on_after_a_kill(play: Play, client: Client, offset: int) -> None:
    producer = begin(client)
    send(client, producer, [b"a"], 0, version=12)
    offsets(client, producer, offset, 5)
    play.restart()
    client = play.connect()
    assert send(client, producer, [b"a"], 0, version=12).base_offset == 0
    assert send(client, producer, [b"b"], 1, version=12).error_code == 0
    assert end(client, producer, version=5).error_code == 0
    assert read(client) == ([b"a", b"b"], [])
    cursor = play.core.cursors.fetch("/", "g", play.core.topic("/", "t").item.partitions[0])
    assert cursor is not None and cursor.offset == offset


# -- who may


def test_who_may_only_read(closed: Play) -> None:
    client = login(closed, "reader")
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert init(client).error_code == refused
    assert init(client, None).error_code == 0
    assert partitions(client, (0, 0), [0]) == [refused]
    assert client.ask(AddOffsetsToTxnRequest("tx", 0, 0, "g"), 3).error_code == refused
    assert offsets(client, (0, 0), 1) == refused
    assert end(client, (0, 0)).error_code == refused
    assert mark(client, (0, 0), False, 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert client.ask(add.AddPartitionsToTxnRequest([]), 4).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert client.ask(DescribeTransactionsRequest(["tx"]), 0).transaction_states[0].error_code == refused
    assert client.ask(ListTransactionsRequest(), 0).transaction_states == []


def test_who_may_write_the_id_and_nothing_else(closed: Play) -> None:
    client = login(closed, "writer")
    producer = begin(client)
    assert partitions(client, producer, [0]) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    group = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert client.ask(AddOffsetsToTxnRequest("tx", *producer, "g"), 3).error_code == group
    assert offsets(client, producer, 1) == group
    request = describe_producers.DescribeProducersRequest([describe_producers.TopicRequest("t", [0])])
    answer = client.ask(request, 0).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert len(client.ask(ListTransactionsRequest(), 0).transaction_states) == 1
