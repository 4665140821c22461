"""Runs the clients' own test suites against Interlog or a real RabbitMQ, and puts the results side by side.

    python -m tests.peers.run_suites --target rabbitmq            all suites, a broker of their own, results kept
    python -m tests.peers.run_suites --target interlog --suite pika --suite kombu
    python -m tests.peers.run_suites --target interlog --url amqp://guest:guest@127.0.0.1:5672/
    python -m tests.peers.run_suites --table                      only the table of what was kept

Everything is in one folder outside the repository (--work, default peers in the system's temporary folder): src/NAME
holds the suites' source trees, the rest is made. --download gets the trees that come with source distributions; the
others are told by name. Each suite gets a fresh broker unless --url is given; -k goes to pytest.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.peers.certificates import Certificates, make
from tests.peers.rabbitmq import NoRabbitMQ
from tests.peers.stand_in import StandIn
from tests.peers.suites import SUITES, Place, Suite, by_name, test_files
from tests.peers.targets import Elsewhere, Interlog, NoTarget, Rabbit, Running, Target, host_port

SUITE_SECONDS = 1800
TEST_SECONDS = 60
NODE_SECONDS = 20
HERE = Path(__file__).resolve().parent


class CannotRun(Exception):
    """A suite cannot be run here; the message says what is missing."""


@dataclass
class Result:
    suite: str
    target: str
    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # name → last words
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""


class Workshop:
    """The folder with everything that is no part of the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.results.mkdir(parents=True, exist_ok=True)
        self.certificates: Certificates | None = make(folder / "certificates")

    def tree(self, suite: Suite) -> Path:
        tree = self.folder / "src" / suite.tree
        if not tree.exists():
            how = "--download gets it" if suite.sdist else "put it there"
            raise CannotRun(f"{suite.source} is not at {tree}: {how}")
        if not test_files(suite, tree):
            raise CannotRun(f"{tree} has no {' '.join(suite.tests)}")
        return tree

    def download(self, suite: Suite) -> None:
        tree = self.folder / "src" / suite.tree
        if tree.exists() or not suite.sdist:
            return
        with tempfile.TemporaryDirectory() as place:
            words = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                suite.sdist.partition("==")[0],
                "-d",
                place,
            ]
            if subprocess.call([*words, suite.sdist]):
                raise CannotRun(f"pip cannot download {suite.sdist}; its words are above")
            archive = next(Path(place).glob("*.tar.gz"))
            with tarfile.open(archive) as opened:
                opened.extractall(place, filter="data")
            tree.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(next(path for path in Path(place).iterdir() if path.is_dir()), tree)

    def python(self, suite: Suite) -> Path:
        """The suite's own environment, made once for its requirements."""
        venv = self.folder / "venv" / suite.name
        python, stamp = venv / "bin" / "python", venv / "requirements.txt"
        wanted = "\n".join(["pytest", "pytest-timeout", *suite.requirements])
        if python.exists() and stamp.exists() and stamp.read_text() == wanted:
            return python
        print(f"[{suite.name}] making {venv} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted.split("\n")]
        if subprocess.call(words):
            raise CannotRun(f"pip cannot install {', '.join(suite.requirements)}; its words are above")
        stamp.write_text(wanted)
        return python

    def copy(self, suite: Suite, target: str, place: Place) -> Path:
        """A copy of the tests with the target's ports where the suite wants them in its text."""
        tree = self.tree(suite)
        copy = self.folder / "run" / target / suite.name
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)
        for name in suite.copied:
            if (tree / name).is_dir():
                shutil.copytree(tree / name, copy / name)
            elif (tree / name).exists():
                shutil.copy(tree / name, copy / name)
        if suite.ports_in_text:
            for path in [*copy.rglob("*.py"), *copy.rglob("*.js")]:
                text = path.read_text(encoding="utf-8")
                changed = text.replace("5672", str(place.port)).replace("5671", str(place.tls_port))
                if changed != text:
                    path.write_text(changed, encoding="utf-8")
        if self.certificates is not None:
            for name, ours in suite.certificates.items():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.certificates.ca.parent / ours, copy / name)
        return copy


def run(workshop: Workshop, suite: Suite, target: Target, expression: str | None) -> Result:
    host, port = host_port(target.url)
    with StandIn(host, port) as stand_in:
        management_url = target.management_url if suite.needs_management else stand_in.url
        place = Place(host, port, target.tls_port or 1, target.url, management_url)
        return _run(workshop, suite, target, place, expression)


def _run(workshop: Workshop, suite: Suite, target: Target, place: Place, expression: str | None) -> Result:
    copy = workshop.copy(suite, target.name, place)
    environment = dict(os.environ)
    for name in ("PYTHONPATH", "AMQP_URL", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    environment |= {"PEER_PORT": str(place.port), "PEER_TLS_PORT": str(place.tls_port)} | suite.environment(place)
    files = test_files(suite, copy)
    if suite.node:
        # One by one: where a file hangs, node's report loses which file a test is of.
        calls = [(_node_words(copy / f"report-{at}.xml", file, expression), file) for at, file in enumerate(files)]
    else:
        python = workshop.python(suite)
        environment["PYTHONPATH"] = os.pathsep.join([str(copy), str(HERE)])
        words = [str(python), "-m", "pytest", "-p", "docker_stub", "-c", os.devnull, f"--rootdir={copy}", "-q"]
        words += ["--tb=short", f"--timeout={TEST_SECONDS}", f"--junitxml={copy / 'report-0.xml'}"]
        words += [*(f"--deselect={name}" for name in suite.leave_out), *suite.options]
        calls = [([*words, *(["-k", expression] if expression else []), *files], "")]
    result = Result(suite.name, target.name)
    output = workshop.results / f"{target.name}-{suite.name}.log"
    began = time.monotonic()
    with output.open("wb") as log:
        for at, (words, file) in enumerate(calls):
            try:
                subprocess.call(words, cwd=copy, env=environment, stdout=log, stderr=log, timeout=SUITE_SECONDS)
            except subprocess.TimeoutExpired:
                result.note = f"not finished in {SUITE_SECONDS} s"
            report = copy / f"report-{at}.xml"
            if report.exists():
                _read(report, result, file)
    result.seconds = round(time.monotonic() - began, 1)
    if not result.passed and not result.failed:
        result.note = f"nothing ran: see {output}"
    return result


def _node_words(report: Path, file: str, expression: str | None) -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise CannotRun("there is no node on this machine")
    words = [node, "--test", f"--test-timeout={NODE_SECONDS * 1000}", "--test-reporter=junit"]
    words += [f"--test-reporter-destination={report}", *([f"--test-name-pattern={expression}"] if expression else [])]
    return [*words, file]


def _read(report: Path, result: Result, file: str) -> None:
    try:
        root = ElementTree.parse(report).getroot()
    except ElementTree.ParseError:
        result.note = "its report is unfinished"
        return
    for name, case in _cases(root, Path(file).name):
        problem = case.find("failure")
        if problem is None:
            problem = case.find("error")
        skip = case.find("skipped")
        if problem is not None:
            words = (problem.get("message") or problem.text or "").strip()
            result.failed[name] = " ".join(words.split())[:400]
        elif skip is not None:
            result.skipped[name] = (skip.get("message") or "")[:200]
        elif name not in result.failed:
            result.passed.append(name)
    result.passed = sorted(set(result.passed) - set(result.failed))


def _cases(node: ElementTree.Element, file: str, suite: str = "") -> Iterator[tuple[str, ElementTree.Element]]:
    """Test cases with names that are the same for every target, whatever hung before them.

    pytest gives each a class name; node nests suites, and calls one that did not end "undefined".
    """
    for child in node:
        if child.tag == "testcase":
            where = f"{file} > {suite}" if file else child.get("classname") or ""
            yield f"{where}::{(child.get('name') or '').rpartition('/')[2]}", child
        else:
            yield from _cases(child, file, child.get("name") or suite)


def keep(workshop: Workshop, result: Result) -> None:
    base = workshop.results / f"{result.target}-{result.suite}"
    base.with_suffix(".json").write_text(json.dumps(asdict(result), indent=1) + "\n")
    lines = [summary(result), ""]
    lines += [f"FAILED {name}\n    {words}" for name, words in result.failed.items()]
    lines += [f"skipped {name}: {words}" for name, words in result.skipped.items()]
    lines += [f"passed {name}" for name in result.passed]
    base.with_suffix(".txt").write_text("\n".join(lines) + "\n")


def kept(workshop: Workshop, target: str, suite: str) -> Result | None:
    path = workshop.results / f"{target}-{suite}.json"
    return Result(**json.loads(path.read_text())) if path.exists() else None


def summary(result: Result) -> str:
    counts = f"{len(result.passed)} passed, {len(result.failed)} failed, {len(result.skipped)} skipped"
    return f"{result.suite} on {result.target}: {counts}, {result.seconds:.0f} s {result.note}".rstrip()


def table(workshop: Workshop) -> int:
    """Side by side; returns how many tests pass on RabbitMQ and not on Interlog."""
    print(f"\n{'suite':<22}{'RabbitMQ passed/failed/skipped':>32}{'Interlog passed/failed/skipped':>32}{'owed':>8}")
    owed: list[str] = []
    for suite in SUITES:
        rabbit, ours = (kept(workshop, name, suite.name) for name in ("rabbitmq", "interlog"))
        missing = []
        if rabbit is not None and ours is not None:
            missing = [name for name in rabbit.passed if name not in set(ours.passed)]
            owed += [f"{suite.name}: {name}: {ours.failed.get(name, 'did not run')}" for name in missing]
        print(f"{suite.name:<22}{_counts(rabbit):>32}{_counts(ours):>32}{len(missing) if ours else '-':>8}")
    if owed:
        print("\nPass on RabbitMQ, not on Interlog:")
        print("\n".join(f"  {line}" for line in owed))
    return len(owed)


def _counts(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{len(result.passed)} / {len(result.failed)} / {len(result.skipped)}"


@contextmanager
def target_for(given: argparse.Namespace, workshop: Workshop, suite: Suite) -> Iterator[Target]:
    if given.url:
        yield Elsewhere(given.target, given.url, given.tls_port, given.management_url)
        return
    folder = Path(tempfile.mkdtemp(prefix=f"{given.target}-", dir=workshop.folder))
    target: Target
    if given.target == "rabbitmq":
        target = Rabbit(folder, certificates=workshop.certificates, management=suite.needs_management)
    else:
        target = Interlog(folder, certificates=None if given.no_tls else workshop.certificates)
    try:
        with Running(target):
            yield target
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", choices=("interlog", "rabbitmq"))
    options.add_argument("--suite", action="append", choices=[suite.name for suite in SUITES])
    options.add_argument("--url", default="", help="a broker that runs already")
    options.add_argument("--tls-port", type=int, default=0, help="of the broker at --url")
    options.add_argument("--management-url", default="", help="of the broker at --url")
    options.add_argument("--no-tls", action="store_true", help="start Interlog without its TLS port")
    options.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "peers")
    options.add_argument("--download", action="store_true", help="get source distributions that are missing")
    options.add_argument("--table", action="store_true", help="only the table of what was kept")
    options.add_argument("-k", dest="expression", help="only tests of such a name; nothing is kept")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is stopped then, too
    workshop = Workshop(given.work.absolute())
    if given.table or not given.target:
        return 1 if table(workshop) else 0
    for suite in [by_name(name) for name in given.suite or [suite.name for suite in SUITES]]:
        try:
            if given.download:
                workshop.download(suite)
            workshop.tree(suite)
            with target_for(given, workshop, suite) as target:
                if suite.needs_management and not target.management_url:
                    raise CannotRun(f"{given.target} has no management API here")
                result = run(workshop, suite, target, given.expression)
        except (CannotRun, NoTarget, NoRabbitMQ) as error:
            print(f"{suite.name}: not run: {error}", flush=True)
            continue
        print(summary(result), flush=True)
        for name, words in result.failed.items():
            print(f"  FAILED {name}: {words}")
        if not given.expression:
            keep(workshop, result)
    table(workshop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
