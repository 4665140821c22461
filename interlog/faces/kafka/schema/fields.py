"""What the tables of messages are made of: the kinds of fields, and the class that makes slots of them.

    class FetchPartition(Message):
        partition: int = int32(default=0)
        current_leader_epoch: int = int32("9+", default=-1)

is a class with two slots and a constructor that knows the defaults. A field that a version does not have is not
written in it, and has its default when read in it. Arrays are lists, uuids 16 bytes, records a memoryview.

`tag` marks a tagged field: left out where it equals its default. `ignorable` says that a version without the field
may lose its value; nothing here asks, but see `misfits`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final, dataclass_transform

NEVER: Final = 1 << 15  # beyond the last version there can be
NO_UUID: Final = bytes(16)

# Of fixed size, with the letter `struct` has for it.
LETTERS: Final = {
    "boolean": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
SIZES: Final = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}


@cache
def versions_of(text: str) -> range:
    """ "3+", "0-7", "4" or "" (none)."""
    if not text:
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), NEVER)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Field:
    """A row of a table."""

    __slots__ = ("default", "ignorable", "item", "kind", "name", "nullable", "tag", "versions")

    def __init__(
        self, kind: str, versions: str, default: Any, nullable: str, tag: int, ignorable: bool, item: Any = None
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions = versions_of(versions)
        self.default = default
        self.nullable = versions_of(nullable)
        self.tag = tag  # -1: none
        self.ignorable = ignorable
        self.item = item  # of an array: a class or the name of a kind; of a struct: its class

    def new_default(self) -> Any:
        """The value of a field nobody set, a new one where it can be changed."""
        return self.default() if callable(self.default) else self.default


def boolean(versions: str = "0+", *, default: bool, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("boolean", versions, default, nullable, tag, ignorable)


def int8(versions: str = "0+", *, default: int, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("int8", versions, default, nullable, tag, ignorable)


def int16(versions: str = "0+", *, default: int, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("int16", versions, default, nullable, tag, ignorable)


def uint16(versions: str = "0+", *, default: int, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("uint16", versions, default, nullable, tag, ignorable)


def int32(versions: str = "0+", *, default: int, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("int32", versions, default, nullable, tag, ignorable)


def int64(versions: str = "0+", *, default: int, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("int64", versions, default, nullable, tag, ignorable)


def float64(versions: str = "0+", *, default: float, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("float64", versions, default, nullable, tag, ignorable)


def uuid(versions: str = "0+", *, default: bytes, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("uuid", versions, default, nullable, tag, ignorable)


def string(
    versions: str = "0+", *, default: str | None, nullable: str = "", tag: int = -1, ignorable: bool = False
) -> Any:
    return Field("string", versions, default, nullable, tag, ignorable)


def binary(
    versions: str = "0+", *, default: bytes | None, nullable: str = "", tag: int = -1, ignorable: bool = False
) -> Any:
    return Field("binary", versions, default, nullable, tag, ignorable)


def records(versions: str = "0+", *, default: None, nullable: str = "", tag: int = -1, ignorable: bool = False) -> Any:
    return Field("records", versions, default, nullable, tag, ignorable)


def array(
    item: type[Any] | str,
    versions: str = "0+",
    *,
    default: None = None,
    default_factory: Callable[[], Any] | None = None,
    nullable: str = "",
    tag: int = -1,
    ignorable: bool = False,
) -> Any:
    """Of structs, or of a kind given by its name."""
    return Field("array", versions, default_factory or default, nullable, tag, ignorable, item)


def struct(
    item: type[Any],
    versions: str = "0+",
    *,
    default: None = None,
    default_factory: Callable[[], Any] | None = None,
    nullable: str = "",
    tag: int = -1,
    ignorable: bool = False,
) -> Any:
    return Field("struct", versions, default_factory or default, nullable, tag, ignorable, item)


class Table(type):
    """Makes slots of the fields; what they were is in `FIELDS`."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "Table":
        fields = []
        for key, value in list(namespace.items()):
            if isinstance(value, Field):
                value.name = key
                fields.append(value)
                del namespace[key]
        namespace["__slots__"] = tuple(field.name for field in fields)
        namespace["FIELDS"] = tuple(fields)
        return super().__new__(mcs, name, bases, namespace)


@dataclass_transform(
    eq_default=True,
    field_specifiers=(
        boolean,
        int8,
        int16,
        uint16,
        int32,
        int64,
        float64,
        uuid,
        string,
        binary,
        records,
        array,
        struct,
    ),
)
class Message(metaclass=Table):
    """A request, a response, or a struct in one."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    API_KEY: ClassVar[int] = -1
    VALID: ClassVar[range] = range(0)  # the versions there are a table for
    FLEXIBLE: ClassVar[int] = NEVER  # from this version on: compact lengths and tagged fields

    def __init__(self, *values: Any, **named: Any) -> None:
        # The first message of a class makes its constructor: a start needs none of them.
        cls = type(self)
        cls.__init__ = constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, *values, **named)

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in self.FIELDS}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return type(self) is type(other) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"


def constructor(cls: type[Message]) -> Any:
    """`__init__` of a class: a parameter for each field, by position or name, with the default the table says."""
    names: dict[str, Any] = {"UNSET": object()}
    parameters = []
    lines = []
    for field in cls.FIELDS:
        if callable(field.default):
            names[f"new_{field.name}"] = field.default
            parameters.append(f"{field.name}=UNSET")
            lines.append(f"self.{field.name} = new_{field.name}() if {field.name} is UNSET else {field.name}")
        else:
            parameters.append(f"{field.name}={field.default!r}")
            lines.append(f"self.{field.name} = {field.name}")
    source = f"def __init__(self, {', '.join(parameters)}):\n    " + "\n    ".join(lines or ["pass"])
    exec(compile(source, f"<{cls.__name__}>", "exec"), names)
    return names["__init__"]


def misfits(message: Message, version: int) -> list[str]:
    """The fields whose value is lost when the message is written in this version, though the table says it must not.

    For tests of handlers: `encode` itself leaves out what a version has not, without a word.
    """
    found = []
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if version not in field.versions:
            if not field.ignorable and value != field.new_default():
                found.append(field.name)
            continue
        inner = value if isinstance(value, list) else [value]
        for index, each in enumerate(inner):
            if isinstance(each, Message):
                where = f"{field.name}[{index}]" if isinstance(value, list) else field.name
                found += [f"{where}.{name}" for name in misfits(each, version)]
    return found
