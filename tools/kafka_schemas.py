#!/usr/bin/env python3
"""Makes interlog/faces/kafka/schema/*.py from Kafka's message definitions. Needs the standard library only.

    python3 tools/kafka_schemas.py PATH/spec/kafka interlog/faces/kafka/schema
    .venv/bin/ruff format interlog/faces/kafka/schema

The definitions are no part of this repository; they are of October 2024. What clients negotiate and was added to
Kafka after that is in the tables NEWER and ADDED below.
"""

import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

APIS = """
    Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
    SyncGroup DescribeGroups ListGroups SaslHandshake ApiVersions CreateTopics DeleteTopics DeleteRecords
    InitProducerId OffsetForLeaderEpoch AddPartitionsToTxn AddOffsetsToTxn EndTxn WriteTxnMarkers TxnOffsetCommit
    DescribeAcls CreateAcls DeleteAcls DescribeConfigs AlterConfigs AlterReplicaLogDirs DescribeLogDirs
    SaslAuthenticate CreatePartitions DeleteGroups ElectLeaders IncrementalAlterConfigs AlterPartitionReassignments
    ListPartitionReassignments OffsetDelete DescribeClientQuotas AlterClientQuotas DescribeUserScramCredentials
    AlterUserScramCredentials DescribeQuorum DescribeCluster DescribeProducers DescribeTransactions ListTransactions
    ConsumerGroupHeartbeat ConsumerGroupDescribe GetTelemetrySubscriptions PushTelemetry ListClientMetricsResources
    DescribeTopicPartitions ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge
    DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets
"""

# What members of a group tell one another through the broker. Each begins with its version, an int16.
DATA = {"ConsumerProtocol": ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"]}

RENAMED = {"ListClientMetricsResources": "ListConfigResources"}
REWORDED = {
    "ListClientMetricsResourcesResponse": {
        "ClientMetricsResources": "ConfigResources",
        "[]ClientMetricsResource": "[]ConfigResource",
        "Name": "ResourceName",
    }
}

ERROR_MESSAGE = {
    "name": "ErrorMessage",
    "type": "string",
    "versions": "6+",
    "nullableVersions": "6+",
    "default": "null",
    "ignorable": True,
}
FENCED = {"name": "IsFenced", "type": "bool", "versions": "2+", "ignorable": True}
MEMBER_TYPE = {"name": "MemberType", "type": "int8", "versions": "1+", "default": "-1", "ignorable": True}
PATTERN = {"name": "TransactionalIdPattern", "type": "string", "versions": "2+", "nullableVersions": "2+"}
RESOURCE_TYPE = {"name": "ResourceType", "type": "int8", "versions": "1+", "default": "16", "ignorable": True}

ONGOING = {"versions": "6+", "default": "-1"}
RENEWS = {"name": "IsRenewAck", "type": "bool", "versions": "2+", "default": "false"}
LOCK_MS = {"name": "AcquisitionLockTimeoutMs", "type": "int32"}

# In versions with topic ids there are no names.
TOPIC_ID_10 = {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": True}
IDS_COMMIT = [
    ("Topics", "Name", {"name": "Name", "versions": "0-9", "ignorable": True}),
    ("Topics", "Name", TOPIC_ID_10),
]
IDS_FETCH = [
    ("Groups/Topics", "Name", {"name": "Name", "versions": "8-9", "ignorable": True}),
    ("Groups/Topics", "Name", TOPIC_ID_10),
]


def of_13(path: str) -> list[tuple[str, str, Json]]:
    """Produce names topics by their ids alone from then on."""
    return [
        (path, "Name", {"name": "Name", "versions": "0-12", "ignorable": True}),
        (path, "Name", {**TOPIC_ID_10, "versions": "13+"}),
    ]


# By message: the versions there are now, and the fields that came or changed, each with the path to its struct and
# the field it stands behind ("" the first).
NEWER: dict[str, tuple[str, list[tuple[str, str, Json]]]] = {
    "ProduceRequest": ("0-13", of_13("TopicData")),
    "ProduceResponse": ("0-13", of_13("Responses")),
    "FetchRequest": (
        "0-18",
        [
            (
                "Topics/Partitions",
                "ReplicaDirectoryId",
                {
                    "name": "HighWatermark",
                    "type": "int64",
                    "versions": "18+",
                    "default": "0x7fffffffffffffff",
                    "taggedVersions": "18+",
                    "tag": 1,
                    "ignorable": True,
                },
            )
        ],
    ),
    "FetchResponse": ("0-18", []),
    "ListOffsetsRequest": ("0-11", []),
    "ListOffsetsResponse": ("0-11", []),
    "OffsetCommitRequest": ("0-10", IDS_COMMIT),
    "OffsetCommitResponse": ("0-10", IDS_COMMIT),
    "OffsetFetchRequest": ("0-10", IDS_FETCH),
    "OffsetFetchResponse": ("0-10", IDS_FETCH),
    "InitProducerIdRequest": (
        "0-6",
        [
            ("", "ProducerEpoch", {"name": "Enable2Pc", "type": "bool", "versions": "6+", "default": "false"}),
            ("", "Enable2Pc", {"name": "KeepPreparedTxn", "type": "bool", "versions": "6+", "default": "false"}),
        ],
    ),
    "InitProducerIdResponse": (
        "0-6",
        [
            ("", "ProducerEpoch", {"name": "OngoingTxnProducerId", **ONGOING, "type": "int64"}),
            ("", "OngoingTxnProducerId", {"name": "OngoingTxnProducerEpoch", **ONGOING, "type": "int16"}),
        ],
    ),
    "WriteTxnMarkersRequest": (
        "0-2",
        [
            (
                "Markers",
                "CoordinatorEpoch",
                {"name": "TransactionVersion", "type": "int8", "versions": "2+", "default": "0", "ignorable": True},
            )
        ],
    ),
    "WriteTxnMarkersResponse": ("0-2", []),
    "TxnOffsetCommitRequest": ("0-5", []),
    "TxnOffsetCommitResponse": ("0-5", []),
    "MetadataRequest": ("0-13", []),
    "MetadataResponse": (
        "0-13",
        [
            (
                "",
                "ClusterAuthorizedOperations",
                {"name": "ErrorCode", "type": "int16", "versions": "13+", "ignorable": True},
            )
        ],
    ),
    "DescribeGroupsRequest": ("0-6", []),
    "DescribeGroupsResponse": ("0-6", [("Groups", "ErrorCode", ERROR_MESSAGE)]),
    "DescribeClusterRequest": (
        "0-2",
        [("", "EndpointType", {"name": "IncludeFencedBrokers", "type": "bool", "versions": "2+"})],
    ),
    "DescribeClusterResponse": ("0-2", [("Brokers", "Rack", FENCED)]),
    "ConsumerGroupDescribeRequest": ("0-1", []),
    "ConsumerGroupDescribeResponse": ("0-1", [("Groups/Members", "TargetAssignment", MEMBER_TYPE)]),
    "ListTransactionsRequest": ("0-2", [("", "DurationFilter", {**PATTERN, "default": "null"})]),
    "ListTransactionsResponse": ("0-2", []),
    "ListClientMetricsResourcesRequest": (
        "0-1",
        [("", "", {"name": "ResourceTypes", "type": "[]int8", "versions": "1+"})],
    ),
    "ListClientMetricsResourcesResponse": ("0-1", [("ConfigResources", "ResourceName", RESOURCE_TYPE)]),
    "ShareGroupHeartbeatRequest": ("1", []),
    "ShareGroupHeartbeatResponse": ("1", []),
    "ShareGroupDescribeRequest": ("1", []),
    "ShareGroupDescribeResponse": ("1", []),
    "ShareFetchRequest": (
        "1-2",
        [
            ("", "MaxBytes", {"name": "MaxRecords", "type": "int32", "versions": "1+"}),
            ("", "MaxRecords", {"name": "BatchSize", "type": "int32", "versions": "1+"}),
            (
                "",
                "BatchSize",
                {"name": "ShareAcquireMode", "type": "int8", "versions": "2+", "default": "0", "ignorable": True},
            ),
            ("", "ShareAcquireMode", RENEWS),
            ("Topics/Partitions", "", {"name": "PartitionMaxBytes", "versions": "0"}),
        ],
    ),
    "ShareFetchResponse": (
        "1-2",
        [
            ("", "ErrorMessage", {**LOCK_MS, "versions": "1+"}),
            ("Responses/Partitions", "", {"name": "Records", "nullableVersions": "none"}),
        ],
    ),
    "ShareAcknowledgeRequest": ("1-2", [("", "ShareSessionEpoch", RENEWS)]),
    "ShareAcknowledgeResponse": ("1-2", [("", "ErrorMessage", {**LOCK_MS, "versions": "2+", "ignorable": True})]),
}

# Messages that the definitions do not have at all: number, versions, and the fields, all in every version but where
# it is said; ? is a type that may be null.
ERROR = [("ErrorCode", "int16"), ("ErrorMessage", "?string")]
THROTTLE = ("ThrottleTimeMs", "int32")
LAG = ("Lag", "int64", {"versions": "1+", "default": "-1", "ignorable": True})
ADDED: dict[str, tuple[int, str, list[Any]]] = {
    "DescribeShareGroupOffsetsRequest": (
        90,
        "0-1",
        [
            (
                "Groups",
                "[]DescribeShareGroupOffsetsRequestGroup",
                [
                    ("GroupId", "string"),
                    (
                        "Topics",
                        "?[]DescribeShareGroupOffsetsRequestTopic",
                        [("TopicName", "string"), ("Partitions", "[]int32")],
                    ),
                ],
            )
        ],
    ),
    "DescribeShareGroupOffsetsResponse": (
        90,
        "0-1",
        [
            THROTTLE,
            (
                "Groups",
                "[]DescribeShareGroupOffsetsResponseGroup",
                [
                    ("GroupId", "string"),
                    (
                        "Topics",
                        "[]DescribeShareGroupOffsetsResponseTopic",
                        [
                            ("TopicName", "string"),
                            ("TopicId", "uuid"),
                            (
                                "Partitions",
                                "[]DescribeShareGroupOffsetsResponsePartition",
                                [
                                    ("PartitionIndex", "int32"),
                                    ("StartOffset", "int64"),
                                    ("LeaderEpoch", "int32"),
                                    LAG,
                                    *ERROR,
                                ],
                            ),
                        ],
                    ),
                    *ERROR,
                ],
            ),
        ],
    ),
    "AlterShareGroupOffsetsRequest": (
        91,
        "0",
        [
            ("GroupId", "string"),
            (
                "Topics",
                "[]AlterShareGroupOffsetsRequestTopic",
                [
                    ("TopicName", "string"),
                    (
                        "Partitions",
                        "[]AlterShareGroupOffsetsRequestPartition",
                        [("PartitionIndex", "int32"), ("StartOffset", "int64")],
                    ),
                ],
            ),
        ],
    ),
    "AlterShareGroupOffsetsResponse": (
        91,
        "0",
        [
            THROTTLE,
            *ERROR,
            (
                "Responses",
                "[]AlterShareGroupOffsetsResponseTopic",
                [
                    ("TopicName", "string"),
                    ("TopicId", "uuid"),
                    (
                        "Partitions",
                        "[]AlterShareGroupOffsetsResponsePartition",
                        [("PartitionIndex", "int32"), *ERROR],
                    ),
                ],
            ),
        ],
    ),
    "DeleteShareGroupOffsetsRequest": (
        92,
        "0",
        [("GroupId", "string"), ("Topics", "[]DeleteShareGroupOffsetsRequestTopic", [("TopicName", "string")])],
    ),
    "DeleteShareGroupOffsetsResponse": (
        92,
        "0",
        [
            THROTTLE,
            *ERROR,
            (
                "Responses",
                "[]DeleteShareGroupOffsetsResponseTopic",
                [("TopicName", "string"), ("TopicId", "uuid"), *ERROR],
            ),
        ],
    ),
}

NUMBERS = {"int8", "int16", "uint16", "int32", "uint32", "int64"}
KINDS = {"bool": "boolean", "bytes": "binary"}
PYTHON = {
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "uuid": "bytes",
    "float64": "float",
    "records": "bytes | memoryview",
}
ZERO = {"bool": "False", "string": '""', "bytes": 'b""', "uuid": "f.NO_UUID", "float64": "0.0", "records": "None"}


def added(fields: list[Any]) -> list[Json]:
    """Fields of a message in ADDED, as the definitions have them."""
    made = []
    for name, kind, *more in fields:
        field: Json = {"name": name, "type": kind.removeprefix("?"), "versions": "0+"}
        if kind.startswith("?"):
            field |= {"nullableVersions": "0+", "default": "null"}
        for one in more:
            field |= one if isinstance(one, dict) else {"fields": added(one)}
        made.append(field)
    return made


def load(folder: Path, name: str) -> Json:
    if name in ADDED:
        key, versions, fields = ADDED[name]
        return {"apiKey": key, "validVersions": versions, "flexibleVersions": "0+", "fields": added(fields)}
    text = (folder / f"{name}.json").read_text(encoding="utf-8")
    for old, new in REWORDED.get(name, {}).items():
        text = text.replace(f'"{old}"', f'"{new}"')
    message: Json = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    versions, newer = NEWER.get(name, (message["validVersions"], []))
    message["validVersions"] = versions
    for path, behind, field in newer:
        fields = message["fields"]
        for step in filter(None, path.split("/")):
            fields = next(found for found in fields if found["name"] == step)["fields"]
        changed = next((found for found in fields if found["name"] == field["name"]), None)
        if changed is not None:
            changed.update(field)
            continue
        at = next((index + 1 for index, found in enumerate(fields) if found["name"] == behind), 0)
        if behind and not at:
            raise ValueError(f"{name} has no field {behind} in {path!r}")
        fields.insert(at, field)
    return message


def snake(name: str) -> str:
    """TopicId → topic_id, ISRNodes → isr_nodes."""
    made = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return made + "_" if keyword.iskeyword(made) else made


def span(text: str) -> tuple[int, int]:
    first, _, last = text.rstrip("+").partition("-")
    return int(first), (1 << 15) - 1 if text.endswith("+") else int(last or first)


class Module:
    """The classes of one API."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.classes: dict[str, list[str]] = {}  # by name: the lines of its body

    def message(self, name: str, message: Json, taken: set[str]) -> None:
        """`taken`: names of structs that the other direction has too, with other fields."""
        own = "Request" if name.endswith("Request") else "Response"
        self.common = {struct["name"]: struct for struct in message.get("commonStructs", [])}
        self.renamed = {struct: own + struct for struct in taken}
        self.first, self.last = span(message["validVersions"])
        flexible = message["flexibleVersions"]
        head = [f"API_KEY = {message['apiKey']}"] if "apiKey" in message else []
        first = f"{self.first}, " if self.first else ""
        head.append(f"VALID = range({first}{self.last + 1})")
        if flexible != "none":
            head.append(f"FLEXIBLE = {span(flexible)[0]}")
        self.struct(name, message["fields"], head)

    def struct(self, name: str, fields: list[Json], head: list[str]) -> None:
        body = [*head, ""] if head and fields else list(head)
        for field in fields:
            if span(field["versions"])[1] < self.first:
                continue
            kind = field["type"].removeprefix("[]")
            if kind[0].isupper():
                inner = field.get("fields") or self.common[kind]["fields"]
                self.struct(self.renamed.get(kind, kind), inner, [])
            body.append(self.field(field))
        if self.classes.setdefault(name, body) != body:
            raise ValueError(f"two structs are called {name}")

    def field(self, field: Json) -> str:
        kind = field["type"].removeprefix("[]")
        is_array = field["type"].startswith("[]")
        is_struct = kind[0].isupper()
        name = self.renamed.get(kind, kind)
        python = name if is_struct else "int" if kind in NUMBERS else PYTHON[kind]
        arguments = []
        if is_struct:
            arguments.append(name)
        elif is_array:
            arguments.append(f'"{KINDS.get(kind, kind)}"')
        versions = field["versions"]
        first, last = span(versions)
        if first > self.first or last < self.last:
            arguments.append(f'"{versions}"')
        default = str(field.get("default", ""))
        if default == "null" or kind == "records":
            arguments.append("default=None")
        elif is_array:
            arguments.append("default_factory=list")
        elif is_struct:
            arguments.append(f"default_factory={name}")
        elif kind in NUMBERS:
            arguments.append(f"default={default if default.startswith('0x') else int(default or '0')}")
        elif kind == "bool":
            arguments.append(f"default={default == 'true'}")
        elif kind == "string":
            arguments.append(f'default="{default}"')
        elif default:
            raise ValueError(f"no default is known for {kind}: {default}")
        else:
            arguments.append(f"default={ZERO[kind]}")
        nullable = field.get("nullableVersions", "none")
        if nullable != "none":
            arguments.append(f'nullable="{nullable}"')
        if "tag" in field:
            if field["taggedVersions"] != versions:
                raise ValueError(f"{field['name']} is tagged in some of its versions only")
            arguments.append(f"tag={field['tag']}")
        if field.get("ignorable"):
            arguments.append("ignorable=True")
        annotation = f"list[{python}]" if is_array else python
        if nullable != "none" or default == "null":
            annotation += " | None"
        maker = "array" if is_array else "struct" if is_struct else KINDS.get(kind, kind)
        return f"{snake(field['name'])}: {annotation} = f.{maker}({', '.join(arguments)})"

    def text(self, about: str, tail: list[str]) -> str:
        lines = [f'"""{about} Made by tools/kafka_schemas.py: change that."""', ""]
        lines += ["from __future__ import annotations", "", "from interlog.faces.kafka.schema import fields as f"]
        for name, body in self.classes.items():
            lines += ["", "", f"class {name}(f.Message):", *(f"    {line}".rstrip() for line in body or ["pass"])]
        return "\n".join([*lines, "", "", *tail]) + "\n"


def structs_of(message: Json) -> dict[str, str]:
    """By name, what is in them."""
    found = {struct["name"]: plain(struct["fields"]) for struct in message.get("commonStructs", [])}

    def walk(fields: list[Json]) -> None:
        for field in fields:
            if field.get("fields"):
                found[field["type"].removeprefix("[]")] = plain(field["fields"])
                walk(field["fields"])

    walk(message["fields"])
    return found


def plain(fields: list[Json]) -> str:
    return json.dumps([{k: v for k, v in f.items() if k not in ("about", "fields")} for f in fields])


def api_module(folder: Path, api: str) -> str:
    request, response = load(folder, f"{api}Request"), load(folder, f"{api}Response")
    ours, theirs = structs_of(request), structs_of(response)
    taken = {name for name in ours if name in theirs}  # one class each: what one side adds is not the other's
    module = Module()
    name = RENAMED.get(api, api)
    module.message(f"{name}Request", request, taken)
    module.message(f"{name}Response", response, taken)
    return module.text(f"API {request['apiKey']}, {name}.", [f"REQUEST = {name}Request", f"RESPONSE = {name}Response"])


def data_module(folder: Path, name: str) -> str:
    module = Module()
    for part in DATA[name]:
        message = load(folder, part)
        module.message(part, message, set(structs_of(message)))
        # Two messages in one module: their structs go by the message's name.
        module.classes = {k.replace("Response", part, 1): v for k, v in module.classes.items()}
        module.classes = {k: [line.replace("Response", part) for line in v] for k, v in module.classes.items()}
    return module.text("What members of a group with protocol type consumer tell one another.", []).rstrip() + "\n"


def index_module(folder: Path) -> str:
    names = {}
    flexible = {}
    for api in APIS.split():
        request = load(folder, f"{api}Request")
        names[request["apiKey"]] = snake(RENAMED.get(api, api))
        if request["flexibleVersions"] != "none":
            flexible[request["apiKey"]] = span(request["flexibleVersions"])[0]
    modules = "\n".join(f'    {key}: "{name}",' for key, name in sorted(names.items()))
    first = "\n".join(f"    {key}: {version}," for key, version in sorted(flexible.items()))
    return f'''"""Which module has which API, by its number. Made by tools/kafka_schemas.py: change that."""

from typing import Final

MODULES: Final[dict[int, str]] = {{
{modules}
}}

# The first flexible version of each API that has one: headers are different from it on.
FLEXIBLE: Final[dict[int, int]] = {{
{first}
}}
'''


def main() -> int:
    if len(sys.argv) != 3:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    for api in APIS.split():
        (target / f"{snake(RENAMED.get(api, api))}.py").write_text(api_module(folder, api), encoding="utf-8")
    for name in DATA:
        (target / f"{snake(name)}.py").write_text(data_module(folder, name), encoding="utf-8")
    (target / "index.py").write_text(index_module(folder), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
