"""Configs as answers tell them: each with where its value comes from, and what else would have a say.

Comes in: a topic's or a group's settings, or the service. Goes out: rows that CreateTopics and DescribeConfigs put
into their own structs.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from interlog.core.topic_defaults import BROKER as OF_THIS_BROKER
from interlog.core.topic_defaults import CLUSTER
from interlog.faces.kafka import group_configs
from interlog.faces.kafka.broker_configs import BROKER, BrokerConfig, configs_set
from interlog.faces.kafka.configs import TOPIC, Kind, configs_from
from interlog.faces.kafka.service import KafkaService

# Where a value comes from.
OF_TOPIC: Final = 1
SET_FOR_BROKER: Final = 2  # by a client
SET_FOR_ALL: Final = 3
OF_BROKER: Final = 4  # the operator set it
DEFAULT: Final = 5
OF_GROUP: Final = 8


Synonym = tuple[str, str | None, int]  # name, value, source


class Entry(NamedTuple):
    name: str
    value: str | None
    kind: Kind
    source: int
    read_only: bool
    synonyms: tuple[Synonym, ...]  # the first one that is there counts
    doc: str


def topic_entries(service: KafkaService, settings: Mapping[str, Any]) -> Iterator[Entry]:
    given = configs_from(settings)
    by_clients = _set_by_clients(service)
    for row in TOPIC.values():
        synonyms: list[Synonym] = [(row.name, given[row.name], OF_TOPIC)] if row.name in given else []
        if row.broker:
            synonyms += by_clients.get(row.broker, ())
            synonyms.append((row.broker, row.default, DEFAULT))
        _, value, source = synonyms[0] if synonyms else (row.name, row.default, DEFAULT)
        yield Entry(row.name, value, row.kind, source, False, tuple(synonyms), row.doc)


def group_entries(service: KafkaService, settings: Mapping[str, Any]) -> Iterator[Entry]:
    given = group_configs.configs_from(settings)
    for row in group_configs.GROUP.values():
        synonyms: list[Synonym] = [(row.name, given[row.name], OF_GROUP)] if row.name in given else []
        if row.broker:
            synonyms += _of_broker(BROKER[row.broker], service)
        _, value, source = synonyms[0] if synonyms else (row.name, row.default, DEFAULT)
        yield Entry(row.name, value, row.kind, source, False, tuple(synonyms), row.doc)


def broker_entries(service: KafkaService) -> Iterator[Entry]:
    by_clients = _set_by_clients(service)
    for row in BROKER.values():
        synonyms = [*by_clients.get(row.name, ()), *_of_broker(row, service)]
        _, value, source = synonyms[0] if synonyms else (row.name, row.value(service), DEFAULT)
        yield Entry(row.name, value, row.kind, source, row.dynamic is None, tuple(synonyms), row.doc)


def cluster_entries(service: KafkaService) -> Iterator[Entry]:
    """Of all brokers there is only what was set for them."""
    for name, text in configs_set(service, CLUSTER).items():
        row = BROKER[name]
        yield Entry(name, text, row.kind, SET_FOR_ALL, False, ((name, text, SET_FOR_ALL),), row.doc)


def _set_by_clients(service: KafkaService) -> dict[str, list[Synonym]]:
    """By name, what counts first first."""
    found: dict[str, list[Synonym]] = {}
    for where, source in ((OF_THIS_BROKER, SET_FOR_BROKER), (CLUSTER, SET_FOR_ALL)):
        for name, text in configs_set(service, where).items():
            found.setdefault(name, []).append((name, text, source))
    return found


def _of_broker(row: BrokerConfig, service: KafkaService) -> list[Synonym]:
    value = row.value(service)
    synonyms: list[Synonym] = [] if value == row.default else [(row.name, value, OF_BROKER)]
    if row.default is not None:
        synonyms.append((row.name, row.default, DEFAULT))
    return synonyms
