"""The guard: who asks, whether they may, and what went wrong, in HTTP's words.

Comes in: a request with a user's name and password (HTTP Basic). Goes out: a call with the user and a checked body
for the function that answers it. Errors of the core become status codes here and nowhere else.
"""

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from interlog.base.errors import (
    DiskFullError,
    ExistsError,
    FormatError,
    InterlogError,
    InUseError,
    InvalidError,
    LimitError,
    NotEmptyError,
    NotFoundError,
    ReadOnlyError,
    RefusedError,
)
from interlog.base.log import get_log
from interlog.core.access import Access, User
from interlog.core.catalog import Catalog
from interlog.web.http import Request, Response, error_response
from interlog.web.router import Handler

log = get_log("web")

REALM: Final = (("WWW-Authenticate", 'Basic realm="Interlog"'),)

_STATUS: Final[Mapping[type[InterlogError], tuple[int, str]]] = {
    NotFoundError: (404, "not_found"),
    RefusedError: (401, "not_authorized"),
    ReadOnlyError: (503, "read_only"),
    DiskFullError: (503, "disk_full"),
    InUseError: (400, "bad_request"),
    NotEmptyError: (400, "bad_request"),
    ExistsError: (400, "bad_request"),
    InvalidError: (400, "bad_request"),
    FormatError: (400, "bad_request"),
    LimitError: (400, "bad_request"),
}


class Needs(Enum):
    """What a user must be to ask for something: one of these tags."""

    A_USER = ""
    A_VIEWER = "administrator monitoring policymaker management"
    A_POLICYMAKER = "administrator policymaker"
    AN_ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose user is known."""

    user: User
    request: Request

    @property
    def parts(self) -> tuple[str, ...]:
        return self.request.parts

    @property
    def sees_all(self) -> bool:
        """Whether namespaces that the user may not enter are shown too."""
        return self.user.administrator or "monitoring" in self.user.tags

    def body(self) -> dict[str, Any]:
        """The body as a JSON object; InvalidError with a sentence if it is none."""
        if not self.request.body.strip():
            return {}
        try:
            body = json.loads(self.request.body)
        except (ValueError, RecursionError) as error:
            raise InvalidError(f"the body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise InvalidError("the body must be a JSON object")
        return body

    def text(self, name: str) -> str:
        """A field of the body that must be there, and be text."""
        value = self.body().get(name)
        if not isinstance(value, str):
            raise InvalidError(f"the body needs {name}, which is text")
        return value


Serve = Callable[[Call], Response]

_NAMESPACE: Final = re.compile(r"\b(in|no) namespace ")  # what the API's paths call a vhost


class Guard:
    def __init__(self, access: Access) -> None:
        self._access = access

    def handler(self, needs: Needs, serve: Serve) -> Handler:
        def handle(request: Request) -> Response:
            try:
                user = self._user(request)
                tags = needs.value.split()
                if tags and not set(tags) & set(user.tags):
                    raise RefusedError(f"The user {user.name} needs the tag {' or '.join(tags)} for this.")
            except RefusedError as error:
                log.info("an HTTP request was refused", host=request.host, path=request.path, reason=error)
                return error_response(401, "not_authorized", str(error), REALM)
            try:
                return serve(Call(user, request))
            except InterlogError as error:
                return _error(error)

        return handle

    def vhosts(self, call: Call, catalog: Catalog) -> list[str]:
        """The namespace that the path names, or all that the user sees; NotFoundError for one it does not."""
        if call.parts:
            self.check_vhost(call, call.parts[0])
            return [catalog.namespace(call.parts[0]).name]
        return [one.name for one in catalog.namespaces() if self.shows(call, one.name)]

    def shows(self, call: Call, namespace: str) -> bool:
        return call.sees_all or self._access.may_enter(call.user.name, namespace)

    def check_vhost(self, call: Call, namespace: str) -> None:
        if not self.shows(call, namespace):
            raise NotFoundError(f"there is no namespace {namespace}")

    def _user(self, request: Request) -> User:
        given = next((value for name, value in request.headers if name == b"authorization"), b"")
        scheme, _, credentials = given.partition(b" ")
        if scheme.lower() != b"basic":
            raise RefusedError("This needs a user's name and password (HTTP Basic).")
        try:
            name, colon, password = b64decode(credentials.strip(), validate=True).partition(b":")
            user = name.decode()
        except (binascii.Error, UnicodeDecodeError):
            raise RefusedError("The header Authorization is not what HTTP Basic says.") from None
        if not colon:
            raise RefusedError("The header Authorization is not what HTTP Basic says.")
        return self._access.login(user, password, loopback=request.loopback, source=request.host)


def lasting(response: Response, ticket: Any) -> Response:
    """The answer, once the change lasts that it tells of."""
    return replace(response, ticket=ticket)


def _error(error: InterlogError) -> Response:
    for kind in type(error).__mro__:
        if kind in _STATUS:
            status, name = _STATUS[kind]
            return error_response(status, name, _sentence(error))
    raise error


def _sentence(error: InterlogError) -> str:
    text = _NAMESPACE.sub(r"\1 vhost ", str(error))
    if text.startswith(("a ", "an ", "the ", "there ")):  # not a name that begins so
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."
