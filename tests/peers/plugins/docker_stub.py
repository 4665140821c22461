"""A pytest plugin for suites that start RabbitMQ in a container: they get the target's ports instead.

Loaded with `-p docker_stub`; aio-pika's conftest asks `tests.docker_client` for a container. aiormq's tests ask for the
two fixtures below, whose file its source distribution leaves out.
"""

import importlib
import os
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    try:
        docker_client: Any = importlib.import_module("tests.docker_client")  # the suite's
    except ImportError:
        return

    def run(self: Any, image: str, wanted: list[str], environment: Any = None) -> Any:
        return _container(docker_client)

    docker_client.DockerClient.run = run
    docker_client.DockerClient.kill = docker_client.DockerClient.remove = lambda self, container: None


def _container(docker_client: Any) -> Any:
    ports = {"5672/tcp": int(os.environ["PEER_PORT"]), "5671/tcp": int(os.environ["PEER_TLS_PORT"])}
    return docker_client.ContainerInfo(id="none", ports=ports, host="localhost")


@pytest.fixture(scope="session")
def rabbitmq_container() -> Any:
    return _container(importlib.import_module("tests.docker_client"))


@pytest.fixture(scope="session")
def amqp_direct_url(rabbitmq_container: Any) -> Any:
    yarl = importlib.import_module("yarl")
    return yarl.URL(f"amqp://guest:guest@{rabbitmq_container.host}:{rabbitmq_container.ports['5672/tcp']}//")
