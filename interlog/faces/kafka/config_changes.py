"""AlterConfigs and IncrementalAlterConfigs in what they have in common: each resource is changed, or not, for itself.

Comes in: a request's resources, and what makes a resource's new configs of those it has. Goes out: an error for each,
in their order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from interlog.base.errors import InvalidError, LimitError
from interlog.faces.kafka.config_resources import Configured, find
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request


class Resource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)
Make = Callable[[R, Configured], Mapping[str, str]]
Outcome = tuple[ErrorCode, str | None]


def change(
    request: Request,
    resources: Sequence[R],
    check: Callable[[R], None],
    make: Make[R],
    *,
    validate_only: bool,
) -> list[Outcome]:
    """`check` looks at what a resource is to get before it is known whether it is there."""
    times = Counter((one.resource_type, one.resource_name) for one in resources)
    outcomes: list[Outcome] = []
    for one in resources:
        outcome: Outcome = (ErrorCode.NONE, None)
        try:
            if times[one.resource_type, one.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            check(one)
            found = find(request, "alter_configs", one.resource_type, one.resource_name)
            found.put(make(one, found), validate_only=validate_only)
        except KafkaError as error:
            outcome = (error.code, error.message)
        except InvalidError as error:
            outcome = (ErrorCode.INVALID_CONFIG, str(error))
        except LimitError as error:
            outcome = (ErrorCode.POLICY_VIOLATION, str(error))
        outcomes.append(outcome)
    return outcomes


def check_names(names: Sequence[str], nulls: Sequence[str]) -> None:
    """Each config once, and with a value."""
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
