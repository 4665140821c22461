"""What exchanges remember, as entries and rows: whatever comes in which order, replay and table give the same back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.clock import ManualClock
from interlog.base.errors import FormatError
from interlog.core.catalog import Catalog
from interlog.core.exchanges import Exchanges
from interlog.core.seen_keys import Memories
from interlog.journal.envelope import EntryKind
from interlog.journal.section import Changes
from tests.unit.test_catalog import FakeStorage, Table

SETTINGS = {"cache_size": 3, "cache_lasts": True}


class Told:
    """A journal: what was said, in order, that of the catalog too."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def add(self, kind: int, target: int, payload: bytes) -> None:
        assert (kind, target) == (EntryKind.SEEN, 0)
        self.entries.append(payload)


def catalog_with_exchanges() -> Catalog:
    catalog = Catalog(FakeStorage())
    exchanges = Exchanges(catalog)
    for name in ("x", "y"):
        exchanges.declare("/", name, "dedupe", settings=SETTINGS)
    exchanges.declare("/", "plain", "fanout")
    return catalog


def state(memories: Memories) -> dict[Any, Any]:
    """Keys, oldest first, and when their time is over."""
    return {key: list(memory._due_ms.items()) for key, memory in memories._memories.items() if len(memory)}


class Rows(Table):
    """Removals may name the beginnings of keys."""

    def save(self, changes: Changes) -> None:
        gone = [key for key in self.rows for removal in changes.removals if key[: len(removal)] == removal]
        for key in gone:
            self.rows.pop(key, None)
        self.rows.update({row[:3]: row for row in changes.rows})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("see"), st.sampled_from("xy"), st.sampled_from([b"a", b"b", b"c", b"d", b"e"])),
        st.tuples(st.just("forget"), st.sampled_from("xy"), st.just(b"")),
        st.tuples(st.just("save"), st.just(""), st.just(b"")),
        st.tuples(st.just("wait"), st.just(""), st.just(b"")),
    ),
    max_size=40,
)


@given(STEPS)
def test_table_and_entries_give_back_what_was_there(steps: list[tuple[str, str, bytes]]) -> None:
    catalog, clock, journal, table = catalog_with_exchanges(), ManualClock(), Told(), Rows()
    memories = Memories(catalog, clock, journal)
    for what, exchange, key in steps:
        if what == "see":
            memory = memories.of("/", exchange, SETTINGS, True)
            seen = key in memory and ((due_ms := memory.due_ms(key)) is None or due_ms > clock.now_ms())
            assert memory.is_new(key, clock.now_ms(), None if key == b"a" else 2_000) is not seen
        elif what == "forget":
            memories.forget("/", exchange)
            journal.entries.append(exchange.encode())
        elif what == "save":
            table.save(memories.take_changes())
            journal.entries.clear()
        else:
            clock.advance(1_500)
    again = Memories(catalog, clock)
    again.load(table.sorted())
    for entry in journal.entries:
        if entry in (b"x", b"y"):
            again.forget("/", entry.decode())  # as the catalog's entry has it
        else:
            again.apply(entry)
    assert state(again) == state(memories)
    for one in (memories, again):  # one goes on, and one was started anew
        after = Rows()
        after.rows = dict(table.rows)
        after.save(one.take_changes())
        loaded = Memories(catalog, clock)
        loaded.load(after.sorted())
        assert state(loaded) == state(memories)


@pytest.mark.parametrize(
    "entry",
    [b"", b"\x01", b"\x01\x00/\x01\x00x", b"\x01\x00\xff\x01\x00x" + bytes(8) + b"k", b"\x01\x00/\x01\x00x" + bytes(8)],
)
def test_entries_that_say_nothing_are_errors(entry: bytes) -> None:
    with pytest.raises(FormatError):
        Memories(catalog_with_exchanges(), ManualClock()).apply(entry)


@pytest.mark.parametrize("exchange", ["plain", "gone"])
def test_entries_that_cannot_be_are_errors(exchange: str) -> None:
    name = exchange.encode()
    entry = b"\x01\x00/" + len(name).to_bytes(2, "little") + name + bytes(8) + b"key"
    with pytest.raises(FormatError, match="contradicts"):
        Memories(catalog_with_exchanges(), ManualClock()).apply(entry)


def test_rows_of_exchanges_that_are_gone_are_passed_over() -> None:
    memories = Memories(catalog_with_exchanges(), ManualClock())
    memories.load([("/", "gone", b"k", 0, None), ("/", "x", b"k", 7, None)])
    assert state(memories) == {("/", "x"): [(b"k", None)]}
