"""`interlog status`: what a running broker says of itself, asked over HTTP."""

import json
import os
from collections.abc import Sequence
from typing import Any

from interlog.app.cli.client import URL, UnreachableError, unreachable
from interlog.app.cli.main import parser

TIMEOUT_SECONDS = 5


def run(arguments: Sequence[str]) -> int:
    made = parser("status", "Show what a running broker says of itself. Exit code 0: healthy; 1: not, or no answer.")
    made.add_argument(
        "--url",
        default=os.environ.get("INTERLOG_URL") or URL,
        help=f"the broker's HTTP address, as its line «listening» tells it (default: $INTERLOG_URL or {URL})",
    )
    made.add_argument("--json", action="store_true", help="the answer as it came, for programs")
    given = made.parse_args(arguments)
    status = ask(given.url)
    print(json.dumps(status, indent=2) if given.json else "\n".join(_lines(status)))
    return 0 if status.get("health") != "failed" else 1


def ask(url: str) -> dict[str, Any]:
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    address = (url if "://" in url else f"http://{url}").rstrip("/") + "/status"
    opener = build_opener(ProxyHandler({}))  # a broker is near; no proxy between
    try:
        with opener.open(address, timeout=TIMEOUT_SECONDS) as answer:
            content = json.load(answer)
    except (HTTPException, URLError, OSError, ValueError) as error:
        raise unreachable(address, error) from None
    if not isinstance(content, dict):
        raise UnreachableError(f"What answers at {address} is not Interlog.")
    return content


def _lines(content: dict[str, Any], indent: str = "") -> list[str]:
    lines: list[str] = []
    width = max((len(key) for key in content), default=0)
    for key, value in content.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{key}")
            lines.extend(_lines(value, indent + "  "))
        else:
            lines.append(f"{indent}{key:<{width}}  {value}")
    return lines
