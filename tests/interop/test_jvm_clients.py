"""Kafka's own Java client and Spark's connector at work. They fetch what they need: `python3 dev.py soak -k jvm`."""

from pathlib import Path

import pytest

from interlog.testing import RunningBroker
from tests.peers import java_client, maven, spark

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("login", [False, True], ids=["nobody asks", "SCRAM over TLS"])
@pytest.mark.parametrize("version", java_client.VERSIONS)
def test_the_java_client(version: str, login: bool, broker: RunningBroker, tmp_path: Path) -> None:
    try:
        if login:
            with java_client.guarded(tmp_path) as (address, settings):
                ran = java_client.work(version, address, "java", settings=settings)
        else:
            ran = java_client.work(version, broker.kafka_address, "java")
    except maven.NoJars as error:
        pytest.skip(str(error))
    assert ran.failed == 0 and ran.passed >= 19, ran.output


def test_the_connector_of_spark(broker: RunningBroker) -> None:
    try:
        code, output = spark.work(broker.kafka_address, "spark", 20_000)
    except maven.NoJars as error:
        pytest.skip(str(error))
    assert code == 0 and output.count(" passed ") == 8, output
