"""The APIs that are served, and in which versions: what ApiVersions tells, and nothing else.

The modules are loaded when somebody first uses them. One that has a `read` of its own reads its requests with it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from interlog.faces.kafka.codec import api, decode
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.fields import Message

Handle = Callable[[Request, Any], Message | None]
Read = Callable[[int, bytes, int, int], Any]


class Served(NamedTuple):
    module: str
    versions: range


SERVED: Final[dict[int, Served]] = {
    0: Served("produce", range(14)),
    1: Served("fetch", range(4, 19)),
    2: Served("list_offsets", range(12)),
    3: Served("metadata", range(14)),
    8: Served("offset_commit", range(2, 11)),
    9: Served("offset_fetch", range(1, 11)),
    10: Served("find_coordinator", range(7)),
    11: Served("join_group", range(10)),
    12: Served("heartbeat", range(5)),
    13: Served("leave_group", range(6)),
    14: Served("sync_group", range(6)),
    15: Served("describe_groups", range(7)),
    16: Served("list_groups", range(6)),
    17: Served("sasl_handshake", range(2)),
    18: Served("api_versions", range(5)),
    19: Served("create_topics", range(8)),
    20: Served("delete_topics", range(7)),
    21: Served("delete_records", range(3)),
    22: Served("init_producer_id", range(6)),
    23: Served("offset_for_leader_epoch", range(5)),
    24: Served("add_partitions_to_txn", range(6)),
    25: Served("add_offsets_to_txn", range(5)),
    26: Served("end_txn", range(6)),
    27: Served("write_txn_markers", range(1, 2)),
    28: Served("txn_offset_commit", range(6)),
    29: Served("describe_acls", range(4)),
    30: Served("create_acls", range(4)),
    31: Served("delete_acls", range(4)),
    32: Served("describe_configs", range(5)),
    33: Served("alter_configs", range(3)),
    34: Served("alter_replica_log_dirs", range(3)),
    35: Served("describe_log_dirs", range(5)),
    36: Served("sasl_authenticate", range(3)),
    37: Served("create_partitions", range(4)),
    42: Served("delete_groups", range(3)),
    43: Served("elect_leaders", range(3)),
    44: Served("incremental_alter_configs", range(2)),
    45: Served("alter_partition_reassignments", range(1)),
    46: Served("list_partition_reassignments", range(1)),
    47: Served("offset_delete", range(1)),
    48: Served("describe_client_quotas", range(2)),
    49: Served("alter_client_quotas", range(2)),
    50: Served("describe_user_scram_credentials", range(1)),
    51: Served("alter_user_scram_credentials", range(1)),
    55: Served("describe_quorum", range(3)),
    60: Served("describe_cluster", range(3)),
    61: Served("describe_producers", range(1)),
    65: Served("describe_transactions", range(1)),
    66: Served("list_transactions", range(3)),
    68: Served("consumer_group_heartbeat", range(2)),
    69: Served("consumer_group_describe", range(2)),
    71: Served("get_telemetry_subscriptions", range(1)),
    72: Served("push_telemetry", range(1)),
    74: Served("list_config_resources", range(2)),
    75: Served("describe_topic_partitions", range(1)),
    76: Served("share_group_heartbeat", range(1, 2)),
    77: Served("share_group_describe", range(1, 2)),
    78: Served("share_fetch", range(1, 3)),
    79: Served("share_acknowledge", range(1, 3)),
    90: Served("describe_share_group_offsets", range(2)),
    91: Served("alter_share_group_offsets", range(1)),
    92: Served("delete_share_group_offsets", range(1)),
}

# Offered where the settings say so, as Kafka does where somebody takes metrics.
TELEMETRY: Final = frozenset((71, 72))

_handlers: dict[int, Handle] = {}
_readers: dict[int, Read] = {}


def handler(key: int) -> Handle:
    """Of an API that is served."""
    found = _handlers.get(key)
    if found is None:
        found = _handlers[key] = _module(key).handle
    return found


def reader(key: int) -> Read:
    """Makes the request of an API that is served from (version, data, at, end)."""
    found = _readers.get(key)
    if found is None:
        found = _readers[key] = getattr(_module(key), "read", None) or _table_reader(key)
    return found


def _module(key: int) -> Any:
    return import_module(f"interlog.faces.kafka.api.{SERVED[key].module}")


def _table_reader(key: int) -> Read:
    tables = api(key)
    assert tables is not None, "what is served has a table"
    schema = tables.request

    def read(version: int, data: bytes, at: int, end: int) -> Message:
        return decode(schema, version, data, at, end)[0]

    return read
