"""Settings: one table, checked once, frozen afterwards.

Each field of `Settings` is a row of the table: its name, kind, default, what is allowed and what it is for. The same
name is a key of `interlog.toml` (`http_port`), an environment variable (`INTERLOG_HTTP_PORT`) and a flag
(`--http-port`); a flag wins over the environment, the environment over the file. Every error names the key, the
value, where it came from and what is allowed.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from interlog.app.kinds import (
    Address,
    Advertised,
    Bytes,
    Choice,
    Duration,
    Folder,
    Kind,
    Names,
    Number,
    OptionalFile,
    Port,
    Text,
    nearest,
)
from interlog.base.errors import SettingError
from interlog.base.log import FORMATS, LEVELS

FILE_NAME = "interlog.toml"
ENVIRONMENT_PREFIX = "INTERLOG_"

TLS_PROTOCOLS = frozenset(("amqps", "kafkas", "https"))

# Variables of the command line: the settings' file, and where and as whom its commands reach a running broker.
NOT_SETTINGS = frozenset(("config", "url", "user", "password"))

KiB, MiB, GiB, TiB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000


def _row(default: Any, kind: Kind, help: str) -> Any:
    return field(default=default, metadata={"kind": kind, "help": help}, repr=not getattr(kind, "secret", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the broker was told. Make one with `load` or `from_arguments`, which check every value."""

    data: Path = _row(Path("data"), Folder(), "The data folder. It is made where there is none.")
    host: str = _row("127.0.0.1", Address(), "The address that all ports are opened on. 0.0.0.0 is every one (IPv4).")
    amqp_port: int | None = _row(5672, Port("AMQP"), "The port of AMQP 0-9-1 clients.")
    amqps_port: int | None = _row(None, Port("AMQP over TLS"), "The port of AMQP clients over TLS.")
    kafka_port: int | None = _row(9092, Port("Kafka"), "The port of Kafka clients.")
    kafkas_port: int | None = _row(None, Port("Kafka over TLS"), "The port of Kafka clients over TLS.")
    rocketmq_port: int | None = _row(None, Port("RocketMQ (gRPC)", built=False), "The port of RocketMQ 5 clients.")
    rocketmq_remoting_port: int | None = _row(
        None, Port("RocketMQ remoting", built=False), "The port of RocketMQ 4 clients."
    )
    zookeeper_port: int | None = _row(None, Port("ZooKeeper", built=False), "The port of ZooKeeper clients.")
    http_port: int | None = _row(15672, Port("HTTP"), "The port of /health, /status, /metrics and the management API.")
    https_port: int | None = _row(None, Port("HTTP over TLS"), "The port of the same over TLS.")
    tls_certificate: Path | None = _row(
        None, OptionalFile(), "The broker's certificate, with those between it and its authority, in PEM form."
    )
    tls_key: Path | None = _row(
        None, OptionalFile(), "The certificate's key, in PEM form and not encrypted. none: it is in tls_certificate."
    )
    tls_ca: Path | None = _row(
        None, OptionalFile(), "The authorities that clients' certificates must come from, in PEM form."
    )
    tls_client: Literal["off", "optional", "required"] = _row(
        "off",
        Choice("off", "optional", "required"),
        "Whether clients on TLS ports are asked for a certificate. The name in it may be a user.",
    )
    default_user: str = _row(
        "guest", Text(255), "The administrator that the first start on a fresh folder makes; later starts ignore it."
    )
    default_password: str = _row("guest", Text(1024, secret=True), "The password of that user.")
    loopback_users: tuple[str, ...] = _row(
        ("guest",), Names(), "Users who may only come from the machine that the broker runs on."
    )
    durability: Literal["sync", "os"] = _row(
        "sync",
        Choice("sync", "os"),
        "What an acknowledgement stands for. sync: the disk has it. os: the operating system has it, and writes it out "
        "at most flush_ms later; a power cut may lose that much.",
    )
    flush_ms: int = _row(SECOND, Duration(10, HOUR), "With durability os: how long written bytes wait for the disk.")
    journal_file_bytes: int = _row(256 * MiB, Bytes(MiB, GiB), "How large a journal file grows before the next begins.")
    journal_roll_ms: int = _row(
        HOUR, Duration(SECOND, 30 * DAY, zero=True), "How old a journal file grows before the next begins. 0: any age."
    )
    checkpoint_ms: int = _row(
        30 * SECOND, Duration(100, DAY), "How often the state is saved, so that a start need not replay everything."
    )
    memory_bytes: int = _row(
        512 * MiB,
        Bytes(MiB, 64 * TiB),
        "What the messages of all queues may hold in memory. Past it, publishers are held back.",
    )
    queue_memory_bytes: int = _row(
        8 * MiB, Bytes(64 * KiB, TiB), "What one queue's messages may hold in memory; what is beyond waits on disk."
    )
    min_free_bytes: int = _row(
        50 * MiB, Bytes(0, 64 * TiB), "Publishers are held back while the disk has less room than this."
    )
    max_message_bytes: int = _row(
        128 * MiB, Bytes(KiB, 512 * MiB), "The largest message that is taken, without what it is wrapped in."
    )
    consumer_timeout_ms: int = _row(
        HOUR // 2,
        Duration(SECOND, 365 * DAY, zero=True),
        "How long a consumer may keep a message without acknowledging it before its channel is closed. 0: for ever.",
    )
    amqp_heartbeat_ms: int = _row(
        60 * SECOND,
        Duration(SECOND, HOUR, zero=True),
        "The heartbeat that AMQP clients are offered, in whole seconds. 0: none.",
    )
    amqp_frame_bytes: int = _row(
        128 * KiB, Bytes(4 * KiB, 16 * MiB), "The largest frame that AMQP clients are offered (frame_max)."
    )
    amqp_channel_max: int = _row(2047, Number(1, 65535), "How many channels an AMQP connection may have.")
    kafka_advertised: str = _row(
        "",
        Advertised(),
        "Where Kafka clients are told to come, which must be reachable from where they are; without a port, the one "
        "they came to. none: the address and port that a client came to.",
    )
    kafkas_advertised: str = _row(
        "", Advertised(), "The same for clients over TLS; the name must be in the broker's certificate."
    )
    kafka_namespace: str = _row(
        "/", Text(255), "The vhost whose topics and queues Kafka clients see. It is there from the first start on."
    )
    kafka_authentication: Literal["off", "on"] = _row(
        "off",
        Choice("off", "on"),
        "Whether Kafka clients must log in, by SASL or a client certificate. off: who does not may do everything.",
    )
    kafka_auto_create: Literal["on", "off"] = _row(
        "on", Choice("on", "off"), "Whether a topic that a Kafka client asks for is made if it is not there."
    )
    kafka_telemetry: Literal["off", "on"] = _row(
        "off",
        Choice("off", "on"),
        "Whether the calls for clients' metrics are offered. on: clients hear that nobody wants any, and get an id.",
    )
    kafka_node_id: int = _row(
        0, Number(0, 1_000_000), "The number that Kafka clients know this broker by, as node.id or broker.id."
    )
    kafka_default_partitions: int = _row(
        1, Number(1, 10_000), "How many partitions a topic gets where nobody says how many."
    )
    kafka_min_session_ms: int = _row(
        SECOND, Duration(1, HOUR), "The shortest session timeout that a member of a consumer group may ask for."
    )
    kafka_max_session_ms: int = _row(HOUR // 2, Duration(SECOND, DAY), "The longest one.")
    kafka_rebalance_delay_ms: int = _row(
        0,
        Duration(1, HOUR, zero=True),
        "How long the first member of a consumer group waits for others to join. 0: not.",
    )
    kafka_group_session_ms: int = _row(
        45 * SECOND,
        Duration(100, HOUR),
        "How long a member of a consumer group of the newer kind (group.protocol=consumer) may be silent before others "
        "get its partitions. Members of classic groups say so themselves.",
    )
    kafka_group_heartbeat_ms: int = _row(
        3 * SECOND, Duration(50, HOUR), "How often such a member is told to send a heartbeat."
    )
    kafka_offsets_retention_ms: int = _row(
        7 * DAY,
        Duration(SECOND, 3650 * DAY),
        "How long the offsets of a consumer group are kept once it has no members.",
    )
    kafka_request_bytes: int = _row(
        100 * MiB, Bytes(64 * KiB, GiB), "The largest request of a Kafka client. A larger one ends its connection."
    )
    kafka_fetch_bytes: int = _row(
        55 * MiB, Bytes(KiB, GiB), "The most that one answer to a fetch holds, unless its first batch alone is larger."
    )
    kafka_idle_ms: int = _row(
        HOUR // 6, Duration(SECOND, 30 * DAY), "How long a Kafka connection may keep still before it is closed."
    )
    ready_file: Path | None = _row(
        None, OptionalFile(), "A file that gets the real addresses as one JSON object once all ports accept."
    )
    log_format: str = _row("auto", Choice(*FORMATS), "auto: lines for people on a terminal, JSON anywhere else.")
    log_level: str = _row("info", Choice(*LEVELS), "The least important lines that are still written.")

    def ports(self) -> Iterator[tuple[str, int]]:
        """The protocols that are served and their ports, in the order of the table."""
        for row in table():
            port = getattr(self, row.name)
            if isinstance(row.kind, Port) and port is not None:
                yield row.name.removesuffix("_port"), port


@dataclass(frozen=True, slots=True)
class Row:
    """One setting, as the command line and the guide show it."""

    name: str
    kind: Kind
    default: Any
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def default_text(self) -> str:
        return self.kind.text(self.default)


def table() -> tuple[Row, ...]:
    return tuple(_as_row(one) for one in fields(Settings))


def _as_row(one: "Field[Any]") -> Row:
    return Row(one.name, one.metadata["kind"], one.default, one.metadata["help"])


def load(
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    config: Path | None = None,
    folder: Path | None = None,
) -> Settings:
    """Settings from the file (`config`, or interlog.toml in `folder` if it is there), the environment and the flags.

    Flags come by their names in the table (`http_port`).
    """
    environment = os.environ if environment is None else environment
    values = _from_file(config, folder if folder is not None else Path())
    values.update(_from_environment(environment))
    values.update({name: (text, f"the flag --{name.replace('_', '-')}") for name, text in (flags or {}).items()})
    return _check(values)


def from_arguments(arguments: Mapping[str, object]) -> Settings:
    """Settings from a Python call, as `interlog.Broker(**arguments)` makes it. Reads no file and no environment."""
    return _check({name: (value, "an argument") for name, value in arguments.items()})


Values = dict[str, tuple[object, str]]  # name → value, where it came from


def _check(values: Values) -> Settings:
    rows = {row.name: row for row in table()}
    checked: dict[str, Any] = {}
    for name, (value, source) in values.items():
        row = rows.get(name)
        if row is None:
            raise SettingError(f"{name} (from {source}) is not a setting.{_did_you_mean(name, rows)}")
        try:
            checked[name] = row.kind.parse(value)
        except ValueError as error:
            shown = "" if getattr(row.kind, "secret", False) else f" = {_show(value)}"
            raise SettingError(f"{name}{shown} (from {source}) {error}") from None
    settings = Settings(**checked)
    _check_together(settings)
    return settings


def _check_together(settings: Settings) -> None:
    """What no setting can tell alone."""
    if settings.kafka_group_heartbeat_ms >= settings.kafka_group_session_ms:
        raise SettingError(
            f"kafka_group_heartbeat_ms = {settings.kafka_group_heartbeat_ms} must be shorter than "
            f"kafka_group_session_ms = {settings.kafka_group_session_ms}: a member that does as told is there."
        )
    for protocol, port in settings.ports():
        if protocol in TLS_PROTOCOLS and settings.tls_certificate is None:
            raise SettingError(f"{protocol}_port = {port} needs a certificate: set tls_certificate and tls_key.")
    if settings.tls_client != "off" and settings.tls_ca is None:
        raise SettingError(
            f"tls_client = {settings.tls_client!r} needs tls_ca: the authorities that clients' certificates come from."
        )


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    near = nearest(name, names)
    return f" Did you mean {near}?" if near else " `interlog serve --help` lists all that there are."


def _show(value: object) -> str:
    return repr(value) if not isinstance(value, Path) else repr(str(value))


def _from_file(config: Path | None, folder: Path) -> Values:
    path = config if config is not None else folder / FILE_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if config is None:
            return {}
        raise SettingError(f"The settings file {path} does not exist.") from None
    except OSError as error:
        raise SettingError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    import tomllib  # here, because most starts have no file and should not pay for the parser

    try:
        content = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SettingError(f"The settings file {path} is not TOML: it is not UTF-8 at byte {error.start}.") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"The settings file {path} is not TOML: {error}.") from None
    return {name: (value, str(path)) for name, value in content.items()}


def _from_environment(environment: Mapping[str, str]) -> Values:
    values: Values = {}
    names = [row.name for row in table()]
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or _is_service_link(variable, environment):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in NOT_SETTINGS:
            continue
        if name not in names or variable != variable.upper():
            near = nearest(name, names)
            hint = f" Did you mean {ENVIRONMENT_PREFIX}{near.upper()}?" if near else ""
            raise SettingError(f"{variable} (from the environment) is not a setting.{hint}")
        values[name] = (text, f"the environment, {variable}")
    return values


def _is_service_link(variable: str, environment: Mapping[str, str]) -> bool:
    """Kubernetes gives every pod INTERLOG_SERVICE_HOST and its kin where a service is called interlog."""
    return "KUBERNETES_SERVICE_HOST" in environment and variable.startswith(("INTERLOG_SERVICE_", "INTERLOG_PORT"))
