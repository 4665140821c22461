"""The management API as a playbook: bytes in, bytes out, against a core on a folder. No socket."""

import json
import random
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlog.base.clock import ManualClock
from interlog.base.metrics import Metrics
from interlog.base.work import ManualWorker
from interlog.core import access_secrets
from interlog.core.broker import Core
from interlog.journal.journal import Outcome
from interlog.web.http import HttpFace
from interlog.web.management import management
from interlog.web.status import About, Status
from tests.data_folders import SMALL


class Bench:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.worker = ManualWorker()
        self.core = Core.open(folder, settings=SMALL, clock=self.clock, worker=self.worker, rng=random.Random(3))
        self.core.access.make_first_user()
        self.settle()
        about = About(str(folder), "sync", 1000, 0.0, {})
        self.router = management(Status(self.core.status, about, self.clock, Metrics()), self.core)
        self.woken = 0
        self.face = self.open()

    def open(self, *, loopback: bool = True, host: str = "127.0.0.1") -> HttpFace:
        return HttpFace(self.router.answer, self.clock, self.wake, host, loopback)

    def wake(self) -> None:
        self.woken += 1

    def settle(self) -> None:
        """Ticks, until nothing waits for the disk."""
        self.core.commit()
        while self.worker.run():
            self.core.commit()

    def send(
        self, method: str, path: str, body: Any = None, user: str | None = "guest:guest", face: Any = None
    ) -> None:
        content = b"" if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n"
        if user is not None:
            head += f"Authorization: Basic {b64encode(user.encode()).decode()}\r\n"
        (face or self.face).receive(head.encode() + b"\r\n" + content)

    def ask(self, method: str, path: str, body: Any = None, user: str | None = "guest:guest", face: Any = None) -> Any:
        """Status and content of the answer, once all that it waits for is done."""
        face = face or self.face
        self.send(method, path, body, user, face)
        self.settle()
        return parse(b"".join(face.take_output()))

    def refusal(self, method: str, path: str, body: Any = None, user: str | None = "guest:guest") -> tuple[int, str]:
        status, content = self.ask(method, path, body, user)
        return status, content["reason"]


def parse(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if body else None


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(access_secrets, "ITERATIONS", {"sha256": 10, "sha512": 10})
    bench = Bench(tmp_path / "data")
    yield bench
    bench.settle()
    bench.core.close()


# -- who may ask


def test_status_is_for_anybody_and_the_api_for_users(bench: Bench) -> None:
    assert bench.ask("GET", "/health", user=None) == (200, {"status": "ok"})
    status, content = bench.ask("GET", "/api/whoami", user=None)
    assert (status, content["error"]) == (401, "not_authorized")
    bench.send("GET", "/api/whoami", user=None)
    assert b'\r\nWWW-Authenticate: Basic realm="Interlog"\r\n' in b"".join(bench.face.take_output())
    assert bench.ask("GET", "/api/whoami") == (200, {"name": "guest", "tags": ["administrator"]})


def test_wrong_passwords_and_strange_headers_are_refused(bench: Bench) -> None:
    for user in ("guest:wrong", "nobody:guest", "guest", ""):
        assert bench.ask("GET", "/api/whoami", user=user)[0] == 401
    for value in ("Basic", "Basic !", "Bearer x", "Basic /w==", ""):
        bench.face.receive(f"GET /api/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: {value}\r\n\r\n".encode())
        assert parse(b"".join(bench.face.take_output()))[0] == 401


def test_guest_comes_from_this_machine_only(bench: Bench) -> None:
    status, content = bench.ask("GET", "/api/whoami", face=bench.open(loopback=False, host="10.0.0.1"))
    assert status == 401
    assert "loopback_users" in content["reason"]


def test_only_administrators_change_anything(bench: Bench) -> None:
    for name, tags in (("ann", ""), ("bob", "monitoring")):
        bench.ask("PUT", f"/api/users/{name}", {"password": "x", "tags": tags})
    for method, path in [
        ("GET", "/api/users"),
        ("PUT", "/api/users/eve"),
        ("DELETE", "/api/users/guest"),
        ("PUT", "/api/vhosts/v"),
        ("DELETE", "/api/vhosts/v"),
        ("PUT", "/api/permissions/%2F/ann"),
        ("GET", "/api/permissions"),
    ]:
        for user in ("ann:x", "bob:x"):
            status, reason = bench.refusal(method, path, {"tags": ""}, user)
            assert (status, "needs the tag administrator" in reason) == (401, True)
    assert bench.ask("GET", "/api/whoami", user="ann:x") == (200, {"name": "ann", "tags": []})
    assert bench.ask("GET", "/api/overview", user="ann:x")[0] == 401
    assert bench.ask("GET", "/api/overview", user="bob:x")[0] == 200
    assert len(bench.core.access.users()) == 3


# -- users


def test_users_over_http(bench: Bench) -> None:
    assert bench.ask("PUT", "/api/users/ann", {"password": "x", "tags": "monitoring, a"}) == (201, None)
    ann = {"name": "ann", "tags": ["monitoring", "a"], "has_password": True, "limits": {}}
    assert bench.ask("GET", "/api/users/ann") == (200, ann)
    assert [user["name"] for user in bench.ask("GET", "/api/users")[1]] == ["ann", "guest"]
    assert bench.ask("PUT", "/api/users/ann", {"tags": [], "keep_password": True}) == (204, None)
    assert bench.ask("GET", "/api/whoami", user="ann:x") == (200, {"name": "ann", "tags": []})
    assert bench.ask("PUT", "/api/users/ann", {"password": "y", "tags": []}) == (204, None)
    assert bench.ask("GET", "/api/whoami", user="ann:x")[0] == 401
    assert bench.ask("PUT", "/api/users/ann", {"password_hash": "", "tags": []}) == (204, None)
    assert bench.ask("GET", "/api/users/ann")[1]["has_password"] is False
    assert bench.ask("DELETE", "/api/users/ann") == (204, None)
    assert bench.refusal("DELETE", "/api/users/ann") == (404, "There is no user ann.")
    assert bench.refusal("GET", "/api/users/ann") == (404, "There is no user ann.")


def test_names_with_anything_in_them(bench: Bench) -> None:
    assert bench.ask("PUT", "/api/users/a%2Fb%20%C3%BC", {"password": "x", "tags": ""}) == (201, None)
    assert bench.core.access.find("a/b ü") is not None
    assert bench.refusal("GET", "/api/users/%ff") == (400, "The path /api/users/%ff is not UTF-8.")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "The body is not JSON"),
        (b"[" * 60_000, "The body is not JSON"),
        (b"[]", "The body must be a JSON object."),
        ({}, "The body needs tags"),
        ({"tags": 1, "password": "x"}, "The body needs tags"),
        ({"tags": ["a b"], "password": "x"}, "'a b' cannot be a tag"),
        ({"tags": "", "password": 1}, "The password must be text."),
        ({"tags": "", "password": ""}, "A password takes 1 to 1024 bytes, not 0."),
        ({"tags": "", "password_hash": "AAAA"}, "A password_hash cannot be taken over"),
    ],
)
def test_a_body_that_cannot_be_taken_is_a_sentence(bench: Bench, body: Any, sentence: str) -> None:
    status, reason = bench.refusal("PUT", "/api/users/ann", body)
    assert status == 400
    assert reason.startswith(sentence)
    assert bench.core.access.find("ann") is None


def test_a_user_that_is_not_changed_whole_is_not_changed(bench: Bench) -> None:
    bench.ask("PUT", "/api/users/ann", {"password": "x", "tags": "a"})
    assert bench.ask("PUT", "/api/users/ann", {"password": "", "tags": "b"})[0] == 400
    assert bench.ask("PUT", "/api/users/ann", {"password": "y", "tags": "b c"})[0] == 400
    assert bench.core.access.login("ann", "x", loopback=True).tags == ("a",)


# -- permissions


def test_permissions_over_http(bench: Bench) -> None:
    bench.ask("PUT", "/api/users/ann", {"password": "x", "tags": ""})
    patterns = {"configure": "", "write": "^a", "read": ".*"}
    ann = {"user": "ann", "vhost": "/", **patterns}
    assert bench.refusal("GET", "/api/permissions/%2F/ann")[0] == 404
    assert bench.ask("PUT", "/api/permissions/%2F/ann", patterns) == (201, None)
    assert bench.ask("PUT", "/api/permissions/%2F/ann", patterns) == (204, None)
    assert bench.ask("GET", "/api/permissions/%2F/ann") == (200, ann)
    assert bench.ask("GET", "/api/users/ann/permissions") == (200, [ann])
    assert [one["user"] for one in bench.ask("GET", "/api/vhosts/%2F/permissions")[1]] == ["ann", "guest"]
    assert [one["user"] for one in bench.ask("GET", "/api/permissions")[1]] == ["ann", "guest"]
    assert bench.refusal("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": "a"}) == (
        400,
        "The body needs read, which is text.",
    )
    status, reason = bench.refusal("PUT", "/api/permissions/%2F/ann", {**patterns, "read": "("})
    assert (status, reason.startswith("The read pattern '(' is not a regular expression")) == (400, True)
    assert bench.refusal("PUT", "/api/permissions/v/ann", patterns) == (404, "There is no vhost v.")
    assert bench.refusal("PUT", "/api/permissions/%2F/eve", patterns) == (404, "There is no user eve.")
    assert bench.ask("DELETE", "/api/permissions/%2F/ann") == (204, None)
    assert bench.ask("DELETE", "/api/permissions/%2F/ann")[0] == 404


def test_permissions_on_keys_over_http(bench: Bench) -> None:
    body = {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    assert bench.ask("PUT", "/api/topic-permissions/%2F/guest", body) == (201, None)
    assert bench.ask("PUT", "/api/topic-permissions/%2F/guest", body) == (204, None)
    one = {"user": "guest", "vhost": "/", **body}
    for path in ("/api/topic-permissions", "/api/topic-permissions/%2F/guest", "/api/users/guest/topic-permissions"):
        assert bench.ask("GET", path) == (200, [one])
    assert bench.ask("GET", "/api/vhosts/%2F/topic-permissions") == (200, [one])
    assert bench.ask("DELETE", "/api/topic-permissions/%2F/guest") == (204, None)
    assert bench.ask("GET", "/api/topic-permissions") == (200, [])


# -- vhosts


def test_vhosts_over_http(bench: Bench) -> None:
    assert bench.ask("PUT", "/api/vhosts/v1", {"description": "ours", "tags": "a,b"}) == (201, None)
    assert bench.ask("PUT", "/api/vhosts/v1", {"description": "yours"}) == (204, None)
    assert bench.ask("PUT", "/api/vhosts/v2") == (201, None)
    status, vhost = bench.ask("GET", "/api/vhosts/v1")
    assert (status, vhost["name"], vhost["description"], vhost["tags"]) == (200, "v1", "yours", ["a", "b"])
    assert [one["name"] for one in bench.ask("GET", "/api/vhosts")[1]] == ["/", "v1", "v2"]
    assert bench.core.access.may("guest", "v1", "write", "q"), "who makes it may use it"
    assert bench.ask("PUT", "/api/vhosts/v3", {"description": 1})[0] == 400
    assert bench.ask("PUT", "/api/vhosts/v3", {"tags": 1})[0] == 400
    bench.core.declare_queue("v1", "q")
    assert bench.ask("DELETE", "/api/vhosts/v1") == (204, None)
    assert bench.ask("DELETE", "/api/vhosts/v1")[0] == 404
    assert bench.ask("DELETE", "/api/vhosts/%2F")[0] == 400
    assert bench.core.status()["queues"] == 0


def test_who_does_not_see_all_sees_the_vhosts_it_may_enter(bench: Bench) -> None:
    bench.ask("PUT", "/api/vhosts/secret")
    bench.ask("PUT", "/api/users/ann", {"password": "x", "tags": "management"})
    bench.ask("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": "", "read": ""})
    assert [one["name"] for one in bench.ask("GET", "/api/vhosts", user="ann:x")[1]] == ["/"]
    assert bench.ask("GET", "/api/vhosts/secret", user="ann:x")[0] == 404


def test_the_overview_counts(bench: Bench) -> None:
    bench.core.declare_queue("/", "q")
    status, overview = bench.ask("GET", "/api/overview")
    assert (status, overview["product_name"], overview["object_totals"]["queues"]) == (200, "Interlog", 1)


# -- answered once it lasts


def test_a_change_is_answered_once_it_lasts_and_what_follows_waits(bench: Bench) -> None:
    bench.send("PUT", "/api/users/ann", {"password": "x", "tags": ""})
    bench.send("GET", "/api/whoami")
    assert bench.face.parked == 1
    assert bench.face.holding
    bench.core.commit()
    assert bench.face.take_output() == []
    woken = bench.woken
    bench.clock.advance(60_000)
    bench.face.check()  # a slow disk is not the peer's fault
    bench.settle()
    assert bench.woken > woken
    answers = b"".join(bench.face.take_output())
    assert [line for line in answers.split(b"\r\n") if line.startswith(b"HTTP/1.1")] == [
        b"HTTP/1.1 201 ",
        b"HTTP/1.1 200 ",
    ]
    assert not bench.face.parked and not bench.face.holding and not bench.face.closed


def test_a_change_that_may_not_last_is_not_called_done(bench: Bench) -> None:
    bench.send("DELETE", "/api/users/guest")
    bench.core.ticket.resolve(Outcome.UNKNOWN)
    status, content = parse(b"".join(bench.face.take_output()))
    assert (status, content["error"]) == (503, "not_durable")


def test_a_broker_that_stops_still_answers_what_waits(bench: Bench) -> None:
    bench.send("PUT", "/api/vhosts/v")
    bench.face.shut_down()
    assert not bench.face.closed
    bench.settle()
    answer = b"".join(bench.face.take_output())
    assert answer.startswith(b"HTTP/1.1 201") and b"Connection: close" in answer
    assert bench.face.closed


def test_a_peer_that_left_while_it_waited_is_no_trouble(bench: Bench) -> None:
    bench.send("PUT", "/api/vhosts/v")
    bench.face.connection_lost()
    bench.settle()
    assert bench.core.catalog.namespace("v").name == "v"


# -- paths


def test_paths_that_are_not_there_and_methods_that_are_not_taken(bench: Bench) -> None:
    status, reason = bench.refusal("GET", "/api/nothing")
    assert (status, "/api/users" in reason, "{name}" in reason) == (404, True, False)
    for path in ("/api/users/a/b", "/api", "/", "//", "/api//users", "/api/permissions/x", "*"):
        assert bench.ask("GET", path)[0] == 404, path
    assert bench.ask("GET", "/api/users/")[0] == 200
    assert bench.ask("POST", "/api/users")[0] == 405
    bench.send("POST", "/api/users/ann")
    assert b"\r\nAllow: GET, PUT, DELETE, HEAD\r\n" in b"".join(bench.face.take_output())
    bench.send("HEAD", "/api/users")
    assert b"".join(bench.face.take_output()).endswith(b"\r\n\r\n")


# -- policies


def test_policies_over_http_have_rabbitmq_s_names(bench: Bench) -> None:
    definition = {
        "message-ttl": 60_000,
        "max-length-bytes": 1_000_000,
        "max-age": "7D",
        "overflow": "reject-publish",
        "dead-letter-exchange": "dead",
        "dead-letter-routing-key": "k",
        "stream-max-segment-size-bytes": 1 << 20,
    }
    body = {"pattern": "^q", "definition": definition, "priority": 3, "apply-to": "queues"}
    path = "/api/policies/%2F/limits"
    assert bench.ask("PUT", path, body) == (201, None)
    shown = {"vhost": "/", "name": "limits", **body}
    assert bench.ask("GET", path) == (200, shown)
    assert bench.ask("GET", "/api/policies") == bench.ask("GET", "/api/policies/%2F") == (200, [shown])
    assert bench.core.policies.of_queue("/", "q", "classic")["message_ttl_ms"] == 60_000
    stream = bench.core.policies.of_queue("/", "q", "stream")
    assert (stream["retention_ms"], stream["retention_bytes"]) == (7 * 86_400_000, 1_000_000)
    without_effect = {"ha-mode": "all", "queue-mode": "lazy", "max-in-memory-length": 5, "target-group-size": 3}
    for definition in (without_effect, {"expires": 1, **without_effect}):
        assert bench.ask("PUT", path, {"pattern": "", "definition": definition}) == (204, None)
        assert bench.ask("GET", path)[1]["definition"] == definition
    assert bench.core.policies.of_queue("/", "q", "classic") == {"expires_ms": 1}
    assert bench.ask("DELETE", path) == (204, None)
    assert bench.ask("DELETE", path)[0] == bench.ask("GET", path)[0] == bench.ask("GET", "/api/policies/v")[0] == 404


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"definition": {"expires": 1}}, "The body needs pattern"),
        ({"pattern": "("}, "The body needs a definition"),
        ({"pattern": "(", "definition": {"expires": 1}}, "'(' is not a pattern"),
        ({"pattern": "", "definition": {}}, "A policy without a definition says nothing."),
        (
            {"pattern": "", "definition": {"nonsense": 1}},
            "nonsense is nothing that a policy can set; there are message",
        ),
        ({"pattern": "", "definition": {"expires": 0}}, "expires is a whole number"),
        ({"pattern": "", "definition": {"max-age": "7 days"}}, "max-age is a number and one of Y"),
        ({"pattern": "", "definition": {"expires": 1}, "priority": "1"}, "The priority is a whole number"),
        ({"pattern": "", "definition": {"expires": 1}, "apply-to": 1}, "apply-to is text"),
        ({"pattern": "", "definition": {"expires": 1}, "apply-to": "x"}, "A policy applies to all | queues"),
    ],
)
def test_what_is_no_policy_is_a_sentence(bench: Bench, body: Any, sentence: str) -> None:
    status, reason = bench.refusal("PUT", "/api/policies/%2F/p", body)
    assert (status, reason[: len(sentence)]) == (400, sentence)
    assert bench.ask("GET", "/api/policies") == (200, [])


def test_operators_policies_set_limits_only_and_are_for_administrators(bench: Bench) -> None:
    bench.ask("PUT", "/api/users/ann", {"password": "x", "tags": "policymaker"})
    bench.ask("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": "", "read": ""})
    body = {"pattern": "", "definition": {"max-length": 10}}
    assert bench.ask("PUT", "/api/policies/%2F/p", body, user="ann:x") == (201, None)
    assert bench.ask("PUT", "/api/operator-policies/%2F/p", body, user="ann:x")[0] == 401
    assert bench.ask("PUT", "/api/operator-policies/%2F/p", body) == (201, None)
    assert [one["name"] for one in bench.ask("GET", "/api/operator-policies")[1]] == ["p"]
    body["definition"] = {"overflow": "drop-head", "message-ttl": 5}
    assert bench.ask("PUT", "/api/operator-policies/%2F/p", body)[0] == 204
    body["definition"] = {"dead-letter-exchange": "x"}
    assert bench.ask("PUT", "/api/operator-policies/%2F/p", body)[0] == 400
    bench.ask("PUT", "/api/vhosts/secret")
    assert bench.ask("PUT", "/api/policies/secret/p", body, user="ann:x")[0] == 404
    assert bench.ask("GET", "/api/policies/secret", user="ann:x")[0] == 404


# -- what there is


def test_queues_exchanges_and_bindings_are_shown(bench: Bench) -> None:
    core = bench.core
    core.work_queues.declare("/", "q", durable=True, settings={"declared": {"x-max-length": 5}, "max_length": 5})
    core.topics.create("/", "s", settings={"retention_ms": 7_200_000, "retention_bytes": 5, "segment_bytes": 1 << 20})
    core.policies.put("/", "o", "^s", {"retention_bytes": 3}, operator=True)
    core.exchanges.declare("/", "e", "topic", delayed=True, alternate="amq.fanout", settings={"declared": {"x-a": 1}})
    core.exchanges.declare("/", "d", "dedupe", settings={"cache_size": 5, "cache_ttl_ms": 6, "cache_lasts": True})
    core.exchanges.bind("/", "e", "q", "a.*", {"x": 1})
    core.policies.put("/", "p", "^q", {"max_length": 3})
    status, (queue, stream) = bench.ask("GET", "/api/queues")
    assert status == 200
    assert {"name": "q", "vhost": "/", "type": "classic", "durable": True, "messages": 0}.items() <= queue.items()
    assert (queue["arguments"], queue["policy"], queue["operator_policy"]) == ({"x-max-length": 5}, "p", None)
    assert (stream["name"], stream["type"], stream["operator_policy"]) == ("s", "stream", "o")
    sizes = {"x-max-length-bytes": 5, "x-stream-max-segment-size-bytes": 1 << 20}
    assert stream["arguments"] == {"x-queue-type": "stream", "x-max-age": "2h", **sizes}
    assert bench.ask("GET", "/api/queues/%2F/q") == (200, queue)
    assert bench.ask("GET", "/api/queues/%2F/s") == (200, stream)
    assert bench.ask("GET", "/api/queues/%2F/none")[0] == bench.ask("GET", "/api/queues/none")[0] == 404
    exchanges = {one["name"]: one for one in bench.ask("GET", "/api/exchanges/%2F")[1]}
    assert {"", "amq.direct", "amq.topic", "e"} <= exchanges.keys()
    assert exchanges["e"]["type"] == "x-delayed-message"
    assert exchanges["e"]["arguments"] == {"x-a": 1, "x-delayed-type": "topic", "alternate-exchange": "amq.fanout"}
    assert exchanges["d"]["arguments"] == {"x-cache-size": 5, "x-cache-ttl": 6, "x-cache-persistence": "disk"}
    assert bench.ask("GET", "/api/exchanges/%2F/e") == (200, exchanges["e"])
    assert bench.ask("GET", "/api/exchanges/%2F/amq.default") == (200, exchanges[""])
    assert bench.ask("GET", "/api/exchanges/%2F/none")[0] == 404
    bindings = [one for one in bench.ask("GET", "/api/bindings")[1] if one["source"] == "e"]
    ends = [(one["destination"], one["destination_type"], one["routing_key"], one["arguments"]) for one in bindings]
    assert ends == [("q", "queue", "a.*", {"x": 1})]


def test_a_vhost_goes_with_all_that_is_in_it(bench: Bench) -> None:
    core = bench.core
    bench.ask("PUT", "/api/vhosts/v")
    core.work_queues.declare("v", "q", durable=True, settings={})
    core.work_queues.declare("v", "passing", durable=False, settings={})
    core.topics.create("v", "s")
    core.exchanges.declare("v", "e", "fanout")
    core.exchanges.bind("v", "e", "q", "")
    core.policies.put("v", "p", "", {"max_length": 3})
    assert bench.ask("DELETE", "/api/vhosts/v") == (204, None)
    assert bench.ask("GET", "/api/queues") == bench.ask("GET", "/api/policies") == (200, [])
    assert bench.ask("PUT", "/api/vhosts/v") == (201, None)
    assert bench.ask("GET", "/api/queues/v") == bench.ask("GET", "/api/bindings/v") == (200, [])
