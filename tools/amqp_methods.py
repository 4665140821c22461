#!/usr/bin/env python3
"""Makes interlog/faces/amqp/methods.py from RabbitMQ's description of AMQP 0-9-1. Needs the standard library only.

    python3 tools/amqp_methods.py PATH/amqp-rabbitmq-0.9.1.json > interlog/faces/amqp/methods.py
    .venv/bin/ruff format interlog/faces/amqp/methods.py

The description is no part of this repository. What it does not say is in the tables below: which arguments are
reserved, and which side sends what.
"""

import json
import sys
from pathlib import Path
from typing import Any

# Reserved since 0-9-1: skipped when read, empty when written. The ticket is real in access.request-ok alone.
RESERVED = {"ticket", "out-of-band", "capabilities", "insist", "known-hosts"}
RESERVED_IN = {"channel.open-ok": {"channel-id"}, "basic.get-empty": {"cluster-id"}}
REAL_IN = {"access.request-ok": {"ticket"}}

# The client sends what is not named here.
BOTH = """
    connection.close connection.close-ok channel.close channel.close-ok channel.flow channel.flow-ok
    basic.ack basic.nack basic.cancel basic.cancel-ok
"""
SERVER = """
    connection.start connection.secure connection.tune connection.open-ok connection.blocked connection.unblocked
    connection.update-secret-ok channel.open-ok access.request-ok exchange.declare-ok exchange.delete-ok
    exchange.bind-ok exchange.unbind-ok queue.declare-ok queue.bind-ok queue.purge-ok queue.delete-ok
    queue.unbind-ok basic.qos-ok basic.consume-ok basic.return basic.deliver basic.get-ok basic.get-empty
    basic.recover-ok tx.select-ok tx.commit-ok tx.rollback-ok confirm.select-ok
"""

CODES = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}
SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8}
PYTHON = {"shortstr": "str", "longstr": "bytes", "table": "Table", "bit": "bool"}
ZERO = {"shortstr": "", "longstr": b"", "table": None, "bit": False}

HEAD = '''"""The methods of AMQP 0-9-1 with RabbitMQ's extensions, a class each: from a frame's payload, and back to it.

Made by tools/amqp_methods.py; change that, not this. (Made code may be longer than other modules.)
Reserved arguments are left out. Texts are str, long strings bytes.
"""

from __future__ import annotations

from struct import Struct

from interlog.faces.amqp.errors import unknown_method
from interlog.faces.amqp.tables import encode_table, read_table
from interlog.faces.amqp.values import Table
from interlog.faces.amqp.wire import (
    ONE,
    READ_ERRORS,
    SIZE,
    Method,
    long,
    malformed,
    read_long,
    read_loose_short,
    read_short,
    short,
)
'''

TAIL = '''

def decode(data: bytes, at: int, end: int) -> Method:
    """The method in data[at:end], the payload of a method frame."""
    if end - at < 4:
        raise unknown_method(0)
    (number,) = SIZE.unpack_from(data, at)
    method = METHODS.get(number)
    if method is None:
        raise unknown_method(number)
    return method.decode(data, at + 4, end)
'''


class Field:
    """An argument, or a run of bits that share an octet."""

    def __init__(self, name: str, kind: str, default: Any, reserved: bool) -> None:
        self.name = python_name(name)
        self.kind = kind
        self.default = default
        self.reserved = reserved
        self.bits: list[Field] = []


def python_name(name: str) -> str:
    name = name.replace("-", "_")
    return name + "_" if name == "global" else name


def class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.replace(".", "-").split("-"))


def fields_of(method: dict[str, Any], full_name: str, domains: dict[str, str]) -> list[Field]:
    reserved = (RESERVED | RESERVED_IN.get(full_name, set())) - REAL_IN.get(full_name, set())
    fields = []
    for argument in method["arguments"]:
        kind = domains[argument.get("type") or argument["domain"]]
        default = argument.get("default-value", ZERO.get(kind, 0))
        if kind == "longstr" and isinstance(default, str):
            default = default.encode()
        fields.append(Field(argument["name"], kind, default, argument["name"] in reserved))
    return fields


def packed(fields: list[Field]) -> list[Field]:
    """The fields with their bits gathered into octets."""
    done: list[Field] = []
    for field in fields:
        if field.kind != "bit":
            done.append(field)
            continue
        if not (done and done[-1].bits and len(done[-1].bits) < 8):
            done.append(Field("bits", "octet", 0, False))
        done[-1].bits.append(field)
    return [field if not field.bits or not all(bit.reserved for bit in field.bits) else pad(field) for field in done]


def pad(field: Field) -> Field:
    return Field(field.name, field.kind, 0, True)


def groups_of(fields: list[Field]) -> list[list[Field]]:
    """Neighbours of fixed size together: one struct reads them all. Strings and tables stand alone."""
    groups: list[list[Field]] = []
    for field in packed(fields):
        if field.kind in CODES and groups and groups[-1][0].kind in CODES:
            groups[-1].append(field)
        else:
            groups.append([field])
    return groups


def format_of(group: list[Field]) -> str:
    return "".join(f"{SIZES[CODES[f.kind]]}x" if f.reserved else CODES[f.kind] for f in group)


def size_of(group: list[Field]) -> int:
    return sum(SIZES[CODES[f.kind]] for f in group)


def bits_in(field: Field) -> str:
    """The octet of some bits, as written."""
    parts = []
    for shift, bit in enumerate(field.bits):
        if not bit.reserved:
            parts.append(f"self.{bit.name} << {shift}" if shift else f"self.{bit.name}")
    return " | ".join(parts)


def bits_out(field: Field) -> dict[str, str]:
    return {bit.name: f"bits & {1 << shift} != 0" for shift, bit in enumerate(field.bits) if not bit.reserved}


class Writer:
    """Collects the lines of the module and the structs they need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.structs: set[str] = set()

    def struct(self, code: str) -> str:
        self.structs.add(code)
        return struct_name(code)

    def method(self, class_: dict[str, Any], method: dict[str, Any], domains: dict[str, str]) -> None:
        full_name = f"{class_['name']}.{method['name']}"
        name = class_name(full_name)
        number = class_["id"] << 16 | method["id"]
        fields = fields_of(method, full_name, domains)
        kept = [field for field in fields if not field.reserved]
        put = self.lines.append
        put("")
        put("")
        put(f"class {name}(Method):")
        if kept:
            slots = ", ".join(quoted(name) for name in sorted(field.name for field in kept))
            put(f"    __slots__ = ({slots}{',' if len(kept) == 1 else ''})")
        else:
            put("    __slots__ = ()")
        put("")
        put(f"    id = 0x{number:08X}")
        put(f'    name = "{full_name}"')
        if method.get("synchronous"):
            put("    synchronous = True")
        if method.get("content"):
            put("    content = True")
        if full_name in (SERVER + BOTH).split():
            put("    from_server = True")
        if full_name in SERVER.split():
            put("    from_client = False")
        if kept:
            self.init(kept)
        self.decode(name, fields, kept, loose=bool(method.get("content")))
        self.encode(number, fields)

    def init(self, kept: list[Field]) -> None:
        put = self.lines.append
        put("")
        arguments = [
            f"{field.name}: Table | None = None"
            if field.kind == "table"
            else f"{field.name}: {PYTHON.get(field.kind, 'int')} = {quoted(field.default)}"
            for field in kept
        ]
        put(f"    def __init__(self, {', '.join(arguments)}) -> None:")
        for field in kept:
            if field.kind == "table":
                put(f"        self.{field.name} = {{}} if {field.name} is None else {field.name}")
            else:
                put(f"        self.{field.name} = {field.name}")

    def decode(self, name: str, fields: list[Field], kept: list[Field], *, loose: bool) -> None:
        put = self.lines.append
        put("")
        put("    @classmethod")
        put(f"    def decode(cls, data: bytes, at: int, end: int) -> {name}:")
        groups = groups_of(fields)
        made = {field.name: field.name for field in kept}
        for group in groups:
            for field in group:
                made.update(bits_out(field))
        call = f"cls({', '.join(made[field.name] for field in kept)})"
        fixed = not groups or (len(groups) == 1 and groups[0][0].kind in CODES)
        if fixed:
            put(f"        if end - at != {size_of(groups[0])}:" if groups else "        if at != end:")
            put("            raise malformed(cls)")
            if groups:
                self.read(groups[0], "        ", loose=loose, move=False)
            put(f"        return {call}")
            return
        put("        try:")
        for group in groups:
            self.read(group, "            ", loose=loose, move=True)
        put("        except READ_ERRORS as error:")
        put("            raise malformed(cls, error) from None")
        put("        if at != end:")
        put("            raise malformed(cls)")
        put(f"        return {call}")

    def read(self, group: list[Field], indent: str, *, loose: bool, move: bool) -> None:
        def put(line: str) -> None:
            self.lines.append(indent + line)

        field = group[0]
        if field.kind in CODES:
            names = [f.name for f in group if not f.reserved]
            if names == ["bits"] and len(group) == 1:
                put("bits = data[at]")
            elif names:
                targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
                put(f"{targets} = {self.struct(format_of(group))}.unpack_from(data, at)")
            if move:
                put(f"at += {size_of(group)}")
        elif field.kind == "shortstr" and field.reserved:
            put("at += 1 + data[at]")
        elif field.kind == "longstr" and field.reserved:
            put("_, at = read_long(data, at, end)")
        elif field.kind == "shortstr":
            put(f"{field.name}, at = {'read_loose_short' if loose else 'read_short'}(data, at)")
        elif field.kind == "longstr":
            put(f"{field.name}, at = read_long(data, at, end)")
        else:
            put(f"{field.name}, at = read_table(data, at, end)")

    def encode(self, number: int, fields: list[Field]) -> None:
        put = self.lines.append
        put("")
        put("    def encode(self) -> bytes:")
        groups = groups_of(fields)
        parts = []
        literal = number.to_bytes(4, "big")  # fixed bytes not yet put down
        for group in groups:
            field = group[0]
            if field.kind in CODES:
                values = [bits_in(f) if f.bits else f"self.{f.name}" for f in group if not f.reserved]
                if not values:
                    literal += bytes(size_of(group))
                elif [bool(f.bits) for f in group] == [True]:
                    parts += [show(literal)] if literal else []
                    literal = b""
                    parts.append(f"ONE[{values[0]}]")
                elif literal and not parts and len(literal) == 4:
                    literal = b""
                    parts.append(
                        f"{self.struct('I' + format_of(group))}.pack({', '.join([f'0x{number:08X}', *values])})"
                    )
                else:
                    parts += [show(literal)] if literal else []
                    literal = b""
                    parts.append(f"{self.struct(format_of(group))}.pack({', '.join(values)})")
                continue
            if field.reserved:
                literal += bytes({"shortstr": 1, "longstr": 4}[field.kind])
                continue
            parts += [show(literal)] if literal else []
            literal = b""
            function = {"shortstr": "short", "longstr": "long", "table": "encode_table"}[field.kind]
            parts.append(f"{function}(self.{field.name})")
        parts += [show(literal)] if literal else []
        put(f"        return {' + '.join(parts)}")


def struct_name(code: str) -> str:
    return "S_" + code.upper()


def show(data: bytes) -> str:
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def quoted(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bytes):
        return f'b"{value.decode()}"'
    return repr(value)


def module(spec: dict[str, Any]) -> str:
    domains = dict(spec["domains"])
    writer = Writer()
    names = []
    for class_ in sorted(spec["classes"], key=lambda found: found["id"]):
        for method in class_["methods"]:
            writer.method(class_, method, domains)
            names.append(class_name(f"{class_['name']}.{method['name']}"))
    structs = [f'{struct_name(code)} = Struct(">{code}")' for code in sorted(writer.structs)]
    table = ["", "", "METHODS: dict[int, type[Method]] = {", *(f"    {n}.id: {n}," for n in names), "}"]
    return HEAD + "\n" + "\n".join([*structs, *writer.lines, *table]) + "\n" + TAIL


def main() -> int:
    if len(sys.argv) != 2:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    print(module(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
