"""Share groups of the Java client: compiled and run against a broker of ours, where there is a Java to do so.

INTEROP_KAFKA=127.0.0.1:9092 python3 dev.py soak tests/interop/test_java_share_groups.py

runs the same against the Kafka there, to see that the test is right. There is one:

python -m tests.peers.kafka --version 4.2.0 --port 9092
"""

import os

import pytest

from interlog.testing import RunningBroker
from tests.peers import java_client, maven

RENEWS = "4.2.0"  # since then, and only that many records are given as are asked for


@pytest.mark.soak
@pytest.mark.parametrize(("version", "least"), [("4.1.1", 25), (RENEWS, 28)])
def test_the_java_client_reads_together(version: str, least: int, broker: RunningBroker) -> None:
    address = os.environ.get("INTEROP_KAFKA") or broker.kafka_address
    try:
        ran = java_client.run("ShareGroups", version, address)
    except maven.NoJars as error:
        pytest.skip(str(error))
    assert ran.failed == 0 and ran.passed >= least, ran.output
