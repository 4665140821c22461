"""Kafka's configs of the broker: what clients and tools look at, as it is here.

Comes in: the service. Goes out: names and texts. What topics begin with can be set by a client, for all brokers or for
this one, and acts; some others can be set too, and are kept and shown. The rest are Interlog's own settings, which the
operator sets, or are what they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from interlog.base.errors import InvalidError
from interlog.core.groups import GroupSettings
from interlog.core.producers import EXPIRATION_MS as PRODUCER_EXPIRATION_MS
from interlog.core.topic_defaults import CLUSTER, default_settings, keep_defaults
from interlog.core.transactions import EXPIRATION_MS, MAX_TIMEOUT_MS
from interlog.faces.kafka.configs import NOTES, TOPIC, Config, Effect, Kind, configs_from, settings_from
from interlog.faces.kafka.sasl import MECHANISMS
from interlog.faces.kafka.service import KafkaService, KafkaSettings

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
    dynamic: Config | None = None  # what a client's text for it must be: the topic's config, or one that is kept

    @property
    def here(self) -> str:
        """What becomes of it."""
        if self.set_by:
            return f"setting `{self.set_by}`"
        return "fixed" if self.dynamic is None else self.dynamic.effect.value


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
        replace(
            _is(row.broker, row.kind, row.default, f"What {row.name} is for topics that do not set it. {row.doc}"),
            dynamic=None if row.effect is Effect.REFUSED else row,
        )
        for row in TOPIC.values()
        if row.broker
    ]


def _kept(name: str, kind: Kind, default: str, doc: str) -> BrokerConfig:
    row = Config(name, kind, default, Effect.IGNORED, doc, name)
    return replace(_is(name, kind, default, doc), dynamic=row)


_BOOLEAN, _STRING, _INT, _LONG, _LIST = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG, Kind.LIST

_THREADS: Final = "One thread does the work; a few others write files."
_CLEANER: Final = "Compaction has a size and a pace of its own."
_NO_KERBEROS: Final = "Clients cannot log in by Kerberos."

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
    _set("broker.id", _INT, lambda of: of.node_id, "kafka_node_id", "The number of the only broker."),
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
    _set("node.id", _INT, lambda of: of.node_id, "kafka_node_id", "The number of the only broker."),
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
    *(
        _kept(name, kind, default, _THREADS)
        for name, kind, default in (
            ("background.threads", _INT, "10"), ("log.cleaner.threads", _INT, "1"), ("num.io.threads", _INT, "8"),
            ("num.network.threads", _INT, "3"), ("num.recovery.threads.per.data.dir", _INT, "2"),
            ("num.replica.fetchers", _INT, "1"),
        )
    ),
    *(
        _kept(name, kind, default, _CLEANER)
        for name, kind, default in (
            ("log.cleaner.backoff.ms", _LONG, "15000"), ("log.cleaner.dedupe.buffer.size", _LONG, "134217728"),
            ("log.cleaner.io.buffer.load.factor", Kind.DOUBLE, "0.9"), ("log.cleaner.io.buffer.size", _INT, "524288"),
            ("log.cleaner.io.max.bytes.per.second", Kind.DOUBLE, "1.7976931348623157E308"),
        )
    ),
    *(
        _kept(name, kind, default, _NO_KERBEROS)
        for name, kind, default in (
            ("sasl.kerberos.kinit.cmd", _STRING, "/usr/bin/kinit"),
            ("sasl.kerberos.min.time.before.relogin", _LONG, "60000"),
            ("sasl.kerberos.principal.to.local.rules", _LIST, "DEFAULT"), ("sasl.kerberos.service.name", _STRING, ""),
            ("sasl.kerberos.ticket.renew.jitter", Kind.DOUBLE, "0.05"),
            ("sasl.kerberos.ticket.renew.window.factor", Kind.DOUBLE, "0.8"),
        )
    ),
    *(
        _kept(name, _LONG, "9223372036854775807", "There is one copy of each partition.")
        for name in (
            "follower.replication.throttled.rate", "leader.replication.throttled.rate",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    ),
    *_of_topics(),
)  # fmt: skip

BROKER: Final[dict[str, BrokerConfig]] = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}


# -- what clients set, for all brokers (CLUSTER) or for this one (BROKER) of the core's topic defaults

# Since Kafka 4.1 a cluster has this one from its beginning.
_FROM_THE_BEGINNING: Final = {"min.insync.replicas": TOPIC["min.insync.replicas"].default}


def configs_set(service: KafkaService, where: str) -> dict[str, str]:
    """Names and texts."""
    settings = default_settings(service.core.catalog, service.settings.namespace, where)
    found = {TOPIC[name].broker: text for name, text in configs_from(settings).items()}
    found |= {name: text for name, text in settings.get(NOTES, {}).items() if name in BROKER}
    return _FROM_THE_BEGINNING | found if where == CLUSTER else found


def set_configs(service: KafkaService, where: str, configs: Mapping[str, str], *, validate_only: bool) -> None:
    """Set these in place of all that is set; InvalidError says what cannot be set, or not so."""
    fixed = sorted(name for name in configs if name not in BROKER or BROKER[name].dynamic is None)
    if fixed:
        raise InvalidError(f"Cannot update these configs dynamically: {', '.join(fixed)}. The operator sets them.")
    of_topics: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, text in configs.items():
        row = BROKER[name].dynamic
        assert row is not None
        if row.name in TOPIC:
            of_topics[row.name] = text
        else:
            notes[name] = row.check(text)
    settings = settings_from(of_topics)
    if notes:
        settings[NOTES] = {**settings.get(NOTES, {}), **notes}
    if not validate_only:
        keep_defaults(service.core.catalog, service.settings.namespace, where, settings)
