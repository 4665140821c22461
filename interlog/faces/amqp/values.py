"""What stands in a field table, as Python values: every AMQP type has one, so that what is read can be written again.

Plain values go on the wire as RabbitMQ's own tools would put them: bool t, int I (l where 32 bits are too few),
float d, str and bytes S, None V, list A, dict F, decimal.Decimal D. The small classes below are for what is
left: ints, floats and bytes that know under which letter they came.
"""

from typing import Any, ClassVar, TypeAlias

Table: TypeAlias = dict[str, Any]


class Sized(int):
    """An int of a width of its own."""

    __slots__ = ()
    code: ClassVar[int]
    type_name: ClassVar[str]


class Int8(Sized):
    __slots__ = ()
    code = ord("b")
    type_name = "byte"


class UInt8(Sized):
    __slots__ = ()
    code = ord("B")
    type_name = "unsignedbyte"


class Int16(Sized):
    __slots__ = ()
    code = ord("s")
    type_name = "short"


class UInt16(Sized):
    __slots__ = ()
    code = ord("u")
    type_name = "unsignedshort"


class UInt32(Sized):
    __slots__ = ()
    code = ord("i")
    type_name = "unsignedint"


class Int64(Sized):
    """A long that would fit 32 bits. RabbitMQ's own counts (x-death, x-delivery-count) are these."""

    __slots__ = ()
    code = ord("l")
    type_name = "long"


class Timestamp(Sized):
    """Seconds since 1970."""

    __slots__ = ()
    code = ord("T")
    type_name = "timestamp"


class Float32(float):
    """A float of 32 bits."""

    __slots__ = ()


class Binary(bytes):
    """Bytes of type x. Plain bytes are a long string that is no UTF-8."""

    __slots__ = ()


INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1


def type_name(value: object) -> str:
    """The value's type in RabbitMQ's words, as its error messages name it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Sized):
        return value.type_name
    if isinstance(value, int):
        return "signedint" if INT32_MIN <= value <= INT32_MAX else "long"
    if isinstance(value, float):
        return "float" if isinstance(value, Float32) else "double"
    if isinstance(value, str):
        return "longstr"
    if isinstance(value, bytes):
        return "binary" if isinstance(value, Binary) else "longstr"
    if value is None:
        return "void"
    if isinstance(value, dict):
        return "table"
    if isinstance(value, list | tuple):
        return "array"
    return "decimal"
