"""Kafka's configs of the broker: what clients and tools look at, as it is here.

Comes in: the service. Goes out: names and texts. None of them can be changed by a client: some are Interlog's own
settings, which the operator sets, and the others are what they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interlog.core.groups import GroupSettings
from interlog.core.producers import EXPIRATION_MS as PRODUCER_EXPIRATION_MS
from interlog.core.transactions import EXPIRATION_MS, MAX_TIMEOUT_MS
from interlog.faces.kafka.configs import TOPIC, Kind
from interlog.faces.kafka.sasl import MECHANISMS
from interlog.faces.kafka.service import NODE_ID, KafkaService, KafkaSettings

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_MAX_I32: Final = (1 << 31) - 1
_GROUPS: Final = GroupSettings()


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    name: str
    kind: Kind
    value: Callable[[KafkaService], str | None]
    default: str | None
    doc: str
    set_by: str = ""  # a setting of Interlog


def _is(name: str, kind: Kind, value: object, doc: str) -> BrokerConfig:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return BrokerConfig(name, kind, lambda service: text, text, doc)


def _set(name: str, kind: Kind, value: Callable[[KafkaSettings], object], set_by: str, doc: str) -> BrokerConfig:
    def text(settings: KafkaSettings) -> str:
        found = value(settings)
        return str(found).lower() if isinstance(found, bool) else str(found)

    return BrokerConfig(name, kind, lambda service: text(service.settings), text(KafkaSettings()), doc, set_by)


def _of_topics() -> list[BrokerConfig]:
    """What a topic has where nobody set it."""
    return [
        _is(row.broker, row.kind, row.default, f"What {row.name} is for topics that do not set it. {row.doc}")
        for row in TOPIC.values()
        if row.broker
    ]


_BOOLEAN, _STRING, _INT, _LONG, _LIST = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG, Kind.LIST

_ROWS: Final = (
    BrokerConfig(
        "advertised.listeners", _STRING, lambda service: service.settings.advertised or None, None,
        "The address that clients are told. Without one, the address that they came to.", "kafka_advertised",
    ),
    _is(
        "authorizer.class.name", _STRING, "interlog",
        "Permissions and rules hold for users who have logged in.",
    ),
    _set(
        "auto.create.topics.enable", _BOOLEAN, lambda of: of.auto_create, "kafka_auto_create",
        "Whether a topic that is asked for, and is not there, is made.",
    ),
    _is("auto.leader.rebalance.enable", _BOOLEAN, False, "One broker leads everything."),
    _is("broker.id", _INT, NODE_ID, "The number of the only broker."),
    _set(
        "connections.max.idle.ms", _LONG, lambda of: int(of.idle_s * 1000), "kafka_idle_ms",
        "How long a connection may keep still on which nothing is owed.",
    ),
    _is("default.replication.factor", _INT, 1, "There is one copy of each partition."),
    _is("delete.topic.enable", _BOOLEAN, True, "Topics can be deleted."),
    _set(
        "fetch.max.bytes", _INT, lambda of: of.fetch_max_bytes, "kafka_fetch_bytes",
        "The most that one answer to a fetch holds.",
    ),
    _is("group.coordinator.rebalance.protocols", _LIST, "classic,consumer,share", "How groups may be made."),
    _set(
        "group.consumer.heartbeat.interval.ms", _INT, lambda of: of.group_heartbeat_ms, "kafka_group_heartbeat_ms",
        "How often a member of a group of the newer kind is told to send a heartbeat.",
    ),
    _is(
        "group.consumer.migration.policy", _STRING, "bidirectional",
        "Groups move to the newer kind and back with members in them.",
    ),
    _set(
        "group.consumer.session.timeout.ms", _INT, lambda of: of.group_session_ms, "kafka_group_session_ms",
        "How long a member of a group of the newer kind may be silent.",
    ),
    _set(
        "group.initial.rebalance.delay.ms", _INT, lambda of: of.rebalance_delay_ms, "kafka_rebalance_delay_ms",
        "How long the first member of a group waits for more.",
    ),
    _set(
        "group.max.session.timeout.ms", _INT, lambda of: of.max_session_ms, "kafka_max_session_ms",
        "The longest session timeout that a member may ask for.",
    ),
    _set(
        "group.min.session.timeout.ms", _INT, lambda of: of.min_session_ms, "kafka_min_session_ms",
        "The shortest session timeout that a member may ask for.",
    ),
    *(
        _is(f"group.share.{name}", _INT, value, doc)
        for name, value, doc in (
            ("delivery.count.limit", _GROUPS.share_deliveries, "How often a record is delivered in a share group."),
            (
                "heartbeat.interval.ms", _GROUPS.share_heartbeat_ms,
                "How often a member of a share group is told to send a heartbeat.",
            ),
            (
                "partition.max.record.locks", _GROUPS.share_locks,
                "How many records of a partition a share group looks after one by one.",
            ),
            (
                "record.lock.duration.ms", _GROUPS.share_lock_ms,
                "How long a member of a share group holds the records that it was given.",
            ),
            ("session.timeout.ms", _GROUPS.share_session_ms, "How long a member of a share group may be silent."),
        )
    ),
    BrokerConfig(
        "log.dirs", _STRING, lambda service: str(service.core.folder), None, "The data folder.", "data"
    ),
    _is(
        "log.retention.hours", _INT, int(TOPIC["retention.ms"].default) // _HOUR_MS,
        "What log.retention.ms is, in hours.",
    ),
    _is("log.roll.hours", _INT, int(TOPIC["segment.ms"].default) // _HOUR_MS, "What log.roll.ms is, in hours."),
    _is("node.id", _INT, NODE_ID, "The number of the only broker."),
    _set(
        "num.partitions", _INT, lambda of: of.default_partitions, "kafka_default_partitions",
        "How many partitions a topic gets if nobody says how many.",
    ),
    _set(
        "offsets.retention.minutes", _INT, lambda of: of.offsets_retention_ms // _MINUTE_MS,
        "kafka_offsets_retention_ms", "How long the offsets of a group without members are kept.",
    ),
    _is("offsets.topic.replication.factor", Kind.SHORT, 1, "Offsets are kept in the journal, not in a topic."),
    _is("process.roles", _LIST, "broker,controller", "One process is both."),
    _is(
        "producer.id.expiration.ms", _INT, PRODUCER_EXPIRATION_MS,
        "How long what is known of an idempotent producer is kept after its last batch.",
    ),
    _is("sasl.enabled.mechanisms", _LIST, ",".join(MECHANISMS), "How clients can log in."),
    _set(
        "socket.request.max.bytes", _INT, lambda of: of.max_request_bytes, "kafka_request_bytes",
        "The largest request that is read.",
    ),
    _is("transaction.max.timeout.ms", _INT, MAX_TIMEOUT_MS, "The longest timeout that a transaction may have."),
    _is("transaction.state.log.min.isr", _INT, 1, "Transactions are kept in the journal, not in a topic."),
    _is(
        "transaction.state.log.replication.factor", Kind.SHORT, 1,
        "Transactions are kept in the journal, not in a topic.",
    ),
    _is(
        "transactional.id.expiration.ms", _INT, EXPIRATION_MS,
        "How long a transactional id is kept after its last transaction.",
    ),
    *_of_topics(),
)  # fmt: skip

BROKER: Final[dict[str, BrokerConfig]] = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}
