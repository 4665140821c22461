"""The pytest fixtures. Nothing is imported of the broker, and nothing started, until a test asks for one.

`broker` is a broker of the test's own. `shared_broker` is one broker for the whole session (under pytest-xdist: one
for each worker), of which each test gets a vhost of its own, so that tests do not see each other's queues.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from interlog.testing.running import RunningBroker

_numbers = itertools.count(1)


@pytest.fixture
def broker() -> "Iterator[RunningBroker]":
    """A broker of this test's own: `broker.amqp_url`, `broker.host`, `broker.port`, `broker.http_url`."""
    from interlog.testing.running import running

    with running() as started:
        yield started


@pytest.fixture(scope="session")
def _broker_of_the_session() -> "Iterator[RunningBroker]":
    from interlog.testing.running import running

    with running() as started:
        yield started


@pytest.fixture
def shared_broker(_broker_of_the_session: "RunningBroker") -> "Iterator[RunningBroker]":
    """The session's broker, with a vhost of this test's own in `shared_broker.amqp_url`."""
    name = f"test-{next(_numbers)}"
    yield _broker_of_the_session.add_vhost(name)
    _broker_of_the_session.remove_vhost(name)
