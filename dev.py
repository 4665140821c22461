#!/usr/bin/env python3
"""The commands of a newcomer. Needs Python 3.11 or newer and nothing else.

    python3 dev.py run [options of interlog serve]   start the broker in the foreground
    python3 dev.py test [options of pytest]          run the tests
    python3 dev.py check                             format, lint, types, layering
    python3 dev.py bench [NAME [options]]            run a benchmark, or list them
    python3 dev.py soak [--seeds N]                  long runs over many seeds
    python3 dev.py lock                              remake requirements/*.lock (needs uv)

Whatever it needs is put into .venv beside this file, from the lock files, the first time and whenever they change.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
OLDEST = (3, 11)

# An environment made by an older form of this file is made anew when this changes.
LAYOUT = 1

NO_ENSUREPIP = """\
This Python cannot make isolated environments with pip in them (it has no ensurepip, and no pip of its own).
Debian and Ubuntu keep that in a package of its own: sudo apt install python3-venv"""


class SetUpError(Exception):
    """The environment cannot be made; the message says what to do."""


def main(arguments: list[str]) -> int:
    commands = {"run": run, "test": test, "check": check, "bench": bench, "soak": soak, "lock": lock}
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print((__doc__ or "").strip())
        return 0 if arguments else 2
    command = commands.get(arguments[0])
    if command is None:
        say(f"There is no command {arguments[0]!r}. There is: {', '.join(commands)}.")
        return 2
    try:
        return command(arguments[1:])
    except SetUpError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


# -- commands


def run(arguments: list[str]) -> int:
    python = set_up("run")
    words = [str(python), "-m", "interlog", "serve", *arguments]
    if os.name == "nt":
        return subprocess.call(words)
    sys.stdout.flush()
    os.execv(words[0], words)  # signals then reach the broker itself


def test(arguments: list[str]) -> int:
    python = set_up("dev")
    set_up_node()
    parallel = [] if any(word.startswith("-n") for word in arguments) else ["-n", "2"]
    return subprocess.call([str(python), "-m", "pytest", *parallel, *arguments], cwd=ROOT)


def check(arguments: list[str]) -> int:
    set_up("dev")
    steps = {
        "format": [tool("ruff"), "format", "--check", "."],
        "lint": [tool("ruff"), "check", "."],
        "types": [tool("mypy"), "--strict"],
        "layers": [tool("lint-imports")],
    }
    failed = []
    for name, words in steps.items():
        say(f"{name}: {Path(words[0]).name} {' '.join(words[1:])}".rstrip())
        if subprocess.call(words, cwd=ROOT):
            failed.append(name)
    say(f"Not good: {', '.join(failed)}." if failed else "All good: " + ", ".join(steps) + ".")
    return 1 if failed else 0


def bench(arguments: list[str]) -> int:
    names = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if not path.stem.startswith("_"))
    if not arguments or arguments[0] not in names:
        say(f"Benchmarks: {', '.join(names) or 'none yet'}.")
        return 2 if arguments else 0
    python = set_up("dev")
    return subprocess.call([str(python), str(ROOT / "bench" / f"{arguments[0]}.py"), *arguments[1:]], cwd=ROOT)


def soak(arguments: list[str]) -> int:
    python = set_up("dev")
    return subprocess.call([str(python), "-m", "pytest", "-n", "2", "-m", "soak", *arguments], cwd=ROOT)


def lock(arguments: list[str]) -> int:
    """Lock files hold names, versions and hashes only: no registry, no path of the machine they were made on."""
    uv = shutil.which("uv")
    if uv is None:
        raise SetUpError("Lock files are made by uv, and it is not installed: pip install uv")
    for name in ("run", "dev"):
        words = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version", "3.11"]
        words += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        words += [*arguments, f"{name}.in", "-o", f"{name}.lock"]
        if subprocess.call(words, cwd=ROOT / "requirements"):
            return 1
        say(f"requirements/{name}.lock is made.")
    return 0


# -- the environment


def set_up(profile: str) -> Path:
    """The environment's Python, with everything of the profile's lock file installed. Says what it does."""
    python = venv_python()
    wanted = stamp(profile)
    if is_current(profile, wanted):
        return python
    with OneAtATime():
        if is_current(profile, wanted):  # another dev.py made it while this one waited
            return python
        began = time.monotonic()
        make_venv(python)
        lock_file = lock_path(profile)
        count = sum(1 for line in lock_file.read_text(encoding="utf-8").splitlines() if "==" in line)
        say(f"Installing {count} packages from {lock_file.relative_to(ROOT)} ...")
        words = [*pip(python), "install", "--quiet", "--require-hashes", "-r", str(lock_file)]
        if subprocess.call(words, cwd=ROOT):
            raise SetUpError(
                "The packages could not be installed; pip's own words are above. It needs a package index it can reach."
            )
        link_package(python)
        subprocess.call([str(python), "-m", "compileall", "-q", str(ROOT / "interlog")])
        for name in ("run", "dev") if profile == "dev" else ("run",):
            stamp_path(name).write_text(stamp(name), encoding="utf-8")
        say(f"Set up in {time.monotonic() - began:.0f} s. The next time this is skipped.")
    return python


def set_up_node() -> None:
    """What the tests with Node.js clients need, in .venv/node. Without Node.js those tests are skipped."""
    source, target = ROOT / "tests" / "interop" / "node", VENV / "node"
    names = ("package.json", "package-lock.json", ".npmrc")
    wanted = b"".join((source / name).read_bytes() for name in names)
    stamp_file = target / "interlog.stamp"
    if stamp_file.exists() and stamp_file.read_bytes() == wanted:
        return
    npm = shutil.which("npm")
    if npm is None:
        say("Tests with Node.js clients are skipped: there is no npm here. Node.js 18 or newer brings it.")
        return
    with OneAtATime():
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copyfile(source / name, target / name)
        say("Installing what the tests with Node.js clients need ...")
        if subprocess.call([npm, "ci", "--no-audit", "--no-fund", "--loglevel", "error"], cwd=target):
            say("Tests with Node.js clients are skipped: npm could not install them; its own words are above.")
            return
        stamp_file.write_bytes(wanted)


def is_current(profile: str, wanted: str) -> bool:
    try:
        return stamp_path(profile).read_text(encoding="utf-8") == wanted and venv_python().exists()
    except OSError:
        return False


def stamp(profile: str) -> str:
    """What the environment was made from: it is made anew, or added to, when this changes."""
    digest = hashlib.sha256(lock_path(profile).read_bytes()).hexdigest()
    return f"layout {LAYOUT}\npython {sys.version.split()[0]}\nfolder {ROOT}\nlock {digest}\n"


def stamp_path(profile: str) -> Path:
    return VENV / f"interlog-{profile}.stamp"


def lock_path(profile: str) -> Path:
    return ROOT / "requirements" / f"{profile}.lock"


def make_venv(python: Path) -> None:
    """An environment of this very Python, with a pip that works; what is there is kept if it is that."""
    if VENV.exists():
        if venv_version(python) == sys.version.split()[0] and not subprocess.call(
            [*pip(python), "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ):
            return
        say("The environment in .venv is unfinished or of another Python: making it anew.")
        shutil.rmtree(VENV)
    say(f"Making an isolated environment in .venv with Python {sys.version.split()[0]} ...")
    missing_pip = importlib.util.find_spec("ensurepip") is None
    if importlib.util.find_spec("venv") is None or (missing_pip and importlib.util.find_spec("pip") is None):
        raise SetUpError(NO_ENSUREPIP)
    words = [sys.executable, "-m", "venv", *(["--without-pip"] if missing_pip else []), str(VENV)]
    if subprocess.call(words):
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetUpError(NO_ENSUREPIP if missing_pip else "The environment could not be made; see above why.")


def venv_version(python: Path) -> str:
    words = [str(python), "-c", "import sys; print(sys.version.split()[0])"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def pip(python: Path) -> list[str]:
    """The environment's own pip, or this Python's where the environment could not get one."""
    options = ["--disable-pip-version-check", "--no-input"]
    if (scripts() / ("pip.exe" if os.name == "nt" else "pip")).exists():
        return [str(python), "-m", "pip", *options]
    return [sys.executable, "-m", "pip", "--python", str(python), *options]


def link_package(python: Path) -> None:
    """Make the clone importable, and `interlog` a command, in the environment; nothing is built or copied."""
    words = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip())
    (packages / "interlog-clone.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    if os.name != "nt":
        script = scripts() / "interlog"
        # exec through sh: a path with spaces or of great length has no place behind #!
        script.write_text(f"#!/bin/sh\nexec '{python}' -m interlog \"$@\"\n", encoding="utf-8")
        script.chmod(0o755)


def scripts() -> Path:
    return VENV / ("Scripts" if os.name == "nt" else "bin")


def venv_python() -> Path:
    return scripts() / ("python.exe" if os.name == "nt" else "python")


def tool(name: str) -> str:
    return str(scripts() / name)


class OneAtATime:
    """Two dev.py in one clone take turns at setting up. The lock is on this very file and ends with the process."""

    def __enter__(self) -> None:
        self._file = open(__file__, "rb")  # held until __exit__
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX)
        except (ImportError, OSError):
            pass  # no such locks here: then two must not be started at once

    def __exit__(self, *_: object) -> None:
        self._file.close()


def say(sentence: str) -> None:
    print(f"[dev] {sentence}", flush=True)


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(f"[dev] Interlog needs Python {OLDEST[0]}.{OLDEST[1]} or newer; this is {sys.version.split()[0]}.")
    sys.exit(main(sys.argv[1:]))
