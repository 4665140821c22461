"""The Java client at work: the programs in java/, compiled against kafka-clients from Maven Central.

    python -m tests.peers.java_client [--version 3.9.1 --version 4.1.1] [--login | --address HOST:PORT] [SCENARIO ...]

Without an address an Interlog is started for it, as tests do; with --login one that asks for SCRAM over TLS. It
needs a JDK (17 or newer for versions from 4.0 on) and Maven.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from interlog.testing import running
from tests.peers import certificates, maven

VERSIONS = ("3.9.1", "4.1.1")
SOURCES = Path(__file__).parent / "java"
PATIENCE_SECONDS = 600


class Ran(NamedTuple):
    output: str
    passed: int
    failed: int


def work(
    version: str, address: str, prefix: str, scenarios: Sequence[str] = (), settings: Mapping[str, str] = {}
) -> Ran:
    """What most clients do, with these settings in all of them. NoJars where that cannot be done."""
    return run("Work", version, address, prefix, *scenarios, settings=settings)


def run(program: str, version: str, *given: str, settings: Mapping[str, str] = {}) -> Ran:
    """Compile it and let it work; it tells in a line of each thing that passed or failed."""
    jars = maven.jars(
        f"kafka-clients-{version}", f"org.apache.kafka:kafka-clients:{version}", "org.slf4j:slf4j-nop:1.7.36"
    )
    if shutil.which("javac") is None:
        raise maven.NoJars("javac is needed, and no JDK is installed here")
    with tempfile.TemporaryDirectory() as classes:
        classpath = f"{jars}/*"
        compiled = subprocess.run(
            ["javac", "-nowarn", "-d", classes, "-cp", classpath, str(SOURCES / f"{program}.java")],
            capture_output=True,
            text=True,
            check=False,
        )
        if compiled.returncode:
            return Ran(compiled.stderr, 0, 1)
        words = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{classes}:{classpath}"]
        file = Path(classes) / "work.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        found = subprocess.run(
            [*words, f"-Dwork.settings={file}", program, *given],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    lines = found.stdout.splitlines()
    passed = sum(" passed " in line for line in lines)
    failed = sum(" failed " in line for line in lines)
    return Ran(found.stdout + found.stderr, passed, failed or int(found.returncode != 0))


@contextmanager
def guarded(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """An Interlog that wants to know who comes: its address, and what clients must be told."""
    made = certificates.make(folder)
    if made is None:
        raise maven.NoJars("the openssl command makes the certificates, and is not installed")
    settings = {
        "kafka_authentication": "on",
        "kafkas_port": 0,
        "tls_certificate": made.server,
        "tls_key": made.server_key,
    }
    with running(**settings) as broker:
        port = broker.addresses["kafkas"].rpartition(":")[2]
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        yield (
            f"localhost:{port}",
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f'{module} required username="guest" password="guest";',
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(made.ca),
            },
        )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--version", action="append")
    options.add_argument("--address")
    options.add_argument("--login", action="store_true")
    options.add_argument("scenarios", nargs="*")
    given = options.parse_args()
    failed = 0
    for version in given.version or VERSIONS:
        try:
            if given.login:
                with tempfile.TemporaryDirectory() as folder, guarded(Path(folder)) as (address, settings):
                    ran = work(version, address, "java", given.scenarios, settings)
            elif given.address:
                ran = work(version, given.address, f"java-{version}", given.scenarios)
            else:
                with running() as broker:
                    ran = work(version, broker.kafka_address, "java", given.scenarios)
        except maven.NoJars as error:
            print(error)
            return 1
        print(f"{ran.output}kafka-clients {version}: {ran.passed} passed, {ran.failed} failed", flush=True)
        failed += ran.failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
