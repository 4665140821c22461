"""Users and permissions as the catalog keeps them, and as others see them.

Comes in: objects of the catalog, and what somebody wants kept. Goes out: users, permissions, or a sentence that says
what is wrong.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.core.access_patterns import check_pattern
from interlog.core.catalog_objects import ObjectItem

USER: Final = "user"  # in no namespace
PERMISSION: Final = "permission"  # in a namespace, by the user's name
TOPIC_PERMISSION: Final = "topic_permission"  # in a namespace, by `topic_name`
KINDS: Final = frozenset((USER, PERMISSION, TOPIC_PERMISSION))

ADMINISTRATOR: Final = "administrator"
MAX_TAGS: Final = 32
_TAG: Final = re.compile(r"[\w.:-]{1,64}")


@dataclass(frozen=True, slots=True)
class User:
    name: str
    tags: tuple[str, ...] = ()
    has_password: bool = True

    @property
    def administrator(self) -> bool:
        return ADMINISTRATOR in self.tags


@dataclass(frozen=True, slots=True)
class Permission:
    namespace: str
    user: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class TopicPermission:
    """On routing keys of one exchange. Where there is none, every key is allowed."""

    namespace: str
    user: str
    exchange: str
    write: str
    read: str


def user_of(item: ObjectItem) -> User:
    return User(item.name, tuple(item.value["tags"]), "secrets" in item.value)


def user_value(tags: Iterable[str], secrets: Mapping[str, Any] | None) -> dict[str, Any]:
    kept = list(dict.fromkeys(tags))
    if len(kept) > MAX_TAGS:
        raise InvalidError(f"a user can have {MAX_TAGS} tags, not {len(kept)}")
    for tag in kept:
        if not _TAG.fullmatch(tag):
            raise InvalidError(f"{tag!r} cannot be a tag: a tag is a word of at most 64 letters, digits, - _ . and :")
    return {"tags": kept, "secrets": secrets} if secrets else {"tags": kept}


def permission_of(item: ObjectItem) -> Permission:
    value = item.value
    return Permission(item.namespace, item.name, value["configure"], value["write"], value["read"])


def topic_permission_of(item: ObjectItem) -> TopicPermission:
    value = item.value
    return TopicPermission(item.namespace, value["user"], value["exchange"], value["write"], value["read"])


def topic_name(user: str, exchange: str) -> str:
    """One name for the two, which no other two have."""
    return f"{len(user)}:{user}{exchange}"


def checked_patterns(**patterns: str) -> dict[str, str]:
    for what, text in patterns.items():
        check_pattern(what, text)
    return patterns
