"""A pytest plugin for suites that start RabbitMQ in a container: they get the target's ports instead.

Loaded with `-p docker_stub`; aio-pika's and aiormq's conftest ask `tests.docker_client` for a container.
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
    ports = {"5672/tcp": int(os.environ["PEER_PORT"]), "5671/tcp": int(os.environ["PEER_TLS_PORT"])}

    def run(self: Any, image: str, wanted: list[str], environment: Any = None) -> Any:
        return docker_client.ContainerInfo(id="none", ports=ports, host="localhost")

    docker_client.DockerClient.run = run
    docker_client.DockerClient.kill = docker_client.DockerClient.remove = lambda self, container: None
