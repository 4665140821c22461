"""The crash harness in the test run: about 200 seeds over all modes; in `dev.py soak --seeds N`, N seeds of each.

A failure tells the seed, what happened in it and what differed, and the command that plays it alone again.
"""

import pytest

from tests.crash.engine import Mode
from tests.crash.soak import Piece, pieces, run_one

SEEDS = {
    Mode.POWER: 40,
    Mode.KILL: 30,
    Mode.OS: 25,
    Mode.ERRORS: 25,
    Mode.FULL: 20,
    Mode.FLIP: 25,
    Mode.SQLITE: 20,
    Mode.CHILD: 8,
    Mode.THREADS: 8,
}
PIECE = 5  # seeds in one test: enough of them that workers can share them evenly
SOAK_FIRST = 1_000  # other seeds than those of every test run
SLOW = {Mode.CHILD: 5, Mode.THREADS: 5}  # processes: so many times fewer in a soak


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "piece" in metafunc.fixturenames:
        found = [piece for mode, seeds in SEEDS.items() for piece in pieces([mode], 0, seeds, PIECE)]
        metafunc.parametrize("piece", found, ids=name)
    if "soak_piece" in metafunc.fixturenames:
        seeds = metafunc.config.getoption("--seeds")
        found = [
            piece for mode in Mode for piece in pieces([mode], SOAK_FIRST, max(1, seeds // SLOW.get(mode, 1)), PIECE)
        ]
        metafunc.parametrize("soak_piece", found, ids=name)


def name(piece: Piece) -> str:
    return f"{piece.mode.value}-{piece.first}-{piece.first + piece.seeds - 1}"


def play(piece: Piece) -> None:
    for seed in range(piece.first, piece.first + piece.seeds):
        run_one(seed, piece.mode)


def test_nothing_acknowledged_is_lost(piece: Piece) -> None:
    play(piece)


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_over_many_seeds(soak_piece: Piece) -> None:
    play(soak_piece)


@pytest.mark.parametrize("mode", [Mode.POWER, Mode.ERRORS, Mode.FULL])
def test_a_seed_always_tells_the_same_story(mode: Mode) -> None:
    assert run_one(3, mode) == run_one(3, mode)
