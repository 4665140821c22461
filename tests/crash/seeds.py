"""What engines of seeds share: a seed played in a folder of its own, the command line, and the pieces for pytest.

In comes a function that plays a seed of a mode; out goes a line about what happened, or a `Failure` that tells the
seed, its story, what was wrong, and the command that plays it alone again.
"""

import argparse
import logging
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TypeVar

import pytest

from tests.crash.brokers import Broker
from tests.crash.engine import Failure
from tests.crash.settings import scratch
from tests.faults import PowerCut

SOAK_FIRST = 1_000  # other seeds than those of every test run

M = TypeVar("M", bound=Enum)
Tell = Callable[[str], None]
Make = Callable[[int, M, random.Random, Path], Broker]
Run = Callable[[Broker, M, random.Random, Tell], None]
RunOne = Callable[[int, M], str]


def play_seed(face: str, module: str, seed: int, mode: M, make: Make[M], run: Run[M]) -> str:
    """A line about what happened; Failure if that was wrong."""
    rng = random.Random(f"{face} {mode.value} {seed}")
    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="interlog-crash-", dir=scratch()) as folder:
        broker = make(seed, mode, rng, Path(folder))
        try:
            run(broker, mode, rng, told.append)
        except (Exception, PowerCut) as error:
            again = f"python -m {module} --mode {mode.value} --first {seed} --seeds 1"
            story = "\n  ".join(told)
            raise Failure(f"{face}, seed {seed}, mode {mode.value}:\n  {story}\n{error!r}\nagain: {again}") from error
        finally:
            broker.close()
    return "; ".join(told)


def command(doc: str | None, modes: type[M], run_one: RunOne[M]) -> int:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", action="append", choices=[mode.value for mode in modes], help="may be given again")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--story", action="store_true", help="tell also what happened where nothing was wrong")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # brokers that are killed have much to tell
    failed = 0
    for mode in [modes(name) for name in given.mode] if given.mode else list(modes):
        began = time.perf_counter()
        for seed in range(given.first, given.first + given.seeds):
            try:
                told = run_one(seed, mode)
                if given.story:
                    print(f"seed {seed}, mode {mode.value}: {told}", flush=True)
            except Failure as failure:
                failed += 1
                print(failure, flush=True)
        print(f"{mode.value}: {given.seeds} seeds in {time.perf_counter() - began:.1f} s", flush=True)
    return 1 if failed else 0


def parametrize(
    metafunc: pytest.Metafunc,
    fixture: str,
    seeds: Mapping[M, int],
    piece: Mapping[M, int],
    slow: Mapping[M, int],
) -> None:
    """Give a test that asks for `fixture` the seeds of every run, one that asks for `soak_`fixture those of a soak."""
    if fixture in metafunc.fixturenames:
        name, pieces = fixture, [(mode, 0, count) for mode, count in seeds.items()]
    elif f"soak_{fixture}" in metafunc.fixturenames:
        count = metafunc.config.getoption("--seeds")
        name = f"soak_{fixture}"
        pieces = [(mode, SOAK_FIRST, max(1, count // slow.get(mode, 1))) for mode in seeds]
    else:
        return
    found = [
        (mode, range(start, min(start + piece[mode], first + count)))
        for mode, first, count in pieces
        for start in range(first, first + count, piece[mode])
    ]
    metafunc.parametrize(name, found, ids=[f"{mode.value}-{seeds[0]}-{seeds[-1]}" for mode, seeds in found])


def first_failure(run_one: RunOne[M], modes: Sequence[M], seeds: int) -> str:
    """What is told of the first seed that fails."""
    for seed in range(seeds):
        for mode in modes:
            try:
                run_one(seed, mode)
            except Failure as failure:
                return str(failure)
    return "no failure"
