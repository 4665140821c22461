"""The clients' own test suites: where their tests are, what they need, what of them a broker can be judged by.

Tests come from the clients' source trees, which are no part of this repository: `WORK/src/NAME`, put there by hand or
by `--download` (source distributions with tests in them). The client itself is the released package.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Where the target is, for a suite's environment."""

    host: str
    port: int
    tls_port: int
    url: str
    management_url: str


@dataclass(frozen=True)
class Suite:
    name: str
    tree: str  # folder in WORK/src
    copied: Sequence[str]  # of the tree, what the tests need
    tests: Sequence[str]
    requirements: Sequence[str] = ()
    source: str = ""  # where the tree comes from
    sdist: str = ""  # a source distribution that has the tests
    environment: Callable[[Place], dict[str, str]] = field(default=lambda place: {})
    options: Sequence[str] = ()  # of pytest
    ports_in_text: bool = False  # 5672 and 5671 stand in the tests themselves
    certificates: dict[str, str] = field(default_factory=dict)  # in the copy: which of ours
    leave_out: Sequence[str] = ()  # tests that say nothing about a broker
    why_left_out: str = ""
    needs_management: bool = False
    node: bool = False


def _rabbitmq_variables(place: Place) -> dict[str, str]:
    return {
        "RABBITMQ_HOST": "localhost",
        "RABBITMQ_5672_TCP": str(place.port),
        "RABBITMQ_5671_TCP": str(place.tls_port),
    }


def _amqpstorm(place: Place) -> dict[str, str]:
    return {
        "AMQP_HOST": "localhost",
        "AMQP_USERNAME": "guest",
        "AMQP_PASSWORD": "guest",
        "AMQP_URI": f"amqp://guest:guest@localhost:{place.port}/%2F",
        "AMQP_SSL_HOST": "localhost",
        "AMQP_SSL_URI": f"amqps://guest:guest@localhost:{place.tls_port}/%2F",
        "AMQP_HTTP_URL": place.management_url,
        "AMQP_CAFILE": "certs/ca.pem",
        "AMQP_CERTFILE": "certs/client.pem",
        "AMQP_KEYFILE": "certs/client.key",
    }


_AMQPSTORM = "amqpstorm/tests/functional"
_AMQPSTORM_CERTIFICATES = {f"certs/{name}": name for name in ("ca.pem", "client.pem", "client.key")}

SUITES = (
    Suite(
        "pika",
        "pika",
        copied=("tests", "testdata"),
        tests=("tests/acceptance",),
        requirements=("pika==1.4.4", "tornado", "twisted", "gevent"),
        source="the repository pika/pika at 1.4.4",
        options=("-o", "python_files=*_test.py *_tests.py", "-o", "python_classes=Test* *Test *Tests *TestCase"),
        ports_in_text=True,
        leave_out=("tests/acceptance/io_services_tests.py::TestGetaddrinfoWWWGoogleDotComPort80",),
        why_left_out="it asks for the address of a public site",
    ),
    Suite(
        "aio-pika",
        "aio-pika",
        copied=("tests",),
        tests=("tests",),
        requirements=(
            "aio-pika==10.2.1",
            "aiomisc>=18",
            "aiomisc-pytest",
            "shortuuid",
            "timeout-decorator",
            "setuptools",
        ),
        source="the source distribution aio-pika 10.2.1",
        sdist="aio-pika==10.2.1",
        environment=lambda place: {"DOCKER_HOST": f"tcp://{place.host}:{place.port}"},
        options=("-p", "no:asyncio"),
    ),
    Suite(
        "aiormq",
        "aiormq",
        copied=("tests",),
        tests=("tests",),
        requirements=("aiormq==7.2.4", "aiomisc", "aiomisc-pytest>=2,<3"),
        source="the source distribution aiormq 7.2.4",
        sdist="aiormq==7.2.4",
        environment=lambda place: {"DOCKER_HOST": f"tcp://{place.host}:{place.port}"},
        options=("-p", "no:asyncio"),
        certificates={f"tests/certs/{name}": name for name in ("ca.pem", "client.pem", "client.key")},
    ),
    Suite(
        "py-amqp",
        "amqp",
        copied=("t",),
        tests=("t/integration",),
        requirements=("amqp==5.4.2",),
        source="the source distribution amqp 5.4.2",
        sdist="amqp==5.4.2",
        environment=_rabbitmq_variables,
        options=("-m", "env", "-o", "python_classes=test_*"),
        certificates={
            "t/certs/ca_certificate.pem": "ca.pem",
            "t/certs/client_certificate.pem": "client.pem",
            "t/certs/client_key.pem": "client.key",
            "t/certs/client_certificate_broken.pem": "client.pem",  # a key of another certificate
            "t/certs/client_key_broken.pem": "server.key",
        },
        leave_out=(
            "t/integration/test_rmq.py::test_tls_default_certs",
            "t/integration/test_rmq.py::test_tls_no_default_certs_fails",
        ),
        why_left_out="they connect to a public site; t/integration/test_integration.py runs against a mocked socket",
    ),
    Suite(
        "kombu",
        "kombu",
        copied=("t",),
        tests=("t/integration/test_py_amqp.py",),
        requirements=("kombu==5.7.0",),
        source="the source distribution kombu 5.7.0",
        sdist="kombu==5.7.0",
        environment=_rabbitmq_variables,
        options=("-o", "python_classes=test_*"),
    ),
    Suite(
        "amqpstorm",
        "amqpstorm",
        copied=("amqpstorm",),
        tests=(_AMQPSTORM, f"{_AMQPSTORM}/ssl"),
        requirements=("amqpstorm[management]==3.1.4",),
        source="the source distribution amqpstorm 3.1.4",
        sdist="amqpstorm==3.1.4",
        environment=_amqpstorm,
        options=(f"--ignore={_AMQPSTORM}/management", f"--ignore={_AMQPSTORM}/test_web_based.py"),
        ports_in_text=True,
        certificates=_AMQPSTORM_CERTIFICATES,
    ),
    Suite(
        "amqpstorm-management",
        "amqpstorm",
        copied=("amqpstorm",),
        tests=(f"{_AMQPSTORM}/management", f"{_AMQPSTORM}/test_web_based.py"),
        requirements=("amqpstorm[management]==3.1.4",),
        source="the source distribution amqpstorm 3.1.4",
        sdist="amqpstorm==3.1.4",
        environment=_amqpstorm,
        ports_in_text=True,
        certificates=_AMQPSTORM_CERTIFICATES,
        needs_management=True,
    ),
    Suite(
        "amqplib",
        "amqplib",
        copied=("lib", "test", "package.json", "channel_api.js", "callback_api.js", "index.js"),
        tests=(
            "test/channel_api.test.js",
            "test/callback_api.test.js",
            "test/connect.test.js",
            "test/recovery.test.js",
        ),
        source="the repository amqp-node/amqplib at v2.0.1",
        environment=lambda place: {"URL": f"amqp://localhost:{place.port}"},
        ports_in_text=True,
        node=True,
    ),
)


def by_name(name: str) -> Suite:
    for suite in SUITES:
        if suite.name == name:
            return suite
    raise KeyError(name)


def test_files(suite: Suite, tree: Path) -> list[str]:
    return [name for name in suite.tests if (tree / name).exists()]
