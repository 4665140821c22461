"""The programs of the guide for those who come from Kafka, run as they stand there: only addresses are others."""

import re
from pathlib import Path

import pytest

from interlog.testing import RunningBroker, running
from tests.certificates import certificates_in

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "coming-from-kafka.md"


def program(heading: str) -> str:
    """The one that stands under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"# {heading}\n")[1]
    found: str = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    return found


def run(heading: str, broker: RunningBroker, capsys: pytest.CaptureFixture[str], **others: str) -> str:
    """What it prints."""
    places = {
        "localhost:9092": broker.kafka_address,
        "amqp://guest:guest@localhost:5672/": broker.amqp_url,
        **{name.replace("_", "."): place for name, place in others.items()},
    }
    text = program(heading)
    for place, other in places.items():
        text = text.replace(place, other)
    exec(compile(text, str(PAGE), "exec"), {})
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("heading", "printed"),
    [
        ("Coming from Kafka", "b'table 4' b'one coffee'\n"),
        ("Topics, streams and queues", "b'events' b'a table is free'\n"),
        ("Transactions", "b'soup' b'bread'\n"),
    ],
)
def test_programs(shared_broker: RunningBroker, capsys: pytest.CaptureFixture[str], heading: str, printed: str) -> None:
    assert run(heading, shared_broker, capsys) == printed


def test_what_topics_begin_with(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Settings", broker, capsys) == "86400000\n"
    assert broker.call(lambda core: core.create_topic("/", "t").settings.retention_ms) == 86_400_000


def test_logging_in(capsys: pytest.CaptureFixture[str]) -> None:
    with running(kafka_authentication="on") as broker:
        broker.call(lambda core: core.access.add_user("ann", "secret"))
        broker.call(lambda core: core.access.set_permissions("/", "ann", "^orders", "^orders", "^(orders|bar)"))
        assert run("Logging in", broker, capsys) == "kept\n"


def test_tls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    certificates = certificates_in(tmp_path / "certificates")
    certificate, key = certificates.make("localhost")
    with running(kafkas_port=0, tls_certificate=certificate, tls_key=key) as broker:
        text = run(
            "TLS", broker, capsys, **{"localhost:9093": broker.addresses["kafkas"], "broker_pem": str(certificates.ca)}
        )
        assert text == "kept\n"
