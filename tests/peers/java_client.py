"""The Java client at work: the programs in java/, compiled against kafka-clients from Maven Central.

    python -m tests.peers.java_client [--version 3.9.1 --version 4.1.1] [--address HOST:PORT] [SCENARIO ...]

Without an address an Interlog is started for it, as tests do. It needs a JDK (17 or newer for versions from 4.0 on)
and Maven.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from interlog.testing import running
from tests.peers import maven

VERSIONS = ("3.9.1", "4.1.1")
SOURCES = Path(__file__).parent / "java"
PATIENCE_SECONDS = 600


class Ran(NamedTuple):
    output: str
    passed: int
    failed: int


def work(version: str, address: str, prefix: str, scenarios: Sequence[str] = ()) -> Ran:
    """What most clients do. NoJars where that cannot be done."""
    return run("Work", version, address, prefix, *scenarios)


def run(program: str, version: str, *given: str) -> Ran:
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
        found = subprocess.run(
            [*words, program, *given],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    lines = found.stdout.splitlines()
    passed = sum(" passed " in line for line in lines)
    failed = sum(" failed " in line for line in lines)
    return Ran(found.stdout + found.stderr, passed, failed or int(found.returncode != 0))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--version", action="append")
    options.add_argument("--address")
    options.add_argument("scenarios", nargs="*")
    given = options.parse_args()
    failed = 0
    for version in given.version or VERSIONS:
        try:
            if given.address:
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
