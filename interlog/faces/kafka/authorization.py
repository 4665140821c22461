"""Authorization: what a user may do, by the permissions that all protocols share and by Kafka's own rules together.

Comes in: a user and what it wants to do to what. Goes out: yes or no. A rule that denies settles it; else a permission
or a rule that allows it is enough. The permissions' patterns (configure, write, read) are for the names of topics,
groups and transactional ids alike; the cluster is for users with a tag. Permissions whose patterns Kafka's words can
express are shown as rules, too.
"""

import re
from collections.abc import Iterator
from typing import Final

from interlog.core.access import Access
from interlog.core.access_objects import ADMINISTRATOR
from interlog.faces.kafka.acls import (
    CLUSTER_NAME,
    EVERYTHING,
    Acl,
    Acls,
    Effect,
    Filter,
    Operation,
    PatternType,
    Resource,
)

MONITORING: Final = "monitoring"

# What a handler asks for.
OPERATIONS: Final = {
    operation.name.lower(): operation for operation in Operation if operation not in (Operation.ANY, Operation.ALL)
}
RESOURCES: Final = {resource.name.lower(): resource for resource in Resource if resource is not Resource.ANY}

# Which of the permissions' patterns an operation needs; of several, one.
_ANY: Final = ("read", "write", "configure")
_DEEDS: Final[dict[Operation, tuple[str, ...]]] = {
    Operation.READ: ("read",),
    Operation.WRITE: ("write",),
    Operation.CREATE: ("configure",),
    Operation.DELETE: ("configure",),
    Operation.ALTER: ("configure",),
    Operation.ALTER_CONFIGS: ("configure",),
    Operation.DESCRIBE: _ANY,
    Operation.DESCRIBE_CONFIGS: _ANY,
}
# Of the cluster, where no rule says anything: who only looks, and what everybody may.
_OF_MONITORING: Final = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
_OF_EVERYBODY: Final = (Operation.IDEMPOTENT_WRITE,)

_SHOWN: Final = {
    "read": ((Resource.TOPIC, Operation.READ), (Resource.GROUP, Operation.READ)),
    "write": ((Resource.TOPIC, Operation.WRITE), (Resource.TRANSACTIONAL_ID, Operation.WRITE)),
    "configure": (
        (Resource.TOPIC, Operation.CREATE),
        (Resource.TOPIC, Operation.DELETE),
        (Resource.TOPIC, Operation.ALTER),
        (Resource.TOPIC, Operation.ALTER_CONFIGS),
        (Resource.GROUP, Operation.DELETE),
    ),
}
_PLAIN: Final = re.compile(r"\^((?:[\w-]|\\[.-])+)(\$?)", re.ASCII)
_ALL: Final = (".*", "^.*", ".*$", "^.*$")


class Authorization:
    def __init__(self, access: Access, acls: Acls, namespace: str) -> None:
        self._access = access
        self._acls = acls
        self._namespace = namespace

    @property
    def generation(self) -> int:
        """Rises with each change: an answer holds for one generation."""
        return self._access.generation + self._acls.generation

    def may(self, user: str, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        tags = self._tags(user) if resource is Resource.CLUSTER else ()
        if ADMINISTRATOR in tags:
            return True  # no rule locks out who could change the rules
        said = self._acls.says(user, host, operation, resource, name)
        if said is not None:
            return said
        makes_topic = operation is Operation.CREATE and resource is Resource.TOPIC
        if makes_topic and self._acls.says(user, host, operation, Resource.CLUSTER, CLUSTER_NAME) is False:
            return False  # whom a rule forbids to make topics at all, no permission allows to make one
        if resource is Resource.CLUSTER:
            return operation in _OF_EVERYBODY or (operation in _OF_MONITORING and MONITORING in tags)
        return any(
            self._access.may(user, self._namespace, deed, name)  # type: ignore[arg-type]
            for deed in _DEEDS.get(operation, ())
        )

    def _tags(self, user: str) -> tuple[str, ...]:
        found = self._access.find(user)
        return () if found is None else found.tags

    def rules(self, filter: Filter) -> list[Acl]:
        """The rules that fit, and what is shown as one and fits; each once."""
        shown = (acl for acl in self.shown() if filter.fits(acl))
        return list(dict.fromkeys((*self._acls.find(filter), *shown)))

    def shown(self) -> Iterator[Acl]:
        """Permissions and tags, as far as rules can express them."""
        for user in self._access.users():
            if ADMINISTRATOR in user.tags:
                yield _rule(user.name, Resource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, Operation.ALL)
        for permission in self._access.permissions(self._namespace):
            for deed, shown in _SHOWN.items():
                place = _place(getattr(permission, deed))
                if place is not None:
                    for resource, operation in shown:
                        yield _rule(permission.user, resource, *place, operation)


def _rule(user: str, resource: Resource, name: str, pattern: PatternType, operation: Operation) -> Acl:
    return Acl(resource, name, pattern, f"User:{user}", EVERYTHING, operation, Effect.ALLOW)


def _place(pattern: str) -> tuple[str, PatternType] | None:
    """A permission's pattern in Kafka's words; None where it has none for it."""
    if pattern in _ALL:
        return EVERYTHING, PatternType.LITERAL
    match = _PLAIN.fullmatch(pattern)
    if match is None:
        return None
    return match[1].replace("\\", ""), PatternType.LITERAL if match[2] else PatternType.PREFIXED
