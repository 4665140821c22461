"""Real clients against a real broker: ours, or a RabbitMQ or Kafka that is given, to see that the tests are right.

python -m tests.peers.rabbitmq --port 5673 &
INTEROP_AMQP_URL=amqp://guest:guest@127.0.0.1:5673/ python3 dev.py test tests/interop

python -m tests.peers.kafka --port 9093 &
INTEROP_KAFKA=127.0.0.1:9093 python3 dev.py test -n 0 tests/interop/test_confluent_kafka.py  (its topics are deleted)
"""

import itertools
import os
import re
from collections.abc import Callable

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def amqp_url(request: pytest.FixtureRequest) -> str:
    """A vhost of the test's own on a broker of ours."""
    given = os.environ.get("INTEROP_AMQP_URL")
    if given:
        return given
    url: str = request.getfixturevalue("shared_broker").amqp_url
    return url


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """Where Kafka clients find a broker of ours with nothing in it."""
    given = os.environ.get("INTEROP_KAFKA")
    if given:
        from tests.interop.confluent import empty

        empty(given)
        return given
    address: str = request.getfixturevalue("shared_broker").kafka_address
    return address


@pytest.fixture
def named(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names that are nobody else's, also on a broker that many tests share: named("orders")."""
    test = re.sub(r"\W+", "-", request.node.name).strip("-")
    prefix = f"{test}-{os.getpid()}-{next(_numbers)}"
    return lambda name: f"{prefix}.{name}"


@pytest.fixture
def against_rabbitmq() -> bool:
    return bool(os.environ.get("INTEROP_AMQP_URL"))
