"""What can happen to a data folder while no broker uses it: a bit that flips, a checkpoint that is lost or spoilt.

In comes the folder; out comes what was done, whose files a broker that refuses to start must name one of, and the way
back.
"""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Damage:
    what: str
    names: list[str]  # one of these stands in the sentence of a broker that refuses
    undo: Callable[[], None]


def flip_a_bit(data: Path, rng: random.Random) -> Damage | None:
    """One bit of one file, rather one that was written than one that was only reserved."""
    groups = [
        sorted((data / "journal").glob("*.journal")),
        sorted((data / "journal").glob("*.journal")),
        sorted((data / "segments").glob("*/*.log")),
        sorted((data / "segments").glob("*/*index")),
        [data / "meta.db", data / "meta.previous.db", data / "meta.db-wal"],
        [data / "journal" / "synced", data / "folder.json"],
    ]
    paths = [path for path in rng.choice(groups) if path.exists() and path.stat().st_size]
    if not paths:
        return None
    path = rng.choice(paths)
    content = path.read_bytes()
    position = rng.randrange(len(content))
    for _ in range(20):
        if content[position]:
            break
        position = rng.randrange(len(content))
    flipped = content[position] ^ 1 << rng.randrange(8)
    _put(path, position, flipped)
    inode = path.stat().st_ino

    def undo() -> None:
        if (
            path.exists()
            and path.stat().st_ino == inode
            and path.read_bytes()[position : position + 1] == bytes([flipped])
        ):
            _put(path, position, content[position])

    where = f"{path.relative_to(data)} byte {position} of {len(content)}"
    return Damage(f"flipped a bit of {where}", [path.name, str(path)], undo)


def _put(path: Path, position: int, byte: int) -> None:
    fd = os.open(path, os.O_RDWR)
    try:
        os.pwrite(fd, bytes([byte]), position)
    finally:
        os.close(fd)


def spoil_checkpoints(data: Path, rng: random.Random) -> Damage | None:
    """meta.db deleted, cut short or overwritten; sometimes its older copy too."""
    kept = data.with_name("kept")
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for path in data.glob("meta*"):
        shutil.copy2(path, kept / path.name)
    names = ["meta.db"]
    if rng.random() < 0.3:
        names.append("meta.previous.db")
    told = []
    for name in names:
        path = data / name
        if not path.exists():
            continue
        told.append(f"{_spoil(path, rng)} {name}")
    if rng.random() < 0.3:
        (data / "meta.db-wal").unlink(missing_ok=True)
        told.append("deleted meta.db-wal")
    if not told:
        return None

    def undo() -> None:
        for path in data.glob("meta*"):
            path.unlink()
        for path in kept.iterdir():
            shutil.copy2(path, data / path.name)

    return Damage(", ".join(told), ["meta.db", "meta.previous.db"], undo)


def _spoil(path: Path, rng: random.Random) -> str:
    size = path.stat().st_size
    how = rng.choice(("deleted", "emptied", "cut", "garbled", "wrote over"))
    if how == "deleted":
        path.unlink()
    elif how == "emptied":
        os.truncate(path, 0)
    elif how == "cut":
        os.truncate(path, rng.randrange(size + 1))
    elif how == "garbled":
        path.write_bytes(rng.randbytes(rng.choice((10, 4096, 40_000))))
    else:
        content = bytearray(path.read_bytes())
        for _ in range(rng.choice((1, 5))):
            at = rng.randrange(max(1, size - 512))
            content[at : at + 512] = rng.randbytes(512)
        path.write_bytes(content)
    return how
