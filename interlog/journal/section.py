"""What the checkpoint keeps, as tables: each part of the state that must be found again is a section.

A section hands over the rows that changed since it was last asked, and takes its rows back at start. It knows
nothing of SQLite; the checkpoint knows nothing of what the rows mean.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

Value = int | str | bytes | None
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns as (name, SQL type), the key columns first; `keys` tells how many they are.

    A lazy table is not loaded at start: its section reads it in pieces, by key.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    keys: int = 1
    lazy: bool = False


@dataclass(slots=True)
class Changes:
    """Removals apply before rows. A removal names a key, or a prefix of one: then all rows that begin with it.

    `below` removes all rows whose key is not greater than it.
    """

    rows: list[Row] = field(default_factory=list)
    removals: list[Row] = field(default_factory=list)
    below: Row | None = None


class Section(Protocol):
    table: Table

    def take_changes(self) -> Changes:
        """What changed since the last call. Called on the owner's thread; the answer is kept until it is saved."""
        ...

    def load(self, rows: Iterable[Row]) -> None:
        """All rows as saved, in key order, before anything else is asked of the section."""
        ...


class LazySection(Section, Protocol):
    """The section of a lazy table. It keeps what it handed over until it hears that the table has it.

    `load` is never called. A `take_changes` that follows another with no `saved` between (the save failed) hands
    over everything again that is not known to be saved: rows may come twice, and the later answer alone is enough.
    """

    def saved(self) -> None:
        """What the last `take_changes` answered is committed: readers of the table see it from now on."""
        ...
