"""Large messages: what was taken can be read again, whatever its size and whatever the settings are by then."""

import random
from pathlib import Path

import pika
import pytest

from interlog.base.clock import ManualClock
from interlog.base.work import ManualWorker
from interlog.core.broker import Core, CoreSettings
from interlog.journal.record import Record
from interlog.testing import RunningBroker, running

BODY = random.Random(1).randbytes(17 << 20)  # a topic that nobody told otherwise takes 16 MiB


@pytest.mark.parametrize("decode_limit_bytes", [1 << 16, 1 << 20])
def test_a_message_larger_than_what_batches_may_swell_by(tmp_path: Path, decode_limit_bytes: int) -> None:
    settings = CoreSettings(decode_limit_bytes=decode_limit_bytes, journal_file_bytes=1 << 20, min_free_bytes=0)
    body = bytes(3 << 20)

    def start() -> tuple[Core, ManualWorker]:
        worker = ManualWorker()
        return Core.open(tmp_path / "data", settings=settings, clock=ManualClock(), worker=worker), worker

    core, worker = start()
    queue = core.declare_queue("/", "large")
    queue.append(Record(b"", body, (), 1), len(body), True)
    core.commit()
    worker.run()
    core.close()
    worker.run()
    core, worker = start()
    assert core.queue("/", "large").lease(1, 1)[0][1].value == body
    core.close()
    worker.run()


def connect(broker: RunningBroker) -> "pika.adapters.blocking_connection.BlockingChannel":
    return pika.BlockingConnection(pika.URLParameters(broker.amqp_url)).channel()


def test_a_large_message_outlasts_a_restart_in_queues_and_streams(tmp_path: Path) -> None:
    persistent = pika.BasicProperties(delivery_mode=2, headers={"a": "b" * 1_000})
    with running(data=tmp_path / "data", max_message_bytes="24MiB") as broker:
        channel = connect(broker)
        channel.confirm_delivery()
        for kind in ("classic", "quorum", "stream"):
            channel.queue_declare(kind, durable=True, arguments={"x-queue-type": kind})
            channel.basic_publish("", kind, BODY, persistent, mandatory=True)
        channel.connection.close()
    # With another limit what is declared again is the same, and what was taken is still there.
    with running(data=tmp_path / "data", max_message_bytes="1MiB") as broker:
        channel = connect(broker)
        channel.basic_qos(prefetch_count=1)
        for kind in ("classic", "quorum", "stream"):
            channel.queue_declare(kind, durable=True, arguments={"x-queue-type": kind})
            arguments = {"x-stream-offset": "first"} if kind == "stream" else {}
            for method, properties, body in channel.consume(kind, arguments=arguments):
                assert method is not None and properties.headers["a"] == "b" * 1_000
                assert body == BODY
                channel.basic_ack(method.delivery_tag)
                break
            channel.cancel()
        channel.connection.close()


def test_a_message_over_the_limit_is_refused() -> None:
    with running(max_message_bytes="1KiB") as small:
        channel = connect(small)
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "q", bytes(1024))
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="larger"):
            channel.basic_publish("", "q", bytes(1025))
        channel.connection.close()
