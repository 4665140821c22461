"""The folder with everything that is no part of the repository: trees of suites, their environments, results."""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.peers.certificates import Certificates, make
from tests.peers.suites import Kind, Place, Suite, test_files


class CannotRun(Exception):
    """A suite cannot be run here; the message says what is missing."""


class Workshop:
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
        if suite.kind is not Kind.EACH and not test_files(suite, tree):
            raise CannotRun(f"{tree} has no {' '.join(suite.tests)}")
        return tree

    def download(self, suite: Suite) -> None:
        tree = self.folder / "src" / suite.tree
        if tree.exists() or not suite.sdist:
            return
        with tempfile.TemporaryDirectory() as place:
            package = suite.sdist.partition("==")[0]
            words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
            if subprocess.call([*words, "-d", place, suite.sdist]):
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

    def program(self, suite: Suite) -> Path:
        """The suite's program, built once."""
        tree = self.tree(suite)
        program = tree / suite.program
        if not program.exists():
            print(f"[{suite.name}] building {program} ...", flush=True)
            with (self.results / f"build-{suite.name}.log").open("wb") as log:
                for words in suite.build:
                    if subprocess.call(words, cwd=tree, stdout=log, stderr=log):
                        raise CannotRun(f"{' '.join(words)} fails: see {log.name}")
        return program

    def go(self, suite: Suite, package: str) -> Path:
        """The tests of a package as a program, built once."""
        program = self.folder / "go" / f"{suite.name}-{package.replace('/', '-')}"
        if not program.exists():
            if shutil.which("go") is None:
                raise CannotRun("there is no go on this machine")
            print(f"[{suite.name}] building the tests of {package} ...", flush=True)
            program.parent.mkdir(exist_ok=True)
            if subprocess.call(["go", "test", "-c", "-o", str(program), "."], cwd=self.tree(suite) / package):
                raise CannotRun(f"go cannot build the tests of {package}; its words are above")
        return program

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
        for name, text in suite.files(place).items():
            (copy / name).parent.mkdir(exist_ok=True)
            (copy / name).write_text(text, encoding="utf-8")
            (copy / name).chmod(0o755)
        if self.certificates is not None:
            for name, ours in suite.certificates.items():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.certificates.ca.parent / ours, copy / name)
        return copy
