"""The catalog's words: what has a name, what a name may be, and what an entry of the catalog looks like.

Comes in: what callers ask for, and bytes of CATALOG entries. Goes out: immutable objects, or a sentence that says
what is wrong. An object that changes is replaced by a new one, so whoever holds one may keep what it made of it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from interlog.base.errors import FormatError, InvalidError, LimitError
from interlog.journal.files import Buffer

MAX_NAME_BYTES: Final = 255
MAX_OBJECT_NAME_BYTES: Final = 2048  # of other kinds: a binding is named after its ends and its key
MAX_SETTINGS_BYTES: Final = 256 * 1024
MAX_NAMESPACES: Final = 10_000
MAX_TOPICS_AND_QUEUES: Final = 200_000
MAX_PARTITIONS: Final = 400_000
MAX_PARTITIONS_OF_TOPIC: Final = 10_000
MAX_LANES: Final = 256
MAX_OBJECTS: Final = 1_000_000  # of other kinds

DEFAULT_NAMESPACE: Final = "/"

# Partitions of queues that are not durable live above this number, and only until the broker stops. A number there
# may be given out again by the next start: nothing that lasts may speak of one.
FIRST_PASSING_PARTITION: Final = 0x8000_0000
LAST_PARTITION: Final = 0xFFFF_FFFF

NAMESPACE: Final = "namespace"
TOPIC: Final = "topic"
QUEUE: Final = "queue"
NEXT: Final = "next"
_OWN_KINDS: Final = frozenset((NAMESPACE, TOPIC, QUEUE, NEXT))
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")

Settings = Mapping[str, Any]


def is_passing(partition: int) -> bool:
    """Whether a partition is of a queue that is not durable: nothing that lasts may name it."""
    return partition >= FIRST_PASSING_PARTITION


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicItem:
    """A topic as the catalog knows it."""

    namespace: str
    name: str
    partitions: tuple[int, ...]
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A queue as the catalog knows it. One with priorities has a partition, called a lane, for each of them."""

    namespace: str
    name: str
    partitions: tuple[int, ...]
    durable: bool = True
    settings: Settings = field(default_factory=dict)

    @property
    def partition(self) -> int:
        return self.partitions[0]


@dataclass(frozen=True, slots=True)
class ObjectItem:
    """Anything else with a name: an exchange, a binding, a policy, a user. The catalog does not look inside."""

    kind: str
    namespace: str
    name: str
    value: Settings
    durable: bool = True


Item = Namespace | TopicItem | QueueItem | ObjectItem


class What(Enum):
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Change:
    """What observers are told: item is the new state, or the last one where it was removed."""

    what: What
    item: Item
    before: Item | None = None  # where it was changed


def partitions_of(item: Item | None) -> tuple[int, ...]:
    return item.partitions if isinstance(item, TopicItem | QueueItem) else ()


def with_settings(item: TopicItem | QueueItem, settings: Settings) -> TopicItem | QueueItem:
    return replace(item, settings=settings)


def check_name(what: str, name: str, most_bytes: int = MAX_NAME_BYTES) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidError(f"the name of a {what} must be text that UTF-8 can write") from None
    if not 1 <= size <= most_bytes:
        raise InvalidError(f"the name of a {what} takes 1 to {most_bytes} bytes, not {size}")


def check_kind(kind: str) -> None:
    if not _KIND.fullmatch(kind) or kind in _OWN_KINDS:
        raise InvalidError(f"{kind!r} cannot be a kind of object: a kind is a lower-case word of at most 32 letters")


def check_partition_count(count: int) -> None:
    if not 1 <= count <= MAX_PARTITIONS_OF_TOPIC:
        raise InvalidError(f"a topic has 1 to {MAX_PARTITIONS_OF_TOPIC} partitions, not {count}")


def copy_settings(what: str, settings: Settings) -> dict[str, Any]:
    """The settings as the journal will give them back; InvalidError if JSON cannot say them."""
    try:
        text = dump(settings)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(f"the settings of {what} cannot be kept: {error}") from None
    if size > MAX_SETTINGS_BYTES:
        raise LimitError(f"the settings of {what} take {size} bytes; {MAX_SETTINGS_BYTES} is the limit")
    copy = json.loads(text)
    if not isinstance(copy, dict):
        raise InvalidError(f"the settings of {what} must be names and values")
    return copy


def dump(value: object) -> str:
    """JSON, always the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def encode(operation: dict[str, Any]) -> bytes:
    return dump(operation).encode()


class Fields:
    """A CATALOG entry, read field by field; FormatError where a field is not what it must be."""

    def __init__(self, payload: Buffer) -> None:
        try:
            fields = json.loads(bytes(payload).decode())
        except (ValueError, RecursionError) as error:
            raise FormatError(f"a catalog entry is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise FormatError("a catalog entry is not a JSON object")
        try:
            dump(fields).encode()
        except ValueError as error:
            raise FormatError(f"a catalog entry cannot be kept: {error}") from None
        self._fields: dict[str, Any] = fields

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise FormatError(f"a catalog entry's {name} is not text")
        return value

    def settings(self, name: str = "settings") -> dict[str, Any]:
        value = self._fields.get(name)
        if not isinstance(value, dict):
            raise FormatError(f"a catalog entry's {name} are not a JSON object")
        return value

    def partitions(self) -> tuple[int, ...]:
        value = self._fields.get("partitions")
        if not isinstance(value, list) or not value or len(set(map(repr, value))) != len(value):
            raise FormatError("a catalog entry's partitions are not a list of different numbers")
        return tuple(map(_partition, value))


def _partition(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < FIRST_PASSING_PARTITION:
        raise FormatError(f"a catalog entry names an impossible partition: {value!r}")
    return value
