"""A wire between clients and a broker that can be cut, in the middle of whatever is on it."""

import socket
import threading
from types import TracebackType


class Cutter:
    """Listens at once, so that a broker can be told to advertise `address`; `to` is where what comes goes."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        host, port = self._listening.getsockname()
        self.address = f"{host}:{port}"
        self.to = ("", 0)
        self.cuts = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def cut(self) -> None:
        """All that are there now. What was under way is lost, part of a request perhaps delivered."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        self.cuts += len(pairs)
        for pair in pairs:
            _close(pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # it is over
            try:
                broker = socket.create_connection(self.to)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append((client, broker))
            for one, other in ((client, broker), (broker, client)):
                thread = threading.Thread(target=self._carry, args=(one, other), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(4_096):
                other.sendall(data)
        except OSError:
            pass  # cut
        _close((one, other))

    def __enter__(self) -> "Cutter":
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _close((self._listening,))
        self._threads[0].join(1)
        self.cut()
        for thread in self._threads:
            thread.join(1)


def _close(sockets: tuple[socket.socket, ...]) -> None:
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already
        one.close()
