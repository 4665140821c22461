"""Makes the function that writes a message of one version: straight code, from the message's table (see `reading`)."""

from collections.abc import Callable
from struct import Struct, pack
from struct import error as StructError
from typing import Any, Final

from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.schema.fields import LETTERS, Field, Message

ONE: Final = tuple(bytes((n,)) for n in range(256))  # an octet as bytes
Write = Callable[[Any], bytes]


def varint(value: int) -> bytes:
    """Unsigned."""
    if value < 128:
        return ONE[value]
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


class Writer:
    """Collects the lines of one function."""

    def __init__(self, table: type[Message], version: int) -> None:
        self.table = table
        self.version = version
        self.flexible = version >= table.FLEXIBLE
        self.names: dict[str, Any] = {
            "ONE": ONE,
            "varint": varint,
            "pack": pack,
            "WireError": WireError,
            "NO_SENSE": (StructError, AttributeError, TypeError),
        }
        self.lines: list[str] = []
        self.depth = 2
        self.fixed: list[tuple[str, str]] = []  # expressions and letters not yet written
        self.out = "put"
        self.count = 0

    def make(self) -> Write:
        code = compile(self.source(), f"<write {self.table.__name__} v{self.version}>", "exec")
        exec(code, self.names)
        write: Write = self.names["write"]
        return write

    def source(self) -> str:
        self.struct(self.table, "m")
        self.flush()
        head = ["def write(m):", "    out = []", "    put = out.append", "    try:"]
        tail = [
            "    except NO_SENSE as error:",
            f'        raise WireError(f"{self.table.__name__} version {self.version}: {{error}}") from error',
            '    return b"".join(out)',
        ]
        return "\n".join([*head, *(self.lines or ["        pass"]), *tail]) + "\n"

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, value: Any, name: str) -> str:
        self.names[name] = value
        return name

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def flush(self) -> None:
        """Write what is pending: numbers alone are bytes already."""
        if not self.fixed:
            return
        letters = "".join(letter for _, letter in self.fixed)
        if all(value.isdecimal() for value, _ in self.fixed):
            made = pack(f">{letters}", *(int(value) for value, _ in self.fixed))
            self.put(f"{self.out}({made!r})")
        else:
            name = self.name(Struct(f">{letters}").pack, f"pack_{letters.replace('?', 'o')}")
            self.put(f"{self.out}({name}({', '.join(value for value, _ in self.fixed)}))")
        self.fixed.clear()

    # -- structs and fields

    def struct(self, table: type[Message], var: str) -> None:
        tagged = []
        for field in table.FIELDS:
            if self.version not in field.versions:
                continue
            if self.flexible and field.tag >= 0:
                tagged.append(field)
            else:
                self.value(field, f"{var}.{field.name}")
        if tagged:
            self.tags(tagged, var)
        elif self.flexible:
            self.fixed.append(("0", "B"))

    def tags(self, tagged: list[Field], var: str) -> None:
        self.flush()
        tags = self.fresh("tags")
        self.put(f"{tags} = []")
        outer = self.out
        for field in sorted(tagged, key=lambda field: field.tag):
            value = self.fresh("v")
            self.put(f"{value} = {var}.{field.name}")
            self.put(f"if {self.differs(field, value)}:")
            self.depth += 1
            parts = self.fresh("out")
            self.out = self.fresh("put")
            self.put(f"{parts} = []")
            self.put(f"{self.out} = {parts}.append")
            self.value(field, value)
            self.flush()
            self.put(f'{parts} = b"".join({parts})')
            self.put(f"{tags}.append({varint(field.tag)!r} + varint(len({parts})) + {parts})")
            self.depth -= 1
            self.out = outer
        self.put(f'{self.out}(varint(len({tags})) + b"".join({tags}) if {tags} else b"\\0")')

    def differs(self, field: Field, value: str) -> str:
        """Whether the value is not the default, in Python."""
        if field.kind == "struct" and field.default is not None:
            # Field by field: to compare whole messages takes long.
            return " or ".join(self.differs(inner, f"{value}.{inner.name}") for inner in field.item.FIELDS)
        if field.default is None:
            return f"{value} is not None"
        if field.kind == "array":
            return f"{value} is None or {value}" if self.version in field.nullable else value
        return f"{value} != {field.default!r}"

    def value(self, field: Field, source: str) -> None:
        nullable = self.version in field.nullable
        if field.kind in LETTERS:
            self.fixed.append((source, LETTERS[field.kind]))
            return
        var = self.fresh("m")
        if field.kind == "struct" and not nullable:
            self.put(f"{var} = {source}")
            self.struct(field.item, var)
            return
        self.put(f"{var} = {source}")
        if nullable:
            self.flush()
            self.put(f"if {var} is None:")
            null = "\\xff" if field.kind == "struct" else "\\0" if self.flexible else "\\xff\\xff"
            self.put(f'    {self.out}(b"{null}{null if null[1] == "x" and self.long(field) else ""}")')
            self.put("else:")
            self.depth += 1
        if field.kind == "struct":
            self.fixed.append(("1", "b"))
            self.struct(field.item, var)
        elif field.kind == "array":
            self.array(field.item, var)
        else:
            self.bytes(field.kind, var)
        if nullable:
            self.flush()
            self.depth -= 1

    def long(self, field: Field) -> bool:
        """Whether the length has four bytes, in versions that are not flexible."""
        return field.kind in ("array", "binary", "records")

    def size(self, value: str, letter: str) -> None:
        """How many there are, of elements or bytes."""
        if not self.flexible:
            self.fixed.append((f"len({value})", letter))
            return
        self.flush()
        size = self.fresh("n")
        self.put(f"{size} = len({value}) + 1")
        self.put(f"{self.out}(ONE[{size}] if {size} < 128 else varint({size}))")

    def bytes(self, kind: str, var: str) -> None:
        if kind != "string":
            self.size(var, "i")
            self.flush()
            self.put(f"{self.out}({var})")
            return
        self.put(f'{var} = {var}.encode("utf-8", "surrogateescape")')
        if self.flexible:
            self.flush()
            size = self.fresh("n")
            self.put(f"{size} = len({var}) + 1")
            self.put(f"{self.out}(ONE[{size}] + {var} if {size} < 128 else varint({size}) + {var})")
        else:
            self.size(var, "h")
            self.flush()
            self.put(f"{self.out}({var})")

    def array(self, item: Any, var: str) -> None:
        self.size(var, "i")
        self.flush()
        if not isinstance(item, str):
            inner = self.fresh("m")
            self.put(f"for {inner} in {var}:")
            self.depth += 1
            before = len(self.lines)
            self.struct(item, inner)
            self.flush()
            if len(self.lines) == before:
                self.put("pass")
            self.depth -= 1
        elif item == "uuid":
            self.put(f'{self.out}(b"".join({var}))')
        elif item in LETTERS:
            # To make a format takes longer than to use it, and most arrays of numbers have one, or none.
            letter = LETTERS[item]
            one = self.name(Struct(f">{letter}").pack, f"pack_{letter.replace('?', 'o')}")
            self.put(f"if len({var}) == 1:")
            self.put(f"    {self.out}({one}(*{var}))")
            self.put(f"elif {var}:")
            self.put(f'    {self.out}(pack(f">{{len({var})}}{letter}", *{var}))')
        else:
            inner = self.fresh("x")
            self.put(f"for {inner} in {var}:")
            self.depth += 1
            self.bytes(item, inner)
            self.depth -= 1
