import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlog.base.errors import FormatError
from interlog.core.leases import Delta, Leases, Message, decode_counts, encode_counts
from interlog.journal.record import Record


def message(offset: int) -> Message:
    return (offset, Record(None, b"", (), 0), 0, False, 0, offset)


def lend(leases: Leases, holder: int, offsets: list[int], until_ms: int | None = None) -> None:
    leases.held.setdefault(holder, {}).update({offset: message(offset) for offset in offsets})
    if until_ms is not None:
        leases.set_until(holder, offsets, until_ms)


def test_a_lease_belongs_to_its_holder() -> None:
    leases = Leases()
    lend(leases, 1, [4, 5])
    assert leases.pop(4, 2) is None
    assert leases.holder_of(5) == 1
    assert leases.pop_many([4, 9, 5, 5], 1) == [message(4), message(5)]
    assert not leases.held


def test_leases_end_in_time_unless_they_were_extended_or_answered() -> None:
    leases = Leases()
    lend(leases, 1, [1, 2, 3, 4], 10)
    leases.set_until(1, [2], 20)
    leases.pop(3, 1)
    lend(leases, 2, [3])  # lent again, without an end
    assert leases.next_due_ms() == 10
    assert leases.expired(9) == []
    assert leases.expired(10) == [message(1), message(4)]
    assert leases.next_due_ms() == 20
    assert leases.expired(99) == [message(2)]
    assert leases.next_due_ms() is None
    assert leases.holder_of(3) == 2


def test_a_range_is_found_whichever_is_smaller_the_range_or_the_holding() -> None:
    for size in (2, 100):
        leases = Leases()
        lend(leases, 1, list(range(size)))
        lend(leases, 2, [200])
        assert [m[0] for m in leases.pop_range(1, 10, 1)] == list(range(1, min(size, 11)))
        assert [m[0] for m in leases.pop_range(0, 300, None)] == [0, *range(11, size), 200]


numbers = st.integers(0, 1 << 40)


@given(
    st.tuples(numbers, numbers),
    st.sets(st.integers(0, 300)),
    st.dictionaries(st.integers(0, 300), st.integers(0, 9)),
    st.none() | numbers,
)
def test_what_was_encoded_is_decoded(
    added: tuple[int, int], acked: set[int], counts: dict[int, int], lent: int | None
) -> None:
    delta = Delta()
    if added[0]:
        delta.added_count, delta.added_bytes = added
    delta.ranges = [(2 * offset, 2 * offset) for offset in sorted(acked)]
    if acked:
        delta.acked_count, delta.acked_bytes = len(acked), 77
    delta.returned = sorted(counts.items())
    delta.lent = -1 if lent is None else lent
    payload = delta.encode()
    again = Delta.decode(payload)
    assert all(getattr(again, name) == getattr(delta, name) for name in Delta.__slots__)
    for cut in range(1, len(payload)):
        try:  # shorter by whole operations is another delta; anything else is none
            assert Delta.decode(payload[:cut]).encode() == payload[:cut]
        except FormatError:
            pass
    assert decode_counts(encode_counts(delta.returned)) == delta.returned


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x01", b"\x01\x02", b"\x01\x03\x01\0\0\0", b"\x01\x04"]))
def test_any_other_bytes_are_refused_with_a_format_error(data: bytes, start: bytes) -> None:
    try:
        again = Delta.decode(start + data)
    except FormatError:
        pass
    else:
        assert len(again.encode()) <= len(start + data)
    try:
        assert encode_counts(decode_counts(data)) == data
    except FormatError:
        pass


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\x01\x05", b"\x01\x04" + bytes(8) + b"\x04" + bytes(8)])
def test_unknown_versions_and_operations_are_refused(payload: bytes) -> None:
    with pytest.raises(FormatError):
        Delta.decode(payload)
