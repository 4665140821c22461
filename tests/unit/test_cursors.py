from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import FormatError, InvalidError, LimitError, NotFoundError
from interlog.core import cursors as module
from interlog.core.cursors import Commit, Cursor, Cursors, decode, encode_commit, encode_removal
from interlog.journal.envelope import EntryKind
from interlog.journal.section import Changes, Row


class Tick:
    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def add(self, kind: int, target: int, payload: bytes) -> None:
        assert (kind, target) == (EntryKind.CURSOR, 0)
        self.payloads.append(payload)


def state(cursors: Cursors) -> dict[Any, Any]:
    return {key: dict(sorted(found.items())) for key, found in sorted(cursors._groups.items())}


def replayed(tick: Tick) -> Cursors:
    other = Cursors(Tick())
    for payload in tick.payloads:
        other.apply(payload)
    return other


def test_a_commit_is_one_entry_for_many_partitions() -> None:
    tick = Tick()
    cursors = Cursors(tick)
    cursors.commit("/", "g", [Commit(1, 10, 3, "hé"), Commit(2, 20)], 1000)
    assert len(tick.payloads) == 1
    assert cursors.fetch("/", "g", 1) == Cursor(10, 3, "hé", 1000)
    assert cursors.fetch_group("/", "g") == {1: Cursor(10, 3, "hé", 1000), 2: Cursor(20, -1, "", 1000)}
    assert cursors.fetch("/", "g", 3) is None
    assert cursors.fetch("/", "other", 1) is None
    assert cursors.groups("/") == ["g"]
    assert cursors.groups("elsewhere") == []
    assert cursors.groups_of(2) == [("/", "g")]
    assert len(cursors) == 2


def test_a_cursor_may_go_back_and_the_last_of_a_commit_counts() -> None:
    cursors = Cursors(Tick())
    cursors.commit("/", "g", [Commit(1, 10)], 1)
    cursors.commit("/", "g", [Commit(1, 7), Commit(1, 5)], 2)
    assert cursors.fetch("/", "g", 1) == Cursor(5, -1, "", 2)
    assert len(cursors) == 1


def test_a_commit_of_nothing_is_no_entry() -> None:
    tick = Tick()
    Cursors(tick).commit("/", "g", [], 1)
    assert tick.payloads == []


@pytest.mark.parametrize(
    ("group", "commit", "error", "says"),
    [
        ("", Commit(1, 1), InvalidError, "1 to 255 bytes, not 0"),
        ("é" * 128, Commit(1, 1), InvalidError, "not 256"),
        ("g", Commit(1, 1 << 63), InvalidError, "offset 9223372036854775808 of partition 1"),
        ("g", Commit(1 << 32, 1), InvalidError, "cannot be a cursor"),
        ("g", Commit(1, 1, -2), InvalidError, "cannot be a cursor"),
        ("g", Commit(1, 1, 0, "x" * 4097), LimitError, "4096 bytes"),
    ],
)
def test_what_cannot_be_accepted_changes_nothing(group: str, commit: Commit, error: Any, says: str) -> None:
    tick = Tick()
    cursors = Cursors(tick)
    with pytest.raises(error, match=says):
        cursors.commit("/", group, [Commit(9, 9), commit], 1)
    assert tick.payloads == []
    assert len(cursors) == 0


def test_there_is_a_limit_of_cursors_but_known_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CURSORS", 2)
    cursors = Cursors(Tick())
    cursors.commit("/", "g", [Commit(1, 1), Commit(2, 1)], 1)
    cursors.commit("/", "g", [Commit(1, 2), Commit(2, 2)], 2)
    with pytest.raises(LimitError, match="2 is the limit"):
        cursors.commit("/", "g", [Commit(3, 1)], 3)
    assert cursors.fetch("/", "g", 2) == Cursor(2, -1, "", 2)


def test_removing_a_group_some_cursors_and_a_partition() -> None:
    tick = Tick()
    cursors = Cursors(tick)
    for group in ("a", "b"):
        cursors.commit("/", group, [Commit(partition, 5) for partition in (1, 2, 3)], 1)
    assert cursors.remove("/", "a", [2, 9, 2]) == [2]
    assert cursors.remove("/", "a", [9]) == []
    cursors.remove_group("/", "b")
    with pytest.raises(NotFoundError, match="group b has no cursors"):
        cursors.remove_group("/", "b")
    assert state(replayed(tick)) == state(cursors)
    cursors.drop_partition(1)
    assert list(cursors.fetch_group("/", "a")) == [3]
    cursors.drop_namespace("/")
    assert len(cursors) == 0
    assert cursors.groups("/") == []
    assert cursors.groups_of(3) == []


def test_expiry_is_an_entry_and_spares_groups_in_use() -> None:
    tick = Tick()
    cursors = Cursors(tick)
    cursors.commit("/", "idle", [Commit(1, 1)], 1000)
    cursors.commit("/", "busy", [Commit(1, 1)], 1000)
    cursors.commit("/", "idle", [Commit(2, 1)], 2000)
    assert cursors.expire(1500, 500) == 0
    assert cursors.expire(1501, 500, lambda namespace, group: group == "busy") == 1
    assert cursors.fetch("/", "idle", 1) is None
    assert cursors.fetch("/", "idle", 2) is not None
    assert cursors.fetch("/", "busy", 1) is not None
    assert state(replayed(tick)) == state(cursors)


def test_the_checkpoint_gets_changed_rows_only_and_gives_all_back() -> None:
    saved: dict[Row, Row] = {}

    def save(changes: Changes) -> int:
        for key in changes.removals:
            saved.pop(key, None)
        saved.update({row[:3]: row for row in changes.rows})
        return len(changes.rows) + len(changes.removals)

    cursors = Cursors(Tick())
    cursors.commit("/", "a", [Commit(1, 1, 2, "m"), Commit(2, 1)], 10)
    assert save(cursors.take_changes()) == 2
    assert save(cursors.take_changes()) == 0
    cursors.commit("/", "a", [Commit(2, 9)], 20)
    cursors.remove("/", "a", [1])
    cursors.commit("/", "b", [Commit(1, 4)], 30)
    assert save(cursors.take_changes()) == 3
    other = Cursors(Tick())
    other.load(saved[key] for key in sorted(saved))
    assert state(other) == state(cursors)
    assert other.take_changes() == Changes()
    assert len(other) == 2


NAMES = st.text(min_size=1, max_size=20).filter(lambda name: name.isprintable())
COMMITS = st.lists(
    st.builds(
        Commit,
        st.integers(0, 0xFFFF_FFFF),
        st.integers(0, (1 << 63) - 1),
        st.integers(-1, (1 << 31) - 1),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    ),
    max_size=5,
)


@given(NAMES, NAMES, COMMITS, st.integers(0, 1 << 50))
def test_entries_say_what_went_in(namespace: str, group: str, commits: list[Commit], time_ms: int) -> None:
    assert decode(encode_commit(namespace, group, commits, time_ms))[1:] == (namespace, group, time_ms, commits, [])
    partitions = [commit.partition for commit in commits]
    assert decode(encode_removal(namespace, group, partitions))[1:] == (namespace, group, 0, [], partitions)


@given(st.binary(max_size=80))
def test_any_bytes_are_an_entry_or_a_format_error(data: bytes) -> None:
    for payload in (data, b"\1\1\0/\1\0g" + data, b"\2\1\0/\1\0g" + data):
        cursors = Cursors(Tick())
        try:
            cursors.apply(payload)
        except FormatError:
            assert len(cursors) == 0


def test_a_cut_entry_is_never_half_applied() -> None:
    payload = encode_commit("/", "group", [Commit(1, 1, 1, "meta"), Commit(2, 2)], 5)
    for size in range(len(payload)):
        cursors = Cursors(Tick())
        with pytest.raises(FormatError):
            cursors.apply(payload[:size])
        assert len(cursors) == 0
