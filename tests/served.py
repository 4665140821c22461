"""A broker as a process of its own, for tests that need a real one."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 20  # never waited for when all is well
JOURNAL_FILE = "8MiB"  # they are reserved when they are begun, and a run of the tests begins hundreds


class Served:
    """`interlog serve` as a child process."""

    def __init__(self, process: "subprocess.Popen[str]", ready_file: Path) -> None:
        self.process = process
        self.ready_file = ready_file

    def addresses(self) -> dict[str, str]:
        """Waits until all ports accept."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.ready_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                pytest.fail(f"the broker is not ready: {self.process.communicate()}")
            time.sleep(0.002)
        found: dict[str, str] = json.loads(self.ready_file.read_text())
        return found

    def end(self) -> tuple[int, str]:
        """Waits until the process has ended; its exit code and what it wrote to standard error."""
        _, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, errors


Serve = Callable[..., Served]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def clean_environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """This process' environment without settings of the broker, and with the clone importable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOG_")}
    kept["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    kept["INTERLOG_JOURNAL_FILE_BYTES"] = JOURNAL_FILE
    return kept | (more or {})
