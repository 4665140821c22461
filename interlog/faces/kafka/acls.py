"""ACLs: Kafka's rules on who may do what, kept beside the permissions that all protocols share.

Comes in: rules to keep, and filters. Goes out: the rules that fit a filter, and what they say of a user who wants to do
something: yes, no, or nothing. A rule is an object of the catalog (kind "kafka_acl") in the namespace that Kafka
clients see, so it lasts, and goes with the namespace. What nobody can check here, as rules on delegation tokens or for
principals that are no users, is refused when it is made.
"""

from collections.abc import Iterator
from enum import IntEnum
from ipaddress import ip_address
from typing import Final, NamedTuple

from interlog.base.errors import InvalidError, LimitError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, ObjectItem, What, dump

KIND: Final = "kafka_acl"
CLUSTER_NAME: Final = "kafka-cluster"
EVERYTHING: Final = "*"
MOST_RULES: Final = 20_000
_USER: Final = "User:"
_MOST_LETTERS: Final = 300  # of a name, each


class Resource(IntEnum):
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class PatternType(IntEnum):
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Effect(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


# Who may do this may also look.
_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


class Acl(NamedTuple):
    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    effect: int

    def concerns(self, name: str) -> bool:
        if self.pattern == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, EVERYTHING)


class Filter(NamedTuple):
    """None and ANY fit everything. MATCH: all rules that concern a resource of that name."""

    resource: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    effect: int

    def fits(self, acl: Acl) -> bool:
        return (
            self.resource in (Resource.ANY, acl.resource)
            and self._fits_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.effect in (Effect.ANY, acl.effect)
        )

    def _fits_name(self, acl: Acl) -> bool:
        if self.pattern == PatternType.MATCH:
            return self.name is None or acl.concerns(self.name)
        return self.pattern in (PatternType.ANY, acl.pattern) and self.name in (None, acl.name)


def check_acl(acl: Acl) -> None:
    """InvalidError with a sentence if it is no rule that can be kept."""
    if acl.resource not in list(Resource)[1:]:
        raise InvalidError("there are rules on topics, groups, transactional ids and the cluster, and on nothing else")
    if acl.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidError("a rule is on one name (LITERAL) or on all that begin with it (PREFIXED)")
    if acl.operation not in list(Operation)[1:]:
        raise InvalidError("the operation is not one that can be allowed or denied here")
    if acl.effect not in (Effect.DENY, Effect.ALLOW):
        raise InvalidError("a rule allows or denies")
    if not acl.name:
        raise InvalidError("Invalid empty resource name")
    if acl.resource == Resource.CLUSTER and acl.name != CLUSTER_NAME:
        raise InvalidError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.principal.startswith(_USER) or acl.principal == _USER:
        raise InvalidError(f"a principal is User: and a name, or {_USER}{EVERYTHING}; there are no others here")
    if max(len(acl.name), len(acl.principal)) > _MOST_LETTERS:
        raise InvalidError(f"names in rules have at most {_MOST_LETTERS} letters")
    if acl.host != EVERYTHING and not is_address(acl.host):
        raise InvalidError(f"a host is an address or {EVERYTHING}")


def check_filter(filter: Filter) -> None:
    for what, value, known in (
        ("resource type", filter.resource, Resource),
        ("pattern type", filter.pattern, PatternType),
        ("operation", filter.operation, Operation),
        ("permission type", filter.effect, Effect),
    ):
        if value < 1 or (value not in list(known) and what == "pattern type"):
            raise InvalidError(f"the filter's {what} is not known")


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class Acls:
    """All rules of one namespace."""

    def __init__(self, catalog: Catalog, namespace: str) -> None:
        self._catalog = catalog
        self._namespace = namespace
        self._rules: dict[str, Acl] = {}  # by the names of their objects
        self._exact: dict[tuple[int, str], dict[str, Acl]] = {}  # literal ones by what they are on
        self._prefixed: dict[int, dict[str, Acl]] = {}
        self.generation = 0  # rises with each change
        for item in catalog.objects(KIND, namespace):
            self._put(item)
        catalog.observe(self._changed)

    def close(self) -> None:
        self._catalog.forget(self._changed)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def find(self, filter: Filter) -> list[Acl]:
        return [acl for acl in self._rules.values() if filter.fits(acl)]

    def add(self, acl: Acl) -> None:
        check_acl(acl)
        name = dump(acl)
        if name in self._rules:
            return
        if len(self._rules) >= MOST_RULES:
            raise LimitError(f"there cannot be more than {MOST_RULES} rules")
        self._catalog.put(KIND, self._namespace, name, {"acl": list(acl)})

    def discard(self, acl: Acl) -> None:
        self._catalog.discard(KIND, self._namespace, dump(acl))

    def says(self, user: str, host: str, operation: Operation, resource: Resource, name: str) -> bool | None:
        """None: nothing. Who is denied may not, whatever else allows it."""
        if not self._rules:
            return None
        said: bool | None = None
        wanted = (operation, Operation.ALL)
        allowing = (*wanted, *_IMPLIED_BY.get(operation, ()))
        for acl in self._concerning(resource, name):
            if acl.principal not in (_USER + user, _USER + EVERYTHING) or acl.host not in (host, EVERYTHING):
                continue
            if acl.effect == Effect.DENY:
                if acl.operation in wanted:
                    return False
            elif acl.operation in allowing:
                said = True
        return said

    def _concerning(self, resource: int, name: str) -> Iterator[Acl]:
        for exact in {name, EVERYTHING}:
            yield from self._exact.get((resource, exact), {}).values()
        for acl in self._prefixed.get(resource, {}).values():
            if name.startswith(acl.name):
                yield acl

    # -- told by the catalog

    def _changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, ObjectItem) and item.kind == KIND and item.namespace == self._namespace:
            if change.what is What.REMOVED:
                self._take(item)
            else:
                self._put(item)
            self.generation += 1

    def _put(self, item: ObjectItem) -> None:
        acl = self._rules[item.name] = Acl(*item.value["acl"])
        self._place(acl)[item.name] = acl

    def _take(self, item: ObjectItem) -> None:
        acl = self._rules.pop(item.name, None)
        if acl is not None:
            del self._place(acl)[item.name]

    def _place(self, acl: Acl) -> dict[str, Acl]:
        if acl.pattern == PatternType.PREFIXED:
            return self._prefixed.setdefault(acl.resource, {})
        return self._exact.setdefault((acl.resource, acl.name), {})
