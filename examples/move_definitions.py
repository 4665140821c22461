"""Make in one broker what another has: vhosts, users, permissions, policies, exchanges, queues and bindings.

    python move_definitions.py definitions.json

The file is what `rabbitmqctl export_definitions FILE`, RabbitMQ's management page or GET /api/definitions gives.
AMQP_URL (see connecting.py) and HTTP_URL tell where the new broker is; the user must be an administrator. What is
there already stays; what cannot be made is told, and the rest goes on. Passwords are kept as hashes that no other
broker can use: new users have none until they are given one.
"""

import base64
import json
import os
import sys
import urllib.error
import urllib.request
from urllib.parse import quote, urlsplit

import pika
import pika.exceptions
from connecting import URL

HTTP_URL = os.environ.get("HTTP_URL", "http://127.0.0.1:15672")


class Mover:
    def __init__(self, definitions: dict) -> None:
        self.definitions = definitions
        self.made = 0
        self.problems: list[str] = []

    def of(self, kind: str) -> list[dict]:
        return self.definitions.get(kind, [])

    # -- over HTTP

    def ask(self, method: str, *parts: str, body: dict | None = None) -> int:
        address = urlsplit(URL)
        credentials = base64.b64encode(f"{address.username}:{address.password}".encode()).decode()
        request = urllib.request.Request(
            "/".join([HTTP_URL, "api", *(quote(part, safe="") for part in parts)]),
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                if method == "PUT":
                    self.problems.append(f"{'/'.join(parts)}: {json.loads(error.read())['reason']}")
                return error.code

    def put(self, *parts: str, **body: object) -> None:
        self.made += self.ask("PUT", *parts, body=body) < 300

    def settings(self) -> None:
        for vhost in self.of("vhosts"):
            kept = {name: vhost[name] for name in ("description", "tags") if vhost.get(name)}
            if vhost.get("default_queue_type", "undefined") != "undefined":
                kept["default_queue_type"] = vhost["default_queue_type"]
            self.put("vhosts", vhost["name"], **kept)
        for user in self.of("users"):
            if self.ask("GET", "users", user["name"]) == 404:
                self.put("users", user["name"], tags=user["tags"])
                print(f"give {user['name']} a password: interlog users password {user['name']}")
        for one in self.of("permissions"):
            patterns = {what: one[what] for what in ("configure", "write", "read")}
            self.put("permissions", one["vhost"], one["user"], **patterns)
        for one in self.of("topic_permissions"):
            patterns = {what: one[what] for what in ("exchange", "write", "read")}
            self.put("topic-permissions", one["vhost"], one["user"], **patterns)
        operators = [one for one in self.of("parameters") if one["component"] == "operator_policy"]
        for kind, policies in (("policies", self.of("policies")), ("operator-policies", operators)):
            for one in policies:
                self.put(kind, one["vhost"], one["name"], **(one.get("value") or one))

    # -- over AMQP

    def objects(self, vhost: str) -> None:
        """Exchanges first, then queues, then what binds them."""
        parameters = pika.URLParameters(URL)
        parameters.virtual_host = vhost
        connection = pika.BlockingConnection(parameters)

        def make(what: str, method: str, **arguments: object) -> None:
            nonlocal connection
            try:
                if not connection.is_open:
                    connection = pika.BlockingConnection(parameters)
                channel = connection.channel()
                getattr(channel, method)(**arguments)
                channel.close()
                self.made += 1
            except pika.exceptions.AMQPError as error:
                self.problems.append(f"{what} in vhost {vhost}: {error}")

        for one in self.of("exchanges"):
            if one["vhost"] == vhost:
                flags = {flag: one[flag] for flag in ("durable", "auto_delete", "internal", "arguments")}
                make(
                    f"exchange {one['name']}",
                    "exchange_declare",
                    exchange=one["name"],
                    exchange_type=one["type"],
                    **flags,
                )
        for one in self.of("queues"):
            if one["vhost"] == vhost:
                flags = {flag: one[flag] for flag in ("durable", "auto_delete", "arguments")}
                make(f"queue {one['name']}", "queue_declare", queue=one["name"], **flags)
        for one in self.of("bindings"):
            if one["vhost"] == vhost and one["source"]:
                ends = {"routing_key": one["routing_key"], "arguments": one["arguments"]}
                if one["destination_type"] == "queue":
                    ends |= {"queue": one["destination"], "exchange": one["source"]}
                else:
                    ends |= {"destination": one["destination"], "source": one["source"]}
                what = f"binding of {one['destination']} to {one['source']}"
                make(what, f"{one['destination_type']}_bind", **ends)
        connection.close()


def main(file: str) -> int:
    with open(file, encoding="utf-8") as text:
        mover = Mover(json.load(text))
    mover.settings()
    for vhost in mover.of("vhosts"):
        mover.objects(vhost["name"])
    for problem in mover.problems:
        print(f"not made: {problem}", file=sys.stderr)
    print(f"{mover.made} made, {len(mover.problems)} not")
    return 1 if mover.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
