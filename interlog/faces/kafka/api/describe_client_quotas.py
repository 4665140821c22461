"""DescribeClientQuotas: the quotas that fit a filter; `strict` leaves out those of entities with further parts."""

from enum import IntEnum

from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.quota_rules import Entity, Of, invalid
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class _Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


def handle(request: Request, body: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    try:
        if not request.may("describe_configs", CLUSTER, "cluster"):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        _check(body.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(0, error.code, error.message, None)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData([EntityData(*part) for part in entity], [ValueData(*one) for one in sorted(values.items())])
            for entity, values in request.service.quotas
            if _fits(body, entity)
        ],
    )


def _check(components: list[ComponentData]) -> None:
    types = [one.entity_type for one in components]
    for one in components:
        type = one.entity_type
        if not type:
            raise invalid("Invalid empty entity type.")
        if types.count(type) > 1:
            raise invalid(f"Entity type {type} cannot appear more than once in the filter.")
        if type not in list(Of):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {type}")
        if one.match_type not in list(_Match):
            raise invalid(f"Unknown match type {one.match_type}")
        if one.match_type == _Match.EXACT and one.match is None:
            raise invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if one.match_type != _Match.EXACT and one.match is not None:
            raise invalid("Only MATCH_TYPE_EXACT comes with a match string.")
    if Of.IP in types and len(types) > 1:
        raise invalid("Invalid entity filter component combination: ip goes with no other.")


def _fits(body: DescribeClientQuotasRequest, entity: Entity) -> bool:
    parts = dict(entity)
    if body.strict and len(parts) != len(body.components):
        return False
    for one in body.components:
        if one.entity_type not in parts:
            return False
        # A default is matched by null, which is what `match` is then.
        if one.match_type != _Match.ANY and parts[one.entity_type] != one.match:
            return False
    return True
