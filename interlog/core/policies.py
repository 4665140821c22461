"""Policies: settings by pattern, for queues, topics and exchanges that are there and that will be.

Comes in: policies to keep (objects of kind "policy" and "operator_policy" of a namespace) and names of things. Goes
out: what policy says of a thing. Of the policies whose pattern is found in a name, the one of highest priority holds,
whole, and of equal ones the first by name. An operator's policies are a second set that only sets limits, and what
happens at them: where both say something, the lower limit holds, and the operator's word. What a thing was declared
with itself is weighed against that by who declared it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from interlog.base.errors import InvalidError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import MAX_NAME_BYTES, Change, Namespace, ObjectItem, What, check_name
from interlog.core.queue_settings import DECLARED
from interlog.core.queue_settings import check_settings as check_queue_settings
from interlog.core.topic_settings import check_settings as check_topic_settings
from interlog.core.topic_settings import lower_limit

POLICY: Final = "policy"
OPERATOR_POLICY: Final = "operator_policy"
MAX_PATTERN_BYTES: Final = 1024
_CACHED: Final = 10_000  # names in a namespace for which the answer is kept

_QUEUES: Final = {"classic": "classic_queues", "quorum": "quorum_queues", "stream": "streams"}
_EXCHANGES: Final = "exchanges"
APPLY_TO: Final = ("all", "queues", _EXCHANGES, *_QUEUES.values())

_LIMITS: Final = ("message_ttl_ms", "expires_ms", "max_length", "max_bytes", "delivery_limit", "consumer_timeout_ms")
_OF_QUEUES: Final = (*_LIMITS, "overflow", "dead_letter_exchange", "dead_letter_key")
_RETENTION: Final = ("retention_ms", "retention_bytes")
_OF_TOPICS: Final = (*_RETENTION, "segment_bytes", "segment_ms")
_ALTERNATE: Final = "alternate"
KEYS: Final = (*_OF_QUEUES, *_OF_TOPICS, _ALTERNATE)
OPERATOR_KEYS: Final = (*_LIMITS, *_RETENTION, "overflow")

_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Policy:
    namespace: str
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Mapping[str, Any]


class _Rules:
    """The policies of one namespace, ready to be asked."""

    def __init__(self, items: tuple[list[ObjectItem], ...]) -> None:
        self.items = items
        self.seen = -1  # the generation of the catalog for which this is known to hold
        self.sets = [[(re.compile(policy.pattern), policy) for policy in _in_order(of_kind)] for of_kind in items]
        self.cache: dict[tuple[str, str], Mapping[str, Any]] = {}

    def first(self, which: int, name: str, applies: tuple[str, ...]) -> Policy | None:
        for pattern, policy in self.sets[which]:
            if policy.apply_to in applies and pattern.search(name):
                return policy
        return None


class Policies:
    KINDS: ClassVar = (POLICY, OPERATOR_POLICY)

    def __init__(self, catalog: Catalog) -> None:
        self.generation = 0  # rises with each policy that comes, changes or goes
        self._catalog = catalog
        self._rules: dict[str, _Rules] = {}
        catalog.observe(self._changed)

    def _changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, ObjectItem) and item.kind in self.KINDS:
            self.generation += 1
        elif isinstance(item, Namespace) and change.what is What.REMOVED:
            self._rules.pop(item.name, None)

    def _of(self, namespace: str) -> _Rules:
        """By the catalog as it is now, also for other observers of the change that is being told."""
        catalog = self._catalog
        rules = self._rules.get(namespace)
        if rules is None or rules.seen != catalog.generation:
            space = catalog.namespace(namespace).name
            items = tuple(catalog.objects(kind, space) for kind in self.KINDS)
            if rules is None or rules.items != items:
                rules = self._rules[namespace] = _Rules(items)
            rules.seen = catalog.generation
        return rules

    # -- asked

    def all(self, namespace: str, *, operator: bool = False) -> list[Policy]:
        return [_policy(item) for item in self._catalog.objects(self.KINDS[operator], namespace)]

    def of_queue(self, namespace: str, name: str, kind: str) -> Mapping[str, Any]:
        """What policy says of a queue ("classic" or "quorum") or of a topic ("stream")."""
        return self._merged(namespace, name, _QUEUES[kind])

    def of_exchange(self, namespace: str, name: str) -> Mapping[str, Any]:
        return self._merged(namespace, name, _EXCHANGES)

    def for_queue(self, namespace: str, name: str, kind: str, *, operator: bool = False) -> Policy | None:
        """The policy itself that holds for it."""
        return self._of(namespace).first(operator, name, _applies(_QUEUES[kind]))

    def for_exchange(self, namespace: str, name: str, *, operator: bool = False) -> Policy | None:
        return self._of(namespace).first(operator, name, _applies(_EXCHANGES))

    def _merged(self, namespace: str, name: str, target: str) -> Mapping[str, Any]:
        rules = self._of(namespace)
        if not any(rules.sets):
            return _NOTHING
        cached = rules.cache.get((target, name))
        if cached is None:
            applies = _applies(target)
            policy, operator = rules.first(0, name, applies), rules.first(1, name, applies)
            cached = dict(policy.definition) if policy is not None else {}
            for key, limit in (operator.definition if operator is not None else _NOTHING).items():
                cached[key] = lower_limit(cached[key], limit) if key in cached and isinstance(limit, int) else limit
            cached.pop(DECLARED, None)
            if len(rules.cache) >= _CACHED:
                rules.cache.clear()
            rules.cache[target, name] = cached
        return cached

    # -- changed

    def put(
        self,
        namespace: str,
        name: str,
        pattern: str,
        definition: Mapping[str, Any],
        *,
        priority: int = 0,
        apply_to: str = "all",
        operator: bool = False,
    ) -> Policy:
        """Keep a policy, in place of the one of its name."""
        kind = self.KINDS[operator]
        check_name(POLICY, name, MAX_NAME_BYTES)
        _check(pattern, definition, apply_to, operator)
        value = {"pattern": pattern, "apply_to": apply_to, "priority": priority, "definition": dict(definition)}
        return _policy(self._catalog.put(kind, namespace, name, value))

    def remove(self, namespace: str, name: str, *, operator: bool = False) -> None:
        """NotFoundError if there is none of the name."""
        self._catalog.discard(self.KINDS[operator], namespace, name)


def _policy(item: ObjectItem) -> Policy:
    value = item.value
    return Policy(
        item.namespace, item.name, value["pattern"], value["apply_to"], value["priority"], value["definition"]
    )


def _in_order(items: list[ObjectItem]) -> list[Policy]:
    return sorted(map(_policy, items), key=lambda policy: (-policy.priority, policy.name))


def _applies(target: str) -> tuple[str, ...]:
    return ("all", target) if target == _EXCHANGES else ("all", "queues", target)


def _check(pattern: str, definition: Mapping[str, Any], apply_to: str, operator: bool) -> None:
    try:
        if len(pattern.encode()) > MAX_PATTERN_BYTES:
            raise InvalidError(f"a policy's pattern takes at most {MAX_PATTERN_BYTES} bytes")
        re.compile(pattern)
    except (re.error, UnicodeEncodeError, RecursionError, OverflowError) as error:
        raise InvalidError(f"{pattern!r} is not a pattern: {error}") from None
    if apply_to not in APPLY_TO:
        raise InvalidError(f"a policy applies to {' | '.join(APPLY_TO)}, not {apply_to!r}")
    if not definition:
        raise InvalidError("a policy without a definition says nothing")
    allowed, whose = (OPERATOR_KEYS, "an operator's policy") if operator else (KEYS, "a policy")
    for key, value in definition.items():
        if key == DECLARED and isinstance(value, Mapping):
            continue
        if key not in allowed:
            raise InvalidError(f"{key!r} is nothing that {whose} can set; there are {', '.join(allowed)}")
        if value is None:
            raise InvalidError(f"{whose} says nothing of {key}: leave it out instead")
        if key in _OF_QUEUES:
            check_queue_settings({key: value})
        elif key in _OF_TOPICS:
            check_topic_settings({key: value})
        elif not isinstance(value, str):
            raise InvalidError(f"{key} is text, not {value!r}")
