"""What the generated methods are made of: short and long strings, the base class, and what they raise.

Texts are UTF-8. The texts of methods that carry content (exchange, routing key) are not checked, as RabbitMQ does not
check them: bytes that are no UTF-8 stay in the str as surrogates (PEP 383), and `short` writes them back as they were.
"""

import struct
from struct import Struct
from typing import Any, ClassVar, Final, Self

from interlog.faces.amqp.errors import AmqpError, cannot_decode, malformed_text, syntax_error

# What reading past the end of the data, or text that is none, raises. A read may go past the end of its method
# and still be inside the data: that shows in where it ends.
READ_ERRORS: Final = (IndexError, struct.error, UnicodeDecodeError)

ONE: Final = tuple(bytes((n,)) for n in range(256))  # an octet as bytes
SIZE: Final = Struct(">I")
MAX_SHORT: Final = 255  # bytes of a short string


class Method:
    """One method of the protocol, in either direction. `decode` and `encode` are each method's own."""

    __slots__ = ()

    id: ClassVar[int] = 0  # class << 16 | method
    name: ClassVar[str] = ""
    synchronous: ClassVar[bool] = False  # an answer is waited for
    content: ClassVar[bool] = False  # a header and a body follow
    from_client: ClassVar[bool] = True
    from_server: ClassVar[bool] = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> Self:
        """From the arguments in data[at:end], behind the class and method ids. AmqpError where they are not whole."""
        raise NotImplementedError

    def encode(self) -> bytes:
        """The payload of a method frame, ids included."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        names: tuple[str, ...] = type(self).__slots__
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Method):
            return NotImplemented
        return type(self) is type(other) and self.values() == other.values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"


def malformed(method: type[Method], error: Exception | None = None) -> AmqpError:
    """A method that is not whole, or that has more to it than there should be."""
    made = malformed_text() if isinstance(error, UnicodeDecodeError) else cannot_decode(method.name)
    made.method_id = method.id
    return made


def short(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) > 255:
        raise syntax_error(f"a short string has 255 bytes at most, not {len(raw)}")
    return ONE[len(raw)] + raw


def read_short(data: bytes, at: int) -> tuple[str, int]:
    start = at + 1
    end = start + data[at]
    return data[start:end].decode(), end


def read_loose_short(data: bytes, at: int) -> tuple[str, int]:
    """Of a method with content, or of a property: any bytes."""
    start = at + 1
    end = start + data[at]
    return data[start:end].decode("utf-8", "surrogateescape"), end


def long(raw: bytes) -> bytes:
    return SIZE.pack(len(raw)) + raw


def read_long(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    (size,) = SIZE.unpack_from(data, at)
    start = at + 4
    if start + size > end:
        raise IndexError
    return data[start : start + size], start + size
