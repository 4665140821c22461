"""Spark's own Kafka connector against Interlog: spark_work.py, in an environment of its own with pyspark.

    python -m tests.peers.spark [--address HOST:PORT] [--rows N]

pyspark comes from a package index and the connector from Maven Central, both kept in the user's cache. It needs Java
(17 or newer) and Maven. Without an address an Interlog is started for it, as tests do.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from interlog.testing import running
from tests.peers import maven

VERSION = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"
WORK = Path(__file__).with_name("spark_work.py")
PATIENCE_SECONDS = 900


def jars() -> list[Path]:
    """Those that pyspark has not."""
    known = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2", "jsr305")
    return [jar for jar in maven.jars(f"spark-kafka-{VERSION}", CONNECTOR).glob("*.jar") if jar.name.startswith(known)]


def python() -> Path:
    """Of an environment with pyspark."""
    folder = maven.cache() / f"pyspark-{VERSION}"
    found = folder / "bin" / "python"
    if not (folder / "is-whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        words = [str(found), "-m", "pip", "install", "--quiet", f"pyspark=={VERSION}"]
        installed = subprocess.run(words, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise maven.NoJars(f"pyspark {VERSION} cannot be installed: {installed.stderr.strip()[-400:]}")
        (folder / "is-whole").touch()
    return found


def work(address: str, prefix: str, rows: int) -> tuple[int, str]:
    """The exit code, and a line for each scenario. NoJars where it cannot be run."""
    if shutil.which("java") is None:
        raise maven.NoJars("Java is needed, and not installed here")
    connector = ",".join(map(str, jars()))
    program = python()
    environment = {**os.environ, "PYSPARK_PYTHON": str(program), "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [str(program), str(WORK), address, prefix, folder, connector, str(rows)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    return found.returncode, found.stdout + (found.stderr if found.returncode else "")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--address")
    options.add_argument("--rows", type=int, default=200_000)
    given = options.parse_args()
    try:
        if given.address:
            code, output = work(given.address, "spark", given.rows)
        else:
            with running() as broker:
                code, output = work(broker.kafka_address, "spark", given.rows)
    except maven.NoJars as error:
        print(error)
        return 1
    print(output)
    return code


if __name__ == "__main__":
    sys.exit(main())
