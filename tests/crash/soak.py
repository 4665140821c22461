"""Many seeds of the crash harness, outside of pytest.

    python -m tests.crash.soak [--mode M ...] [--first S] [--seeds N] [--jobs J] [--story]

In come the modes (all, if none is named), the first seed and how many; out goes a line for each failure, with the
command that plays that seed alone again, and a line for each mode. Exits 1 if anything failed.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.crash.engine import Failure, Mode, run_seed
from tests.crash.settings import scratch

PIECE = 25  # seeds that a process takes at a time


class Piece(NamedTuple):
    mode: Mode
    first: int
    seeds: int


class Done(NamedTuple):
    failures: list[str]
    stories: list[str]
    slowest: tuple[float, int]  # seconds, seed
    seconds: float


def run_one(seed: int, mode: Mode) -> str:
    """The story of a seed, played in a folder of its own. Failure if it is not as it must be."""
    with tempfile.TemporaryDirectory(prefix="interlog-crash-", dir=scratch()) as folder:
        return run_seed(seed, mode, Path(folder))


def run_piece(piece: Piece) -> Done:
    logging.disable(logging.CRITICAL)  # brokers that are killed have much to tell
    failures, stories, slowest = [], [], (0.0, 0)
    began = time.perf_counter()
    for seed in range(piece.first, piece.first + piece.seeds):
        before = time.perf_counter()
        try:
            stories.append(f"seed {seed}, mode {piece.mode.value}: {run_one(seed, piece.mode)}")
        except Failure as failure:
            failures.append(str(failure))
        slowest = max(slowest, (time.perf_counter() - before, seed))
    return Done(failures, stories, slowest, time.perf_counter() - began)


def pieces(modes: Sequence[Mode], first: int, seeds: int, size: int = PIECE) -> Iterator[Piece]:
    for mode in modes:
        for start in range(first, first + seeds, size):
            yield Piece(mode, start, min(size, first + seeds - start))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", action="append", choices=[mode.value for mode in Mode], help="may be given again")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--story", action="store_true", help="tell also what happened where nothing was wrong")
    given = parser.parse_args()
    modes = [Mode(name) for name in given.mode] if given.mode else list(Mode)
    failed = dict.fromkeys(modes, 0)
    seconds = dict.fromkeys(modes, 0.0)
    slowest = dict.fromkeys(modes, (0.0, 0))
    left = {mode: len(list(pieces([mode], given.first, given.seeds))) for mode in modes}
    work = list(pieces(modes, given.first, given.seeds))
    with ProcessPoolExecutor(given.jobs) as pool:
        for piece, done in zip(work, pool.map(run_piece, work), strict=True):
            mode = piece.mode
            for line in [*done.failures, *(done.stories if given.story else ())]:
                print(line, flush=True)
            failed[mode] += len(done.failures)
            seconds[mode] += done.seconds
            slowest[mode] = max(slowest[mode], done.slowest)
            left[mode] -= 1
            if not left[mode]:
                print(
                    f"{mode.value}: {given.seeds} seeds from {given.first}, {failed[mode]} failures, "
                    f"{seconds[mode]:.1f} s, slowest seed {slowest[mode][1]} with {slowest[mode][0]:.1f} s",
                    flush=True,
                )
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
