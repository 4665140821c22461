"""The AMQP clients' own test suites."""

from tests.peers.suites import Kind, Place, Suite


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

AMQP = (
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
        leave_out=("tests/test_memory_leak.py::test_leak_unclosed_channel",),
        why_left_out="it counts what Python's garbage collector left, and fails as often with RabbitMQ",
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
        leave_out=("tests/test_connection.py::test_closing_waiter_cancellation",),
        why_left_out="two tasks of the client race, and it fails as often with RabbitMQ",
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
        kind=Kind.NODE,
    ),
)
