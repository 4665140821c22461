"""The clients' own test suites: where their tests are, what they need, what of them a broker can be judged by.

Tests come from the clients' source trees, which are no part of this repository: `WORK/src/NAME`, put there by hand or
by `--download` (source distributions with tests in them). The client itself is the released package, or is built from
the tree. The suites are listed in amqp_suites.py and kafka_suites.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

# Who the suites log in as, where they do.
USERS = {"alice": "alice-secret", "test": "test"}


class Kind(Enum):
    """How its tests are run."""

    PYTEST = auto()
    NODE = auto()
    GO = auto()  # a package of tests for each of `tests`
    EACH = auto()  # a program that is run for each of `tests`, and told which by TESTS


@dataclass(frozen=True)
class Place:
    """Where the target is, for a suite's environment."""

    host: str
    port: int
    tls_port: int
    url: str = ""
    management_url: str = ""
    sasl_port: int = 0
    sasl_tls_port: int = 0
    certificates: Path = Path()
    version: str = ""  # of Kafka, that a client takes it for

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Suite:
    name: str
    tree: str  # folder in WORK/src
    tests: Sequence[str]
    copied: Sequence[str] = ()  # of the tree, what the tests need
    kind: Kind = Kind.PYTEST
    requirements: Sequence[str] = ()
    source: str = ""  # where the tree comes from
    sdist: str = ""  # a source distribution that has the tests
    build: Sequence[Sequence[str]] = ()  # commands in the tree, once
    program: str = ""  # of Kind.EACH, in the tree
    libraries: Sequence[str] = ()  # that it needs, in the tree
    environment: Callable[[Place], dict[str, str]] = field(default=lambda place: {})
    files: Callable[[Place], dict[str, str]] = field(default=lambda place: {})  # written into the copy
    options: Sequence[str] = ()  # of pytest or the program
    plugin: str = "docker_stub"
    ports_in_text: bool = False  # 5672 and 5671 stand in the tests themselves
    certificates: dict[str, str] = field(default_factory=dict)  # in the copy: which of ours
    leave_out: Sequence[str] = ()  # tests that say nothing about a broker
    why_left_out: str = ""
    needs_management: bool = False
    logs_in: bool = False
    partitions: int = 4  # of topics that nobody made


def test_files(suite: Suite, tree: Path) -> list[str]:
    return [name for name in suite.tests if (tree / name).exists()]
