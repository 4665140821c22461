"""What must be in the broker's topics after it was killed, told by what its clients sent and were answered.

What was asked for may have happened; what was answered has happened for sure, and what was refused has not. A
transaction has happened in all its partitions and cursors, or in none.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tests.crash.model import Wrong

Place = tuple[str, int]  # topic, partition
Reader = tuple[str, Place]  # group, and what it reads

MOVER = "movers"  # the group that moves each record of INPUT to OUTPUT exactly once
INPUT, OUTPUT, TRIMMED = "input", "output", "trimmed"
TOPICS = {INPUT: 2, "log": 3, TRIMMED: 1, OUTPUT: 2}  # and how many partitions they have
PLACES = [(topic, index) for topic, count in TOPICS.items() for index in range(count)]


class Ending(Enum):
    NONE = "none"  # nobody asked for one, so that nothing of it counts
    COMMITTING = "committing"  # it was asked for
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Transaction:
    name: str
    ending: Ending = Ending.NONE
    batches: list["Batch"] = field(default_factory=list)
    claims: list["Claim"] = field(default_factory=list)

    def end(self, ending: Ending) -> None:
        self.ending = ending
        if ending is Ending.COMMITTED:
            for claim in self.claims:
                claim.lasts = True


@dataclass(slots=True, eq=False)
class Batch:
    place: Place
    numbers: range
    writer: int  # those of one stay in order
    transaction: Transaction | None = None
    offset: int | None = None  # where known
    written: bool = False  # for sure: a kill does not take it
    lasts: bool = False  # for sure
    refused: bool = False
    comes_again: bool = False  # its producer sends it until it is answered

    def __str__(self) -> str:
        return f"the batch of {self.numbers.start} to {self.numbers.stop - 1} in {self.place}"


@dataclass(slots=True, eq=False)
class Claim:
    """A cursor that was to be set."""

    offset: int
    note: str  # its metadata, like no other's
    transaction: Transaction | None = None
    lasts: bool = False

    @property
    def may_come_again(self) -> bool:
        """It was not set, and its transaction may go on."""
        return self.transaction is not None and self.transaction.ending in (Ending.NONE, Ending.COMMITTING)


class Stored(NamedTuple):
    offset: int
    number: int
    producer_id: int  # -1 where it is part of no transaction


class End(NamedTuple):
    """Of a transaction, in one partition."""

    offset: int
    producer_id: int
    committed: bool


@dataclass(slots=True)
class Log:
    """One partition, as it was read."""

    start: int
    end: int
    stable: int
    stored: list[Stored | End]
    visible: list[int]  # the numbers that are told to who reads what is committed
    aborted: set[tuple[int, int]]  # producer and first offset, as was told


def outcomes(log: Log) -> tuple[dict[int, bool], set[tuple[int, int]], int]:
    """By offset whether its transaction was committed, as far as it ended; what was aborted; up to where it is stable:
    all worked out from the markers."""
    open_now: dict[int, list[int]] = {}  # offsets by producer
    found: dict[int, bool] = {}
    aborted = set()
    for one in log.stored:
        if isinstance(one, End):
            offsets = open_now.pop(one.producer_id, [])
            found.update(dict.fromkeys(offsets, one.committed))
            if offsets and not one.committed:
                aborted.add((one.producer_id, offsets[0]))
        elif one.producer_id >= 0:
            open_now.setdefault(one.producer_id, []).append(one.offset)
    stable = min((offsets[0] for offsets in open_now.values()), default=log.end)
    return found, {one for one in aborted if one[1] < stable}, stable


def counting(log: Log) -> list[Stored]:
    """What is told to who reads what is committed."""
    found, _, stable = outcomes(log)
    records = [one for one in log.stored if isinstance(one, Stored) and one.offset < stable]
    return [one for one in records if one.producer_id < 0 or found[one.offset]]


class Model:
    def __init__(self) -> None:
        self.batches: list[Batch] = []  # in the order they were first sent
        self.transactions: list[Transaction] = []
        self.claims: dict[Reader, list[Claim]] = {}
        self.sources: dict[int, tuple[Place, int]] = {}  # of what the mover wrote: what it read
        self.things: dict[Hashable, set[Any]] = {}  # what else lasts, and what it may be
        self._writers = 0
        self._claims = 0

    def new_writer(self) -> int:
        self._writers += 1
        return self._writers

    def may(self, thing: Hashable, value: Any) -> None:
        """It was asked to be so."""
        self.things.setdefault(thing, {None}).add(value)

    def did(self, thing: Hashable, value: Any) -> None:
        self.things[thing] = {value}

    def known(self, thing: Hashable) -> Any:
        (value,) = self.things.get(thing, {None})
        return value

    def claim(self, reader: Reader, offset: int, transaction: Transaction | None = None) -> Claim:
        """A cursor that is asked to be set now."""
        self._claims += 1
        claim = Claim(offset, str(self._claims), transaction)
        self.claims.setdefault(reader, []).append(claim)
        if transaction is not None:
            transaction.claims.append(claim)
        return claim

    # -- one partition, at any time

    def check_log(self, place: Place, log: Log) -> None:
        """What a log says of itself fits together, and nothing in it is invented, twice or out of order."""
        offsets = [one.offset for one in log.stored]
        if offsets != list(range(log.start, log.end)):
            raise Wrong(f"{place} goes from {log.start} to {log.end}, and has offsets {offsets}")
        _, aborted, stable = outcomes(log)
        if log.stable != stable:
            raise Wrong(f"{place} is stable up to {stable}, and said to be up to {log.stable}")
        counts = counting(log)
        if [one.number for one in counts] != log.visible:
            raise Wrong(f"who reads what is committed in {place} gets {log.visible}, not {counts}")
        if aborted != log.aborted:
            raise Wrong(f"aborted in {place} was {aborted}, and {log.aborted} is told")
        at = {one.number: one.offset for one in log.stored if isinstance(one, Stored)}
        if len(at) != sum(isinstance(one, Stored) for one in log.stored):
            raise Wrong(f"something is twice in {place}: {log.stored}")
        self._check_batches(place, log, at)

    def _check_batches(self, place: Place, log: Log, at: Mapping[int, int]) -> None:
        unknown = set(at)
        missing: dict[int, Batch] = {}  # the first one of each writer that is not there
        seen: set[int] = set()  # of which writers something is there
        last: dict[int, int] = {}
        for batch in self.batches:
            if batch.place != place:
                continue
            found = [at[number] for number in batch.numbers if number in at]
            unknown.difference_update(batch.numbers)
            if batch.offset is not None and batch.offset + len(batch.numbers) <= log.start:
                continue
            if not found:
                if not batch.refused and (log.start == 0 or batch.writer in seen):
                    missing.setdefault(batch.writer, batch)
                continue
            if batch.refused:
                raise Wrong(f"{batch} was refused, and is there")
            if found[0] != log.start and found != list(range(found[0], found[0] + len(batch.numbers))):
                raise Wrong(f"{batch} is there in part: at {found}")
            if batch.offset is not None and found[-1] != batch.offset + len(batch.numbers) - 1:
                raise Wrong(f"{batch} was said to be at {batch.offset}, and ends at {found[-1]}")
            if batch.writer in missing:
                raise Wrong(f"{batch} is there, and {missing[batch.writer]} before it is not")
            if found[0] < last.get(batch.writer, -1):
                raise Wrong(f"{batch} is before what was sent before it")
            seen.add(batch.writer)
            last[batch.writer] = found[0]
        if unknown:
            raise Wrong(f"invented, or back from the dead, in {place}: {sorted(unknown)}")

    # -- after a restart

    def check(self, logs: Mapping[Place, Log], cursors: Mapping[Reader, tuple[int, str]], *, power: bool) -> None:
        """`power`: the machine went down, and not the broker alone."""
        for place, log in logs.items():
            self.check_log(place, log)
        offsets = {
            place: {one.number: one.offset for one in log.stored if isinstance(one, Stored)}
            for place, log in logs.items()
        }
        counts = {}
        for place, log in logs.items():
            found, _, _ = outcomes(log)
            counts[place] = {number for number, offset in offsets[place].items() if found.get(offset)}
        for batch in self.batches:
            there = batch.numbers[-1] in offsets[batch.place]
            trimmed = logs[batch.place].start > (batch.offset or 0)
            if (batch.lasts or (batch.written and not power)) and not there and not trimmed:
                raise Wrong(f"{batch} was acknowledged, and is lost")
        for transaction in self.transactions:
            self._check_transaction(transaction, counts)
        for reader in self.claims.keys() | cursors.keys():
            self._check_cursor(reader, cursors.get(reader))
        self._check_moved(logs, cursors)

    def _check_transaction(self, transaction: Transaction, committed: Mapping[Place, set[int]]) -> None:
        counts = {batch.numbers[-1] in committed[batch.place] for batch in transaction.batches if not batch.refused}
        name, ending = transaction.name, transaction.ending
        if len(counts) > 1:
            parts = [f"{one}{'' if one.numbers[-1] in committed[one.place] else ' NOT'}" for one in transaction.batches]
            raise Wrong(f"half of a transaction of {name} counts, {ending.value}: {parts}")
        if True in counts and ending in (Ending.NONE, Ending.ABORTED):
            raise Wrong(f"a transaction of {name} was not committed ({ending.value}), and counts")
        if False in counts and ending is Ending.COMMITTED:
            raise Wrong(f"a transaction of {name} was committed, and does not count")
        if counts and ending is Ending.COMMITTING:
            transaction.end(Ending.COMMITTED if True in counts else Ending.NONE)  # its end may be asked for again

    def _check_cursor(self, reader: Reader, found: tuple[int, str] | None) -> None:
        claims = self.claims.get(reader, [])
        last = max((at for at, claim in enumerate(claims) if claim.lasts), default=-1)
        never = (Ending.NONE, Ending.ABORTED)
        may = [one for one in claims[max(last, 0) :] if one.transaction is None or one.transaction.ending not in never]
        if found is None:
            if last >= 0:
                raise Wrong(f"the cursor of {reader} is lost; it was {claims[last]}")
            return
        if found not in [(claim.offset, claim.note) for claim in may]:
            raise Wrong(f"the cursor of {reader} is {found}; it was set to {[(one.offset, one.note) for one in may]}")

    def _check_moved(self, logs: Mapping[Place, Log], cursors: Mapping[Reader, tuple[int, str]]) -> None:
        """Each record that the movers have read is moved, once, in order."""
        moved: dict[Place, list[int]] = {}
        for place, log in logs.items():
            if place[0] == OUTPUT:
                for number in log.visible:
                    source, offset = self.sources[number]
                    moved.setdefault(source, []).append(offset)
        for place, log in logs.items():
            if place[0] == INPUT:
                upto, _ = cursors.get((MOVER, place), (0, ""))
                wanted = [one.offset for one in counting(log) if one.offset < upto]
                if sorted(moved.get(place, [])) != wanted:
                    raise Wrong(f"moved from {place}: {sorted(moved.get(place, []))}, not {wanted}, once each")

    def check_thing(self, thing: Hashable, found: Any) -> None:
        may = self.things.get(thing, {None})
        if found not in may:
            raise Wrong(f"{thing} is {found}; it may be {sorted(map(str, may))}")
        self.things[thing] = {found}

    def settle(self, logs: Mapping[Place, Log], cursors: Mapping[Reader, tuple[int, str]]) -> None:
        """What was found is what there is, from here on."""
        offsets = {
            place: {one.number: one.offset for one in log.stored if isinstance(one, Stored)}
            for place, log in logs.items()
        }
        kept = []
        for batch in self.batches:
            last = offsets[batch.place].get(batch.numbers[-1])
            if last is not None:
                batch.offset = last - len(batch.numbers) + 1
                batch.lasts = True
            if last is not None or batch.comes_again:
                kept.append(batch)
        self.batches = kept
        for reader, claims in self.claims.items():
            found = cursors.get(reader)
            for at, claim in enumerate(claims):
                if (claim.offset, claim.note) == found:
                    claim.lasts = True
                    if claim.transaction is not None:
                        claim.transaction.end(Ending.COMMITTED)
                    self.claims[reader] = [claim, *(one for one in claims[at + 1 :] if one.may_come_again)]
                    break
            else:
                self.claims[reader] = [one for one in claims if one.may_come_again]
