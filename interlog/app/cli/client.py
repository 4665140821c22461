"""Talking to a running broker: where it is, as whom, and what went wrong, in sentences.

Comes in: flags (or the variables INTERLOG_URL, INTERLOG_USER and INTERLOG_PASSWORD), a method, a path, a body. Goes
out: what the broker answered, as Python values.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from interlog.base.errors import InterlogError

TIMEOUT_SECONDS: Final = 10
URL: Final = "http://127.0.0.1:15672"


# What to look at when the broker does not know what was meant.
_HINTS: Final = (
    ("no user ", "`interlog users list` shows who there is; `interlog users add` makes one."),
    ("no vhost ", "`interlog vhosts list` shows what there is; `interlog vhosts add` makes one."),
    ("no policy ", "`interlog policies list` shows what there is."),
    ("has no permissions", "`interlog permissions list` shows who has which."),
)


class UnreachableError(InterlogError):
    """No broker answered."""


class RefusedByBrokerError(InterlogError):
    """The broker answered, and did not do it."""


def unreachable(url: str, error: Exception) -> UnreachableError:
    """Why nobody was reached, and what to do about it."""
    from http.client import HTTPException

    if not url.startswith(("http://", "https://")):
        return UnreachableError(f"{url} is not the address of a broker: it begins with http:// or https://.")
    if isinstance(error, HTTPException):
        return UnreachableError(
            f"What answers at {url} does not speak HTTP. The broker's line «listening protocol=http» tells the address."
        )
    reason = getattr(error, "reason", error)
    what = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
    return UnreachableError(
        f"No broker answers at {url}: {what}. Is it running? `interlog serve` starts one; --url tells where it is."
    )


class Actions:
    """The actions of a command that asks a running broker; flags may stand before the action or behind it."""

    def __init__(self, made: argparse.ArgumentParser) -> None:
        _add_flags(made, None)
        self._made = made.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(self, name: str, help: str) -> argparse.ArgumentParser:
        action = self._made.add_parser(name, help=help, description=help, allow_abbrev=False)
        _add_flags(action, argparse.SUPPRESS)
        return action


def _add_flags(made: argparse.ArgumentParser, default: Any) -> None:
    group = made.add_argument_group("the broker")
    url = f"its HTTP address, as its line «listening» tells it (default: $INTERLOG_URL or {URL})"
    group.add_argument("--url", default=default, help=url)
    group.add_argument("--user", default=default, help="an administrator (default: $INTERLOG_USER or guest)")
    password = "the password of --user (default: $INTERLOG_PASSWORD or guest)"
    group.add_argument("--password", default=default, help=password)
    ca = "for https: the authority of the broker's certificate"
    group.add_argument("--ca", metavar="FILE", default=default, help=ca)
    shown = "the answer as it came, for programs"
    made.add_argument("--json", action="store_true", default=default or False, help=shown)


class Client:
    def __init__(self, given: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> None:
        def choose(flag: str | None, variable: str, default: str) -> str:
            return flag if flag is not None else environment.get(variable) or default

        url = choose(given.url, "INTERLOG_URL", URL)
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self.user = choose(given.user, "INTERLOG_USER", "guest")
        self._password = choose(given.password, "INTERLOG_PASSWORD", "guest")
        self._ca = given.ca

    def get(self, *parts: str) -> Any:
        return self._ask("GET", parts, None)

    def put(self, *parts: str, body: Mapping[str, Any]) -> None:
        self._ask("PUT", parts, body)

    def delete(self, *parts: str) -> None:
        self._ask("DELETE", parts, None)

    def _ask(self, method: str, parts: Sequence[str], body: Mapping[str, Any] | None) -> Any:
        from base64 import b64encode
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

        address = "/".join([self.url, "api", *(quote(part, safe="") for part in parts)])
        credentials = b64encode(f"{self.user}:{self._password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        handlers: list[Any] = [ProxyHandler({})]  # a broker is near; no proxy between
        try:
            if self.url.startswith("https:"):
                import ssl

                handlers.append(HTTPSHandler(context=ssl.create_default_context(cafile=self._ca)))
            request = Request(address, data, headers, method=method)
            with build_opener(*handlers).open(request, timeout=TIMEOUT_SECONDS) as answer:
                content = answer.read()
            return json.loads(content) if content else None
        except HTTPError as error:
            with error:
                raise self._refusal(error.code, error.read()) from None
        except (HTTPException, URLError, OSError, ValueError) as error:
            raise unreachable(self.url, error) from None

    def _refusal(self, status: int, content: bytes) -> InterlogError:
        try:
            answer = json.loads(content)
            reason = str(answer["reason"])
        except (ValueError, KeyError, TypeError):
            return UnreachableError(f"What answers at {self.url} is not Interlog (status {status}).")
        if status == 401:
            reason += f" You are {self.user}; --user and --password name another."
        else:
            reason += next((f" {hint}" for words, hint in _HINTS if words in reason), "")
        return RefusedByBrokerError(reason)


def table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    """Columns as wide as what is in them."""
    lines = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def printable(text: str) -> str:
    """Nothing that a terminal would obey: names come from anybody."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def show(given: argparse.Namespace, answer: Any, head: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    print(json.dumps(answer, indent=2) if given.json else table(rows, head))
    return 0


def done(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 0


def read_password(name: str) -> str:
    """Asked for where somebody sits, read from a pipe elsewhere."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    from getpass import getpass

    password = getpass(f"Password of {name}: ")
    if getpass("Again: ") != password:
        raise RefusedByBrokerError("The two are not the same. Nothing was changed.")
    return password
