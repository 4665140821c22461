"""CreateTopics: each topic is made or refused for itself. One broker has every partition, once."""

from collections import Counter

from interlog.base.errors import ExistsError, InvalidError, LimitError, NotFoundError
from interlog.core.catalog_objects import MAX_PARTITIONS_OF_TOPIC
from interlog.faces.kafka.acls import CLUSTER_NAME
from interlog.faces.kafka.assignments import check_replicas
from interlog.faces.kafka.config_entries import topic_entries
from interlog.faces.kafka.configs import settings_from
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from interlog.faces.kafka.topic_names import check_topic_name

_NOT_TOLD = -1


def handle(request: Request, body: CreateTopicsRequest) -> CreateTopicsResponse | None:
    names = Counter(topic.name for topic in body.topics)
    cluster = request.may("create", CLUSTER_NAME, "cluster")
    results: list[CreatableTopicResult] = []
    for name in names:
        topic = next(topic for topic in body.topics if topic.name == name)
        try:
            if names[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if not (cluster or request.may("create", name)):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            results.append(_create(request, topic, validate_only=body.validate_only))
        except KafkaError as error:
            results.append(_refusal(name, error.code, error.message))
        except ExistsError:
            results.append(_refusal(name, ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."))
        except InvalidError as error:
            results.append(_refusal(name, ErrorCode.INVALID_CONFIG, str(error)))
        except (LimitError, NotFoundError) as error:  # there are too many, or the namespace is gone
            results.append(_refusal(name, ErrorCode.POLICY_VIOLATION, str(error)))
    response = CreateTopicsResponse(0, results)
    if body.validate_only or all(result.error_code for result in results):
        return response
    request.answer_when_durable(response)
    return None


def _refusal(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=code, error_message=message or None)


def _create(request: Request, topic: CreatableTopic, *, validate_only: bool) -> CreatableTopicResult:
    core, name = request.core, topic.name
    check_topic_name(name)
    if core.catalog.find(request.namespace, name) is not None:
        raise ExistsError(name)
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise InvalidError(f"Null value not supported for topic configs: {','.join(nulls)}")
    settings = settings_from({config.name: config.value or "" for config in topic.configs})
    count = _partitions(request, topic)
    result = CreatableTopicResult(name, error_message=None, num_partitions=count, replication_factor=1)
    if not validate_only:
        request.mutates(count, strict_since=6)
        made = core.create_topic(request.namespace, name, count, settings)
        result.topic_id = request.service.topic_id(made.item)
    if request.may("describe_configs", name):
        result.configs = [
            CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source)
            for entry in topic_entries(request.service, settings)
        ]
    else:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = _NOT_TOLD
    return result


def _partitions(request: Request, topic: CreatableTopic) -> int:
    """How many it will have; KafkaError if that, or where they are to be, is not possible."""
    if topic.assignments:
        for what, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
            if value != -1:
                why = f"A manual partition assignment was specified, but {what} was not set to -1."
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        if sorted(one.partition_index for one in topic.assignments) != list(range(len(topic.assignments))):
            why = "partitions should be a consecutive 0-based integer sequence"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
        for assignment in topic.assignments:
            check_replicas(request, assignment.broker_ids)
        count = len(topic.assignments)
    else:
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            why = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, why)
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            why = "Number of partitions was set to an invalid non-positive value."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, why)
        if topic.replication_factor > 1:
            why = (
                f"Unable to replicate the partition {topic.replication_factor} time(s): The target replication factor "
                f"of {topic.replication_factor} cannot be reached because only 1 broker(s) are registered."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, why)
        default = request.service.settings.default_partitions
        count = default if topic.num_partitions == -1 else topic.num_partitions
    if count > MAX_PARTITIONS_OF_TOPIC:
        why = f"A topic has 1 to {MAX_PARTITIONS_OF_TOPIC} partitions, not {count}."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, why)
    return count
