"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: shown, set, refused; at once, and for ever."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.faces.kafka.broker_configs import BROKER
from interlog.faces.kafka.configs import TOPIC, Effect
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import alter_configs as ac
from interlog.faces.kafka.schema import describe_configs as dc
from interlog.faces.kafka.schema import incremental_alter_configs as ia
from interlog.journal import batch as batches
from interlog.journal.codecs import Codec
from interlog.journal.index import BLOCK_BATCHES
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka.play import NODE_ID, Client, Play

OF_TOPIC, OF_BROKER, OF_GROUP, METRICS, LOGGER = 2, 4, 32, 16, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
MINUTE_MS = 60_000


def describe(client: Client, name: str = "t", type: int = OF_TOPIC, version: int = 4, **more: Any) -> Any:
    """What was answered of one resource."""
    resource = dc.DescribeConfigsResource(type, name, more.pop("keys", None))
    (result,) = client.ask(dc.DescribeConfigsRequest([resource], **more), version).results
    assert (result.resource_type, result.resource_name) == (type, name)
    return result


def values(client: Client, name: str = "t", type: int = OF_TOPIC) -> dict[str, str | None]:
    result = describe(client, name, type)
    assert result.error_code == 0
    return {one.name: one.value for one in result.configs}


def alter(
    client: Client, configs: dict[str, str | None], name: str = "t", type: int = OF_TOPIC, version: int = 2, **more: Any
) -> tuple[int, str | None]:
    """Set these in place of all; the error and its sentence."""
    resource = ac.AlterConfigsResource(type, name, [ac.AlterableConfig(*one) for one in configs.items()])
    (result,) = client.ask(ac.AlterConfigsRequest([resource], **more), version).responses
    assert (result.resource_type, result.resource_name) == (type, name)
    return result.error_code, result.error_message


def change(
    client: Client, *changes: tuple[str, int, str | None], name: str = "t", type: int = OF_TOPIC, **more: Any
) -> tuple[int, str | None]:
    """Set, remove, or change lists; the error and its sentence."""
    version = more.pop("version", 1)
    resource = ia.AlterConfigsResource(type, name, [ia.AlterableConfig(*one) for one in changes])
    (result,) = client.ask(ia.IncrementalAlterConfigsRequest([resource], **more), version).responses
    assert (result.resource_type, result.resource_name) == (type, name)
    return result.error_code, result.error_message


def packed(value: bytes) -> list[Record]:
    return [Record(b"k", value, (), 1_700_000_000_000)]


def put(client: Client, **configs: str) -> None:
    assert change(client, *((name.replace("_", "."), SET, text) for name, text in configs.items())) == (0, None)


@pytest.fixture(autouse=True)
def topic(client: Client) -> None:
    assert a.create(client, "t", configs={"retention.ms": "1000", "flush.ms": "5"}).error_code == 0


# -- shown


@pytest.mark.parametrize("version", range(5))
def test_a_topic_is_described_in_every_version(client: Client, version: int) -> None:
    more: dict[str, Any] = {"include_synonyms": True} if version >= 1 else {}
    found = {one.name: one for one in describe(client, version=version, **more).configs}
    assert list(found) == list(TOPIC)
    retention, cleanup = found["retention.ms"], found["cleanup.policy"]
    assert (retention.value, cleanup.value, retention.read_only, retention.is_sensitive) == ("1000", "delete", 0, 0)
    if version == 0:
        assert (retention.is_default, cleanup.is_default) == (False, True)
        return
    assert (retention.config_source, cleanup.config_source) == (1, 5)
    assert [(one.name, one.value, one.source) for one in retention.synonyms] == [
        ("retention.ms", "1000", 1),
        ("log.retention.ms", "604800000", 5),
    ]
    assert (retention.config_type, cleanup.config_type) == ((5, 7) if version >= 3 else (0, 0))
    assert not retention.documentation


def test_only_what_is_asked_for_is_told(client: Client) -> None:
    (one,) = describe(client, keys=["flush.ms", "no.such"], include_documentation=True).configs
    assert (one.name, one.value, one.synonyms) == ("flush.ms", "5", [])
    assert one.documentation
    assert len(describe(client, keys=[]).configs) == len(TOPIC)


def test_the_broker_is_described(client: Client) -> None:
    found = {one.name: one for one in describe(client, str(NODE_ID), OF_BROKER).configs}
    assert list(found) == list(BROKER)
    assert {name for name, one in found.items() if not one.read_only} == {
        name for name, row in BROKER.items() if row.dynamic is not None
    }
    assert found["auto.create.topics.enable"].value == "true"
    (of_all,) = describe(client, "", OF_BROKER).configs
    assert (of_all.name, of_all.value, of_all.config_source) == ("min.insync.replicas", "1", 3)


def test_a_queue_has_no_configs_and_gets_none(play: Play, client: Client) -> None:
    play.core.declare_queue("/", "q", durable=True)
    assert (describe(client, "q").error_code, describe(client, "q").configs) == (0, [])
    assert change(client, ("retention.ms", SET, "1"), name="q")[0] == ErrorCode.POLICY_VIOLATION
    assert alter(client, {}, name="q")[0] == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("type", "name", "error"),
    [
        (OF_TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (OF_TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (OF_TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (OF_BROKER, "2", ErrorCode.INVALID_REQUEST),
        (OF_BROKER, "x", ErrorCode.INVALID_REQUEST),
        (OF_GROUP, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, str(NODE_ID), ErrorCode.INVALID_REQUEST),
        (0, "t", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_there(client: Client, type: int, name: str, error: ErrorCode) -> None:
    result = describe(client, name, type)
    assert (result.error_code, result.configs) == (error, [])
    assert result.error_message
    assert alter(client, {"no.such": "x"}, name, type)[0] == error
    assert change(client, ("no.such", SET, "x"), name=name, type=type)[0] == error


# -- changed


@pytest.mark.parametrize("version", range(3))
def test_all_is_set_anew_in_every_version(play: Play, client: Client, version: int) -> None:
    assert alter(client, {"segment.ms": "77", "preallocate": "TRUE"}, version=version) == (0, None)
    for _ in range(2):
        found = values(play.connect())
        assert (found["segment.ms"], found["preallocate"]) == ("77", "true")
        assert (found["retention.ms"], found["flush.ms"]) == ("604800000", TOPIC["flush.ms"].default)
        play.restart()


@pytest.mark.parametrize("version", range(2))
def test_single_ones_are_set_and_removed_in_every_version(play: Play, client: Client, version: int) -> None:
    changes = (("segment.ms", SET, "77"), ("flush.ms", DELETE, None), ("cleanup.policy", APPEND, "compact"))
    assert change(client, *changes, version=version) == (0, None)
    for _ in range(2):
        found = values(play.connect())
        assert (found["segment.ms"], found["retention.ms"]) == ("77", "1000")
        assert (found["flush.ms"], found["cleanup.policy"]) == (TOPIC["flush.ms"].default, "delete,compact")
        play.restart()
    assert change(play.connect(), ("cleanup.policy", SUBTRACT, "delete"), version=version) == (0, None)
    assert values(play.connect())["cleanup.policy"] == "compact"


def test_lists_without_words_are_lists_too(client: Client) -> None:
    name = "leader.replication.throttled.replicas"
    assert change(client, (name, APPEND, "0:1,1:1")) == (0, None)
    assert change(client, (name, APPEND, "1:1,2:1")) == (0, None)
    assert values(client)[name] == "0:1,1:1,2:1"
    assert change(client, (name, SUBTRACT, "0:1,9:1")) == (0, None)
    assert values(client)[name] == "1:1,2:1"


def test_what_is_only_checked_changes_nothing(client: Client) -> None:
    before = values(client)
    assert alter(client, {"segment.ms": "77"}, validate_only=True) == (0, None)
    assert change(client, ("segment.ms", SET, "77"), validate_only=True) == (0, None)
    assert change(client, ("segment.ms", SET, "x"), validate_only=True)[0] == ErrorCode.INVALID_CONFIG
    assert values(client) == before


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("no.such", SET, "x")], ErrorCode.INVALID_CONFIG),
        ([("no.such", APPEND, "x")], ErrorCode.INVALID_CONFIG),
        ([("segment.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        ([("segment.ms", SET, "0")], ErrorCode.INVALID_CONFIG),
        ([("segment.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", SET, "keep")], ErrorCode.INVALID_CONFIG),
        ([("remote.storage.enable", SET, "true")], ErrorCode.INVALID_CONFIG),
        ([("segment.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
        ([("segment.ms", SET, "5"), ("segment.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("segment.ms", 4, "5")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused_changes_nothing(client: Client, changes: list[Any], error: ErrorCode) -> None:
    before = values(client)
    code, sentence = change(client, ("retention.ms", SET, "7"), *changes)
    assert code == error
    assert sentence
    assert values(client) == before
    if {op for _, op, _ in changes} == {SET}:
        assert alter(client, {name: text for name, _, text in changes}) == (code, sentence)


def test_each_config_does_what_the_table_says_of_it(client: Client) -> None:
    for name, row in TOPIC.items():
        assert change(client, (name, SET, row.default)) == (0, None), name
        if row.effect is Effect.REFUSED:
            other = {"false": "true"}.get(row.default, "5")
            assert change(client, (name, SET, other))[0] == ErrorCode.INVALID_CONFIG, name


def test_one_resource_twice_is_not_touched_and_costs_the_others_nothing(client: Client) -> None:
    assert a.create(client, "u").error_code == 0
    resources = [
        ia.AlterConfigsResource(OF_TOPIC, name, [ia.AlterableConfig("segment.ms", SET, text)])
        for name, text in (("t", "7"), ("u", "8"), ("t", "9"))
    ]
    answer = client.ask(ia.IncrementalAlterConfigsRequest(resources), 1)
    assert [(one.resource_name, one.error_code) for one in answer.responses] == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", 0),
        ("t", ErrorCode.INVALID_REQUEST),
    ]
    assert (values(client)["segment.ms"], values(client, "u")["segment.ms"]) == ("604800000", "8")


def test_the_brokers_are_the_operators(client: Client) -> None:
    for name in (str(NODE_ID), ""):
        code, sentence = change(client, ("num.partitions", SET, "5"), name=name, type=OF_BROKER)
        assert (code, "num.partitions" in str(sentence)) == (ErrorCode.INVALID_REQUEST, True)
        assert change(client, ("no.such", APPEND, "5"), name=name, type=OF_BROKER)[0] == ErrorCode.INVALID_CONFIG
        assert alter(client, {"num.partitions": "5"}, name, OF_BROKER)[0] == ErrorCode.INVALID_REQUEST
    assert values(client, str(NODE_ID), OF_BROKER)["num.partitions"] == "1"


# -- what clients set for all topics

OF_ALL, OF_THIS = "", str(NODE_ID)


def default(client: Client, name: str, where: str, **configs: str) -> None:
    changes = [(name.replace("_", "."), SET, text) for name, text in configs.items()]
    assert change(client, *changes, name=where, type=OF_BROKER) == (0, None), name


def test_what_topics_begin_with_is_set_for_all_brokers_or_for_this_one(client: Client) -> None:
    def told(name: str = "t", type: int = OF_TOPIC) -> Any:
        (one,) = describe(client, name, type, keys=["segment.ms"], include_synonyms=True).configs
        return one.value, one.config_source, [(one.name, one.value, one.source) for one in one.synonyms]

    mine, built_in = ("log.roll.ms", "604800000", 5), ("segment.ms", "7", 1)
    default(client, "for all", OF_ALL, log_roll_ms="5000")
    all_say = ("log.roll.ms", "5000", 3)
    assert told() == ("5000", 3, [all_say, mine])
    default(client, "for this one", OF_THIS, log_roll_ms="6000")
    this_says = ("log.roll.ms", "6000", 2)
    assert told() == ("6000", 2, [this_says, all_say, mine])
    put(client, segment_ms="7")
    assert told() == ("7", 1, [built_in, this_says, all_say, mine])
    (broker,) = describe(client, OF_THIS, OF_BROKER, keys=["log.roll.ms"], include_synonyms=True).configs
    assert (broker.value, broker.config_source, broker.read_only) == ("6000", 2, False)
    assert [one.source for one in broker.synonyms] == [2, 3, 5]
    assert values(client, OF_ALL, OF_BROKER) == {"log.roll.ms": "5000", "min.insync.replicas": "1"}
    for where in (OF_ALL, OF_THIS):
        assert change(client, ("log.roll.ms", DELETE, None), name=where, type=OF_BROKER)[0] == 0
    assert change(client, ("segment.ms", DELETE, None))[0] == 0
    assert told() == ("604800000", 5, [mine])


def test_what_is_set_for_all_acts_on_topics_that_are_there_and_on_those_to_come(play: Play, client: Client) -> None:
    put(client, max_message_bytes="3000")
    a.create(client, "u")
    default(client, "smaller", OF_ALL, message_max_bytes="2000", log_cleanup_policy="compact")
    a.create(client, "v")
    batch = packed(b"x" * 2_500)

    def sent() -> list[int]:
        return [
            client.ask(a.one_batch(batch, name), 9).responses[0].partition_responses[0].error_code for name in "tuv"
        ]

    assert sent() == [0, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE]
    keyless = client.ask(a.one_batch([Record(None, b"v", (), play.clock.now_ms())], "u"), 9)
    assert keyless.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD
    play.restart()
    client = play.connect()
    assert values(client, "u")["max.message.bytes"] == "2000"
    assert sent() == [0, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE]
    assert alter(client, {}, OF_ALL, OF_BROKER)[0] == 0
    assert sent() == [0, 0, 0]


def test_retention_set_for_all_acts(play: Play, client: Client) -> None:
    play.core.topics.retention.grace_ms = 0
    a.create(client, "u")
    client.ask(a.one_batch(packed(b"x"), "u"), 9)
    play.advance(10_000)
    assert play.core.topic("/", "u").log_start(0) == 0
    default(client, "short", OF_ALL, log_retention_ms="1000")
    play.advance(10_000)
    assert play.core.topic("/", "u").log_start(0) == 1


def test_some_are_kept_and_shown(play: Play, client: Client) -> None:
    default(client, "", OF_THIS, num_io_threads="4", log_flush_interval_ms="9")
    play.restart()
    client = play.connect()
    found = values(client, OF_THIS, OF_BROKER)
    assert (found["num.io.threads"], found["log.flush.interval.ms"]) == ("4", "9")
    assert values(client)["flush.ms"] == "5"
    assert values(client, OF_ALL, OF_BROKER) == {"min.insync.replicas": "1"}


@pytest.mark.parametrize("name", ["num.io.threads", "log.roll.ms"])
def test_what_cannot_be_is_not_set_for_all(client: Client, name: str) -> None:
    for where in (OF_ALL, OF_THIS):
        code, sentence = change(client, (name, SET, "many"), name=where, type=OF_BROKER)
        assert (code, "many" in str(sentence)) == (ErrorCode.INVALID_REQUEST, True)
        assert change(client, (name, SET, "5"), name=where, type=OF_BROKER, validate_only=True)[0] == 0
    assert values(client, OF_THIS, OF_BROKER)[name] == BROKER[name].default


def test_an_answer_waits_for_the_disk(play: Play, client: Client) -> None:
    resource = ia.AlterConfigsResource(OF_TOPIC, "t", [ia.AlterableConfig("segment.ms", SET, "7")])
    client.send(ia.IncrementalAlterConfigsRequest([resource]), 1)
    client.send(ac.AlterConfigsRequest([ac.AlterConfigsResource(OF_TOPIC, "t", [])]), 2)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert len(client.listen()) == 2


# -- what acts does so at once


def kept(client: Client) -> list[bytes | None]:
    return [record.value for _, record in a.read(client, a.offset(client, a.EARLIEST))]


def record(play: Play, value: bytes = b"v", key: bytes | None = b"k") -> Record:
    return Record(key, value, (), play.clock.now_ms())


def test_retention_by_age(play: Play, client: Client) -> None:
    put(client, retention_ms="-1")
    for _ in range(BLOCK_BATCHES):
        a.send(client, [record(play, b"old")])
    play.advance(2 * MINUTE_MS)
    a.send(client, [record(play, b"new")])
    play.advance(1_000)
    assert len(kept(client)) == BLOCK_BATCHES + 1
    put(client, retention_ms=str(MINUTE_MS))
    play.advance(200)
    assert kept(client) == [b"new"]
    assert a.offset(client, a.EARLIEST) == BLOCK_BATCHES


def test_retention_by_size(play: Play, client: Client) -> None:
    put(client, retention_ms="-1")
    for _ in range(3 * BLOCK_BATCHES):
        a.send(client, [record(play)])
    play.advance(200)
    assert a.offset(client, a.EARLIEST) == 0
    put(client, retention_bytes=str(BLOCK_BATCHES * 60))
    play.advance(200)
    assert a.offset(client, a.EARLIEST) == 2 * BLOCK_BATCHES


def test_what_is_neither_deleted_nor_compacted_stays(play: Play, client: Client) -> None:
    assert change(client, ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert values(client)["cleanup.policy"] == ""
    for _ in range(2 * BLOCK_BATCHES):
        a.send(client, [record(play)])
    play.advance(2 * MINUTE_MS)
    play.restart()
    client = play.connect()
    play.advance(1_000)
    assert a.offset(client, a.EARLIEST) == 0
    put(client, cleanup_policy="delete")
    play.advance(1_000)
    assert a.offset(client, a.EARLIEST) > 0


def fill(play: Play, client: Client) -> None:
    """More than one journal file holds, all at one time."""
    for _ in range(100):
        a.send(client, [record(play, bytes(4_000))])
    play.advance(1_000)


def segments(play: Play) -> list[int]:
    """The bytes of each."""
    (number,) = play.core.catalog.topic("/", "t").partitions
    return [segment.bytes for segment in play.core.storage.partition(number).segments]


def test_how_large_segments_grow(play: Play, client: Client) -> None:
    put(client, retention_ms="-1")
    fill(play, client)
    assert len(segments(play)) == 1
    put(client, segment_bytes="50000")
    fill(play, client)
    before, *later = segments(play)
    assert before > 200_000
    assert len(later) >= 4
    assert max(later) <= 50_000


@pytest.mark.parametrize(("segment_ms", "merges"), [(10 * MINUTE_MS, True), (MINUTE_MS, False)])
def test_over_how_much_time_segments_are_merged(play: Play, client: Client, segment_ms: int, merges: bool) -> None:
    put(client, retention_ms="-1", segment_ms=str(segment_ms))
    fill(play, client)
    (before,) = segments(play)
    play.clock.advance(2 * MINUTE_MS)
    fill(play, client)
    assert (segments(play)[0] > before) == merges


def test_a_compacted_topic_takes_keys_only(play: Play, client: Client) -> None:
    assert a.send(client, [record(play, key=None)]).error_code == 0
    put(client, cleanup_policy="compact")
    assert a.send(client, [record(play, key=None)]).error_code == ErrorCode.INVALID_RECORD
    assert a.send(client, [record(play)]).error_code == 0
    keys = [b"a", None, b"", None]
    refused = a.send(client, [record(play, key=key) for key in keys])
    assert [one.batch_index for one in refused.record_errors] == [1, 3]
    play.restart()
    assert a.send(play.connect(), [record(play, key=None)]).error_code == ErrorCode.INVALID_RECORD


def test_of_each_key_the_newest_record_stays_once_it_is_old_enough(play: Play, client: Client) -> None:
    put(client, cleanup_policy="compact", min_compaction_lag_ms=str(60 * MINUTE_MS))
    for number in range(180):
        a.send(client, [record(play, b"%d" % number + bytes(4_000), b"%d" % (number % 3))])
    play.advance(3_000)
    assert len(kept(client)) == 180
    put(client, min_compaction_lag_ms="0")
    a.send(client, [record(play, b"180", b"other")])
    play.advance(3_000)
    left = [(found.key, int(found.value.rstrip(b"\0"))) for _, found in a.read(client) if found.value]
    assert len(left) < 120
    assert dict(left) == {b"0": 177, b"1": 178, b"2": 179, b"other": 180}
    assert a.offset(client, a.EARLIEST) == 0


def test_times_that_are_too_far_away(play: Play, client: Client) -> None:
    def send(ms: int) -> int:
        return int(a.send(client, [Record(b"k", b"v", (), play.clock.now_ms() + ms)]).error_code)

    assert send(-5 * MINUTE_MS) == send(5 * MINUTE_MS) == 0
    assert send(61 * MINUTE_MS) == ErrorCode.INVALID_TIMESTAMP
    put(client, message_timestamp_before_max_ms=str(MINUTE_MS), message_timestamp_after_max_ms="1000")
    assert send(-5 * MINUTE_MS) == send(5 * MINUTE_MS) == ErrorCode.INVALID_TIMESTAMP
    assert send(0) == 0


def test_the_largest_batch(play: Play, client: Client) -> None:
    assert a.send(client, [record(play, bytes(3_000))]).error_code == 0
    put(client, max_message_bytes="2048")
    assert a.send(client, [record(play, bytes(3_000))]).error_code == ErrorCode.MESSAGE_TOO_LARGE
    play.restart()
    client = play.connect()
    assert a.send(client, [record(play, bytes(3_000))]).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert change(client, ("max.message.bytes", DELETE, None)) == (0, None)
    assert a.send(client, [record(play, bytes(3_000))]).error_code == 0


def test_whose_time_records_have(play: Play, client: Client) -> None:
    was = Record(b"k", b"v", (), play.clock.now_ms() - 1_000)
    assert a.send(client, [was]).log_append_time_ms == -1
    put(client, message_timestamp_type="LogAppendTime")
    now_ms = play.clock.now_ms()
    assert a.send(client, [was]).log_append_time_ms == now_ms
    first, second = a.headers(client)
    assert (first.log_append_time, second.log_append_time, second.max_timestamp_ms) == (False, True, now_ms)
    play.restart()
    assert a.send(play.connect(), [was]).log_append_time_ms == play.clock.now_ms()


def test_what_batches_are_packed_with(play: Play, client: Client) -> None:
    for name, codec in (("gzip", Codec.GZIP), ("zstd", Codec.ZSTD), ("uncompressed", Codec.NONE)):
        put(client, compression_type=name)
        offset = a.send(client, [record(play, bytes(500))], codec=Codec.LZ4).base_offset
        (header,) = a.headers(client, offset)
        assert header.attributes & batches.CODEC_MASK == codec
    put(client, compression_type="producer")
    offset = a.send(client, [record(play, bytes(500))], codec=Codec.LZ4).base_offset
    assert a.headers(client, offset)[0].attributes & batches.CODEC_MASK == Codec.LZ4


def test_what_an_acknowledgement_waits_for(play: Play, client: Client) -> None:
    for durability, waits in (("os", False), ("sync", True), ("default", True)):
        put(client, interlog_durability=durability)
        client.send(a.one_batch([record(play)]), 11)
        play.turn(sync=False)
        assert len(client.listen(turn=False)) == (0 if waits else 1)
        assert len(client.listen()) == (1 if waits else 0)


# -- of groups


def test_a_group_is_described_and_set(play: Play, client: Client) -> None:
    found = {one.name: one for one in describe(client, "g", OF_GROUP, include_synonyms=True).configs}
    session = found["consumer.session.timeout.ms"]
    assert (session.value, session.config_source, session.config_type) == ("45000", 5, 3)
    assert change(client, (session.name, SET, "9000"), name="g", type=OF_GROUP) == (0, None)
    for _ in range(2):
        client = play.connect()
        session = describe(client, "g", OF_GROUP, keys=[session.name], include_synonyms=True).configs[0]
        assert (session.value, session.config_source) == ("9000", 8)
        assert [(one.name, one.value, one.source) for one in session.synonyms] == [
            ("consumer.session.timeout.ms", "9000", 8),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ]
        assert values(client, "h", OF_GROUP)[session.name] == "45000"
        play.restart()
    assert alter(play.connect(), {}, "g", OF_GROUP) == (0, None)
    assert values(play.connect(), "g", OF_GROUP)[session.name] == "45000"


@pytest.mark.parametrize(
    "configs",
    [
        {"no.such": "5"},
        {"consumer.session.timeout.ms": "x"},
        {"consumer.session.timeout.ms": "999"},
        {"consumer.session.timeout.ms": "3000"},
        {"consumer.heartbeat.interval.ms": "45000"},
    ],
)
def test_what_a_group_cannot_be_set_to(client: Client, configs: dict[str, str | None]) -> None:
    before = values(client, "g", OF_GROUP)
    assert alter(client, configs, "g", OF_GROUP)[0] == ErrorCode.INVALID_CONFIG
    assert change(client, *((*one[:1], SET, one[1]) for one in configs.items()), name="g", type=OF_GROUP)[0] == (
        ErrorCode.INVALID_CONFIG
    )
    assert values(client, "g", OF_GROUP) == before


def test_a_groups_own_timeouts_act(play: Play, client: Client) -> None:
    def stays(ms: int) -> bool:
        joined = g.beat(client)
        play.advance(ms)
        return bool(g.beat(client, epoch=joined.member_epoch).error_code == 0)

    assert stays(8_000)
    configs: dict[str, str | None] = {"consumer.session.timeout.ms": "7000", "consumer.heartbeat.interval.ms": "2000"}
    assert alter(client, configs, "g", OF_GROUP) == (0, None)
    assert g.beat(client).heartbeat_interval_ms == 2_000
    assert stays(6_000)
    assert not stays(8_000)
    play.restart()
    client = play.connect()
    assert not stays(8_000)


# -- who may


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Play]:
    yield from a.closed(tmp_path / "closed", ann=("t.*|g", "", ""), bob=("", "x", "g"), cy=("", "", ""))


def test_permissions(closed: Play) -> None:
    closed.core.create_topic("/", "t1")
    closed.core.access.set_tags("cy", ["monitoring"])
    ann, bob, cy = (a.login(closed, name) for name in ("ann", "bob", "cy"))
    t1: dict[str, Any] = {"name": "t1"}
    of_g: dict[str, Any] = {"name": "g", "type": OF_GROUP}
    of_1: dict[str, Any] = {"name": str(NODE_ID), "type": OF_BROKER}
    topic_failed, group_failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
    cluster_failed = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert [describe(one, **t1).error_code for one in (ann, bob, cy)] == [0, topic_failed, topic_failed]
    assert [describe(one, **of_g).error_code for one in (ann, bob, cy)] == [0, 0, group_failed]
    assert [describe(one, **of_1).error_code for one in (ann, bob, cy)] == [cluster_failed, cluster_failed, 0]
    segment = ("segment.ms", SET, "7")
    assert [change(one, segment, **t1)[0] for one in (ann, bob, cy)] == [0, topic_failed, topic_failed]
    session = ("consumer.session.timeout.ms", SET, "9000")
    assert [change(one, session, **of_g)[0] for one in (ann, bob, cy)] == [0, group_failed, group_failed]
    assert [alter(one, {}, **of_1)[0] for one in (ann, bob, cy)] == [cluster_failed] * 3
    assert describe(bob, "none").error_code == topic_failed
