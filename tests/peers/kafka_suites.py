"""The Kafka clients' own test suites."""

from tests.peers.kafka import jars
from tests.peers.suites import Kind, Place, Suite

TAKEN_FOR = "4.2.0"  # the version that clients take Interlog for, and that runs beside it


def _franz_go(place: Place) -> dict[str, str]:
    return {
        "KGO_SEEDS": place.address,
        "KGO_TEST_SCRAM_SEEDS": f"{place.host}:{place.sasl_port}",
        "KGO_TEST_SCRAM": "alice:alice-secret",
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": "50000",  # a tenth: what is tested is who gets which, not how many
        "KGO_LOG_LEVEL": "none",
    }


def _librdkafka(place: Place) -> dict[str, str]:
    return {
        "TEST_KAFKA_VERSION": place.version,
        "BROKERS": place.address,
        "KAFKA_PATH": ".",
        "PEER_JARS": str(jars(TAKEN_FOR)),
    }


def _librdkafka_files(place: Place) -> dict[str, str]:
    """Its settings, and Kafka's own tools, which some of its tests start."""
    start = '#!/bin/sh\nexec java -cp "$PEER_JARS/*" org.apache.kafka.tools.{}Command "$@"\n'
    tools = {"bin/kafka-topics.sh": start.format("Topic"), "bin/kafka-acls.sh": start.format("Acl")}
    return {"test.conf": f"bootstrap.servers={place.address}\n"} | tools


KAFKA = (
    Suite(
        "kafka-python",
        "kafka-python",
        copied=("test", "pytest.ini"),
        tests=("test/integration",),
        requirements=("kafka-python==3.0.11", "lz4", "python-snappy", "zstandard", "crc32c"),
        source="the repository dpkp/kafka-python at 3.0.11",
        environment=lambda place: {"KAFKA_VERSION": place.version},
        options=("--tb=native",),  # pytest fails to show some of its exceptions otherwise
        plugin="kafka_stub",
        logs_in=True,
    ),
    Suite(
        "aiokafka",
        "aiokafka",
        copied=("tests",),
        tests=("tests",),
        requirements=(
            "aiokafka[snappy,lz4,zstd]==0.14.0",
            "kafka-python==3.0.11",
            "docker",
            "pytest-asyncio",
            "pytest-mock",
        ),
        source="the repository aio-libs/aiokafka at v0.14.0",
        options=("-o", "asyncio_mode=auto", "--docker-image", "none:2.13_3.9.1"),
        partitions=2,
        leave_out=("tests/coordinator/test_assignors.py",),
        why_left_out="it needs no broker, and its tests are others in each run",
        plugin="kafka_stub",
        logs_in=True,
    ),
    Suite(
        "confluent-kafka",
        "confluent-kafka-python",
        copied=("tests",),
        tests=("tests/integration/admin", "tests/integration/consumer", "tests/integration/producer"),
        requirements=("confluent-kafka[avro,json,protobuf,schema-registry]==2.15.0", "trivup", "pytest-asyncio"),
        source="the repository confluentinc/confluent-kafka-python at v2.15.0",
        environment=lambda place: {"BROKERS": place.address},
        leave_out=("tests/integration/admin/test_describe_operations.py",),
        why_left_out="it wants a broker where whoever is not named in a rule may do everything until there is a rule",
    ),
    Suite(
        "librdkafka",
        "librdkafka",
        kind=Kind.EACH,
        tests=("tests/0*.c", "tests/0*.cpp"),
        source="the repository confluentinc/librdkafka at v2.15.0",
        build=(("./configure", "--disable-gssapi"), ("make", "libs"), ("make", "-C", "tests", "build")),
        program="tests/test-runner",
        libraries=("src", "src-cpp"),
        options=("-Q", "-L", "-p1"),
        environment=_librdkafka,
        files=_librdkafka_files,
    ),
    Suite(
        "franz-go",
        "franz-go",
        kind=Kind.GO,
        tests=("pkg/kgo", "pkg/kadm"),
        source="the repository twmb/franz-go at v1.21.5",
        environment=_franz_go,
        logs_in=True,
    ),
)
