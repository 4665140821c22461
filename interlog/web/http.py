"""HTTP/1.1 as a pure object: bytes in, bytes out; h11 knows the protocol, the router knows the answers.

In come a connection's bytes; out go responses in order. A response that says that something lasts has the ticket of
its tick: it is parked until the ticket resolves, and what the peer sends meanwhile waits behind it. Whatever goes
wrong is answered in JSON: {"error": "...", "reason": "a sentence"}.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlog.base.clock import Clock
from interlog.base.limits import (
    HTTP_IDLE_SECONDS,
    HTTP_REQUEST_SECONDS,
    MAX_HTTP_BODY_BYTES,
    MAX_HTTP_HEAD_BYTES,
    OUTPUT_PAUSE_BYTES,
)
from interlog.base.log import get_log
from interlog.journal.journal import Outcome, Ticket

if TYPE_CHECKING:
    import h11

log = get_log("web")

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    host: str = ""  # of the peer
    loopback: bool = True
    parts: tuple[str, ...] = ()  # of the path, where its route leaves them open


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    ticket: Ticket | None = None  # said once this lasts


Answer = Callable[[Request], Response]


def json_response(content: object, status: int = 200) -> Response:
    return Response(status, json.dumps(content, indent=2, default=str).encode() + b"\n")


def error_response(status: int, error: str, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    body = json.dumps({"error": error, "reason": reason}).encode() + b"\n"
    return Response(status, body, headers=headers)


class HttpFace:
    """One HTTP connection. Nothing is pushed.

    Requests that come in one burst are answered only as fast as the peer reads: past OUTPUT_PAUSE_BYTES of output
    the rest of the burst waits, and the driver is asked to read no more.
    """

    def __init__(
        self, answer: Answer, clock: Clock, wake: Callable[[], None], host: str = "", loopback: bool = True
    ) -> None:
        import h11  # here, because a broker nobody asks over HTTP need not pay for it at start

        self._h11 = h11
        self._answer_to = answer
        self._host = host
        self._loopback = loopback
        self._clock = clock
        self._wake = wake
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HTTP_HEAD_BYTES)
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._output: list[bytes] = []
        self._output_bytes = 0
        self._paused = False
        self._more = False  # there is more to answer than the peer reads
        self._parked: Response | None = None
        self._since = clock.monotonic()  # when the request under way, or the wait for one, began
        self._partial = False  # some bytes of a request are here, not all
        self._stopping = False
        self.closed = False

    @property
    def holding(self) -> bool:
        return self._more or self._parked is not None

    @property
    def parked(self) -> int:
        return int(self._parked is not None)

    # -- bytes in

    def receive(self, data: bytes) -> None:
        if self.closed:
            return
        if data and not self._partial:
            self._partial = True
            self._since = self._clock.monotonic()
        try:
            self._connection.receive_data(data)
        except self._h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))
        else:
            self._proceed()

    def _proceed(self) -> None:
        """Answer what is here, until there is no whole request or too much output."""
        h11 = self._h11
        self._more = False
        try:
            while not self.closed and self._parked is None:
                if self._output_bytes >= OUTPUT_PAUSE_BYTES:
                    self._more = True
                    break
                event = self._connection.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    break
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))

    def _take(self, event: object) -> None:
        h11 = self._h11
        if isinstance(event, h11.Request):
            self._request = event
            self._body.clear()
            if self._connection.they_are_waiting_for_100_continue:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
        elif isinstance(event, h11.Data):
            self._body += event.data
            if len(self._body) > MAX_HTTP_BODY_BYTES:
                self._refuse(413, f"A request's body may have {MAX_HTTP_BODY_BYTES} bytes.")
        elif isinstance(event, h11.EndOfMessage):
            assert self._request is not None, "h11 gives a request before its end"
            self._answer(self._request)
        elif isinstance(event, h11.ConnectionClosed):
            self.closed = True

    # -- the answer

    def _answer(self, event: "h11.Request") -> None:
        target, _, query = event.target.decode("ascii", "replace").partition("?")
        headers = tuple((bytes(name), bytes(value)) for name, value in event.headers)
        method, body = event.method.decode("ascii"), bytes(self._body)
        request = Request(method, target, query, headers, body, self._host, self._loopback)
        try:
            response = self._answer_to(request)
        except Exception as error:
            log.failure("a request failed", error, path=request.path)
            response = error_response(500, "internal_error", "The broker could not answer; its log says why.")
        if response.ticket is None:
            self._finish(response)
        else:
            self._parked = response
            response.ticket.when_durable(self._lasts)

    def _lasts(self, outcome: Outcome) -> None:
        response, self._parked = self._parked, None
        if self.closed or response is None:
            return
        if outcome is not Outcome.DURABLE:
            response = error_response(503, "not_durable", "The change may not outlast the broker: its journal failed.")
        self._finish(response)
        self._proceed()
        self._wake()

    def _finish(self, response: Response) -> None:
        assert self._request is not None, "there is one to answer"
        self._respond(response, head_only=self._request.method == b"HEAD")
        self._request = None
        self._partial = bool(self._connection.trailing_data[0])
        self._since = self._clock.monotonic()
        if self._connection.our_state is self._h11.MUST_CLOSE or self._stopping:
            self.closed = True
        else:
            self._connection.start_next_cycle()

    def _respond(self, response: Response, head_only: bool = False) -> None:
        h11 = self._h11
        headers = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), *response.headers]
        if response.status != 204:
            headers += [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        if self._stopping:
            headers.append(("Connection", "close"))
        self._send(h11.Response(status_code=response.status, headers=headers))
        if not head_only:
            self._send(h11.Data(data=response.body))
        self._send(h11.EndOfMessage())

    def _send(self, event: "h11.Event") -> None:
        data = self._connection.send(event)
        if data:
            self._output.append(data)
            self._output_bytes += len(data)

    def _refuse(self, status: int, reason: str) -> None:
        """The peer broke the protocol or a limit: say so if it can still be said, and hang up."""
        h11 = self._h11
        self.closed = True
        self._wake()
        if self._connection.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        names = {408: "request_timeout", 413: "request_too_large", 431: "request_too_large"}
        self._respond(error_response(status, names.get(status, "bad_request"), reason, (("Connection", "close"),)))

    # -- what the driver asks

    def take_output(self) -> Sequence[bytes]:
        if self._more and not self._paused:
            self._proceed()
        output, self._output = self._output, []
        self._output_bytes = 0
        if self._more and not self._paused:
            self._wake()  # there is more to answer: come again in the next turn
        return output

    def check(self) -> None:
        """Hang up on those who take too long."""
        waited = self._clock.monotonic() - self._since
        if self.holding:
            return  # the peer reads slowly, or waits for the disk; its requests are here
        if self._partial or self._request is not None:
            if waited > HTTP_REQUEST_SECONDS:
                self._refuse(408, f"A request must be whole within {HTTP_REQUEST_SECONDS:.0f} seconds.")
        elif waited > HTTP_IDLE_SECONDS:
            self.closed = True
            self._wake()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def shut_down(self) -> None:
        """A request that is under way is still answered, within the time the driver gives."""
        self._stopping = True
        if not self._partial and self._request is None:
            self.closed = True

    def connection_lost(self) -> None:
        self.closed = True
