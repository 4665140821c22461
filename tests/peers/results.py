"""What a run of a suite came to: read from what its tests report, kept in the work folder, put side by side."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

_GO = re.compile(r"^\s*(?:=== RUN|--- (PASS|FAIL|SKIP):)\s+(\S+)")
_PROGRAM = re.compile(r"^\|\s*(\w+)\s+\|\s+(PASSED|FAILED|SKIPPED)\s+\|[^|]*\|\s*(.*)")
_SAID = re.compile(r'^### Test "(\w+).*\n(.*)', re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Result:
    suite: str
    target: str
    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # name → last words
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""

    def add(self, name: str, outcome: str, words: str = "") -> None:
        """A test may be told of twice, in its set-up and at its end: a failure stays one."""
        if outcome == "failed":
            self.failed[name] = " ".join(words.split())[:400]
        elif outcome == "skipped":
            self.skipped[name] = words[:200]
        elif name not in self.failed:
            self.passed.append(name)
        self.passed = [each for each in dict.fromkeys(self.passed) if each not in self.failed]

    @property
    def summary(self) -> str:
        counts = f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
        return f"{self.suite} on {self.target}: {counts}, {self.seconds:.0f} s {self.note}".rstrip()


def read_junit(report: Path, result: Result, file: str) -> None:
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
            result.add(name, "failed", (problem.get("message") or problem.text or "").strip())
        elif skip is not None:
            result.add(name, "skipped", skip.get("message") or "")
        else:
            result.add(name, "passed")


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


def read_go(output: str, result: Result, package: str) -> None:
    """What `-test.v` writes; a test that began and says nothing more did not end."""
    words = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
    began: dict[str, str] = {}
    for line in output.splitlines():
        found = _GO.match(line)
        if found and found[2]:
            began[found[2]] = words.get(found[1] or "", began.get(found[2], ""))
    for name, outcome in began.items():
        result.add(f"{package}: {name}", outcome or "failed", "" if outcome else "did not end")


def read_each(output: str, result: Result, name: str) -> None:
    """The table at the end of a program's output."""
    found = [row for line in output.splitlines() if (row := _PROGRAM.match(_COLOURS.sub("", line)))]
    for row in found:
        result.add(row[1], row[2].lower(), row[3])
    if not found:
        said = _SAID.search(_COLOURS.sub("", output))
        result.add(*((said[1], "failed", said[2]) if said else (name, "failed", "did not end")))


def keep(folder: Path, result: Result) -> None:
    base = folder / f"{result.target}-{result.suite}"
    base.with_suffix(".json").write_text(json.dumps(asdict(result), indent=1) + "\n")
    lines = [result.summary, ""]
    lines += [f"FAILED {name}\n    {words}" for name, words in result.failed.items()]
    lines += [f"skipped {name}: {words}" for name, words in result.skipped.items()]
    lines += [f"passed {name}" for name in result.passed]
    base.with_suffix(".txt").write_text("\n".join(lines) + "\n")


def kept(folder: Path, target: str, suite: str) -> Result | None:
    path = folder / f"{target}-{suite}.json"
    return Result(**json.loads(path.read_text())) if path.exists() else None


def table(folder: Path, real: str, suites: Sequence[str]) -> int:
    """Side by side; returns how many tests pass on the real one and not on Interlog."""
    print(f"\n{'passed / failed / skipped':<28}{real:>24}{'interlog':>24}{'owed':>8}")
    owed: list[str] = []
    for suite in suites:
        theirs, ours = (kept(folder, name, suite) for name in (real, "interlog"))
        missing = []
        if theirs is not None and ours is not None:
            missing = [name for name in theirs.passed if name not in set(ours.passed)]
            owed += [f"{suite}: {name}: {ours.failed.get(name, 'did not run')}" for name in missing]
        print(f"{suite:<28}{_counts(theirs):>24}{_counts(ours):>24}{len(missing) if ours else '-':>8}")
    if owed:
        print(f"\nPass on {real}, not on interlog:")
        print("\n".join(f"  {line}" for line in owed))
    return len(owed)


def _counts(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{len(result.passed)} / {len(result.failed)} / {len(result.skipped)}"
