"""The programs in examples/, as their readers run them: each prints what it says it prints."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pika
import pytest

from interlog.testing import RunningBroker
from tests.served import PATIENCE_SECONDS, ROOT

EXAMPLES = ROOT / "examples"
NO_DELAYS = "this broker has no delayed messages"

# Each line is one after the other on one broker; the modules beside them are what they import.
PLAYS = [
    ["producer.py", "consumer.py 3"],
    ["work_queue.py"],
    ["publish_subscribe.py"],
    ["topics.py"],
    ["rpc.py"],
    ["delayed_messages.py"],
    ["retries.py"],
    ["stream.py"],
]
MOVERS = {"move_definitions.py", "move_messages.py"}
IMPORTED = {"connecting.py", "orders.py"}


def promised(program: Path) -> str:
    """What its own first lines say that it prints."""
    text = program.read_text(encoding="utf-8").split('"""')[1]
    _, found, lines = text.partition("prints:\n\n")
    assert found, f"{program.name} does not say what it prints"
    return textwrap.dedent(lines)


def run(command: str, amqp_url: str, **more: str) -> str:
    name, *arguments = command.split()
    ended = subprocess.run(
        [sys.executable, "-W", "error", name, *arguments],
        cwd=EXAMPLES,
        env={**os.environ, "AMQP_URL": amqp_url, "PYTHONDONTWRITEBYTECODE": "1", **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if NO_DELAYS in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("play", PLAYS, ids=" ".join)
def test_examples_print_what_they_say(play: list[str], amqp_url: str, against_rabbitmq: bool) -> None:
    for command in play:
        said = run(command, amqp_url)
        assert said == promised(EXAMPLES / command.split()[0])
    assert against_rabbitmq or run(play[0], amqp_url)  # once more: nothing is in its way


def test_what_rabbitmq_exported_is_made(broker: RunningBroker) -> None:
    file = Path(__file__).with_name("definitions.json")  # of a RabbitMQ 3.10
    said = run(f"move_definitions.py {file}", broker.amqp_url, HTTP_URL=broker.http_url)
    assert said == ("give ann a password: interlog users password ann\n19 made, 0 not\n")
    again = run(f"move_definitions.py {file}", broker.amqp_url, HTTP_URL=broker.http_url)
    assert again == "18 made, 0 not\n"
    definitions = json.loads(file.read_text(encoding="utf-8"))
    limits = {"max_bytes": 1_000_000, "retention_bytes": 1_000_000}  # of queues, and of streams
    policies = broker.call(lambda core: core.policies.of_queue("shop", "orders", "classic"))
    assert policies == {"max_length": 1_000, "dead_letter_exchange": "dead", **limits}
    kinds = broker.call(lambda core: {one.name: one.settings.kind for one in core.work_queues.all("shop")})
    assert kinds == {"graves": "quorum", "orders": "classic"}
    bindings = broker.call(lambda core: core.exchanges.bindings("shop"))
    made = {(one.source, one.destination, one.key, str(one.arguments)) for one in bindings if one.source}
    keys = ("source", "destination", "routing_key", "arguments")
    assert made == {tuple(str(one[key]) for key in keys) for one in definitions["bindings"]}
    assert broker.call(lambda core: core.access.user("ann").has_password) is False
    assert broker.call(lambda core: core.access.may("ann", "shop", "configure", "ann.q")) is True


def test_messages_move_with_all_that_is_theirs(broker: RunningBroker) -> None:
    target = broker.add_vhost("new")
    properties = pika.BasicProperties(headers={"n": 1}, delivery_mode=2, message_id="m", priority=3)
    for one in (broker, target):
        with pika.BlockingConnection(pika.URLParameters(one.amqp_url)) as connection:
            channel = connection.channel()
            for queue in ("moving", "empty"):
                channel.queue_declare(queue, durable=True)
            if one is broker:
                for number in range(600):
                    channel.basic_publish("", "moving", b"%d" % number, properties)
    said = run(f"move_messages.py {broker.amqp_url} {target.amqp_url} moving empty", broker.amqp_url)
    assert said == "moving: 600 moved\nempty: 0 moved\n"
    with pika.BlockingConnection(pika.URLParameters(target.amqp_url)) as connection:
        channel = connection.channel()
        for number in range(600):
            _, found, body = channel.basic_get("moving", auto_ack=True)
            assert (body, found.headers, found.message_id, found.priority) == (b"%d" % number, {"n": 1}, "m", 3)
    with pika.BlockingConnection(pika.URLParameters(broker.amqp_url)) as connection:
        assert connection.channel().queue_declare("moving", passive=True).method.message_count == 0


def test_no_example_is_left_out() -> None:
    there = {path.name for path in EXAMPLES.glob("*.py")}
    assert {command.split()[0] for play in PLAYS for command in play} | MOVERS | IMPORTED == there
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name})" in page for name in there - IMPORTED)
