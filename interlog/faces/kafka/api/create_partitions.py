"""CreatePartitions: a topic can only get more of them."""

from collections import Counter

from interlog.base.errors import InvalidError, LimitError
from interlog.core.catalog_objects import check_partition_count
from interlog.faces.kafka.assignments import check_replicas
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(request: Request, body: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    names = Counter(topic.name for topic in body.topics)
    results = []
    for name in names:
        topic = next(topic for topic in body.topics if topic.name == name)
        result = CreatePartitionsTopicResult(name)
        try:
            if names[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if not request.may("alter", name):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
            _grow(request, topic, validate_only=body.validate_only)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        except InvalidError as error:
            result.error_code, result.error_message = ErrorCode.INVALID_PARTITIONS, str(error)
        except LimitError as error:
            result.error_code, result.error_message = ErrorCode.POLICY_VIOLATION, str(error)
        results.append(result)
    response = CreatePartitionsResponse(0, results)
    if body.validate_only or all(result.error_code for result in results):
        return response
    request.answer_when_durable(response)
    return None


def _grow(request: Request, topic: CreatePartitionsTopic, *, validate_only: bool) -> None:
    name, count = topic.name, topic.count
    view = request.service.views.find(request.namespace, name)
    if view is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if view.topic is None:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{name} is a queue, and has the partitions it was declared with.")
    now = len(view.partitions)
    if count == now:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if count < now:
        why = f"The topic {name} currently has {now} partition(s); {count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, why)
    if topic.assignments is not None:
        if len(topic.assignments) != count - now:
            why = (
                f"Attempted to add {count - now} additional partition(s), but only {len(topic.assignments)} "
                "assignment(s) were specified."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
        for assignment in topic.assignments:
            check_replicas(request, assignment.broker_ids)
    check_partition_count(count)
    if not validate_only:
        request.mutates(count - now, strict_since=3)
        request.core.topics.grow(request.namespace, name, count)
