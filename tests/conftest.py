"""What all tests share: options, and brokers as processes of their own."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.served import PATIENCE_SECONDS, Run, Serve, Served, clean_environment

# Whoever imports them first: what they expect is told in full where it does not come.
pytest.register_assert_rewrite("tests.playbooks.amqp.play", "tests.playbooks.kafka.play")

pytest_plugins = ("interlog.testing",)  # the fixtures `broker` and `shared_broker`

# The same examples every time, and no clock: a slow machine is no failure.
settings.register_profile("interlog", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("interlog")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=20, metavar="N", help="how many seeds a soak test runs over")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--seeds")
    return count


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts brokers: serve("--durability", "os", data=folder). They are killed when the test ends.

    `before` is a command that becomes the broker, such as one that makes it a small disk first.
    """
    started: list[Served] = []

    def start(
        *flags: str,
        data: Path | None = None,
        environment: dict[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> Served:
        ready_file = tmp_path / f"ready-{len(started)}.json"
        words = [*before, sys.executable, "-m", "interlog", "serve", "--data", str(data or tmp_path / "data")]
        for flag in ("--amqp-port", "--kafka-port", "--http-port"):
            if flag not in flags:
                words += [flag, "0"]
        words += ["--ready-file", str(ready_file), *flags]
        process = subprocess.Popen(
            words,
            cwd=tmp_path,
            env=clean_environment(environment),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(Served(process, ready_file))
        return started[-1]

    yield start
    for served in started:
        served.process.kill()
        served.process.communicate()


@pytest.fixture
def interlog(tmp_path: Path) -> Run:
    """Runs the command line to its end: interlog("verify", "--data", folder)."""

    def run(*words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "interlog", *words],
            cwd=tmp_path,
            env=clean_environment(environment),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    return run
