"""Stands in for the management API where a suite needs it only to clean up: deletes queues and exchanges by AMQP."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import unquote

from bench._amqp import Connection, LoadError

_PATH = re.compile(r"/api/(queues|exchanges)/%2F/([^/?]+)")


class StandIn:
    """Listens on a port of 127.0.0.1 from `with` to its end."""

    def __init__(self, host: str, port: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_DELETE(self) -> None:
                status = 404
                found = _PATH.match(self.path)
                if found:
                    status = _delete(host, port, found[1], unquote(found[2]))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass  # nobody reads it

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "StandIn":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _delete(host: str, port: int, kind: str, name: str) -> int:
    try:
        connection = Connection(host, port)
    except (LoadError, OSError):
        return 503
    try:
        if kind == "queues":
            connection.delete_queue(name)
        else:
            connection.delete_exchange(name)
        return 204
    except (LoadError, OSError):
        return 404
    finally:
        connection.say_goodbye()
        connection.close()
