"""AlterClientQuotas: limits are set and taken away, for each entity all or none. They act at once."""

from collections import Counter

from interlog.base.errors import LimitError
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.quota_rules import changed, entity, invalid
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)


def handle(request: Request, body: AlterClientQuotasRequest) -> AlterClientQuotasResponse | None:
    times = Counter(_name(entry) for entry in body.entries)
    entries = []
    for entry in body.entries:
        result = ResponseEntryData(
            ErrorCode.NONE, None, [ResponseEntityData(one.entity_type, one.entity_name) for one in entry.entity]
        )
        try:
            if not request.may("alter_configs", CLUSTER, "cluster"):
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
            if times[_name(entry)] > 1:
                raise invalid("Ignoring duplicate entity")
            _alter(request, entry, validate_only=body.validate_only)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        except LimitError as error:
            result.error_code, result.error_message = ErrorCode.POLICY_VIOLATION, str(error)
        entries.append(result)
    request.answer_when_durable(AlterClientQuotasResponse(0, entries))
    return None


def _name(entry: RequestEntryData) -> frozenset[tuple[str, str | None]]:
    return frozenset((one.entity_type, one.entity_name) for one in entry.entity)


def _alter(request: Request, entry: RequestEntryData, *, validate_only: bool) -> None:
    quotas = request.service.quotas
    whose = entity((one.entity_type, one.entity_name) for one in entry.entity)
    values = changed(whose, quotas.of(whose), ((op.key, None if op.remove else op.value) for op in entry.ops))
    if not validate_only:
        quotas.keep(whose, values)
