"""From bytes to messages and back, by the tables in `schema`.

    request, at = decode(fetch.REQUEST, 12, data, at)
    for topic in request.topics: ...
    body = encode(fetch.RESPONSE, 12, fetch.FetchResponse(responses=[...]))

All of a message's fields are there in all versions: what a version does not have is at its default when read, and
left out when written (`schema.fields.misfits` tells whether that loses anything). Tagged fields nobody knows are
skipped. Texts that are no UTF-8 are refused when read; names with surrogates in them are written as the bytes they
stand for.
"""

from importlib import import_module
from typing import NamedTuple, TypeVar

from interlog.faces.kafka.errors import WireError
from interlog.faces.kafka.schema.fields import Message
from interlog.faces.kafka.schema.index import MODULES
from interlog.faces.kafka.schema.reading import Read, Reader
from interlog.faces.kafka.schema.writing import Write, Writer

M = TypeVar("M", bound=Message)

_readers: dict[tuple[type[Message], int], Read] = {}
_writers: dict[tuple[type[Message], int], Write] = {}


def decode(schema: type[M], version: int, data: bytes, at: int = 0, end: int | None = None) -> tuple[M, int]:
    """The message at `at`, and where it ends, which is not beyond `end`. WireError where it is none, or not whole."""
    read = _readers.get((schema, version))
    if read is None:
        check_version(schema, version)
        read = _readers[schema, version] = Reader(schema, version).make()
    return read(data, at, len(data) if end is None else end)


def encode(schema: type[M], version: int, message: M) -> bytes:
    """WireError if a value has no place in its field: null where there is none, a number too large."""
    write = _writers.get((schema, version))
    if write is None:
        check_version(schema, version)
        write = _writers[schema, version] = Writer(schema, version).make()
    return write(message)


def check_version(schema: type[Message], version: int) -> None:
    if version not in schema.VALID:
        raise WireError(f"{schema.__name__} has no version {version}")


class Api(NamedTuple):
    request: type[Message]
    response: type[Message]


_apis: dict[int, Api] = {}


def api(key: int) -> Api | None:
    """Both directions of an API by its number, None if there is no table for it."""
    found = _apis.get(key)
    if found is None:
        name = MODULES.get(key)
        if name is None:
            return None
        module = import_module(f"interlog.faces.kafka.schema.{name}")
        found = _apis[key] = Api(module.REQUEST, module.RESPONSE)
    return found
