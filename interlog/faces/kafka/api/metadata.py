"""Metadata: the broker, and the topics that were asked for, or all. Those that are not there may be made for that."""

import re
from functools import lru_cache
from typing import Final

from interlog.base.errors import InterlogError
from interlog.base.log import get_log
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.operations import CLUSTER, NOT_ASKED, allowed, may_see
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.fields import NO_UUID
from interlog.faces.kafka.schema.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from interlog.faces.kafka.views import View

log = get_log("kafka")

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")
_INTERNAL: Final = frozenset(("__consumer_offsets", "__transaction_state"))


def is_topic_name(name: str) -> bool:
    """Whether Kafka allows a topic of this name."""
    return _NAME.match(name) is not None


def handle(request: Request, body: MetadataRequest) -> MetadataResponse | None:
    connection, service = request.connection, request.service
    host, port = service.address(connection.peer)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(request.node_id, host, port)],
        cluster_id=service.cluster_id,
        controller_id=request.node_id,
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = allowed(connection, "cluster", CLUSTER)
    # A list without topics asks for all in version 0 and for none later.
    wanted = body.topics
    if wanted is None or (not wanted and request.version == 0):
        response.topics = [
            _topic(request, body, view)
            for view in service.views.all(request.namespace)
            if may_see(connection, view.name)
        ]
        return response
    made = False
    for one in wanted:
        topic, is_new = _find(request, body, one)
        made |= is_new
        response.topics.append(topic)
    if made:
        request.answer_when_durable(response)
        return None
    return response


def _find(request: Request, body: MetadataRequest, wanted: MetadataRequestTopic) -> tuple[MetadataResponseTopic, bool]:
    """What is told of one topic, and whether it was made for that."""
    connection, views = request.connection, request.service.views
    name = wanted.name
    if name is None or (not name and wanted.topic_id != NO_UUID):
        view = views.find_id(request.namespace, wanted.topic_id)
        if view is None or not may_see(connection, view.name):
            return _refusal(request, ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id), False
        return _topic(request, body, view), False
    view = views.find(request.namespace, name)
    if view is not None and may_see(connection, name):
        return _topic(request, body, view), False
    if not may_see(connection, name):
        return _refusal(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name), False
    error = _create(request, name, wanted=body.allow_auto_topic_creation)
    view = views.find(request.namespace, name)
    if error or view is None:
        return _refusal(request, error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name), False
    return _topic(request, body, view), True


def _create(request: Request, name: str, *, wanted: bool) -> ErrorCode | None:
    settings = request.service.settings
    if not is_topic_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not (wanted and settings.auto_create) or name in _INTERNAL:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not (request.may("create", name) or request.may("create", CLUSTER, "cluster")):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if request.core.catalog.find(request.namespace, name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION  # a queue that is not durable has the name
    try:
        request.mutates(settings.default_partitions, strict_since=0)
        request.core.create_topic(request.namespace, name, settings.default_partitions)
    except KafkaError:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # too many were made of late: it asks again
    except InterlogError as error:
        log.warning("a topic could not be made", name=name, reason=error)
        return ErrorCode.POLICY_VIOLATION
    return None


def _refusal(request: Request, error: ErrorCode, name: str | None, topic_id: bytes = NO_UUID) -> MetadataResponseTopic:
    if name is None and request.version < 12:
        name = ""
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id)


def _topic(request: Request, body: MetadataRequest, view: View) -> MetadataResponseTopic:
    epoch = request.core.storage.epoch
    operations = NOT_ASKED
    if body.include_topic_authorized_operations:
        operations = allowed(request.connection, "topic", view.name)
    partitions = _partitions(request.node_id, epoch, len(view.partitions))
    return MetadataResponseTopic(0, view.name, view.id, view.name in _INTERNAL, partitions, operations)


@lru_cache(maxsize=64)
def _partitions(node: int, epoch: int, count: int) -> list[MetadataResponsePartition]:
    """Of every topic with so many: one broker leads them all, so they differ in nothing. Not to be changed."""
    here = [node]
    return [MetadataResponsePartition(0, index, node, epoch, here, here, []) for index in range(count)]
