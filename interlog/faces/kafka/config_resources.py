"""What has configs: topics, groups and the broker. Each shows what it is set to, and takes other texts or says why not.

Comes in: the type and the name in a request. Goes out: a `Configured`, or the KafkaError that the request gets.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from interlog.base.errors import InvalidError
from interlog.core.group_settings import keep_settings, own_settings
from interlog.core.topic_defaults import BROKER as OF_THIS_BROKER
from interlog.core.topic_defaults import CLUSTER as CLUSTER_DEFAULTS
from interlog.faces.kafka import configs as topic_configs
from interlog.faces.kafka import group_configs
from interlog.faces.kafka.broker_configs import BROKER, configs_set, set_configs
from interlog.faces.kafka.config_entries import Entry, broker_entries, cluster_entries, group_entries, topic_entries
from interlog.faces.kafka.configs import Kind
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.topic_names import check_topic_name
from interlog.faces.kafka.views import View


class ConfigType(IntEnum):
    """As the protocol numbers them."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Configured(Protocol):
    def entries(self) -> Iterator[Entry]:
        """All configs, set or not."""
        ...

    def given(self) -> Mapping[str, str]:
        """What is set."""
        ...

    def default(self, name: str) -> tuple[Kind, str]:
        """What a config is where it is not set; InvalidError if there is none of the name."""
        ...

    def put(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        """Set these in place of all that is set; InvalidError or KafkaError if that cannot be."""
        ...


class _Topic:
    def __init__(self, request: Request, view: View) -> None:
        self._request = request
        self._view = view

    def entries(self) -> Iterator[Entry]:
        return iter(()) if self._view.topic is None else topic_entries(self._request.service, self._view.item.settings)

    def given(self) -> Mapping[str, str]:
        return topic_configs.configs_from(self._view.item.settings)

    def default(self, name: str) -> tuple[Kind, str]:
        row = topic_configs.config(name)
        return row.kind, row.default

    def put(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        view = self._view
        if view.topic is None:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{view.name} is a queue: it is as it was declared.")
        settings = topic_configs.settings_from(configs, view.item.settings)
        if not validate_only and settings != view.item.settings:
            self._request.core.topics.alter(view.item.namespace, view.name, settings)


class _Group:
    def __init__(self, request: Request, name: str) -> None:
        self._request = request
        self._name = name

    def _own(self) -> Mapping[str, int]:
        return own_settings(self._request.core.catalog, self._request.namespace, self._name)

    def entries(self) -> Iterator[Entry]:
        return group_entries(self._request.service, self._own())

    def given(self) -> Mapping[str, str]:
        return group_configs.configs_from(self._own())

    def default(self, name: str) -> tuple[Kind, str]:
        row = group_configs.config(name)
        return row.kind, row.default

    def put(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        core = self._request.core
        settings = group_configs.settings_from(configs, core.groups.settings)
        if not validate_only:
            keep_settings(core.catalog, self._request.namespace, self._name, settings)


class _Broker:
    """Of the only one by its number, and of all of them by no name."""

    def __init__(self, request: Request, name: str) -> None:
        self._service = request.service
        self._all = not name
        self._where = CLUSTER_DEFAULTS if self._all else OF_THIS_BROKER

    def entries(self) -> Iterator[Entry]:
        return cluster_entries(self._service) if self._all else broker_entries(self._service)

    def given(self) -> Mapping[str, str]:
        return configs_set(self._service, self._where)

    def default(self, name: str) -> tuple[Kind, str]:
        row = BROKER.get(name)
        if row is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
        return row.kind, row.default or ""

    def put(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        try:
            set_configs(self._service, self._where, configs, validate_only=validate_only)
        except InvalidError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _topic(request: Request, name: str) -> Configured:
    view = request.service.views.find(request.namespace, name)
    if view is None:
        check_topic_name(name)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return _Topic(request, view)


def _group(request: Request, name: str) -> Configured:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return _Group(request, name)


def _broker(request: Request, name: str) -> Configured:
    if name:
        if not name.isascii() or not name.isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        if int(name) != request.node_id:
            why = f"Unexpected broker id, expected {request.node_id} or empty string, but received {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    return _Broker(request, name)


class _Type(NamedTuple):
    resource: str  # that it takes a right to
    refusal: ErrorCode
    find: Callable[[Request, str], Configured]


_TYPES: Final[dict[int, _Type]] = {
    ConfigType.TOPIC: _Type("topic", ErrorCode.TOPIC_AUTHORIZATION_FAILED, _topic),
    ConfigType.BROKER: _Type("cluster", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, _broker),
    ConfigType.GROUP: _Type("group", ErrorCode.GROUP_AUTHORIZATION_FAILED, _group),
}


def find(request: Request, what: str, type: int, name: str) -> Configured:
    """What the client may describe, or alter (`what`: describe_configs, alter_configs)."""
    known = _TYPES.get(type)
    if known is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {type}")
    if not request.may(what, CLUSTER if known.resource == "cluster" else name, known.resource):
        raise KafkaError(known.refusal, f"{known.resource.capitalize()} authorization failed.")
    return known.find(request, name)
