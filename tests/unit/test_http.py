"""Playbooks: bytes in, bytes out. No socket, no loop."""

import json
from typing import Any

import pytest

from interlog.base.clock import ManualClock
from interlog.base.limits import MAX_HTTP_BODY_BYTES, MAX_HTTP_HEAD_BYTES, OUTPUT_PAUSE_BYTES
from interlog.base.metrics import Metrics
from interlog.web.http import HttpFace, Request, Response, json_response
from interlog.web.router import Router
from interlog.web.status import About, Status

CORE: dict[str, Any] = {"journal": {"state": "ok", "tail": 7}, "epoch": 3, "topics": 2, "writable": True}


class Bench:
    """A face with its clock, and how often it asked to be looked at."""

    def __init__(self, core: dict[str, Any] | None = None, durability: str = "sync") -> None:
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.woken = 0
        core_status = CORE if core is None else core
        about = About("/data", durability, 1000, self.clock.monotonic(), {"http": "127.0.0.1:1"})
        self.status = Status(lambda: core_status, about, self.clock, self.metrics)
        self.routes = {
            **self.status.routes(),
            "/echo": {"POST": lambda request: Response(200, request.body, "text/plain")},
            "/broken": {"GET": broken},
            "/large": {"GET": lambda request: Response(200, b"x" * 100_000)},
        }
        self.face = self.open()

    def open(self) -> HttpFace:
        return HttpFace(Router(self.routes).answer, self.clock, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def say(self, data: bytes) -> bytes:
        self.face.receive(data)
        return b"".join(self.face.take_output())

    def get(self, path: str, method: str = "GET") -> tuple[int, Any]:
        return parse(self.say(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()))


def broken(request: Request) -> Response:
    raise RuntimeError("no")


def parse(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if b"application/json" in head and body else body


def head_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[0].lower()


def test_health_follows_the_journal() -> None:
    assert Bench().get("/health") == (200, {"status": "ok"})
    full = {"journal": {"state": "full", "reason": "The disk is full."}}
    assert Bench(full).get("/health") == (200, {"status": "full", "reason": "The disk is full."})
    failed = {"journal": {"state": "failed", "reason": "A sync failed."}}
    assert Bench(failed).get("/health") == (503, {"status": "failed", "reason": "A sync failed."})


def test_health_tells_why_publishers_are_held_back() -> None:
    over = {"journal": {"state": "ok", "reason": ""}, "accepts_messages": False, "reason": "Messages hold too much."}
    assert Bench(over).get("/health") == (200, {"status": "ok", "reason": "Messages hold too much."})


def test_health_is_not_ready_while_stopping() -> None:
    bench = Bench()
    bench.status.stopping = True
    assert bench.get("/health") == (503, {"status": "stopping"})


def test_status_tells_what_is_in_force() -> None:
    bench = Bench()
    bench.clock.advance(1500)
    code, status = bench.get("/status?pretty=1")
    assert code == 200
    assert (status["data"], status["durability"], status["uptime_s"], status["core"]) == ("/data", "sync", 1.5, CORE)
    assert status["memory_bytes"] > 1_000_000
    assert "warning" not in status


def test_status_warns_of_weaker_durability() -> None:
    _, status = Bench(durability="os").get("/status")
    assert "power cut" in status["warning"]
    assert status["flush_ms"] == 1000


def test_metrics_are_prometheus_text() -> None:
    bench = Bench()
    counter = bench.metrics.counter("interlog_things_total", "Things.", (("kind", 'a"b\\c\nd'),))
    bench.metrics.counter("interlog_things_total", "Things.", (("kind", "other"),)).value = 2
    counter.value += 5
    answer = bench.say(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"content-type: text/plain; version=0.0.4" in head_of(answer)
    lines = parse(answer)[1].decode().splitlines()
    assert lines.count("# TYPE interlog_things_total counter") == 1
    assert 'interlog_things_total{kind="a\\"b\\\\c\\nd"} 5' in lines
    assert 'interlog_things_total{kind="other"} 2' in lines
    assert "interlog_healthy 1" in lines
    assert "interlog_journal_tail 7" in lines
    assert "interlog_writable 1" in lines


def test_what_is_not_there_is_told_in_json() -> None:
    code, content = Bench().get("/nothing")
    assert code == 404
    assert content["error"] == "not_found"
    assert "/health, /status, /metrics" in content["reason"]


def test_a_method_that_is_not_taken_is_told_with_those_that_are() -> None:
    answer = Bench().say(b"DELETE /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert parse(answer)[0] == 405
    assert b"allow: get, head" in head_of(answer)


def test_head_is_get_without_the_body() -> None:
    answer = Bench().say(b"HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert parse(answer) == (200, b"")


def test_a_handler_that_fails_costs_one_answer() -> None:
    bench = Bench()
    assert bench.get("/broken")[0] == 500
    assert bench.get("/health")[0] == 200


def test_the_same_answer_however_the_bytes_are_cut() -> None:
    request = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    for cut in range(len(request)):
        bench = Bench()
        answer = bench.say(request[:cut]) if cut else b""
        answer += bench.say(request[cut:])
        assert parse(answer) == (200, b"hello")


def test_requests_in_one_burst_are_answered_in_order() -> None:
    bench = Bench()
    paths = (b"/health", b"/none", b"/status")
    answer = bench.say(b"".join(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths))
    assert [part.split()[0] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]
    assert not bench.face.closed


def test_a_burst_is_answered_no_faster_than_it_is_read() -> None:
    bench = Bench()
    face = bench.face
    face.receive(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
    assert face.holding
    face.pause()
    first = b"".join(face.take_output())
    assert OUTPUT_PAUSE_BYTES <= len(first) < OUTPUT_PAUSE_BYTES + 110_000
    assert not face.take_output()
    face.resume()
    rest = b""
    while part := b"".join(face.take_output()):
        rest += part
    assert (first + rest).count(b"HTTP/1.1 200") == 10
    assert not face.holding
    assert bench.woken


def test_expect_continue_is_answered_before_the_body() -> None:
    bench = Bench()
    head = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    assert bench.say(head).startswith(b"HTTP/1.1 100")
    assert parse(bench.say(b"hi")) == (200, b"hi")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client that speaks TLS\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * MAX_HTTP_HEAD_BYTES, 431),
        (
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n" + b"a" * 65537 + b"\r\n",
            413,
        ),
    ],
)
def test_what_breaks_the_protocol_or_a_limit_is_refused_and_hung_up_on(request_bytes: bytes, status: int) -> None:
    assert MAX_HTTP_BODY_BYTES == 65536
    bench = Bench()
    answer = bench.say(request_bytes)
    assert parse(answer)[0] == status
    assert parse(answer)[1]["reason"]
    assert bench.face.closed
    assert b"connection: close" in head_of(answer)
    assert bench.say(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") == b""


@pytest.mark.parametrize(
    "request_bytes",
    [b"GET /health HTTP/1.0\r\n\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"],
)
def test_who_wants_one_answer_gets_one(request_bytes: bytes) -> None:
    bench = Bench()
    assert parse(bench.say(request_bytes))[0] == 200
    assert bench.face.closed


def test_who_takes_too_long_is_told_and_hung_up_on() -> None:
    bench = Bench()
    assert bench.say(b"GET /health HT") == b""
    bench.clock.advance(9_000)
    bench.face.check()
    assert not bench.face.closed
    assert bench.say(b"TP/1.1\r\n") == b""  # a byte now and then wins no time
    bench.clock.advance(2_000)
    bench.face.check()
    assert bench.face.closed
    assert parse(b"".join(bench.face.take_output()))[0] == 408


def test_who_asks_nothing_is_hung_up_on_in_silence() -> None:
    bench = Bench()
    bench.get("/health")
    bench.clock.advance(74_000)
    bench.face.check()
    assert not bench.face.closed
    bench.clock.advance(2_000)
    bench.face.check()
    assert bench.face.closed
    assert bench.woken == 1
    assert not bench.face.take_output()


def test_the_end_of_the_peers_bytes_ends_the_connection() -> None:
    bench = Bench()
    bench.get("/health")
    bench.face.receive(b"")
    assert bench.face.closed


def test_a_stopping_broker_answers_what_is_under_way_and_hangs_up() -> None:
    idle, busy = Bench(), Bench()
    idle.face.shut_down()
    assert idle.face.closed
    busy.say(b"GET /health HTT")
    busy.face.shut_down()
    assert not busy.face.closed
    answer = busy.say(b"P/1.1\r\nHost: x\r\n\r\n")
    assert parse(answer)[0] == 200
    assert b"connection: close" in head_of(answer)
    assert busy.face.closed


def test_json_is_written_for_people() -> None:
    assert json_response({"a": 1}).body == b'{\n  "a": 1\n}\n'
