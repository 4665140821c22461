"""A quota holds back confluent-kafka, which is told so."""

import socket
import time

import confluent_kafka as ck

from interlog.faces.kafka.codec import encode
from interlog.faces.kafka.schema.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from interlog.testing import RunningBroker
from tests.interop import confluent
from tests.playbooks.kafka.play import frame

LIMIT = 100_000  # bytes a second, of which ten seconds' worth may come at once
SIZE = 210_000


def _limit(address: str, client_id: str) -> None:
    """As Kafka's own tools do; clients for Python have no call for it."""
    ops = [OpData("producer_byte_rate", LIMIT)]
    request = AlterClientQuotasRequest([RequestEntryData([RequestEntityData("client-id", client_id)], ops)])
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(frame(request.API_KEY, 1, 1, encode(type(request), 1, request)))
        assert connection.recv(4)


def test_a_producer_over_its_quota_is_slowed_and_hears_of_it(shared_broker: RunningBroker) -> None:
    address = shared_broker.kafka_address
    confluent.create(address, "t")
    _limit(address, "slow")
    heard: list[float] = []

    def send(client_id: str) -> float:
        """Six records, each acknowledged before the next; how long that took."""
        config = confluent.told(address, {"client.id": client_id, "linger.ms": 0})
        producer = ck.Producer({**config, "throttle_cb": lambda event: heard.append(event.throttle_time)})
        began = time.monotonic()
        for _ in range(6):
            producer.produce("t", bytes(SIZE))
            assert producer.flush(confluent.PATIENCE_SECONDS) == 0
        return time.monotonic() - began

    assert send("fast") < 1
    assert heard == []
    took = send("slow")
    # The fifth goes over the limit by half a second's worth; the sixth waits for that, and is over it again.
    assert took > 0.5
    assert len(heard) == 2
    assert heard[0] > 0.5
