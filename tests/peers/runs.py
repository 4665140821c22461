"""Runs one suite against one target: the calls that its kind of tests takes, and what is read from each."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.peers.results import Result, read_each, read_go, read_junit
from tests.peers.suites import Kind, Place, Suite, test_files
from tests.peers.workshop import CannotRun, Workshop

SUITE_SECONDS = 1800
TEST_SECONDS = 60
NODE_SECONDS = 20
EACH_SECONDS = 180
PLUGINS = Path(__file__).resolve().parent / "plugins"
_OURS = ("PYTHONPATH", "AMQP_URL", "PYTEST_ADDOPTS", "KAFKA_VERSION")


def run(workshop: Workshop, suite: Suite, target: str, place: Place, expression: str | None) -> Result:
    copy = workshop.copy(suite, target, place)
    result = Result(suite.name, target)
    log = workshop.results / f"{target}-{suite.name}.log"
    began = time.monotonic()
    log.write_bytes(b"")
    environment = {name: text for name, text in os.environ.items() if name not in _OURS}
    environment |= _told(place) | suite.environment(place)
    environment["PYTHONPATH"] = os.pathsep.join([str(copy), str(PLUGINS)])
    if suite.libraries:
        tree = workshop.tree(suite)
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(str(tree / name) for name in suite.libraries)
    for words, name, limit in _calls(workshop, suite, copy, expression):
        output = copy / f"output-{name.replace('/', '-')}.txt"
        with output.open("wb") as stream:
            try:
                more = {"TESTS": name} if suite.kind is Kind.EACH else {}
                subprocess.call(words, cwd=copy, env=environment | more, stdout=stream, stderr=stream, timeout=limit)
            except subprocess.TimeoutExpired:
                result.note = f"not finished in {limit} s"
        with log.open("ab") as whole:
            whole.write(output.read_bytes())
        _read(suite, copy, name, output, result)
    result.seconds = round(time.monotonic() - began, 1)
    if not result.passed and not result.failed:
        result.note = f"nothing ran: see {log}"
    return result


def _told(place: Place) -> dict[str, str]:
    """What the plugins want to know."""
    return {
        "PEER_PORT": str(place.port),
        "PEER_TLS_PORT": str(place.tls_port),
        "PEER_SASL_PORT": str(place.sasl_port),
        "PEER_SASL_TLS_PORT": str(place.sasl_tls_port),
        "PEER_CERTIFICATES": str(place.certificates),
    }


def _calls(
    workshop: Workshop, suite: Suite, copy: Path, expression: str | None
) -> Iterator[tuple[list[str], str, float]]:
    """The words of each call, a name for it, and its seconds."""
    match suite.kind:
        case Kind.PYTEST:
            words = [str(workshop.python(suite)), "-m", "pytest", "-p", suite.plugin, "-c", os.devnull]
            words += [f"--rootdir={copy}", "-q", "--tb=short", f"--timeout={TEST_SECONDS}", "--junitxml=report-.xml"]
            words += [*(f"--deselect={name}" for name in suite.leave_out), *suite.options]
            yield [*words, *(["-k", expression] if expression else []), *test_files(suite, copy)], "", SUITE_SECONDS
        case Kind.NODE:
            node = shutil.which("node")
            if node is None:
                raise CannotRun("there is no node on this machine")
            words = [node, "--test", f"--test-timeout={NODE_SECONDS * 1000}", "--test-reporter=junit"]
            words += [f"--test-name-pattern={expression}"] if expression else []
            # One by one: where a file hangs, node's report loses which file a test is of.
            for file in test_files(suite, copy):
                report = f"--test-reporter-destination=report-{file.replace('/', '-')}.xml"
                yield [*words, report, file], file, SUITE_SECONDS
        case Kind.GO:
            for package in suite.tests:
                words = [str(workshop.go(suite, package)), "-test.v", f"-test.timeout={SUITE_SECONDS}s", *suite.options]
                words += [f"-test.skip={'|'.join(suite.leave_out)}"] if suite.leave_out else []
                yield [*words, *([f"-test.run={expression}"] if expression else [])], package, SUITE_SECONDS + 60
        case Kind.EACH:
            program = workshop.program(suite)
            found = {path.name[:4] for pattern in suite.tests for path in workshop.tree(suite).glob(pattern)}
            for name in sorted(found - set(suite.leave_out)):
                if not expression or name in expression:
                    yield [str(program), *suite.options], name, EACH_SECONDS


def _read(suite: Suite, copy: Path, name: str, output: Path, result: Result) -> None:
    match suite.kind:
        case Kind.GO:
            read_go(output.read_text(errors="replace"), result, name)
        case Kind.EACH:
            read_each(output.read_text(errors="replace"), result, name)
        case _:
            report = copy / f"report-{name.replace('/', '-')}.xml"
            if report.exists():
                read_junit(report, result, name)
