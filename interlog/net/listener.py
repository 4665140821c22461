"""Listeners: one a protocol. Ports are opened here, connections counted and those past the limit turned away.

In comes an address; out comes the real one (the system may have chosen the port) and, from then on, connections
whose bytes the driver feeds to a face of the protocol. Over TLS a connection begins once its handshake is done; one
that does not finish it counts as open until its time is up.
"""

import asyncio
import errno
import socket
from typing import Any

from interlog.base.errors import InterlogError
from interlog.base.limits import ACCEPT_BACKLOG, MAX_CONNECTIONS
from interlog.base.log import get_log
from interlog.base.metrics import Metrics
from interlog.faces.face import MakeFace
from interlog.net.driver import Connection, Driver
from interlog.net.tls import GOODBYE_SECONDS, HANDSHAKE_SECONDS, Tls

log = get_log("net")


class ListenError(InterlogError):
    """A port cannot be opened: names it, says why and what to do."""


class Listener:
    """One open port."""

    def __init__(
        self,
        protocol: str,
        driver: Driver,
        make_face: MakeFace,
        metrics: Metrics,
        limit: int = MAX_CONNECTIONS,
        tls: Tls | None = None,
    ) -> None:
        self.protocol = protocol
        self.address = ""
        self.open = 0
        self._driver = driver
        self._make_face = make_face
        self._limit = limit
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop
        self._server: asyncio.Server | None = None
        self._full_at = 0  # at so many it was said that there are too many
        labels = (("protocol", protocol),)
        self._accepted = metrics.counter(
            "interlog_connections_accepted_total", "Connections accepted since the start.", labels
        )
        self._refused = metrics.counter(
            "interlog_connections_refused_total", "Connections closed at once because there were too many.", labels
        )
        self._unshaken = metrics.counter(
            "interlog_handshakes_failed_total", "TLS connections that never became one.", labels
        )

    async def listen(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> None:
        """Open the port; `address` is the real one afterwards. ListenError says why not."""
        opened = _open(self.protocol, host, port)
        self._loop = loop
        try:
            self._server = await loop.create_server(
                self._connection, sock=opened, backlog=ACCEPT_BACKLOG, **self._options()
            )
        except OSError as error:
            opened.close()
            raise _listen_error(self.protocol, host, port, error) from None
        name = opened.getsockname()
        self.address = f"[{name[0]}]:{name[1]}" if opened.family == socket.AF_INET6 else f"{name[0]}:{name[1]}"

    def close(self) -> None:
        """Accept no more; open connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _connection(self) -> asyncio.Protocol:
        limit = min(self._limit, self._driver.most_connections - len(self._driver.connections) + self.open)
        if self.open >= limit:
            self._refused.value += 1
            if not self._full_at:  # said once, not for each of a flood
                self._full_at = limit
                log.warning("too many connections", protocol=self.protocol, limit=limit)
            return _Refused()
        connection = Connection(self._driver, self._make_face, self._gone)
        self.open += 1
        self._accepted.value += 1
        if self._tls is not None:
            # The loop tells nobody of a handshake that failed.
            self._loop.call_later(HANDSHAKE_SECONDS + 1, self._check_handshake, connection)
        return connection

    def _options(self) -> dict[str, Any]:
        if self._tls is None:
            return {}
        return {
            "ssl": self._tls.context,
            "ssl_handshake_timeout": HANDSHAKE_SECONDS,
            "ssl_shutdown_timeout": GOODBYE_SECONDS,
        }

    def _check_handshake(self, connection: Connection) -> None:
        if not connection.made:
            self._unshaken.value += 1
            log.debug("a TLS handshake failed", protocol=self.protocol)
            self._gone()

    def _gone(self) -> None:
        self.open -= 1
        if self.open < self._full_at * 9 // 10:
            self._full_at = 0


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            transport.abort()
        else:
            transport.close()


def _open(protocol: str, host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror:
        raise ListenError(
            f"{host!r} is not an address or a host name of this machine. Choose another with --host."
        ) from None
    # One socket a protocol, so that there is one address to tell; a name with both kinds means the older one.
    family, kind, number, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    opened = socket.socket(family, kind, number)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.setblocking(False)
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise _listen_error(protocol, host, port, error) from None
    return opened


def _listen_error(protocol: str, host: str, port: int, error: OSError) -> ListenError:
    where = f"Port {port} of {host} cannot be opened for {protocol}"
    flag = f"--{protocol.replace('_', '-')}-port"
    match error.errno:
        case errno.EADDRINUSE:
            return ListenError(
                f"{where}: it is in use. Stop the process that has it, or choose another with {flag} "
                "(0: the system chooses; off: not served)."
            )
        case errno.EACCES:
            return ListenError(f"{where}: this user may not open it. Choose one above 1023 with {flag}.")
        case errno.EADDRNOTAVAIL:
            return ListenError(f"{where}: it is not an address of this machine. Choose another with --host.")
        case _:
            return ListenError(f"{where}: {error.strerror}.")
