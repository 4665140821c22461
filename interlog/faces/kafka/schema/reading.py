"""Makes the function that reads a message of one version: straight code, from the message's table.

An interpreter of the tables takes two to three times as long, and the same code for all versions on disk would be
a megabyte. So each function is made when the first message of its kind arrives, which takes about a millisecond.

What the code does, and `source` shows: neighbours of fixed size, lengths included, are read together; every length
is held against what is left before anything of that length is made; `left` bounds the elements of all arrays.
"""

from collections.abc import Callable
from struct import Struct, unpack_from
from struct import error as StructError
from typing import Any, Final

from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.schema.fields import LETTERS, SIZES, Field, Message

MOST_ELEMENTS: Final = 1 << 18  # in the arrays of a message, all together
Read = Callable[[bytes, int, int], tuple[Any, int]]


def more_varint(data: bytes, at: int, value: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, of more than 127, is `value`."""
    value &= 127
    for shift in (7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 32:
                break
            return value, at
    raise WireError("a varint has more than 32 bits")


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    return more_varint(data, at, value) if value > 127 else (value, at)


def skip_tags(data: bytes, at: int, end: int, count: int, left: int) -> tuple[int, int]:
    """Behind the tagged fields, none of them known; `count` is the first byte of their number."""
    if count > 127:
        count, at = more_varint(data, at, count)
    left -= count
    if left < 0 or 2 * count > end - at:
        raise WireError("too many tagged fields")
    for _ in range(count):
        _, at = varint_at(data, at)
        size, at = varint_at(data, at)
        at += size
    return at, left


def least_size(table: type[Message], version: int, flexible: bool) -> int:
    """How many bytes a struct has at least: bounds how many there can be in an array."""
    size = 1 if flexible else 0
    for field in table.FIELDS:
        if version not in field.versions or (flexible and field.tag >= 0):
            continue
        if field.kind in LETTERS:
            size += SIZES[LETTERS[field.kind]]
        elif field.kind == "struct":
            size += 1 if version in field.nullable else least_size(field.item, version, flexible)
        elif flexible:
            size += 1
        else:
            size += 2 if field.kind == "string" else 4
    return size


class Reader:
    """Collects the lines of one function."""

    def __init__(self, table: type[Message], version: int) -> None:
        self.table = table
        self.version = version
        self.flexible = version >= table.FLEXIBLE
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "unpack_from": unpack_from,
            "more_varint": more_varint,
            "varint_at": varint_at,
            "skip_tags": skip_tags,
            "WireError": WireError,
            "NO_SENSE": (IndexError, StructError, UnicodeDecodeError),
        }
        self.lines: list[str] = []
        self.depth = 1
        self.fixed: list[tuple[str, str]] = []  # targets and letters not yet read
        self.count = 0

    def make(self) -> Read:
        code = compile(self.source(), f"<read {self.table.__name__} v{self.version}>", "exec")
        exec(code, self.names)
        read: Read = self.names["read"]
        return read

    def source(self) -> str:
        what = f"{self.table.__name__} version {self.version}"
        self.depth = 2
        self.struct(self.table, "m")
        self.flush()
        body = self.lines
        head = ["def read(data, at, end):", f"    left = {MOST_ELEMENTS}"]
        if any("view[" in line for line in body):
            head.append("    view = memoryview(data)")
        tail = [
            "    except NO_SENSE as error:",
            f'        raise WireError(f"{what}: {{error}}") from None',
            "    if at > end:",
            f'        raise WireError("{what} is cut short")',
            "    return m, at",
        ]
        return "\n".join([*head, "    try:", *body, *tail]) + "\n"

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, value: Any, name: str) -> str:
        """A name in the function's globals."""
        self.names[name] = value
        return name

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def flush(self) -> None:
        """Read what is pending."""
        if not self.fixed:
            return
        letters = "".join(letter for _, letter in self.fixed)
        targets = [target for target, _ in self.fixed]
        if letters == "B":
            self.put(f"{targets[0]} = data[at]")
        else:
            name = self.name(Struct(f">{letters}").unpack_from, f"read_{letters.replace('?', 'o')}")
            self.put(f"{', '.join(targets) if len(targets) > 1 else f'({targets[0]},)'} = {name}(data, at)")
        self.put(f"at += {sum(SIZES[letter] for _, letter in self.fixed)}")
        self.fixed.clear()

    def refuse(self, condition: str, what: str) -> None:
        self.put(f"if {condition}:")
        self.put(f'    raise WireError("{what}")')

    # -- structs and fields

    def struct(self, table: type[Message], var: str, *, also: str = "") -> None:
        """`also`: where the object goes besides."""
        self.put(f"{also}{var} = new({self.name(table, table.__name__)})")
        tagged = []
        for field in table.FIELDS:
            if version_has_not(field, self.version):
                self.default(field, var)
            elif self.flexible and field.tag >= 0:
                self.default(field, var)
                tagged.append(field)
            else:
                self.value(field, f"{var}.{field.name}")
        if self.flexible:
            self.tags(tagged, var)

    def default(self, field: Field, var: str) -> None:
        target = f"{var}.{field.name}"
        if field.default is list:
            self.put(f"{target} = []")
        elif callable(field.default):
            self.put(f"{target} = {self.name(field.default, field.default.__name__)}()")
        else:
            self.put(f"{target} = {field.default!r}")

    def tags(self, tagged: list[Field], var: str) -> None:
        count = self.fresh("tags")
        self.fixed.append((count, "B"))
        self.flush()
        self.put(f"if {count}:")
        if not tagged:
            self.put(f"    at, left = skip_tags(data, at, end, {count}, left)")
            return
        self.depth += 1
        self.longer(count)
        self.put(f"left -= {count}")
        self.refuse(f"left < 0 or 2 * {count} > end - at", "too many tagged fields")
        self.put(f"for _ in range({count}):")
        self.depth += 1
        tag, to = self.fresh("tag"), self.fresh("to")
        self.put(f"{tag}, at = varint_at(data, at)")
        self.put(f"{to}, at = varint_at(data, at)")
        self.put(f"{to} += at")
        for index, field in enumerate(tagged):
            self.put(f"{'elif' if index else 'if'} {tag} == {field.tag}:")
            self.depth += 1
            self.value(field, f"{var}.{field.name}")
            self.flush()
            self.depth -= 1
        self.put("else:")
        self.put(f"    at = {to}")
        self.refuse(f"at != {to} or at > end", "a tagged field of the wrong size")
        self.depth -= 2

    def longer(self, size: str) -> None:
        """The varint's other bytes, if it has any."""
        self.put(f"if {size} > 127:")
        self.put(f"    {size}, at = more_varint(data, at, {size})")

    def value(self, field: Field, target: str) -> None:
        nullable = self.version in field.nullable
        if field.kind in LETTERS:
            self.fixed.append((target, LETTERS[field.kind]))
        elif field.kind == "array":
            self.array(field, target, nullable)
        elif field.kind == "struct" and nullable:
            mark = self.fresh("n")
            self.fixed.append((mark, "b"))
            self.flush()
            self.unless_null(f"{mark} < 0", target)
            self.struct(field.item, self.fresh("m"), also=f"{target} = ")
            self.flush()
            self.depth -= 1
        elif field.kind == "struct":
            self.struct(field.item, self.fresh("m"), also=f"{target} = ")
        else:
            self.bytes(field.kind, target, nullable)

    def unless_null(self, condition: str, target: str) -> None:
        """What follows is one deeper, and for values that are not null."""
        self.put(f"if {condition}:")
        self.put(f"    {target} = None")
        self.put("else:")
        self.depth += 1

    def size(self, letter: str) -> str:
        """Of what follows; flexible ones are one too large, 0 for null."""
        size = self.fresh("n")
        self.fixed.append((size, "B" if self.flexible else letter))
        self.flush()
        if self.flexible:
            self.longer(size)
        return size

    def bytes(self, kind: str, target: str, nullable: bool) -> None:
        """Strings too."""
        size = self.size("h" if kind == "string" else "i")
        if nullable:
            self.unless_null(f"{size} {'== 0' if self.flexible else '< 0'}", target)
        self.put(f"to = at + {size}{' - 1' if self.flexible else ''}")
        self.refuse("to > end or to < at", f"{target.partition('.')[2] or 'a value'} is cut short")
        if kind == "string":
            self.put(f"{target} = data[at:to].decode()")
        else:
            self.put(f"{target} = {'view' if kind == 'records' else 'data'}[at:to]")
        self.put("at = to")
        if nullable:
            self.depth -= 1

    def array(self, field: Field, target: str, nullable: bool) -> None:
        size = self.size("i")
        if nullable:
            self.unless_null(f"{size} {'== 0' if self.flexible else '< 0'}", target)
        if self.flexible:
            self.put(f"{size} -= 1")
        item = field.item
        is_table = not isinstance(item, str)
        if is_table:
            least = least_size(item, self.version, self.flexible)
        else:
            least = SIZES[LETTERS[item]] if item in LETTERS else 1 if self.flexible else 2
        self.put(f"left -= {size}")
        self.refuse(
            f"left < 0 or {size} < 0 or {size} * {least} > end - at", f"{field.name} cannot have that many elements"
        )
        if is_table:
            put, inner = self.fresh("put"), self.fresh("m")
            self.put(f"{put} = []")
            self.put(f"{target} = {put}")
            self.put(f"{put} = {put}.append")
            self.put(f"for _ in range({size}):")
            self.depth += 1
            self.struct(item, inner)
            self.flush()
            self.put(f"{put}({inner})")
            self.depth -= 1
        elif item in LETTERS and item != "uuid":
            self.put(f'{target} = list(unpack_from(f">{{{size}}}{LETTERS[item]}", data, at))')
            self.put(f"at += {least} * {size}")
        else:
            put = self.fresh("put")
            self.put(f"{target} = []")
            self.put(f"{put} = {target}.append")
            self.put(f"for _ in range({size}):")
            self.depth += 1
            if item == "uuid":
                self.put("x = data[at : at + 16]")
                self.put("at += 16")
            else:
                self.bytes(item, "x", False)
            self.put(f"{put}(x)")
            self.depth -= 1
        if nullable:
            self.depth -= 1


def version_has_not(field: Field, version: int) -> bool:
    return version not in field.versions
