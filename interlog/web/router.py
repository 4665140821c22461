"""The router: which function answers which path.

Comes in: a request. Goes out: its answer, or a sentence that says what there is. A route is a path, with {braces}
around the parts that it leaves open, and a function for each method. Parts come decoded: `%2F` is a namespace.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote_to_bytes

from interlog.web.http import Request, Response, error_response

Handler = Callable[[Request], Response]
Routes = Mapping[str, Mapping[str, Handler]]  # path → method → handler

_Tree = dict[str | None, Any]  # part of a path, None where it is open → tree; "" → (path, methods)


class Router:
    def __init__(self, *routes: Routes) -> None:
        self._paths = [path for some in routes for path in some]
        self._root: _Tree = {}
        for some in routes:
            for path, methods in some.items():
                tree = self._root
                for part in path.strip("/").split("/"):
                    tree = tree.setdefault(None if part.startswith("{") else part, {})
                tree[""] = methods

    def answer(self, request: Request) -> Response:
        methods, parts = self._find(request.path)
        if methods is None:
            known = ", ".join(path for path in self._paths if "{" not in path)
            return error_response(404, "not_found", f"There is nothing at {request.path}. There is: {known}.")
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
            reason = f"{request.path} takes {allowed}, not {request.method}."
            return error_response(405, "method_not_allowed", reason, (("Allow", allowed),))
        try:
            decoded = tuple(unquote_to_bytes(part).decode() for part in parts)
        except UnicodeDecodeError:
            return error_response(400, "bad_request", f"The path {request.path} is not UTF-8.")
        return handler(replace(request, parts=decoded) if decoded else request)

    def _find(self, path: str) -> tuple[Mapping[str, Handler] | None, list[str]]:
        tree = self._root
        parts: list[str] = []
        if not path.startswith("/"):
            return None, parts
        for part in (path[1:-1] if path.endswith("/") and path != "/" else path[1:]).split("/"):
            if part in tree and part:
                tree = tree[part]
            elif None in tree and part:
                tree = tree[None]
                parts.append(part)
            else:
                return None, parts
        return tree.get(""), parts
